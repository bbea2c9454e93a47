//! The pair at a glance, from one node, in a fraction of a second.
//!
//! Every source is asked at the same time and none is waited for longer than the limit: what did not answer is
//! named as not known. Nothing is changed by looking. What follows from what was seen is judged in
//! `dyad_core::state`, nowhere else.

mod certificates;
pub mod document;
pub mod events;
pub mod history;
pub mod incidents;
pub mod look;
pub mod schema;
pub mod setup;
mod tell;
mod tools;
pub mod words;

pub use document::Status;
pub use look::look;
