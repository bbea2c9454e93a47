//! What a node of the model knows, and the facts that `core` is given for it.

use std::hash::{Hash, Hasher};

use dyad_core::dataset::{Class, Dataset, Membership, OwnRemoval, Prefix, worst_class};
use dyad_core::decision::Outcome;
use dyad_core::facts::{
    ApiVersion, Confirmation, Eligibility, EligibleBy, Etcd, EtcdState, Facts, Kind, LiveMember,
    LogPosition, Marks, NodeState, Operation, Pacemaker, Peer, Policy, Power, PowerReading,
    Request, Role, TakeOverMark, YieldMark,
};
use dyad_core::ids::{ClusterId, Index, MemberId, NodeName, Term};
use dyad_core::statement::{EtcdWord, Listed, Place, Statement};

use crate::Variant;
use crate::world::{Conf, Data, GENERATIONS, Said, World, bits, member};

/// The names of the two nodes.
pub const NAMES: [&str; 2] = ["north", "south"];

/// What is asked of `core`, in few bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// The monitor, or any notification: they decide alike.
    Look,
    /// A promotion.
    Promote,
    /// A stop in a recovery.
    Recover,
    /// A planned stop; whether the peer stops too.
    Plan(bool),
    /// The lone-boot unit.
    Boot,
    /// A person's word; whether a loss is accepted.
    Confirm(bool),
    /// A person gives a diverged dataset up.
    GiveUp,
}

/// Everything that a node knows, in few bits: the key under which a decision is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Which node.
    pub node: usize,
    /// What is asked.
    pub ask: Ask,
    data: Data,
    generation: u8,
    /// The membership at the commit mark, then after each change behind it.
    prefixes: [Conf; 4],
    count: u8,
    removal: Option<bool>,
    last: (u8, u8),
    mark: bool,
    without: u8,
    promoting: u8,
    yielded: bool,
    record: Option<(u8, u8)>,
    eligible: u8,
    eligible_stale: bool,
    etcd: EtcdState,
    patience_over: bool,
    live: Conf,
    caught_up: bool,
    started: u8,
    sees: bool,
    quorate: bool,
    clean: bool,
    bmc_off: bool,
    bmc_on: bool,
    person: u8,
    fenced_before: bool,
    proof_stale: bool,
    said: Said,
    heard: Said,
}

impl Hash for View {
    /// Word by word: most of the time of a search goes into looking decisions up.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let word = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
        let [p, q, r, s] = self.prefixes;
        let live = self.live;
        let record = self.record.map_or(255, |(term, index)| term << 4 | index);
        let ask = match self.ask {
            Ask::Look => 0,
            Ask::Promote => 1,
            Ask::Recover => 2,
            Ask::Plan(both) => 3 + u8::from(both),
            Ask::Boot => 5,
            Ask::Confirm(accept) => 6 + u8::from(accept),
            Ask::GiveUp => 8,
        };
        let flags = bits(&[
            self.mark,
            self.yielded,
            self.eligible_stale,
            self.patience_over,
            self.caught_up,
            self.sees,
            self.quorate,
            self.clean,
            self.bmc_off,
            self.bmc_on,
            self.fenced_before,
            self.proof_stale,
            self.removal.is_some(),
            self.removal == Some(true),
        ]);
        let numbers = [
            self.node as u8 | ask << 1,
            self.generation,
            self.data as u8,
            self.last.0 << 4 | self.last.1,
            self.without,
            self.promoting,
            self.eligible,
            record,
        ];
        for word in [
            word([
                p.voters, p.learners, p.removed, q.voters, q.learners, q.removed, r.voters,
                self.count,
            ]),
            word([
                r.learners,
                r.removed,
                s.voters,
                s.learners,
                s.removed,
                live.voters,
                live.learners,
                live.removed,
            ]),
            word(numbers),
            flags << 24
                | u64::from(self.started) << 16
                | u64::from(self.person) << 8
                | self.etcd as u64,
            self.said.pack(),
            self.heard.pack(),
        ] {
            state.write_u64(word);
        }
    }
}

const CLASSES: [Class; 6] =
    [Class::None, Class::Pair, Class::Alone, Class::Learner, Class::Left, Class::Broken];

fn class_code(class: Class) -> u8 {
    CLASSES.iter().position(|known| *known == class).unwrap_or(0) as u8
}

