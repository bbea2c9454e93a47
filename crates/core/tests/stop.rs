//! R7: a stop is always possible.

mod fixture;

use dyad_core::decision::{Action, Outcome};
use dyad_core::facts::{Operation, Request};
use dyad_core::{Decision, decide, decide_at_last};

/// R7: what a stop does for the other node is a courtesy. If it cannot be done, or has no end, etcd is stopped all the same:
/// a stop that failed would end in fencing. Nothing but a stop is ever forced so.
#[test]
fn a_stop_without_courtesy_is_a_plain_stop() {
    let mut facts = fixture::pair_at_rest();
    let last = |action: Action| Decision { action, ..decide(&fixture::pair_at_rest()) };
    let hand_over = last(Action::HandOver { to: fixture::PEER });
    for operation in [Operation::Stop, Operation::Demote] {
        facts.request = Request { operation, ..Request::default() };
        for (last, failed) in [
            (&hand_over, true),
            // It leads still, however often it has handed over.
            (&hand_over, false),
            // It rests, but could not say so, or not write its mark.
            (&last(Action::Nothing), true),
            (&last(Action::Yield), true),
        ] {
            let decision = decide_at_last(&facts, last, failed).unwrap();
            assert_eq!((decision.action, decision.outcome), (Action::Stop, Outcome::Ok));
        }
        for (last, failed) in [
            (last(Action::Nothing), false),
            (last(Action::Yield), false),
            (last(Action::Leave), false),
            // These stop etcd themselves: there is no other way to.
            (last(Action::Leave), true),
            (last(Action::Stop), true),
        ] {
            assert_eq!(decide_at_last(&facts, &last, failed), None, "{last:?}");
        }
    }
    for operation in [Operation::Start, Operation::Promote, Operation::Monitor] {
        facts.request = Request { operation, ..Request::default() };
        assert_eq!(decide_at_last(&facts, &hand_over, true), None);
    }
}
