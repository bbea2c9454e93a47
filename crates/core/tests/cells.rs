//! Every cell of the cold-boot table: both nodes visible and at rest, same cluster.

mod fixture;

use dyad_core::dataset::Class::{self, Alone, Broken, Learner, Left, None, Pair};
use dyad_core::dataset::Membership;
use dyad_core::facts::{Eligibility, EligibleBy, EtcdState, LiveMember, Role};
use dyad_core::ids::MemberId;
use dyad_core::statement::{EtcdWord, Listed, Place};
use dyad_core::{Statement, decide};

/// Rows: me. Columns: the peer. What is decided, by name.
const TABLE: &[(Class, [(Class, &str); 6])] = &[
    (
        Pair,
        [
            (Pair, "recordComparison"),
            (Alone, "yield"),
            (Learner, "startPlain"),
            (Left, "announceTakeOver"),
            (None, "stayInert"),
            (Broken, "stayInert"),
        ],
    ),
    (
        Alone,
        [
            (Pair, "startPlain"),
            (Alone, "refuse"),
            (Learner, "startPlain"),
            (Left, "startPlain"),
            (None, "startPlain"),
            (Broken, "startPlain"),
        ],
    ),
    (
        Learner,
        [
            (Pair, "startPlain"),
            (Alone, "wait"),
            (Learner, "refuse"),
            (Left, "refuse"),
            (None, "refuse"),
            (Broken, "refuse"),
        ],
    ),
    (
        Left,
        [
            (Pair, "wait"),
            (Alone, "wait"),
            (Learner, "refuse"),
            (Left, "refuse"),
            (None, "refuse"),
            (Broken, "refuse"),
        ],
    ),
    (
        None,
        [
            (Pair, "wait"),
            (Alone, "wait"),
            (Learner, "refuse"),
            (Left, "refuse"),
            (None, "stayInert"),
            (Broken, "refuse"),
        ],
    ),
    (
        Broken,
        [
            (Pair, "wait"),
            (Alone, "wait"),
            (Learner, "refuse"),
            (Left, "refuse"),
            (None, "refuse"),
            (Broken, "refuse"),
        ],
    ),
];

fn action(facts: &dyad_core::Facts) -> String {
    let decision = serde_json::to_value(decide(facts)).unwrap();
    decision["action"].as_str().unwrap().to_owned()
}

/// Each cell decides what the table says, and names itself or its rule.
#[test]
fn every_cell_decides_as_the_table_says() {
    for (own, row) in TABLE {
        for (peer, wanted) in row {
            let mut facts = fixture::pair_at_rest();
            facts.dataset = fixture::dataset(*own);
            facts.peer.statement = Some(fixture::statement(*peer));
            assert_eq!(action(&facts), *wanted, "{own} / {peer}: {:?}", decide(&facts));
        }
    }
}

/// A node without a voter's dataset joins once the peer serves and has added it: not before (R4).
#[test]
fn a_join_waits_for_the_peer_to_serve_and_to_add() {
    for own in [Left, None, Broken, Learner] {
        let mut facts = fixture::pair_at_rest();
        facts.dataset = fixture::dataset(own);
        let mut peer = fixture::statement(Alone);
        peer.etcd = EtcdWord::Serving;
        peer.last = Option::None;
        facts.peer.statement = Some(peer.clone());
        assert_eq!(action(&facts), "wait", "{own}");
        peer.listener = Some(Listed { member: MemberId(0xa2), place: Place::Learner });
        facts.peer.statement = Some(peer);
        assert_eq!(action(&facts), "joinAsLearner", "{own}");
    }
}

/// What the peer says counts only if it is its own, about now, and to this boot (R10, V2).
#[test]
fn a_statement_counts_only_if_it_answers_this_boot() {
    let mut facts = fixture::pair_at_rest();
    facts.peer.statement.as_mut().unwrap().answers = Some("north-0".into());
    assert_eq!(action(&facts), "wait");
    let mut facts = fixture::pair_at_rest();
    facts.peer.statement.as_mut().unwrap().node = "south10".into();
    assert_eq!(action(&facts), "wait");
}

/// A member that was given up is never joined again, though the peer's last word still lists it as a learner: an id
/// that has voted must not start with an empty log (R4).
#[test]
fn a_given_up_member_is_not_joined_again() {
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Left);
    let mut peer = fixture::statement(Alone);
    peer.etcd = EtcdWord::Serving;
    peer.last = Option::None;
    peer.listener = Some(Listed { member: fixture::ME, place: Place::Learner });
    facts.peer.statement = Some(peer);
    assert_eq!(action(&facts), "wait", "{:?}", decide(&facts));
}

