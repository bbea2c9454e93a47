//! The `dyad` command line.
//!
//! A library, so that the manual pages and completions can be generated from the very definition that
//! parses the arguments, and a test can tell when they have drifted.

pub mod cli;
pub mod commands;
pub mod exit;
pub mod generate;
pub mod lab;
pub mod output;
pub mod wrap;