/// The id of a member, as people see it: `a1` is the first incarnation of the first node.
fn id(member: u8) -> MemberId {
    let node = u64::from(member / GENERATIONS);
    MemberId((0xa + node) << 4 | (u64::from(member % GENERATIONS) + 1))
}

fn member_of(id: MemberId) -> u8 {
    (((id.0 >> 4) - 0xa) * u64::from(GENERATIONS) + (id.0 & 15) - 1) as u8
}

/// The incarnation of a member, plus one.
pub fn incarnation(id: MemberId) -> u8 {
    member_of(id) % GENERATIONS + 1
}

fn members(bits: u8) -> impl Iterator<Item = MemberId> {
    (0..2 * GENERATIONS).filter(move |member| bits & 1 << member != 0).map(id)
}

const CLUSTER: ClusterId = ClusterId(0xdad);

impl View {
    /// What a node of this world knows.
    pub fn of(world: &World, node: usize, ask: Ask) -> Self {
        let me = &world.nodes[node];
        let peer = &world.nodes[1 - node];
        let own = 1 << member(node, me.generation);
        let mut prefixes = [Conf::default(); 4];
        let mut count = 0;
        let mut removal = None;
        if me.data == Data::Present {
            let mut conf = me.conf(world.base, me.commit);
            prefixes[0] = conf;
            count = 1;
            for at in me.commit..me.len {
                let before = conf;
                conf.apply(me.log[at as usize]);
                if conf != before && (count as usize) < prefixes.len() {
                    prefixes[count as usize] = conf;
                    count += 1;
                }
            }
            if conf.removed & own != 0 {
                removal = Some(prefixes[0].removed & own != 0);
            }
        }
        let etcd = etcd_state(world, node);
        let knows = matches!(etcd, EtcdState::Leader | EtcdState::Follower | EtcdState::Learner);
        let live = if knows { world.applied_conf(node) } else { Conf::default() };
        let peer_bits = ((1 << GENERATIONS) - 1) << ((1 - node) as u8 * GENERATIONS);
        // Patience runs out only while both run and neither can win: a crashed etcd is back long before.
        let stuck = peer.running && !world.can_win(0) && !world.can_win(1);
        // etcd promotes a learner that is nearly there: it may lack the last entries.
        let peer_bit = 1 << member(1 - node, peer.generation);
        let caught_up = live.learners & peer_bit != 0
            && me.leader
            && (peer.running && !peer.empty)
            && (me.matched > 0 || me.commit == 0);
        Self {
            node,
            ask,
            data: me.data,
            generation: me.generation,
            prefixes,
            count,
            removal,
            last: (me.last_term(world.base_term), me.len),
            mark: me.mark,
            without: me.without,
            promoting: me.promoting,
            yielded: me.yielded,
            record: me.record,
            eligible: me.eligible,
            eligible_stale: me.eligible_stale,
            etcd,
            patience_over: stuck,
            live,
            caught_up,
            started: world.started & peer_bits & live.learners,
            sees: me.sees,
            quorate: me.quorate,
            clean: me.clean,
            bmc_off: me.bmc_off,
            bmc_on: matches!(ask, Ask::Confirm(_)) && world.bmc & 1 << (1 - node) != 0 && peer.up,
            person: me.person,
            fenced_before: me.fenced_before,
            proof_stale: me.proof_stale,
            said: me.said,
            heard: me.heard,
        }
    }

