//! Two real nodes on one machine, with real power and faults on demand.
//!
//! A node is a container with systemd as its first process, real Corosync, Pacemaker and etcd from Debian's
//! packages, its own disk, its own network and its own cgroup. Pulling its plug first silences its network
//! and then ends its cgroup, as a dead machine would. `docs/internals/lab.md` says how it is built and where
//! it differs from real machines.

mod bmc;
pub mod campaign;
pub mod cgroup;
pub mod clients;
pub mod cluster;
pub mod config;
mod disk;
pub mod error;
pub mod events;
pub mod image;
mod lab;
mod network;
mod node;
pub mod pair;
pub mod place;
mod program;
pub mod progress;
pub mod protocol;
mod residue;
mod rival;
mod supervisor;
pub mod timeline;
pub mod view;

pub use config::LabConfig;
pub use dyad_program::Finished;
pub use error::{Error, Result};
pub use lab::{ExecTarget, Lab, Lifetime, Supervision};
pub use residue::residue;
pub use supervisor::supervise;
