//! Whatever the facts are, there is a decision, and it obeys what holds in every state.

mod fixture;

use dyad_core::dataset::{Class, Dataset, Membership, OwnRemoval, Prefix};
use dyad_core::decision::Action;
use dyad_core::facts::*;
use dyad_core::ids::*;
use dyad_core::statement::{EtcdWord, Listed, Place, Statement};
use dyad_core::{Facts, decide};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Takes small choices out of random bytes.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn below(&mut self, sides: u8) -> u8 {
        self.0.next().copied().unwrap_or(0) % sides
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::from(self.below(of.len() as u8))].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.coin().then(|| make(self))
    }

    fn member(&mut self) -> MemberId {
        self.one(&[fixture::ME, fixture::PEER, MemberId(3), MemberId(u64::MAX)])
    }

    fn members(&mut self) -> Vec<MemberId> {
        (0..self.below(4)).map(|_| self.member()).collect()
    }

    fn class(&mut self) -> Class {
        use Class::{Alone, Broken, Learner, Left, None, Pair};
        self.one(&[None, Pair, Alone, Learner, Left, Broken])
    }

    fn boot(&mut self) -> BootId {
        self.one(&["north-1".into(), "south-1".into(), "".into()])
    }

    fn last(&mut self) -> LogPosition {
        LogPosition { term: Term(self.below(4).into()), index: Index(self.below(9).into()) }
    }

    fn dataset(&mut self) -> Dataset {
        let class = self.class();
        let mut dataset = fixture::dataset(class);
        if self.coin() {
            let prefix = |dice: &mut Self| Prefix {
                index: Index(dice.below(9).into()),
                membership: Membership::new(dice.members(), dice.members())
                    .with_removed(dice.members()),
            };
            dataset.prefixes = (0..self.below(4)).map(|_| prefix(self)).collect();
            dataset.member_id = self.maybe(Self::member);
            dataset.cluster_id = self.maybe(|dice| ClusterId(dice.below(2).into()));
            dataset.own_removal =
                self.maybe(|dice| dice.one(&[OwnRemoval::Committed, OwnRemoval::Uncommitted]));
            dataset.raft.last_term = self.last().term;
        }
        dataset
    }

    fn statement(&mut self) -> Statement {
        let mut statement = fixture::statement(self.class());
        statement.answers = self.maybe(Self::boot);
        statement.member_id = self.maybe(Self::member);
        statement.yielded = self.coin();
        statement.removal_committed = self.coin();
        statement.solid_pair = self.coin();
        statement.eligible = self.coin();
        statement.leaving = self.coin();
        statement.blank = self.coin();
        statement.etcd = self.one(&[EtcdWord::Stopped, EtcdWord::Running, EtcdWord::Serving]);
        statement.last = self.maybe(Self::last);
        statement.listener = self.maybe(|dice| Listed {
            member: dice.member(),
            place: dice.one(&[Place::Learner, Place::Voter, Place::Burnt]),
        });
        statement.remembers =
            self.maybe(|dice| Memory { member: dice.member(), last: dice.last() });
        statement
    }

    fn operation(&mut self) -> Operation {
        let of = NotifiedOperation::Stop;
        self.one(&[
            Operation::Start,
            Operation::Stop,
            Operation::Promote,
            Operation::Demote,
            Operation::Monitor,
            Operation::Notify(Notification { when: When::Pre, of }),
            Operation::Notify(Notification { when: When::Post, of }),
            Operation::Validate,
            Operation::Boot,
            Operation::Confirm { accept_loss: true, despite_signs: false },
            Operation::Confirm { accept_loss: true, despite_signs: true },
            Operation::Confirm { accept_loss: false, despite_signs: false },
            Operation::GiveUp,
            Operation::Begin,
        ])
    }

    fn facts(&mut self) -> Facts {
        let mut facts = fixture::pair_at_rest();
        let names: Vec<NodeName> = vec!["north".into(), "south".into(), "south10".into()];
        facts.request.operation = self.operation();
        facts.request.stop = (0..self.below(3)).map(|_| self.one(&names)).collect();
        facts.request.start = (0..self.below(2)).map(|_| self.one(&names)).collect();
        facts.role = self.one(&[Role::Stopped, Role::Unpromoted, Role::Promoted]);
        facts.dataset = self.dataset();
        facts.disk_writable = self.below(4) > 0;
        facts.traces = self.maybe(|_| "a copy aside".to_owned()).into_iter().collect();
        facts.marks.take_over = self.maybe(|dice| TakeOverMark {
            cluster: fixture::CLUSTER,
            member: dice.member(),
            without: dice.members(),
            promoting: dice.maybe(Self::member),
        });
        facts.marks.yielded =
            self.maybe(|dice| YieldMark { cluster: fixture::CLUSTER, member: dice.member() });
        facts.eligibility = self.maybe(|dice| Eligibility {
            boot: dice.boot(),
            run: None,
            member: dice.member(),
            with: dice.member(),
            by: EligibleBy::Barrier,
        });
        facts.etcd.state = self.one(&[
            EtcdState::Stopped,
            EtcdState::Starting,
            EtcdState::NoLeader,
            EtcdState::Follower,
            EtcdState::Leader,
            EtcdState::Learner,
        ]);
        facts.etcd.leaderless_ms = self.one(&[0, 50_000, u64::MAX]);
        facts.etcd.members = (0..self.below(4))
            .map(|_| LiveMember {
                id: self.member(),
                node: self.maybe(|dice| dice.one(&names)),
                learner: self.coin(),
                started: self.coin(),
                caught_up: self.coin(),
            })
            .collect();
        facts.published = self.maybe(Self::statement);
        facts.peer.present = self.coin();
        facts.peer.absent_ms = self.one(&[0, 1_000_000, u64::MAX]);
        facts.peer.statement = self.maybe(Self::statement);
        facts.peer.memory = self.maybe(|dice| Memory { member: dice.member(), last: dice.last() });
        facts.pacemaker.quorate = self.coin();
        facts.pacemaker.fencing_enabled = self.below(4) > 0;
        facts.pacemaker.maintenance = self.below(4) == 0;
        facts.pacemaker.managed = self.below(4) > 0;
        facts.pacemaker.startup_fencing = self.below(4) > 0;
        facts.pacemaker.peer_was_fenced = self.coin();
        facts.pacemaker.nodes =
            vec![NodeState { name: self.one(&names), online: self.coin(), unclean: self.coin() }];
        self.proofs(&mut facts);
        facts.policy = Policy {
            survivor: self.maybe(|dice| dice.one(&names)),
            leaderless_ms_max: self.one(&[0, 10_000, u64::MAX]),
            lone_boot_delay_ms: self.one(&[0, 60_000, u64::MAX]),
        };
        // Names that contradict each other.
        if self.below(16) == 1 {
            facts.peer.name = facts.node.clone();
        }
        facts
    }

    fn proofs(&mut self, facts: &mut Facts) {
        let rings: [RingId; 2] = [facts.ring.clone(), "0.0".into()];
        facts.peer.power = self.maybe(|dice| PowerReading {
            state: dice.one(&[Power::On, Power::Off, Power::Unknown]),
            after_forced_off: dice.coin(),
            member: dice.maybe(Self::member),
            ring: dice.one(&rings),
        });
        facts.peer.confirmation = self.maybe(|dice| Confirmation {
            boot: dice.boot(),
            ring: dice.one(&rings),
            member: dice.maybe(Self::member),
            accept_loss: dice.coin(),
        });
    }
}

