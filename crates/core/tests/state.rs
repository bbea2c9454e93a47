//! Where the pair stands: each state from the facts that make it, and no good news from what is not known.

mod fixture;

use dyad_core::Facts;
use dyad_core::dataset::Class;
use dyad_core::facts::{Eligibility, EligibleBy, EtcdState, LiveMember, YieldMark};
use dyad_core::ids::{MemberId, NodeName};
use dyad_core::state::{GiveWay, PeerEtcd, Sight, State, Urgency};
use dyad_core::statement::EtcdWord;
use fixture::{ME, PEER, dataset, pair_at_rest, statement};

fn member(id: MemberId, node: &str, learner: bool) -> LiveMember {
    LiveMember { id, node: Some(node.into()), learner, started: true, caught_up: false }
}

/// Two voters that serve, each eligible.
fn whole() -> Facts {
    let mut facts = pair_at_rest();
    facts.etcd.state = EtcdState::Leader;
    facts.etcd.members = vec![member(ME, "north", false), member(PEER, "south", false)];
    facts.eligibility = Some(Eligibility {
        boot: facts.boot.clone(),
        run: facts.run.clone(),
        member: ME,
        with: PEER,
        by: EligibleBy::Barrier,
    });
    let mut said = statement(Class::Pair);
    said.etcd = EtcdWord::Serving;
    said.eligible = true;
    facts.peer.statement = Some(said);
    facts.peer.paths.clear();
    facts
}

/// This node serves as the only voter, the other is gone and switched off.
fn alone() -> Facts {
    let mut facts = whole();
    facts.dataset = dataset(Class::Alone);
    facts.etcd.members.truncate(1);
    facts.eligibility = None;
    away(&mut facts, false);
    facts
}

fn away(facts: &mut Facts, unclean: bool) {
    facts.peer.present = false;
    facts.peer.absent_ms = 5_000;
    facts.peer.statement = None;
    facts.peer.paths.clear();
    facts.pacemaker.nodes[1].online = false;
    facts.pacemaker.nodes[1].unclean = unclean;
}

/// Asserts the state and a part of what is said; gives the rest.
#[track_caller]
fn expect(sight: &Sight<'_>, state: State, part: &str) -> dyad_core::state::Judgement {
    let judgement = sight.judge();
    assert_eq!(judgement.state, state, "{judgement:?}");
    assert!(judgement.because.contains(part), "{part:?} is not in {judgement:?}");
    judgement
}

/// A whole pair is protected, seen from a leader and from a follower.
#[test]
fn protected() {
    let mut facts = whole();
    for state in [EtcdState::Leader, EtcdState::Follower] {
        facts.etcd.state = state;
        let judgement = expect(&Sight::of(&facts), State::Protected, "either node may fail");
        assert!(judgement.risks.is_empty() && judgement.next.is_none());
    }
}

/// Every single thing that would keep a failure from being survived takes the word "protected" away, and says
/// why.
#[test]
fn at_risk() {
    type Break = fn(&mut Facts);
    let breaks: [(Break, &str); 8] = [
        (|facts| facts.pacemaker.fencing_enabled = false, "fencing is switched off"),
        (|facts| facts.pacemaker.startup_fencing = false, "start-up fencing"),
        (|facts| facts.pacemaker.maintenance = true, "maintenance mode"),
        (|facts| facts.pacemaker.managed = false, "not managed"),
        (|facts| facts.pacemaker.quorate = false, "no quorum"),
        (|facts| facts.disk_writable = false, "north's disk"),
        (|facts| facts.peer.statement.as_mut().unwrap().disk_writable = false, "south's disk"),
        (|facts| facts.pacemaker.nodes[1].online = false, "does not run on south"),
    ];
    for (break_it, part) in breaks {
        let mut facts = whole();
        break_it(&mut facts);
        expect(&Sight::of(&facts), State::AtRisk, part);
    }
    let facts = whole();
    let no_bmc = vec![(NodeName::from("south"), "its BMC does not answer".to_owned())];
    let sight = Sight { not_fenceable: no_bmc, ..Sight::of(&facts) };
    let part = "south could not be switched off: its BMC does not answer";
    let judgement = expect(&sight, State::AtRisk, part);
    assert_eq!(judgement.next.as_deref(), Some("dyad drill"));
    let sight = Sight { alarms: vec!["etcd: no space".to_owned()], ..Sight::of(&facts) };
    expect(&sight, State::AtRisk, "no space");
}

