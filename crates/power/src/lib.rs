//! The power of the other node.
//!
//! [`Redfish`] speaks to a BMC: finds one pinned System, reads its power, switches it, and says that it is
//! off only after the BMC said so. [`fence`] is the interface that Pacemaker's fence agents share:
//! parameters, exit codes, metadata. Nothing in here decides when to fence.
//!
//! "Off" is a proof that Dyad rests on, so everything that is not exactly `Off` is not off: `PoweringOff`,
//! `null`, an unknown word, an answer for another System, a broken answer.

mod credentials;
mod error;
pub mod fence;
mod logs;
mod power;
mod redfish;
mod system;

pub use credentials::{Credentials, CredentialsError, read_private};
pub use error::Error;
pub use logs::LogEntry;
pub use power::{OffProof, Pace};
pub use redfish::{Authentication, Redfish};
pub use system::{PowerState, ResetType, System, SystemName};
