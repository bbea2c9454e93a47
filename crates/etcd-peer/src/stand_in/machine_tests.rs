//! The protocol against hand-made messages and against a small model of a survivor.

use proptest::prelude::*;

use super::*;

const SURVIVOR: MemberId = MemberId(0xa);
const DEAD: MemberId = MemberId(0xd);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn from_survivor(kind: MessageType, term: u64) -> Message {
    Message { kind: kind.into(), from: SURVIVOR.0, to: DEAD.0, term, ..Message::default() }
}

fn append(term: u64, index: u64, entries: &[Entry], commit: u64) -> Message {
    Message { index, entries: entries.to_vec(), commit, ..from_survivor(MessageType::App, term) }
}

fn entry(term: u64, index: u64) -> Entry {
    Entry { term, index, ..Entry::default() }
}

fn sent(actions: &[Action]) -> Vec<&Message> {
    actions
        .iter()
        .filter_map(|action| if let Action::Send(m) = action { Some(m) } else { None })
        .collect()
}

fn proposed(actions: &[Action]) -> Vec<&Message> {
    actions
        .iter()
        .filter_map(|action| if let Action::Propose(m) = action { Some(m) } else { None })
        .collect()
}

fn kinds(actions: &[Action]) -> Vec<MessageType> {
    sent(actions).iter().map(|message| message.kind()).collect()
}

fn receive(machine: &mut Machine, now: Duration, message: Message) -> Vec<Action> {
    machine.step(now, Input::Received(message)).unwrap()
}

/// A machine with both streams, and the context of its first question.
fn attached() -> (Machine, Vec<u8>) {
    let mut machine = Machine::new(SURVIVOR, DEAD);
    assert_eq!(machine.step(ms(0), Input::Attached(StreamKind::Message)).unwrap(), []);
    let actions = machine.step(ms(1), Input::Attached(StreamKind::MsgApp)).unwrap();
    assert_eq!(kinds(&actions), [MessageType::ReadIndex, MessageType::PreVote]);
    assert_eq!(sent(&actions)[1].term, 1);
    let context = sent(&actions)[0].entries[0].data.clone();
    (machine, context)
}

fn rejection(term: u64) -> Message {
    Message { reject: true, ..from_survivor(MessageType::PreVoteResp, term) }
}

/// Nothing is said before both streams are there: what is said on one alone would elect a leader whose
/// entries go into a dead connection.
#[test]
fn one_stream_is_not_enough() {
    for kind in [StreamKind::Message, StreamKind::MsgApp] {
        let mut machine = Machine::new(SURVIVOR, DEAD);
        machine.step(ms(0), Input::Attached(kind)).unwrap();
        for message in [from_survivor(MessageType::Vote, 5), append(5, 7, &[entry(5, 8)], 7)] {
            assert_eq!(receive(&mut machine, ms(1), message), []);
        }
        assert_eq!(machine.step(ms(500), Input::Tick).unwrap(), []);
    }
}

/// A survivor that leads is acknowledged and never deposed: nothing is said at a higher term.
#[test]
fn a_leader_is_left_in_office() {
    let (mut machine, context) = attached();
    let heartbeat = Message { context, commit: 9, ..from_survivor(MessageType::Heartbeat, 4) };
    let actions = receive(&mut machine, ms(2), heartbeat.clone());
    assert!(
        actions.contains(&Action::Report(Step::RoleKnown { role: Role::Leader, term: Term(4) }))
    );
    assert!(sent(&actions).iter().all(|message| message.term == 4));
    let echo =
        sent(&actions).into_iter().rfind(|m| m.kind() == MessageType::HeartbeatResp).unwrap();
    assert_eq!(echo.context, heartbeat.context);
    assert_eq!(
        proposed(&actions).len(),
        1,
        "a standing leader is asked at once to remove the dead"
    );
    let actions = receive(&mut machine, ms(3), rejection(4));
    assert!(sent(&actions).iter().all(|message| message.term <= 4));
}

/// A follower of the dead member sends our read request back (3.4 in its own name, 3.5 in ours), and is told
/// to campaign at once.
#[test]
fn a_follower_is_told_to_campaign() {
    for from in [SURVIVOR, DEAD] {
        let (mut machine, context) = attached();
        let echo = Message {
            from: from.0,
            entries: vec![Entry { data: context, ..Entry::default() }],
            ..from_survivor(MessageType::ReadIndex, 0)
        };
        assert_eq!(receive(&mut machine, ms(2), echo), []);
        let actions = receive(&mut machine, ms(3), rejection(4));
        assert!(
            actions
                .contains(&Action::Report(Step::RoleKnown { role: Role::Follower, term: Term(4) }))
        );
        let urge = sent(&actions)[0];
        assert_eq!((urge.kind(), urge.term), (MessageType::TimeoutNow, 5));
    }
}

