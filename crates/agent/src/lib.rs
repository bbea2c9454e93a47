//! The agents that Pacemaker calls on a node.
//!
//! Small programs that start fast, block, and end: no async runtime, no server, no cluster libraries.

pub mod alert;
pub mod fence;