/// What a source did not tell is never good news.
#[test]
fn silence_is_not_good_news() {
    let mut facts = whole();
    facts.peer.statement = None;
    let silent = Sight { pacemaker: false, ..Sight::of(&facts) };
    expect(&silent, State::AtRisk, "Pacemaker does not answer on north");
    let facts = whole();
    let silent = Sight { corosync: false, ..Sight::of(&facts) };
    expect(&silent, State::AtRisk, "Corosync does not answer on north");
}

/// Promoted is not yet redundant (R4): without the barrier on both sides nobody says "protected".
#[test]
fn before_the_barrier_it_catches_up() {
    let mut facts = whole();
    facts.peer.statement.as_mut().unwrap().eligible = false;
    expect(&Sight::of(&facts), State::CatchingUp, "still to come");
    let mut facts = whole();
    facts.eligibility = None;
    expect(&Sight::of(&facts), State::CatchingUp, "still to come");
    let mut facts = whole();
    facts.peer.statement = None;
    expect(&Sight::of(&facts), State::CatchingUp, "still to come");
    let mut facts = whole();
    facts.eligibility.as_mut().unwrap().with = MemberId(7);
    expect(&Sight::of(&facts), State::CatchingUp, "still to come");
}

/// One node serves: seen from itself, and from one that only listens.
#[test]
fn catching_up() {
    let mut facts = alone();
    facts.peer.present = true;
    facts.pacemaker.nodes[1].online = true;
    facts.etcd.members.push(member(PEER, "south", true));
    let sight = Sight { learner_percent: Some(43), ..Sight::of(&facts) };
    let judgement = expect(&sight, State::CatchingUp, "south copies the data (43 %)");
    assert_eq!(judgement.on, Some("north".into()));

    facts.etcd.state = EtcdState::Learner;
    let judgement = expect(&Sight::of(&facts), State::CatchingUp, "do not reboot south");
    assert_eq!(judgement.on, Some("south".into()));
}

/// A node alone is named; so is the one that must not be rebooted, seen from the other side.
#[test]
fn alone_on_one() {
    let facts = alone();
    let judgement = expect(&Sight::of(&facts), State::Alone, "do not reboot it");
    assert_eq!(judgement.on, Some("north".into()));

    // Seen from a node that was stopped by hand.
    let mut facts = pair_at_rest();
    facts.peer.statement = None;
    let sight =
        Sight { pacemaker: false, peer_etcd: PeerEtcd::Serves { voters: 1 }, ..Sight::of(&facts) };
    let judgement = expect(&sight, State::Alone, "do not reboot it");
    assert_eq!(judgement.on, Some("south".into()));
    assert_eq!(judgement.next.as_deref(), Some("systemctl start pacemaker"));

    // One that boots comes by itself: nobody is told to start anything.
    let judgement = expect(
        &Sight { booting: true, ..sight },
        State::CatchingUp,
        "north boots; Pacemaker is about to start",
    );
    assert_eq!((judgement.on, judgement.next), (Some("south".into()), None));
    let silent = Sight { pacemaker: false, booting: true, ..Sight::of(&facts) };
    assert_eq!(expect(&silent, State::Starting, "about to start").next, None);
}

/// A node in maintenance is neither a failure nor protected, and the way back is named on both nodes.
#[test]
fn maintenance() {
    let facts = alone();
    let sight = Sight { standby: vec!["south".into()], ..Sight::of(&facts) };
    let judgement = expect(&sight, State::Maintenance, "north serves alone");
    assert_eq!(judgement.next.as_deref(), Some("dyad maintenance end south"));

    let mut facts = pair_at_rest();
    facts.dataset = dataset(Class::Left);
    let sight = Sight {
        standby: vec!["north".into()],
        peer_etcd: PeerEtcd::Serves { voters: 1 },
        ..Sight::of(&facts)
    };
    let judgement = expect(&sight, State::Maintenance, "south serves alone; do not reboot it");
    assert_eq!(judgement.next.as_deref(), Some("dyad maintenance end north"));
}