/// An answer that went into the dead connection is not waited for: the question is put again soon.
#[test]
fn a_lost_answer_is_asked_for_again() {
    let (mut machine, _) = attached();
    machine.step(ms(2), Input::Asked).unwrap();
    assert_eq!(machine.step(ms(10), Input::Tick).unwrap(), []);
    let actions = machine.step(ms(25), Input::Tick).unwrap();
    assert_eq!(kinds(&actions), [MessageType::ReadIndex, MessageType::PreVote]);
    // One that could not be sent yet is not put again: the survivor is slow, not deaf.
    assert_eq!(machine.step(ms(200), Input::Tick).unwrap(), []);
}

/// A survivor without a leader is asked twice, then told to campaign; at the same term until it does.
#[test]
fn one_without_a_leader_is_told_to_campaign_at_one_term() {
    let (mut machine, _) = attached();
    let actions = receive(&mut machine, ms(2), rejection(4));
    assert_eq!(
        kinds(&actions),
        [MessageType::HeartbeatResp, MessageType::ReadIndex, MessageType::PreVote]
    );
    assert_eq!(receive(&mut machine, ms(3), rejection(4)), []);
    let mut now = machine.wake_at();
    for _ in 0..20 {
        let actions = machine.step(now, Input::Tick).unwrap();
        let terms: Vec<_> = sent(&actions)
            .iter()
            .filter(|m| m.kind() == MessageType::TimeoutNow)
            .map(|m| m.term)
            .collect();
        assert_eq!(terms, [5]);
        // It became a follower at that term and did not campaign: a change is unapplied, say.
        receive(&mut machine, now, rejection(5));
        now = machine.wake_at();
    }
}

/// Votes are granted at the term at which they are asked for; the new leader's log is acknowledged; the
/// removal is proposed when the term's first entry is committed, not before; and again until it is seen.
#[test]
fn from_the_vote_to_the_removal() {
    let (mut machine, _) = attached();
    let actions = receive(&mut machine, ms(2), from_survivor(MessageType::PreVote, 6));
    assert_eq!(
        sent(&actions)[0],
        &Message { to: SURVIVOR.0, from: DEAD.0, ..from_survivor(MessageType::PreVoteResp, 6) }
    );
    let actions = receive(&mut machine, ms(3), from_survivor(MessageType::Vote, 6));
    assert_eq!(
        sent(&actions)[0],
        &Message { to: SURVIVOR.0, from: DEAD.0, ..from_survivor(MessageType::VoteResp, 6) }
    );

    let actions = receive(&mut machine, ms(4), append(6, 40, &[entry(6, 41)], 38));
    let answer = sent(&actions).into_iter().find(|m| m.kind() == MessageType::AppResp).unwrap();
    assert_eq!((answer.term, answer.index, answer.reject), (6, 41, false));
    assert_eq!(proposed(&actions), Vec::<&Message>::new());

    let actions = receive(&mut machine, ms(5), append(6, 41, &[], 41));
    assert!(actions.contains(&Action::Report(Step::Committed { index: Index(41) })));
    let proposal = proposed(&actions)[0].clone();
    let change = proposal.entries[0].conf_change().unwrap();
    assert_eq!((change.kind(), change.node_id), (ConfChangeType::RemoveNode, DEAD.0));
    assert_eq!((proposal.from, proposal.to, proposal.term), (DEAD.0, SURVIVOR.0, 0));

    // Nothing more while it is on its way; then again, as long as it does not show up in the log.
    assert_eq!(proposed(&machine.step(ms(30), Input::Tick).unwrap()).len(), 0);
    let actions = machine.step(ms(31), Input::ProposalDone).unwrap();
    assert_eq!(proposed(&actions).len(), 1);
    let mut removal = proposal.entries[0].clone();
    (removal.term, removal.index) = (6, 42);
    let actions = receive(&mut machine, ms(32), append(6, 41, &[removal], 41));
    assert!(actions.contains(&Action::Report(Step::RemovalInLog { index: Index(42) })));
    machine.step(ms(33), Input::ProposalDone).unwrap();
    assert_eq!(proposed(&machine.step(ms(200), Input::Tick).unwrap()).len(), 0);
}