/// R4: a learner that replays a long log, in which third members stand and it does not, knows no leader for as long
/// as that takes. It is left alone as long as it gets on; stuck, it starts again; and only a learner whose vote is
/// waited for is deaf (R8).
#[test]
fn a_learner_may_take_its_time() {
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Learner);
    facts.dataset.prefixes[0].membership = Membership::new([MemberId(7), MemberId(8)], []);
    facts.etcd.state = EtcdState::NoLeader;
    facts.etcd.leaderless_ms = 2 * facts.policy.leaderless_ms_max;
    let mut peer = fixture::statement(Alone);
    peer.etcd = EtcdWord::Serving;
    peer.listener = Some(Listed { member: fixture::ME, place: Place::Learner });
    facts.peer.statement = Some(peer.clone());
    assert_eq!(action(&facts), "wait", "{:?}", decide(&facts));

    facts.etcd.leaderless_ms = 4 * facts.policy.leaderless_ms_max;
    assert_eq!(action(&facts), "stop", "{:?}", decide(&facts));

    facts.dataset = fixture::dataset(Learner);
    peer.listener = Some(Listed { member: fixture::ME, place: Place::Voter });
    facts.peer.statement = Some(peer);
    assert_eq!(action(&facts), "yield", "{:?}", decide(&facts));
}

fn member(id: MemberId, node: &str, learner: bool) -> LiveMember {
    LiveMember { id, node: Some(node.into()), learner, started: false, caught_up: false }
}

/// R4: a learner that has yielded never starts again under its id: its voter drops it, so that it can be added anew.
#[test]
fn a_learner_that_has_yielded_is_dropped() {
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Alone);
    facts.etcd.state = EtcdState::Leader;
    facts.etcd.members =
        vec![member(fixture::ME, "north", false), member(fixture::PEER, "south", true)];
    let mut peer = fixture::statement(Left);
    peer.member_id = Some(fixture::PEER);
    peer.yielded = true;
    facts.peer.statement = Some(peer.clone());
    assert_eq!(action(&facts), "dropLearner", "{:?}", decide(&facts));
    peer.yielded = false;
    facts.peer.statement = Some(peer);
    assert_eq!(action(&facts), "wait", "{:?}", decide(&facts));
}

/// R2a: asking Corosync alone is enough for the second look only while the peer is away, in the same membership,
/// with quorum.
#[test]
fn a_short_second_look_needs_the_same_membership() {
    let mut facts = fixture::pair_at_rest();
    let ring = facts.ring.clone();
    facts.peer.present = false;
    assert!(facts.still_hold(&ring, Some(true)) && facts.still_hold(&ring, Option::None));
    assert!(!facts.still_hold(&ring, Some(false)));
    assert!(!facts.still_hold(&"another".into(), Some(true)));
    facts.pacemaker.quorate = false;
    assert!(!facts.still_hold(&ring, Option::None));
    facts.pacemaker.quorate = true;
    facts.peer.present = true;
    assert!(!facts.still_hold(&ring, Some(true)) && !facts.still_hold(&ring, Option::None));
}

/// The other one runs, waits for a vote, and could go on alone.
fn fit_peer_that_runs() -> Statement {
    Statement { etcd: EtcdWord::Running, eligible: true, ..fixture::statement(Pair) }
}

/// The same, but for one thing each.
fn unfit_peers() -> [Statement; 4] {
    let fit = fit_peer_that_runs;
    [
        Statement { eligible: false, ..fit() },
        Statement { disk_writable: false, ..fit() },
        Statement { leaving: true, ..fit() },
        Statement { etcd: EtcdWord::Stopped, ..fit() },
    ]
}

/// R8: a voter whose disk takes no writes yields to a peer that runs and is fit, and to no other.
#[test]
fn a_full_disk_yields_to_a_fit_peer_that_runs() {
    let mut facts = fixture::pair_at_rest();
    facts.disk_writable = false;
    let peer = fit_peer_that_runs();
    facts.peer.statement = Some(peer.clone());
    assert_eq!(action(&facts), "yield", "{:?}", decide(&facts));

    for unfit in unfit_peers() {
        facts.peer.statement = Some(unfit);
        assert_ne!(action(&facts), "yield", "{:?}", facts.peer.statement);
    }
    facts.peer.statement = Some(peer);
    facts.disk_writable = true;
    assert_ne!(action(&facts), "yield");
}