/// A lost node: being switched off, switched off, or not to be switched off at all.
#[test]
fn failing_over() {
    let mut facts = whole();
    facts.etcd.state = EtcdState::NoLeader;
    away(&mut facts, true);
    expect(&Sight::of(&facts), State::FailingOver, "is being switched off");
    let sight = Sight { fencing_failed: true, ..Sight::of(&facts) };
    let judgement = expect(&sight, State::Blocked, "cannot be switched off");
    assert_eq!(judgement.next.as_deref(), Some("dyad confirm --yes-peer-is-down south"));
    facts.pacemaker.nodes[1].unclean = false;
    expect(&Sight::of(&facts), State::FailingOver, "about to go on alone");
}

/// A node that boots alone with a copy that may be old waits for a person, and says for what.
#[test]
fn blocked() {
    let mut facts = pair_at_rest();
    facts.pacemaker.quorate = false;
    away(&mut facts, true);
    let judgement = expect(&Sight::of(&facts), State::Blocked, "waiting for south");
    assert!(judgement.next.unwrap().contains("--accept-possible-loss"));
}

/// The newest copy boots alone: that needs no person, only time.
#[test]
fn the_newest_copy_boots_alone() {
    let mut facts = pair_at_rest();
    facts.dataset = dataset(Class::Alone);
    facts.pacemaker.quorate = false;
    away(&mut facts, true);
    expect(&Sight::of(&facts), State::Starting, "south may still come");
}

/// A peer that answers and is not in Corosync's membership is a split, whatever else is seen.
#[test]
fn split() {
    let mut facts = whole();
    facts.etcd.state = EtcdState::NoLeader;
    away(&mut facts, true);
    let sight = Sight { peer_etcd: PeerEtcd::Leaderless, ..Sight::of(&facts) };
    expect(&sight, State::Split, "Corosync does not see it");
}

/// R6: two copies that both went on wait for a person.
#[test]
fn diverged() {
    let mut facts = pair_at_rest();
    facts.dataset = dataset(Class::Alone);
    facts.peer.statement = Some(statement(Class::Alone));
    let judgement = expect(&Sight::of(&facts), State::Diverged, "a person chooses");
    assert_eq!(judgement.next.as_deref(), Some("dyad resolve"));

    // Seen from the one that serves.
    let mut facts = alone();
    facts.peer.present = true;
    facts.peer.statement = Some(statement(Class::Alone));
    expect(&Sight::of(&facts), State::Diverged, "a person chooses");
}

/// Two empty nodes are being set up; two that boot are starting; one that nobody started is stopped.
#[test]
fn before_there_is_anything() {
    let mut facts = pair_at_rest();
    facts.dataset = dataset(Class::None);
    facts.peer.statement = Some(statement(Class::None));
    expect(&Sight::of(&facts), State::SettingUp, "no data");
    expect(&Sight::of(&pair_at_rest()), State::Starting, "");
    let facts = pair_at_rest();
    let sight = Sight { pacemaker: false, corosync: false, ..Sight::of(&facts) };
    let judgement = expect(&sight, State::Stopped, "Pacemaker does not answer on north");
    assert_eq!(judgement.next.as_deref(), Some("systemctl start pacemaker"));
}

/// Planned work starts on a protected pair only, and only if everything is known.
#[test]
fn the_gate_is_open_on_a_protected_pair_only() {
    let facts = whole();
    let judgement = Sight::of(&facts).judge();
    assert_eq!(judgement.gate(&[]), Ok(()));
    let shut = judgement.gate(&["links: no answer".to_owned()]).unwrap_err();
    assert!(shut.because.contains("links: no answer"), "{shut:?}");
    let facts = alone();
    let shut = Sight::of(&facts).judge().gate(&[]).unwrap_err();
    assert!(shut.because.contains("ALONE"), "{shut:?}");
}