/// What clients had proposed to the dead leader goes to the new one once, before the removal; changes of the
/// membership and our own proposals do not.
#[test]
fn forwarded_proposals_are_handed_back_once() {
    let (mut machine, _) = attached();
    let normal = Entry { data: b"put".to_vec(), ..Entry::default() };
    let change = Entry { kind: EntryType::ConfChange.into(), data: vec![1], ..Entry::default() };
    let forwarded =
        Message { entries: vec![normal.clone(), change], ..from_survivor(MessageType::Prop, 0) };
    receive(&mut machine, ms(2), forwarded);
    receive(&mut machine, ms(3), from_survivor(MessageType::Vote, 6));
    let actions = receive(&mut machine, ms(4), append(6, 40, &[entry(6, 41)], 38));
    assert_eq!(proposed(&actions).len(), 1);
    assert_eq!(proposed(&actions)[0].entries, [normal]);
    let actions = receive(&mut machine, ms(5), append(6, 41, &[], 41));
    assert_eq!(proposed(&actions).len(), 0, "the removal waits for what was handed back");
    let actions = machine.step(ms(6), Input::ProposalDone).unwrap();
    assert!(proposed(&actions)[0].entries[0].conf_change().is_some());
}

/// A leader that takes the proposal, answers, and sends no entry waits for a snapshot or a transfer that
/// will never come: only an election gets it out of that.
#[test]
fn a_stalled_leader_is_made_to_campaign() {
    let (mut machine, context) = attached();
    receive(&mut machine, ms(2), Message { context, ..from_survivor(MessageType::Heartbeat, 4) });
    receive(&mut machine, ms(3), rejection(4));
    let mut urged_at = None;
    let mut now = ms(3);
    while urged_at.is_none() && now < ms(2000) {
        let mut actions = machine.step(now, Input::ProposalDone).unwrap();
        actions.extend(machine.step(now, Input::Tick).unwrap());
        if let Some(read) = sent(&actions).into_iter().find(|m| m.kind() == MessageType::ReadIndex)
        {
            let context = read.entries[0].data.clone();
            receive(
                &mut machine,
                now,
                Message { context, ..from_survivor(MessageType::Heartbeat, 4) },
            );
            receive(&mut machine, now, rejection(4));
        }
        urged_at =
            sent(&actions).iter().any(|m| m.kind() == MessageType::TimeoutNow).then_some(now);
        now += ms(5);
    }
    assert!(urged_at.expect("never told to campaign") >= ms(300));
}

/// A leader that is slow to answer is not deposed for it, however long it takes (R9).
#[test]
fn a_slow_leader_stays_in_office() {
    let (mut machine, context) = attached();
    receive(&mut machine, ms(2), Message { context, ..from_survivor(MessageType::Heartbeat, 4) });
    receive(&mut machine, ms(3), rejection(4));
    machine.step(ms(4), Input::ProposalDone).unwrap();
    for step in 0..200 {
        let actions = machine.step(ms(5 + step * 50), Input::Tick).unwrap();
        assert!(
            sent(&actions).iter().all(|m| m.kind() != MessageType::TimeoutNow),
            "at step {step}"
        );
    }
}

/// While it is not known that all that is committed is applied, nobody is told to campaign; the reins go
/// when it is.
#[test]
fn an_election_waits_for_what_is_unapplied() {
    let (mut machine, _) = attached();
    machine.step(ms(1), Input::MayCampaign(false)).unwrap();
    receive(&mut machine, ms(2), rejection(4));
    receive(&mut machine, ms(3), rejection(4));
    for now in [20, 100, 200, 300] {
        let actions = machine.step(ms(now), Input::Tick).unwrap();
        assert!(!kinds(&actions).contains(&MessageType::TimeoutNow));
        receive(&mut machine, ms(now), rejection(4));
    }
    let actions = machine.step(ms(400), Input::MayCampaign(true)).unwrap();
    assert!(kinds(&actions).contains(&MessageType::TimeoutNow));
}

/// The permission comes before anything else has begun, and is not forgotten.
#[test]
fn an_early_permission_counts() {
    let mut machine = Machine::new(SURVIVOR, DEAD);
    machine.step(ms(0), Input::MayCampaign(false)).unwrap();
    machine.step(ms(0), Input::MayCampaign(true)).unwrap();
    machine.step(ms(0), Input::Attached(StreamKind::Message)).unwrap();
    machine.step(ms(1), Input::Attached(StreamKind::MsgApp)).unwrap();
    receive(&mut machine, ms(2), rejection(4));
    receive(&mut machine, ms(3), rejection(4));
    let actions = machine.step(machine.wake_at(), Input::Tick).unwrap();
    assert!(kinds(&actions).contains(&MessageType::TimeoutNow));
}