/// R8: a voter at rest that Pacemaker stops for good yields to a peer that runs and is fit: the other one waits for its
/// vote. Not in a recovery, not when both stop, and not to one that could not go on.
#[test]
fn a_voter_that_stays_off_yields_to_a_fit_peer() {
    use dyad_core::facts::{Operation, Request};
    let mut facts = fixture::pair_at_rest();
    let (own, other) = (vec![facts.node.clone()], vec![facts.peer.name.clone()]);
    let peer = fit_peer_that_runs();
    facts.peer.statement = Some(peer.clone());
    let stops = |operation, stop: &[_], start: &[_]| Request {
        operation,
        stop: stop.to_vec(),
        start: start.to_vec(),
        ..Request::default()
    };
    facts.request = stops(Operation::Stop, &own, &[]);
    assert_eq!(action(&facts), "yield", "{:?}", decide(&facts));
    let both = [own.as_slice(), other.as_slice()].concat();
    for request in [
        stops(Operation::Stop, &own, &own),
        stops(Operation::Stop, &both, &[]),
        stops(Operation::Stop, &[], &[]),
        stops(Operation::Demote, &own, &[]),
    ] {
        let facts = dyad_core::Facts { request, ..facts.clone() };
        assert_eq!(action(&facts), "nothing", "{:?}", facts.request);
    }
    for unfit in unfit_peers() {
        facts.peer.statement = Some(unfit);
        assert_eq!(action(&facts), "nothing", "{:?}", facts.peer.statement);
    }
}

/// Left / Left: two that yielded to each other. The one with the newer log takes its yield back, between equals the one
/// that comes first; the other waits. If anything is in doubt, a person is asked.
#[test]
fn of_two_that_yielded_one_takes_it_back() {
    use dyad_core::facts::{LogPosition, YieldMark};
    use dyad_core::ids::{Index, Term};
    let mut facts = fixture::pair_at_rest();
    facts.marks.yielded = Some(YieldMark { cluster: fixture::CLUSTER, member: fixture::ME });
    let mut peer = fixture::statement(Left);
    peer.yielded = true;
    peer.removal_committed = false;
    peer.solid_pair = true;
    for (term, index, expected) in
        [(2, 8, "takeBackYield"), (2, 9, "takeBackYield"), (2, 10, "wait"), (3, 1, "wait")]
    {
        peer.last = Some(LogPosition { term: Term(term), index: Index(index) });
        facts.peer.statement = Some(peer.clone());
        assert_eq!(action(&facts), expected, "{:?}", decide(&facts));
    }
    peer.last = Some(LogPosition { term: Term(2), index: Index(9) });
    facts.policy.survivor = Some("south".into());
    facts.peer.statement = Some(peer.clone());
    assert_eq!(action(&facts), "wait", "between equals the policy decides");

    let doubts: [fn(&mut Statement); 4] = [
        |peer| peer.solid_pair = false,
        |peer| peer.removal_committed = true,
        |peer| peer.member_id = Some(MemberId(77)),
        |peer| peer.last = Option::None,
    ];
    for doubt in doubts {
        let mut peer = peer.clone();
        doubt(&mut peer);
        facts.peer.statement = Some(peer);
        assert_eq!(action(&facts), "refuse", "{:?}", facts.peer.statement);
    }
}

/// R7: a node that was demoted on its way to a stop says that it leaves, until it is started again or, if the stop was
/// called off in between, until Pacemaker goes on monitoring it. Anybody else's look changes nothing.
#[test]
fn a_leave_that_is_called_off_is_taken_back() {
    use dyad_core::facts::{Operation, Request};
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Left);
    let asked = |operation, recurring| Request { operation, recurring, ..Request::default() };
    let stop = vec![facts.node.clone()];
    facts.request = Request { stop, ..asked(Operation::Demote, false) };
    let leaves = Statement::of(&facts, Option::None);
    assert!(leaves.leaving);
    facts.published = Some(leaves);
    for (request, still) in [
        (asked(Operation::Monitor, false), true),
        (asked(Operation::Monitor, true), false),
        (asked(Operation::Start, false), false),
    ] {
        facts.request = request;
        assert_eq!(Statement::of(&facts, Option::None).leaving, still, "{:?}", facts.request);
    }
}

/// Eligibility: what was earned in another run of the cluster stack says nothing, even in the same boot. Whose stack was
/// stopped in good order is clean and offline to the other one, which may have gone on.
#[test]
fn eligibility_ends_with_the_run_of_the_stack() {
    let mut facts = fixture::pair_at_rest();
    facts.run = Some("second".into());
    facts.eligibility = Some(Eligibility {
        boot: facts.boot.clone(),
        run: Some("second".into()),
        member: fixture::ME,
        with: fixture::PEER,
        by: EligibleBy::Barrier,
    });
    assert!(Statement::of(&facts, Option::None).eligible);
    facts.run = Some("third".into());
    assert!(!Statement::of(&facts, Option::None).eligible);
}

/// R4: a learner that cannot read what it had under its id never starts again as this one: another id is its way back.
#[test]
fn a_learner_with_a_broken_log_is_dropped() {
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Alone);
    facts.role = Role::Promoted;
    facts.etcd.state = EtcdState::Leader;
    facts.etcd.members =
        vec![member(fixture::ME, "north", false), member(fixture::PEER, "south", true)];
    let mut peer = fixture::statement(Broken);
    peer.member_id = Some(fixture::PEER);
    facts.peer.statement = Some(peer);
    assert_eq!(action(&facts), "dropLearner", "{:?}", decide(&facts));
}
