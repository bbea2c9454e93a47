//! The decisions of Dyad, and the words they are made of.
//!
//! Everything in this crate is an argument: no clock, no I/O, no async, no randomness. Facts go in, one
//! decision and its reason come out. What is true of a pair stands here once, with the number of its rule
//! in `ARCHITECTURE.md`.

pub mod dataset;
pub mod ids;
pub mod timing;