/// A message that is not from the survivor to the dead member ends the matter, whatever it says.
#[test]
fn foreign_messages_are_refused() {
    for (from, to) in [(DEAD, SURVIVOR), (MemberId(1), DEAD), (SURVIVOR, MemberId(1)), (DEAD, DEAD)]
    {
        for kind in [MessageType::Vote, MessageType::App, MessageType::ReadIndex, MessageType::Prop]
        {
            let (mut machine, _) = attached();
            let message = Message { from: from.0, to: to.0, ..from_survivor(kind, 9) };
            let error = machine.step(ms(2), Input::Received(message)).unwrap_err();
            assert_eq!((error.from, error.to), (from, to));
        }
    }
}

/// After a stream broke everything is asked anew; a leader found again without a word about its log is asked
/// to remove the dead all the same.
#[test]
fn a_leader_found_again_is_asked_again() {
    let (mut machine, _) = attached();
    receive(&mut machine, ms(3), from_survivor(MessageType::Vote, 6));
    receive(&mut machine, ms(4), append(6, 40, &[entry(6, 41)], 38));
    machine.step(ms(5), Input::Detached(StreamKind::MsgApp)).unwrap();
    assert_eq!(kinds(&receive(&mut machine, ms(6), from_survivor(MessageType::Heartbeat, 6))), []);
    let actions = machine.step(ms(7), Input::Attached(StreamKind::MsgApp)).unwrap();
    let context = sent(&actions)[0].entries[0].data.clone();
    receive(&mut machine, ms(8), Message { context, ..from_survivor(MessageType::Heartbeat, 6) });
    assert_eq!(proposed(&machine.step(ms(100), Input::Tick).unwrap()).len(), 1);
}

/// One thing that a survivor could say, or that could happen.
fn anything() -> impl Strategy<Value = Input> {
    let kind = prop::sample::select(vec![
        MessageType::Prop,
        MessageType::App,
        MessageType::AppResp,
        MessageType::Vote,
        MessageType::Snap,
        MessageType::Heartbeat,
        MessageType::TimeoutNow,
        MessageType::ReadIndex,
        MessageType::PreVote,
        MessageType::PreVoteResp,
    ]);
    let stream = prop::sample::select(vec![StreamKind::Message, StreamKind::MsgApp]);
    let message = (kind, 0..6_u64, 0..20_u64, 0..3_u64).prop_map(|(kind, term, index, count)| {
        let entries = (1..=count).map(|n| entry(term, index + n)).collect();
        Input::Received(Message { index, entries, ..from_survivor(kind, term) })
    });
    prop_oneof![
        8 => message,
        2 => stream.clone().prop_map(Input::Attached),
        1 => stream.prop_map(Input::Detached),
        2 => Just(Input::ProposalDone),
        2 => Just(Input::Asked),
        3 => Just(Input::Tick),
    ]
}

proptest! {
    /// Whatever the survivor says: every message goes from the dead member to the survivor; nothing but
    /// `TimeoutNow` is said above the highest term it has shown; an acknowledgement never reaches further
    /// than the append it answers; and each vote answers a request.
    #[test]
    fn nothing_is_said_that_raft_could_not_bear(inputs in prop::collection::vec((anything(), 0..60_u64), 1..80)) {
        let mut machine = Machine::new(SURVIVOR, DEAD);
        let (mut now, mut shown) = (Duration::ZERO, 0);
        for (input, wait) in inputs {
            now += ms(wait);
            let received = if let Input::Received(message) = &input { Some(message.clone()) } else { None };
            shown = shown.max(received.as_ref().map_or(0, |message| message.term));
            for action in machine.step(now, input).unwrap() {
                let (Action::Send(message) | Action::Propose(message)) = action else { continue };
                prop_assert_eq!((message.from, message.to), (DEAD.0, SURVIVOR.0));
                prop_assert!(!message.reject);
                match message.kind() {
                    MessageType::TimeoutNow => prop_assert!(message.term <= shown + 1),
                    MessageType::AppResp => {
                        let append = received.as_ref().unwrap();
                        prop_assert_eq!(append.kind(), MessageType::App);
                        prop_assert_eq!(message.term, append.term);
                        prop_assert_eq!(message.index, append.index + append.entries.len() as u64);
                    }
                    MessageType::VoteResp => {
                        let request = received.as_ref().unwrap();
                        prop_assert_eq!((request.kind(), request.term), (MessageType::Vote, message.term));
                    }
                    MessageType::PreVote => prop_assert_eq!(message.term, 1),
                    MessageType::Prop | MessageType::ReadIndex => {
                        prop_assert_eq!(message.term, 0);
                        // An empty one would make etcd panic.
                        prop_assert!(!message.entries.is_empty());
                    }
                    MessageType::HeartbeatResp | MessageType::PreVoteResp => {
                        prop_assert!(message.term <= shown);
                    }
                    other => prop_assert!(false, "said {:?}", other),
                }
            }
        }
    }
}
