//! R12: the first dataset is made by exactly one node, and only where no data ever was.

mod fixture;

use dyad_core::dataset::Class;
use dyad_core::decide;
use dyad_core::decision::{Action, Decision, Refusal};
use dyad_core::facts::{
    Eligibility, EligibleBy, EtcdState, Facts, LogPosition, Memory, Operation, YieldMark,
};
use dyad_core::statement::{EtcdWord, Statement};

/// Two nodes of a new pair, as `north` sees them: both there, neither with any data.
fn blank() -> Facts {
    let mut facts = fixture::pair_at_rest();
    facts.request.operation = Operation::Begin;
    facts.dataset = fixture::dataset(Class::None);
    facts.peer.statement = Some(fixture::statement(Class::None));
    facts
}

/// What the other node sees at the same moment: everything mirrored.
fn mirrored(facts: &Facts) -> Facts {
    let mut other = facts.clone();
    other.node = facts.peer.name.clone();
    other.boot = "south-1".into();
    other.peer.name = facts.node.clone();
    let said = Statement::of(facts, None);
    other.peer.statement = Some(Statement { answers: Some("south-1".into()), ..said });
    other
}

fn with(change: impl FnOnce(&mut Facts)) -> Decision {
    let mut facts = blank();
    change(&mut facts);
    decide(&facts)
}

fn peer(facts: &mut Facts) -> &mut Statement {
    facts.peer.statement.as_mut().unwrap()
}

/// Of two blank nodes exactly one begins, whoever is preferred; the other waits for it.
#[test]
fn exactly_one_begins() {
    for survivor in [None, Some("north"), Some("south"), Some("elsewhere")] {
        let mut facts = blank();
        facts.policy.survivor = survivor.map(Into::into);
        let actions = [decide(&facts).action, decide(&mirrored(&facts)).action];
        let begins = actions.iter().filter(|action| **action == Action::CreateDataset).count();
        assert_eq!(begins, 1, "{survivor:?}: {actions:?}");
        assert!(actions.iter().any(|action| matches!(action, Action::Wait { .. })));
        let first = usize::from(survivor == Some("south"));
        assert_eq!(actions[first], Action::CreateDataset, "{survivor:?}");
    }
}

/// Without the peer in the cluster, without its word to this very boot, without quorum: nothing is made.
#[test]
fn both_must_be_there() {
    let cases: [fn(&mut Facts); 5] = [
        |facts| facts.peer.present = false,
        |facts| facts.peer.statement = None,
        |facts| peer(facts).answers = Some("north-0".into()),
        |facts| peer(facts).etcd = EtcdWord::Running,
        |facts| facts.pacemaker.quorate = false,
    ];
    for case in cases {
        let decision = with(case);
        assert!(matches!(decision.action, Action::Wait { .. }), "{decision:?}");
    }
}

/// Data that were here, or on the peer, forbid a new beginning: it could be a second history.
#[test]
fn former_data_forbid_it() {
    let cases: [fn(&mut Facts); 5] = [
        |facts| facts.traces = vec!["/var/lib/etcd/dyad/aside/000001-a1 was moved aside".into()],
        |facts| {
            let mark = YieldMark { cluster: fixture::CLUSTER, member: fixture::ME };
            facts.marks.yielded = Some(mark);
        },
        |facts| {
            facts.peer.memory =
                Some(Memory { member: fixture::PEER, last: LogPosition::default() });
        },
        |facts| {
            facts.eligibility = Some(Eligibility {
                boot: "north-1".into(),
                run: None,
                member: fixture::ME,
                with: fixture::PEER,
                by: EligibleBy::Barrier,
            });
        },
        |facts| peer(facts).blank = false,
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let mut facts = blank();
        case(&mut facts);
        let decision = decide(&facts);
        let refused = matches!(decision.action, Action::Refuse { reason: Refusal::HadData, .. });
        assert!(refused, "{number}: {decision:?}");
        // Nor does its peer begin: it hears that this node is not blank.
        if number < 4 {
            assert!(!Statement::of(&facts, None).blank, "{number}");
            let other = decide(&mirrored(&facts));
            assert!(matches!(other.action, Action::Refuse { .. }), "{number}: {other:?}");
        }
    }
}

/// A node of an earlier version does not say whether it is blank: it does not count as blank.
#[test]
fn silence_is_not_blank() {
    let mut json = serde_json::to_value(fixture::statement(Class::None)).unwrap();
    json.as_object_mut().unwrap().remove("blank");
    let old: Statement = serde_json::from_value(json).unwrap();
    let decision = with(|facts| facts.peer.statement = Some(old));
    assert!(matches!(decision.action, Action::Refuse { reason: Refusal::HadData, .. }));
}

/// Where data are, there is nothing to begin: a second set-up changes nothing, a new node joins.
#[test]
fn a_pair_that_has_begun_is_left_alone() {
    for class in [Class::Pair, Class::Alone, Class::Learner, Class::Left, Class::Broken] {
        let decision = with(|facts| facts.dataset = fixture::dataset(class));
        assert_eq!(decision.action, Action::Nothing, "{class}: {decision:?}");
    }
    for class in [Class::Pair, Class::Alone] {
        let decision = with(|facts| *peer(facts) = fixture::statement(class));
        assert_eq!(decision.action, Action::Nothing, "{class}: {decision:?}");
    }
    let running = with(|facts| facts.etcd.state = EtcdState::Starting);
    assert_eq!(running.action, Action::Nothing);
    for class in [Class::Learner, Class::Left, Class::Broken] {
        let decision = with(|facts| *peer(facts) = fixture::statement(class));
        assert!(matches!(decision.action, Action::Refuse { .. }), "{class}: {decision:?}");
    }
}

/// What every later rule rests on is there first: fencing, Pacemaker's hand, a disk that takes writes.
#[test]
fn what_later_rules_rest_on_is_there_first() {
    let cases: [fn(&mut Facts); 5] = [
        |facts| facts.pacemaker.fencing_enabled = false,
        |facts| facts.pacemaker.startup_fencing = false,
        |facts| facts.pacemaker.maintenance = true,
        |facts| facts.pacemaker.managed = false,
        |facts| facts.disk_writable = false,
    ];
    for case in cases {
        let decision = with(case);
        assert!(matches!(decision.action, Action::StayInert { .. }), "{decision:?}");
    }
}

/// Nobody but the set-up begins: what Pacemaker asks for never makes data out of nothing.
#[test]
fn only_the_set_up_begins() {
    for operation in [Operation::Start, Operation::Promote, Operation::Monitor, Operation::Boot] {
        let decision = with(|facts| facts.request.operation = operation);
        assert_ne!(decision.action, Action::CreateDataset, "{operation:?}");
    }
}
