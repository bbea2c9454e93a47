//! What Pacemaker's operations add to the rules: a stop is always possible (R7), a probe only looks.

mod fixture;

use dyad_core::dataset::Class;
use dyad_core::decision::{Action, Outcome};
use dyad_core::facts::{Operation, Request, Role};
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

/// A probe of an instance that was never started changes nothing, whatever is due: a learner is not started, nobody joins. The
/// same instance, once it is started, goes on.
#[test]
fn a_probe_only_looks() {
    for class in
        [Class::None, Class::Pair, Class::Alone, Class::Learner, Class::Left, Class::Broken]
    {
        for peer in [Class::Pair, Class::Alone] {
            let mut facts = fixture::pair_at_rest();
            facts.dataset = fixture::dataset(class);
            facts.peer.statement = Some(fixture::statement(peer));
            facts.request = Request { operation: Operation::Monitor, ..Request::default() };
            facts.role = Role::Stopped;
            let probed = decide(&facts);
            let looked = matches!(
                probed.action,
                Action::Nothing
                    | Action::Wait { .. }
                    | Action::StayInert { .. }
                    | Action::Refuse { .. }
            );
            assert!(looked, "{class}/{peer}: {probed:?}");
            assert_eq!(probed.outcome, Outcome::NotRunning);
        }
    }
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Class::Learner);
    facts.request = Request { operation: Operation::Monitor, ..Request::default() };
    facts.role = Role::Stopped;
    assert_eq!(decide(&facts).action, Action::Nothing);
    facts.role = Role::Unpromoted;
    assert_eq!(decide(&facts).action, Action::StartPlain);
}