/// Goes down into a document at random and exchanges or takes out what is there.
fn mutilate(dice: &mut Dice, value: &mut Value) {
    let children = match value {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        _ => 0,
    };
    if children == 0 || dice.below(6) == 0 {
        let others = [json!(null), json!(true), json!(0), json!(u64::MAX), json!(-1), json!("")];
        *value = dice.one(&others);
        return;
    }
    let at = usize::from(dice.below(children as u8));
    let takes_out = dice.below(6) == 0;
    match value {
        Value::Object(map) => {
            let Some(key) = map.keys().nth(at).cloned() else { return };
            if takes_out {
                map.remove(&key);
            } else if let Some(child) = map.get_mut(&key) {
                mutilate(dice, child);
            }
        }
        Value::Array(list) if takes_out => {
            list.remove(at);
        }
        Value::Array(list) => mutilate(dice, &mut list[at]),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No facts make it panic, and what holds in every state holds here too.
    #[test]
    fn any_facts_give_a_safe_decision(bytes in proptest::collection::vec(any::<u8>(), 0..240)) {
        let facts = Dice(bytes.iter()).facts();
        let decision = decide(&facts);
        prop_assert_eq!(&decision, &decide(&facts));
        prop_assert!(!decision.because.is_empty());
        let _ = Statement::of(&facts, None);
        // R11: who stays inert or refuses says what is missing and which command helps.
        match &decision.action {
            Action::StayInert { missing, command } => {
                prop_assert!(!missing.is_empty() && !command.is_empty());
            }
            Action::Refuse { command, .. } => prop_assert!(!command.is_empty()),
            _ => {}
        }
        // A node that is its own peer decides nothing but to stop.
        let stops = matches!(facts.request.operation, Operation::Stop | Operation::Demote);
        if facts.node == facts.peer.name && !stops {
            let inert = matches!(decision.action, Action::StayInert { .. });
            prop_assert!(inert);
        }
        // R2: Learner, Left, Broken and None never take over; nor does anybody under maintenance.
        if let Action::TakeOver { dead } | Action::AnnounceTakeOver { dead } = decision.action {
            prop_assert!(matches!(facts.dataset.class, Class::Pair | Class::Alone));
            prop_assert!(Some(dead) != facts.dataset.member_id);
            prop_assert!(facts.disk_writable && !facts.pacemaker.maintenance);
        }
        // R2a: the vote is never cast before the mark and the statement.
        if let Action::TakeOver { dead } = decision.action {
            let mark = facts.marks.take_over.as_ref().unwrap();
            prop_assert!(mark.without.contains(&dead));
            prop_assert_eq!(facts.published.as_ref().unwrap().class, Class::Alone);
        }
        // R12: data are made out of nothing only where neither node has any or had any, and both are there.
        if decision.action == Action::CreateDataset {
            let heard = facts.peer.statement.as_ref().unwrap();
            prop_assert_eq!(facts.request.operation, Operation::Begin);
            prop_assert!(facts.peer.present && heard.answers.as_ref() == Some(&facts.boot));
            prop_assert!(facts.dataset.class == Class::None && heard.class == Class::None);
            prop_assert!(facts.traces.is_empty() && heard.blank);
            prop_assert!(facts.pacemaker.quorate && facts.pacemaker.fencing_enabled);
        }
        // R7: the last voter never removes itself.
        if decision.action == Action::Leave {
            prop_assert!(facts.etcd.members.iter().any(|m| !m.learner && m.node == Some("south".into())));
        }
    }

    /// A glance that finds nothing to do is right, whatever the cluster around the node says: `decide` would not
    /// act either, but for two cases that last no longer than etcd's election time-out. The peer says that it
    /// goes on without this member, or it is proven dead: then the leader that the glance saw is gone or was
    /// never there. Notifications look in full at once, and the next monitor finds no leader.
    #[test]
    fn a_glance_misses_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
        let mut facts = Dice(bytes.iter()).facts();
        facts.request = Request { operation: Operation::Monitor, ..Default::default() };
        facts.role = Role::Promoted;
        facts.dataset = fixture::pair_at_rest().dataset;
        facts.marks = Marks::default();
        facts.disk_writable = true;
        let member = facts.dataset.member_id.unwrap();
        let with = facts.other_voter().unwrap();
        let boot = facts.boot.clone();
        facts.eligibility = Some(Eligibility { boot, run: None, member, with, by: EligibleBy::Barrier });
        let voter = |id, name: &str| LiveMember {
            id,
            node: Some(name.into()),
            learner: false,
            started: true,
            caught_up: true,
        };
        facts.etcd.members = vec![voter(member, "north"), voter(with, "south")];
        if !matches!(facts.etcd.state, EtcdState::Leader | EtcdState::Follower) {
            facts.etcd.state = EtcdState::Follower;
        }
        facts.published = Some(Statement::of(&facts, None));
        let glance = dyad_core::glance::Glance {
            boot: &facts.boot,
            run: facts.run.as_ref(),
            role: facts.role,
            etcd: &facts.etcd,
            eligibility: facts.eligibility.as_ref(),
            marks: &facts.marks,
            published: facts.published.as_ref(),
            disk_writable: true,
        };
        prop_assert!(glance.is_settled(), "{:?}", facts.published);
        let decision = decide(&facts);
        let harmless = matches!(
            decision.action,
            Action::Nothing
                | Action::Wait { .. }
                | Action::Refuse { .. }
                | Action::StayInert { .. }
                | Action::Yield
                | Action::AnnounceTakeOver { .. }
        );
        prop_assert!(harmless, "{decision:?}");
        if matches!(decision.action, Action::AnnounceTakeOver { .. }) {
            prop_assert!(!facts.peer.present || facts.peer.statement.is_some());
        }
        if decision.action == Action::Yield {
            prop_assert_eq!(decision.rule.to_string(), "R2");
        }
    }

    /// A document whose values were exchanged at random is refused by the reader, or decided on: no panic.
    #[test]
    fn mutilated_documents_never_panic(bytes in proptest::collection::vec(any::<u8>(), 1..24)) {
        let mut dice = Dice(bytes.iter());
        let mut document = serde_json::to_value(fixture::pair_at_rest()).unwrap();
        for _ in 0..=dice.below(3) {
            mutilate(&mut dice, &mut document);
        }
        if let Ok(facts) = serde_json::from_value::<Facts>(document) {
            let decision = decide(&facts);
            prop_assert!(!decision.because.is_empty());
        }
    }

    /// R9: a notification decides what the monitor decides, so that a lost one does not matter.
    #[test]
    fn a_notification_decides_like_a_monitor(bytes in proptest::collection::vec(any::<u8>(), 0..240)) {
        let mut facts = Dice(bytes.iter()).facts();
        facts.request.operation = Operation::Monitor;
        let monitored = decide(&facts).action;
        for when in [When::Pre, When::Post] {
            facts.request.operation = Operation::Notify(Notification { when, of: NotifiedOperation::Stop });
            prop_assert_eq!(&decide(&facts).action, &monitored);
        }
    }
}
