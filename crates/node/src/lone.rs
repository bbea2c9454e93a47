//! A node that boots and sees nobody (R5).
//!
//! Without quorum Pacemaker calls no agent, so this is a small loop of its own. It asks `core` once a second
//! until there is quorum, for whatever reason: the peer came, was proven off, or a person confirmed.

use std::time::Duration;

use dyad_core::decision::Action;
use dyad_core::facts::{Facts, Operation, Request, Role};

use crate::gather::UNKNOWN_RING;
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
        if is_over(facts) {
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

/// Whether Pacemaker decides from here on. A Corosync that did not answer has told nothing: the peer then counts as there, so
/// that nothing is done, but this is not the end.
fn is_over(facts: &Facts) -> bool {
    let known = facts.ring.0 != UNKNOWN_RING;
    facts.pacemaker.quorate || facts.peer.present && known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, Word};

    /// R5: one look at a Corosync that does not answer does not end the watch, though the peer then counts as there; quorum
    /// does, and so does a peer that was seen.
    #[test]
    fn the_watch_ends_on_what_is_known() {
        let node = Fixture::new().node(&Word::default());
        let request = Request { operation: Operation::Boot, ..Request::default() };
        // Nobody answers here.
        let mut facts = node.look(request, Role::Stopped).facts;
        assert!(facts.peer.present && !is_over(&facts));
        facts.ring = "1.8".into();
        assert!(is_over(&facts));
        facts.peer.present = false;
        assert!(!is_over(&facts));
        facts.pacemaker.quorate = true;
        assert!(is_over(&facts));
    }
}
