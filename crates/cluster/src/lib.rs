//! Corosync and Pacemaker, as Dyad uses them: one typed description of a pair, the configuration rendered
//! from it, the state read back, and the statements published to the peer.

pub mod cib;
pub mod corosync;
pub mod pair;
pub mod state;
mod xml;