    /// The facts for `core`.
    pub fn facts(&self, variant: Variant) -> Facts {
        let names: [NodeName; 2] = NAMES.map(NodeName::from);
        let (own_name, peer_name) = (names[self.node].clone(), names[1 - self.node].clone());
        let peer_node = 1 - self.node;
        let own = id(member(self.node, self.generation));
        let nodes = |online| {
            vec![
                NodeState { name: own_name.clone(), online: true, unclean: false },
                NodeState { name: peer_name.clone(), online, unclean: !online && !self.clean },
            ]
        };
        let ring = "2.1";
        let proof_ring = if self.proof_stale { "2.0" } else { ring };
        let online = self.sees && !self.clean;
        let other_voter = self.other_voter();
        Facts {
            run: None,
            api_version: ApiVersion::V1,
            kind: Kind::Facts,
            node: own_name.clone(),
            boot: "boot-2".into(),
            ring: ring.into(),
            request: self.request(&own_name, &peer_name),
            role: match self.etcd {
                EtcdState::Follower | EtcdState::Leader | EtcdState::NoLeader => Role::Promoted,
                _ => Role::Unpromoted,
            },
            dataset: self.dataset(own, variant),
            disk_writable: true,
            marks: Marks {
                take_over: self.mark.then(|| TakeOverMark {
                    cluster: CLUSTER,
                    member: own,
                    without: (0..GENERATIONS)
                        .filter(|generation| self.without & 1 << generation != 0)
                        .map(|generation| id(member(peer_node, generation)))
                        .collect(),
                    promoting: (self.promoting > 0)
                        .then(|| id(member(peer_node, self.promoting - 1))),
                }),
                yielded: self.yielded.then_some(YieldMark { cluster: CLUSTER, member: own }),
            },
            traces: Vec::new(),
            eligibility: (self.eligible > 0).then(|| Eligibility {
                boot: if self.eligible_stale { "boot-1" } else { "boot-2" }.into(),
                run: None,
                member: own,
                with: if self.eligible == crate::reduce::GONE {
                    MemberId(0xf0)
                } else {
                    id(member(peer_node, self.eligible - 1))
                },
                by: EligibleBy::Barrier,
            }),
            etcd: Etcd {
                silent_ms: None,
                state: self.etcd,
                leaderless_ms: match (self.etcd, self.patience_over) {
                    (EtcdState::NoLeader, true) => 60_000,
                    (EtcdState::NoLeader, false) => 100,
                    _ => 0,
                },
                members: self.live_members(&names),
            },
            published: self.said.valid.then(|| self.said.statement(self.node)),
            peer: Peer {
                name: peer_name.clone(),
                present: self.sees,
                absent_ms: if self.sees { 0 } else { 120_000 },
                paths: Vec::new(),
                statement: self.heard.valid.then(|| self.heard.statement(peer_node)),
                statement_age_ms: 0,
                memory: None,
                power: self.power(other_voter, proof_ring),
                confirmation: (self.person > 0).then(|| Confirmation {
                    boot: "boot-2".into(),
                    ring: proof_ring.into(),
                    member: other_voter,
                    accept_loss: self.person == 2,
                }),
            },
            pacemaker: Pacemaker {
                quorate: self.quorate,
                fencing_enabled: true,
                startup_fencing: true,
                maintenance: false,
                managed: true,
                nodes: nodes(online),
                peer_was_fenced: self.fenced_before,
            },
            policy: Policy::default(),
            #[cfg(feature = "variants")]
            broken: variant,
        }
    }

    fn power(&self, member: Option<MemberId>, ring: &str) -> Option<PowerReading> {
        let state = if self.bmc_off {
            Power::Off
        } else if self.bmc_on {
            Power::On
        } else {
            return None;
        };
        Some(PowerReading { state, after_forced_off: self.bmc_off, member, ring: ring.into() })
    }

    /// The other voter, by the last prefix that has one.
    fn other_voter(&self) -> Option<MemberId> {
        let own = 1 << member(self.node, self.generation);
        self.prefixes[..self.count as usize]
            .iter()
            .rev()
            .find_map(|conf| members(conf.voters & !own).next())
    }

    fn request(&self, own: &NodeName, peer: &NodeName) -> Request {
        let own = || vec![own.clone()];
        let request = |operation| Request { operation, ..Request::default() };
        match self.ask {
            Ask::Look => request(Operation::Monitor),
            Ask::Promote => request(Operation::Promote),
            Ask::Recover => Request { stop: own(), start: own(), ..request(Operation::Stop) },
            Ask::Plan(both) => {
                let mut stop = own();
                stop.extend(both.then(|| peer.clone()));
                Request { stop, ..request(Operation::Stop) }
            }
            Ask::Boot => request(Operation::Boot),
            Ask::Confirm(accept_loss) => {
                request(Operation::Confirm { accept_loss, despite_signs: false })
            }
            Ask::GiveUp => request(Operation::GiveUp),
        }
    }

    fn live_members(&self, names: &[NodeName; 2]) -> Vec<LiveMember> {
        (0..2 * GENERATIONS)
            .filter(|member| (self.live.voters | self.live.learners) & 1 << member != 0)
            .map(|member| LiveMember {
                id: id(member),
                node: Some(names[usize::from(member / GENERATIONS)].clone()),
                learner: self.live.learners & 1 << member != 0,
                started: self.live.voters & 1 << member != 0 || self.started & 1 << member != 0,
                caught_up: self.caught_up,
            })
            .collect()
    }

