//! The decisions of Dyad, and the words they are made of.
//!
//! Everything in this crate is an argument: no clock, no I/O, no async, no randomness. Facts go in, one
//! decision and its reason come out. What is true of a pair stands here once, with the number of its rule
//! in `ARCHITECTURE.md`.

/// Whether a rule is deliberately broken, for checking the checker. Constantly `false` in every shipped build.
#[cfg(not(feature = "broken-variants"))]
macro_rules! broken {
    ($facts:expr, $variant:ident) => {{
        let _: &crate::Facts = $facts;
        false
    }};
}
/// Whether a rule is deliberately broken, for checking the checker.
#[cfg(feature = "broken-variants")]
macro_rules! broken {
    ($facts:expr, $variant:ident) => {
        $facts.broken == Some(crate::broken::Broken::$variant)
    };
}

#[cfg(feature = "broken-variants")]
pub mod broken;
pub mod commands;
pub mod dataset;
mod decide;
pub mod decision;
pub mod facts;
pub mod glance;
pub mod ids;
mod proof;
mod rules;
mod standing;
pub mod state;
pub mod statement;
pub mod timing;
pub mod worth;

pub use decide::{decide, decide_at_last};
pub use decision::{Action, Decision};
pub use facts::Facts;
pub use statement::Statement;