/// A node may be taken out if the other goes on; never the only one that has everything.
#[test]
fn only_a_node_that_is_not_needed_may_leave() {
    let (north, south) = (NodeName::from("north"), NodeName::from("south"));
    let leave = |facts: &Facts, node: &NodeName| Sight::of(facts).judge().may_leave(facts, node);
    let facts = whole();
    assert_eq!((leave(&facts, &north), leave(&facts, &south)), (Ok(()), Ok(())));

    let facts = alone();
    assert_eq!(leave(&facts, &south), Ok(()));
    let refused = leave(&facts, &north).unwrap_err();
    assert!(refused.because.contains("north is the only one"), "{refused:?}");

    // With its disk full the other could not go on; this one may be mended.
    let mut facts = whole();
    facts.peer.statement.as_mut().unwrap().disk_writable = false;
    assert_eq!(leave(&facts, &south), Ok(()));
    assert!(leave(&facts, &north).unwrap_err().because.contains("south could not go on"));

    let mut facts = whole();
    facts.eligibility = None;
    assert!(leave(&facts, &south).is_err() && leave(&facts, &north).is_err());
}

/// Each state has a word of its own; only "protected" is fine.
#[test]
fn words_are_told_apart() {
    let words: std::collections::HashSet<_> = State::ALL.iter().map(|state| state.word()).collect();
    assert_eq!(words.len(), State::ALL.len());
    let fine = State::ALL.iter().filter(|state| state.urgency() == Urgency::Fine);
    assert_eq!(fine.collect::<Vec<_>>(), [&State::Protected]);
}

/// R6: of two that diverged one is stopped, given up and let in again, wherever a person broke it off; and a node that
/// serves while the other claims nothing is not given up by what somebody began once.
#[test]
fn a_resolve_goes_on_where_it_was_broken_off() {
    let diverged = |state| {
        let mut facts = alone();
        facts.etcd.state = state;
        facts.peer.present = true;
        facts.pacemaker.nodes[1].online = true;
        facts.peer.statement = Some(statement(Class::Alone));
        facts
    };
    let next = |facts: &Facts, begun| {
        let sight = Sight { resolving: begun, ..Sight::of(facts) };
        sight.judge().give_way(facts, begun)
    };
    let serving = diverged(EtcdState::Leader);
    assert_eq!(next(&serving, false), Ok(GiveWay::Stop));
    assert_eq!(next(&serving, true), Ok(GiveWay::Stop));
    let stopped = diverged(EtcdState::Stopped);
    assert_eq!(next(&stopped, false), Ok(GiveWay::GiveUp));
    let sight = Sight { resolving: true, standby: vec!["north".into()], ..Sight::of(&stopped) };
    let judgement = sight.judge();
    assert_eq!(judgement.next.as_deref(), Some("dyad resolve --keep south"));
    assert!(judgement.risks[0].contains("broken off on north"), "{judgement:?}");

    // Given up, and out of service still; then as a learner of the other one.
    let mut given = stopped.clone();
    given.marks.yielded = Some(YieldMark {
        cluster: given.dataset.cluster_id.unwrap(),
        member: given.dataset.member_id.unwrap(),
    });
    assert_eq!(next(&given, true), Ok(GiveWay::Join));
    let mut learner = whole();
    learner.etcd.state = EtcdState::Learner;
    learner.dataset = dataset(Class::Learner);
    assert_eq!(next(&learner, true), Ok(GiveWay::Join));

    // Nothing was begun, or the person chose otherwise meanwhile.
    for (facts, begun) in [(alone(), false), (alone(), true), (whole(), false)] {
        let refused = next(&facts, begun).unwrap_err();
        assert!(refused.because.contains("have not diverged"), "{refused:?}");
    }
    let sight = Sight { resolving: true, ..Sight::of(&serving) };
    assert!(sight.judge().next.is_some());
    let moot = alone();
    let judgement = Sight { resolving: true, ..Sight::of(&moot) }.judge();
    assert!(!judgement.risks.iter().any(|risk| risk.contains("broken off")), "{judgement:?}");
}
