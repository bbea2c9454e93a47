//! A node that boots and sees nobody (R5).
//!
//! Without quorum Pacemaker calls no agent, so this is a small loop of its own. It asks `core` once a second
//! until there is quorum, for whatever reason: the peer came, was proven off, or a person confirmed.

use std::time::Duration;

use dyad_core::decision::Action;
use dyad_core::facts::{Operation, Request, Role};

use crate::journal;
use crate::node::{Error, Node};

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(1);

/// A failure is told when it has lasted for this many looks.
const FAILURES_TOLD: u32 = 15;

/// Looks until this node has quorum. It ends then: from there on Pacemaker decides.
pub fn watch(node: &Node) -> Result<(), Error> {
    let request = Request { operation: Operation::Boot, ..Request::default() };
    let mut released = false;
    let mut failures = 0_u32;
    loop {
        let lock = node.lock()?;
        let outcome = node.operate(&request, Role::Stopped);
        drop(lock);
        // Pacemaker starts at the same time, and there is nobody yet to tell: only a failure that stays counts.
        failures = if outcome.failure.is_some() { failures + 1 } else { 0 };
        if let (Some(failure), FAILURES_TOLD) = (&outcome.failure, failures) {
            journal::warn(&format!("boot alone: {failure}"));
        }
        let facts = &outcome.gathered.facts;
        if facts.pacemaker.quorate || facts.peer.present {
            return Ok(());
        }
        if outcome.decision.action == Action::ReleaseWaitForAll && outcome.failure.is_none() {
            if !released {
                journal::tell("boot alone: the peer is proven off; released wait_for_all");
            }
            released = true;
        }
        std::thread::sleep(INTERVAL);
    }
}
