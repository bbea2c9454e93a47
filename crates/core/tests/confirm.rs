//! A person's word: what speaks against it, what a person may overrule, and what nobody may.

mod fixture;

use dyad_core::dataset::Class;
use dyad_core::decision::{Action, Refusal};
use dyad_core::facts::{Facts, Operation, Power, PowerReading};
use dyad_core::{Decision, decide};
use fixture::{PEER, dataset, pair_at_rest};

fn away() -> Facts {
    let mut facts = pair_at_rest();
    facts.dataset = dataset(Class::Alone);
    facts.peer.present = false;
    facts.peer.statement = None;
    facts.peer.paths.clear();
    facts.pacemaker.quorate = false;
    facts
}

fn asked(facts: &Facts, despite_signs: bool) -> Decision {
    let mut facts = facts.clone();
    facts.request.operation = Operation::Confirm { accept_loss: false, despite_signs };
    decide(&facts)
}

fn is_up(decision: &Decision) -> bool {
    matches!(decision.action, Action::Refuse { reason: Refusal::PeerIsUp, .. })
}

/// An address that answers and a BMC that says On refuse a word; told of them, a person may know better.
#[test]
fn signs_of_life_refuse_unless_overruled() {
    let mut answers = away();
    answers.peer.paths = vec!["10.0.0.2".into()];
    let mut powered = away();
    powered.peer.power = Some(PowerReading {
        state: Power::On,
        after_forced_off: false,
        member: Some(PEER),
        ring: powered.ring.clone(),
    });
    for facts in [answers, powered] {
        let refused = asked(&facts, false);
        assert!(is_up(&refused), "{refused:?}");
        let Action::Refuse { command, .. } = &refused.action else { unreachable!() };
        assert!(command.ends_with("--yes-peer-is-down south --although-it-seems-up"), "{command}");
        let accepted = asked(&facts, true).action;
        assert_eq!(accepted, Action::AcceptConfirmation { accept_loss: false });
    }
}

/// A peer in Corosync's membership is up, whatever a person says.
#[test]
fn nobody_overrules_corosync() {
    let mut facts = away();
    facts.peer.present = true;
    assert!(is_up(&asked(&facts, false)) && is_up(&asked(&facts, true)));
}

/// Overruling signs of life accepts no loss: that is asked for by itself.
#[test]
fn overruling_signs_accepts_no_loss() {
    let mut facts = away();
    facts.dataset = dataset(Class::Pair);
    facts.peer.paths = vec!["10.0.0.2".into()];
    let refused = asked(&facts, true);
    let would_lose = matches!(refused.action, Action::Refuse { reason: Refusal::WouldLose, .. });
    assert!(would_lose, "{refused:?}");
}
