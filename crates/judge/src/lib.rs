//! Clients that write and read through both nodes during faults, and the judge of what they saw.
//!
//! A generator ([`load`]) records every operation in a [`history`]. The judge then asks two questions that
//! do not depend on each other:
//!
//! - [`linearizable`]: is there one order of all operations, in keeping with real time, that explains
//!   every answer? It looks at values only, and trusts nothing that the store says about itself.
//! - [`lost`]: is everything that was acknowledged still there, once, under one revision, on every node?
//!   It looks at revisions and at the state that is left in the end.
//!
//! [`verdict`] puts both together. What cannot be decided within its limit is never called good.

pub mod chance;
pub mod cli;
pub mod clock;
pub mod history;
pub mod linearizable;
pub mod load;
pub mod lost;
pub mod operation;
pub mod simulate;
pub mod verdict;

#[cfg(test)]
mod fixture;
