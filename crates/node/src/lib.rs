//! One node of a pair.
//!
//! Facts are gathered from the disk, from Corosync, Pacemaker and the local etcd; `dyad_core` decides; the one
//! thing that was decided is done here, and its outcome is published. Nothing in this crate decides.

pub mod act;
pub mod agent;
pub mod aside;
mod blind;
pub mod boot;
#[cfg(feature = "broken-variants")]
pub mod broken;
pub mod certificates;
pub mod confirm;
mod connections;
pub mod corosync;
mod create;
pub mod etcd;
#[cfg(test)]
mod fixture;
pub mod follow;
pub mod gather;
pub mod journal;
mod lock;
pub mod lone;
pub mod memory;
pub mod node;
pub mod ocf;
pub mod pacemaker;
pub mod place;
pub mod power;
pub mod record;
pub mod runner;
mod traces;
mod vote;
pub mod webhook;

pub use node::Node;
pub use place::Place;
