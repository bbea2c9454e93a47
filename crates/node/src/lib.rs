//! One node of a pair.
//!
//! Facts are gathered from the disk, from Corosync, Pacemaker and the local etcd; `dyad_core` decides; the one
//! thing that was decided is done here, and its outcome is published. Nothing in this crate decides.

pub mod corosync;
pub mod pacemaker;
pub mod place;
pub mod record;
pub mod runner;
