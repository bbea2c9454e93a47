//! Telling Pacemaker that a node is to run nothing, or is to run things again.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use dyad_core::ids::NodeName;
use dyad_node::{Node, pacemaker};

use crate::exit::{Exit, Failure};

/// How long this node may take to be in the cluster after its boot.
const JOIN_LIMIT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(500);

/// Tells it, once this node takes part in the cluster: typed right after a boot, a command may come before that, and must
/// not be written into a CIB that would then replace the other node's.
pub(super) fn tell(node: &Node, target: &NodeName, standby: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut told = false;
    loop {
        let missing = match pacemaker::has_joined(&node.own().name) {
            Ok(true) => break,
            Ok(false) => "it has not joined the cluster".to_owned(),
            Err(error) => dyad_node::gather::words(&error),
        };
        if start.elapsed() > JOIN_LIMIT {
            let message = format!("Pacemaker on this node does not take orders: {missing}");
            return Err(Failure::new(Exit::TimedOut, message).hint("dyad status").into());
        }
        if !told {
            anstream::eprintln!("   0 s  waiting for Pacemaker on this node: it has just started");
            told = true;
        }
        std::thread::sleep(PAUSE);
    }
    pacemaker::set_standby(target, standby).context("telling Pacemaker")
}
