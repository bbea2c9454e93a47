//! The scenarios of the lab: real nodes, real fencing, one file each.
//!
//! They need root and a machine for themselves, and run one after the other: `make lab-test`.

mod common;
mod faults;
mod fenced_node_stays_blocked;
mod links_cut;
mod membership;
mod node_killed;
mod nothing_left;
mod slow_bmc;