    fn dataset(&self, own: MemberId, variant: Variant) -> Dataset {
        let empty = match self.data {
            Data::None => Class::None,
            Data::Broken => Class::Broken,
            Data::Present => Class::Learner,
        };
        let mut dataset = Dataset::empty(empty, "model");
        if self.data != Data::Present {
            return dataset;
        }
        let mut prefixes: Vec<Membership> = self.prefixes[..self.count as usize]
            .iter()
            .map(|conf| {
                Membership::new(members(conf.voters), members(conf.learners))
                    .with_removed(members(conf.removed))
            })
            .collect();
        let mut removal = self.removal;
        crate::variant::misread(variant, own, &mut prefixes, &mut removal);
        dataset.class = worst_class(own, &prefixes);
        dataset.cluster_id = Some(CLUSTER);
        dataset.member_id = Some(own);
        dataset.raft.last_term = Term(self.last.0.into());
        dataset.raft.last_index = Index(self.last.1.into());
        dataset.prefixes = prefixes
            .into_iter()
            .map(|membership| Prefix { index: dataset.raft.last_index, membership })
            .collect();
        dataset.own_removal =
            removal.map(
                |committed| {
                    if committed { OwnRemoval::Committed } else { OwnRemoval::Uncommitted }
                },
            );
        dataset
    }

    /// The record a node without a log states.
    pub fn record(&self) -> Option<LogPosition> {
        self.record.map(position)
    }
}

fn position((term, index): (u8, u8)) -> LogPosition {
    LogPosition { term: Term(term.into()), index: Index(index.into()) }
}

/// What a node's etcd says of itself.
pub fn etcd_state(world: &World, node: usize) -> EtcdState {
    let me = &world.nodes[node];
    let peer = &world.nodes[1 - node];
    if !me.running {
        return EtcdState::Stopped;
    }
    let own = 1 << member(node, me.generation);
    let conf = world.applied_conf(node);
    if conf.voters & own == 0 {
        return EtcdState::Learner;
    }
    if me.leader && world.can_commit(node) {
        return EtcdState::Leader;
    }
    // A leader that has removed this member has closed its streams.
    let counted = world.applied_conf(1 - node).voters & own != 0;
    let follows =
        counted && peer.running && peer.leader && peer.term == me.term && world.connected();
    if follows && !me.leader { EtcdState::Follower } else { EtcdState::NoLeader }
}

impl Said {
    /// The statement in full.
    pub fn statement(&self, speaker: usize) -> Statement {
        let class = CLASSES[usize::from(self.class)];
        let (listener, place) = self.listener;
        Statement {
            node: NAMES[speaker].into(),
            boot: if self.fresh { "boot-2" } else { "boot-1" }.into(),
            answers: Some(if self.answers { "boot-2" } else { "boot-1" }.into()),
            cluster_id: (self.generation > 0).then_some(CLUSTER),
            member_id: (self.generation > 0).then(|| id(member(speaker, self.generation - 1))),
            class,
            solid_pair: self.solid,
            yielded: self.yielded,
            removal_committed: self.removed,
            last: self.last.map(position),
            etcd: [EtcdWord::Stopped, EtcdWord::Running, EtcdWord::Serving][usize::from(self.etcd)],
            eligible: self.eligible,
            leaving: self.leaving,
            disk_writable: true,
            blank: false,
            listener: (listener > 0).then(|| Listed {
                member: id(member(1 - speaker, listener - 1)),
                place: [Place::Learner, Place::Voter, Place::Burnt][usize::from(place)],
            }),
            remembers: None,
        }
    }

    /// The statement in few bits.
    pub fn from_statement(statement: &Statement, answers: bool) -> Self {
        Self {
            valid: true,
            fresh: true,
            answers,
            class: class_code(statement.class),
            generation: statement.member_id.map_or(0, incarnation),
            solid: statement.solid_pair,
            yielded: statement.yielded,
            removed: statement.removal_committed,
            last: statement.last.map(|last| (last.term.0 as u8, last.index.0 as u8)),
            etcd: statement.etcd as u8,
            eligible: statement.eligible,
            leaving: statement.leaving,
            listener: statement
                .listener
                .map_or((0, 0), |listed| (incarnation(listed.member), listed.place as u8)),
        }
    }
}

/// Whether Pacemaker is told to stop and start the instance.
pub fn is_failed(outcome: Outcome) -> bool {
    outcome == Outcome::FailedPromoted
}
