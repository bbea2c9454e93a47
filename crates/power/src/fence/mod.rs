//! The interface of fence agents: what Pacemaker, pcs and people see of `fence_dyad_redfish`.
//!
//! Parameters come as `key=value` lines on stdin (Pacemaker) or as options (people). One table,
//! [`PARAMETERS`], is the source of the parser, the metadata, the manual page and the reference.

mod action;
mod input;
mod manual;
mod metadata;
mod parameters;
mod reason;
mod settings;

pub use action::Action;
pub use input::{Input, read_stdin};
pub use manual::{manual_page, reference, usage};
pub use metadata::metadata;
pub use parameters::{Kind, PARAMETERS, Parameter};
pub use reason::{Failure, Reason};
pub use settings::Settings;

/// The agent's name.
pub const AGENT: &str = "fence_dyad_redfish";
