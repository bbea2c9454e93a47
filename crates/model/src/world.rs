//! The state of the modelled pair: two disks, two etcd processes, the network, Corosync's sight, fencing.
//!
//! Everything is small and fixed in size, so that millions of states fit into memory. After each step the
//! state is normalised: what both logs durably share is folded into a common base, and terms are counted
//! from there, so that a pair that has recovered is the pair it was before.

/// The longest log tail that is modelled.
pub const LOG: usize = 12;
/// The number of incarnations of each node.
pub const GENERATIONS: u8 = 4;

/// What a log entry does. The upper three bits of an entry are its term.
pub mod kind {
    /// An empty entry: a new leader's first, or a barrier.
    pub const NOOP: u8 = 0;
    /// The first of the clients' writes.
    pub const WRITE: u8 = 1;
    /// Adds a learner; the member is added to it.
    pub const ADD: u8 = 5;
    /// Promotes a learner.
    pub const PROMOTE: u8 = 13;
    /// Removes a member.
    pub const REMOVE: u8 = 21;
}

/// A member: node and incarnation.
pub fn member(node: usize, generation: u8) -> u8 {
    node as u8 * GENERATIONS + generation
}

/// What is in a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Data {
    /// Nothing.
    None,
    /// A log.
    #[default]
    Present,
    /// A log that nobody can read.
    Broken,
}

/// A membership: bit sets of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Conf {
    /// Who votes.
    pub voters: u8,
    /// Who listens.
    pub learners: u8,
    /// Who was removed.
    pub removed: u8,
}

impl Conf {
    /// The membership after one more entry.
    pub fn apply(&mut self, entry: u8) {
        let kind = entry & 31;
        if kind >= kind::REMOVE {
            let bit = 1 << (kind - kind::REMOVE);
            self.voters &= !bit;
            self.learners &= !bit;
            self.removed |= bit;
        } else if kind >= kind::PROMOTE {
            let bit = 1 << (kind - kind::PROMOTE);
            self.learners &= !bit;
            self.voters |= bit;
        } else if kind >= kind::ADD {
            self.learners |= 1 << (kind - kind::ADD);
        }
    }
}

/// What a node said of itself: `dyad_core::Statement` in few bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Said {
    /// Whether it said anything in the boot it is in.
    pub valid: bool,
    /// Whether the speaker's boot is still the one in which it spoke.
    pub fresh: bool,
    /// Whether it answers the listener's present boot.
    pub answers: bool,
    /// The class, in the order of `dyad_core::dataset::Class`.
    pub class: u8,
    /// The speaker's incarnation, plus one.
    pub generation: u8,
    /// A pair at every prefix.
    pub solid: bool,
    /// The yield mark stands.
    pub yielded: bool,
    /// The own removal is committed.
    pub removed: bool,
    /// Whether a log position is stated, its term, and its index.
    pub last: Option<(u8, u8)>,
    /// etcd: stopped, running, serving.
    pub etcd: u8,
    /// Eligible.
    pub eligible: bool,
    /// A planned stop is under way.
    pub leaving: bool,
    /// The listener's incarnation plus one, and its place: learner, voter, burnt.
    pub listener: (u8, u8),
}

/// One node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Node {
    // Disk.
    /// The tail of the log.
    pub log: [u8; LOG],
    /// Its length.
    pub len: u8,
    /// The raft term.
    pub term: u8,
    /// The commit mark.
    pub commit: u8,
    /// The commit mark that a power loss leaves.
    pub durable: u8,
    /// The own incarnation.
    pub generation: u8,
    /// What is in the data directory.
    pub data: Data,
    /// A joiner that has received nothing yet.
    pub empty: bool,
    /// The take-over mark stands.
    pub mark: bool,
    /// The peer's incarnations that it names.
    pub without: u8,
    /// The incarnation that is being promoted, plus one.
    pub promoting: u8,
    /// The yield mark stands.
    pub yielded: bool,
    /// The writes in the copies moved aside.
    pub aside: u8,
    /// etcd was last stopped in order.
    pub orderly: bool,
    /// What it wrote down of a log that is gone: term and index.
    pub record: Option<(u8, u8)>,
    // Processes.
    /// Power.
    pub up: bool,
    /// etcd runs.
    pub running: bool,
    /// It leads.
    pub leader: bool,
    /// What it has applied.
    pub applied: u8,
    /// What it knows, as leader, of the peer's log.
    pub matched: u8,
    /// The incarnation of the peer for which a stand-in votes, plus one.
    pub standin: u8,
    /// The eligibility record: the peer's incarnation, plus one.
    pub eligible: u8,
    /// The record is of an earlier boot.
    pub eligible_stale: bool,
    // Cluster.
    /// Corosync sees the peer.
    pub sees: bool,
    /// The peer was seen, or `wait_for_all` was released.
    pub quorate: bool,
    /// Pacemaker holds the peer as clean and offline.
    pub clean: bool,
    /// The peer's BMC was read Off after a forced Off.
    pub bmc_off: bool,
    /// A person's word: none, down, down and loss accepted.
    pub person: u8,
    /// A past success of fencing.
    pub fenced_before: bool,
    /// The word or the reading is of an earlier Corosync membership.
    pub proof_stale: bool,
    /// A planned stop is under way.
    pub leaving: bool,
    /// What it has said.
    pub said: Said,
    /// What it has heard.
    pub heard: Said,
}

/// The whole pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    /// The two nodes.
    pub nodes: [Node; 2],
    /// The membership at the base of both logs.
    pub base: Conf,
    /// The term of the base.
    pub base_term: u8,
    /// The writes below the base.
    pub base_writes: u8,
    /// Which direction of the network works: bit 0 from node 0 to node 1, bit 1 back.
    pub link: u8,
    /// Which direction of etcd's peer port works.
    pub port: u8,
    /// The writes that clients were told had succeeded.
    pub acked: u8,
    /// The writes that were begun.
    pub writes: u8,
    /// Members that were ever started.
    pub started: u8,
    /// Whose BMC works.
    pub bmc: u8,
    /// Faults that may still happen.
    pub faults: u8,
    /// Planned stops that may still happen.
    pub leaves: u8,
    /// Human acts that may still happen.
    pub humans: u8,
    /// Fencings since the last fault.
    pub fencings: u8,
    /// Boots that are followed after a person erred, or accepted a loss: only P3 is promised then.
    pub boots_after_error: u8,
    /// A person erred, or accepted a loss that was named: P1 and P2 are not promised any more.
    pub excused: bool,
    /// Data were deleted, not moved aside.
    pub destroyed: bool,
    /// A disk was lost: what was only there is gone, whatever anybody decides.
    pub disk_lost: bool,
    /// The bounds of the model cut this state's future short.
    pub truncated: bool,
}

/// Flags as a number.
pub(crate) fn bits(flags: &[bool]) -> u64 {
    flags.iter().fold(0, |word, flag| word << 1 | u64::from(*flag))
}

impl Said {
    /// The statement as a number.
    pub(crate) fn pack(&self) -> u64 {
        let flags = bits(&[
            self.valid,
            self.fresh,
            self.answers,
            self.solid,
            self.yielded,
            self.removed,
            self.eligible,
            self.leaving,
        ]) as u8;
        let (term, index) = self.last.map_or((255, 255), |last| last);
        let (listener, place) = self.listener;
        u64::from_le_bytes([
            flags,
            self.class,
            self.generation,
            term,
            index,
            self.etcd,
            listener,
            place,
        ])
    }
}

impl Node {
    fn pack(&self) -> [u64; 7] {
        let bytes = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
        let log = &self.log;
        let (term, index) = self.record.map_or((255, 255), |record| record);
        [
            bytes([log[0], log[1], log[2], log[3], log[4], log[5], log[6], log[7]]),
            bytes([
                log[8],
                log[9],
                log[10],
                log[11],
                self.len,
                self.term,
                self.commit,
                self.durable,
            ]),
            bytes([
                self.generation,
                self.data as u8,
                self.without,
                self.promoting,
                self.aside,
                term,
                index,
                self.applied,
            ]),
            bytes([self.matched, self.standin, self.eligible, self.person, 0, 0, 0, 0]),
            bits(&[
                self.empty,
                self.mark,
                self.yielded,
                self.orderly,
                self.up,
                self.running,
                self.leader,
                self.eligible_stale,
                self.sees,
                self.quorate,
                self.clean,
                self.bmc_off,
                self.fenced_before,
                self.proof_stale,
                self.leaving,
            ]),
            self.said.pack(),
            self.heard.pack(),
        ]
    }

    /// The membership after the first `upto` entries of the log.
    pub fn conf(&self, base: Conf, upto: u8) -> Conf {
        if self.empty {
            return Conf::default();
        }
        let mut conf = base;
        for entry in &self.log[..upto as usize] {
            conf.apply(*entry);
        }
        conf
    }

    /// The term of the last entry.
    pub fn last_term(&self, base_term: u8) -> u8 {
        if self.empty {
            return 0;
        }
        if self.len == 0 { base_term } else { self.log[self.len as usize - 1] >> 5 }
    }

    /// Appends an entry, with its fsync: that carries the commit mark to disk.
    pub fn append(&mut self, entry: u8) {
        self.log[self.len as usize] = entry;
        self.len += 1;
        self.durable = self.commit;
    }

    /// Cuts the log.
    pub fn truncate(&mut self, len: u8) {
        for entry in &mut self.log[len as usize..] {
            *entry = 0;
        }
        self.len = len;
    }

    /// The writes in its log.
    pub fn writes(&self, base_writes: u8) -> u8 {
        if self.data != Data::Present || self.empty {
            return 0;
        }
        let mut mask = base_writes;
        for entry in &self.log[..self.len as usize] {
            let kind = entry & 31;
            if (kind::WRITE..kind::ADD).contains(&kind) {
                mask |= 1 << (kind - kind::WRITE);
            }
        }
        mask
    }

    /// Ends the etcd process.
    pub fn stop_process(&mut self) {
        self.running = false;
        self.leader = false;
        self.applied = 0;
        self.matched = 0;
        self.standin = 0;
    }
}

impl World {
    /// A pair with full redundancy: both vote, both passed the barrier, all is visible.
    pub fn redundant(faults: u8, leaves: u8, humans: u8) -> Self {
        let node = Node {
            term: 1,
            up: true,
            running: true,
            eligible: 1,
            sees: true,
            quorate: true,
            ..Node::default()
        };
        let mut world = Self {
            nodes: [node; 2],
            base: Conf { voters: 1 | 1 << GENERATIONS, learners: 0, removed: 0 },
            base_term: 1,
            base_writes: 0,
            link: 3,
            port: 3,
            acked: 0,
            writes: 0,
            started: 1 | 1 << GENERATIONS,
            bmc: 3,
            faults,
            leaves,
            humans,
            fencings: 0,
            boots_after_error: u8::MAX,
            excused: false,
            destroyed: false,
            disk_lost: false,
            truncated: false,
        };
        world.nodes[0].leader = true;
        world
    }

    /// Whether etcd's messages get from one node to the other.
    pub fn channel(&self, from: usize) -> bool {
        let bit = 1 << from;
        self.link & bit != 0 && self.port & bit != 0 && self.nodes[0].up && self.nodes[1].up
    }

    /// Whether both directions work.
    pub fn connected(&self) -> bool {
        self.channel(0) && self.channel(1)
    }

    /// The membership that a node's etcd has applied.
    pub fn applied_conf(&self, node: usize) -> Conf {
        self.nodes[node].conf(self.base, self.nodes[node].applied)
    }

    /// Whether a node's etcd, as leader, can commit now.
    pub fn can_commit(&self, node: usize) -> bool {
        let me = &self.nodes[node];
        if !(me.up && me.running && me.leader) {
            return false;
        }
        let own = 1 << member(node, me.generation);
        let others = self.applied_conf(node).voters & !own;
        // A peer that knows a newer term refuses this leader's entries.
        let accepted = me.standin != 0 || self.nodes[1 - node].term <= me.term;
        others == 0 || (self.voter_answers(node, others) && accepted)
    }

    /// Whether the other voter of a node's membership answers it: the stand-in, or the peer itself.
    pub fn voter_answers(&self, node: usize, others: u8) -> bool {
        let me = &self.nodes[node];
        let peer = &self.nodes[1 - node];
        if me.standin != 0 && others == 1 << member(1 - node, me.standin - 1) {
            return true;
        }
        others == 1 << member(1 - node, peer.generation) && peer.running && self.connected()
    }

    /// The state in few words: what is compared and remembered.
    pub fn pack(&self) -> [u64; 17] {
        let mut words = [0; 17];
        for (at, node) in self.nodes.iter().enumerate() {
            words[at * 7..at * 7 + 7].copy_from_slice(&node.pack());
        }
        let bytes = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
        words[14] = bytes([
            self.base.voters,
            self.base.learners,
            self.base.removed,
            self.base_term,
            self.base_writes,
            self.link,
            self.port,
            self.acked,
        ]);
        words[15] = bytes([
            self.writes,
            self.started,
            self.bmc,
            self.faults,
            self.leaves,
            self.humans,
            self.fencings,
            self.boots_after_error,
        ]);
        words[16] = bits(&[self.excused, self.destroyed, self.disk_lost, self.truncated]);
        words
    }

    /// Folds what both logs durably share, and counts terms from there.
    pub fn normalise(&mut self) {
        if crate::check::quiet(self) {
            // Nobody loses power any more: what the disk would keep does not matter.
            for node in &mut self.nodes {
                node.durable = node.commit;
            }
        }
        self.fold();
        let mut low = self.base_term;
        for node in &self.nodes {
            for said in [node.said, node.heard] {
                low = low.min(said.last.map_or(low, |(term, _)| term));
            }
            low = low.min(node.record.map_or(low, |(term, _)| term));
        }
        let down = low.saturating_sub(1);
        if down == 0 {
            return;
        }
        self.base_term -= down;
        for node in &mut self.nodes {
            node.term = node.term.saturating_sub(down);
            for entry in &mut node.log[..node.len as usize] {
                *entry -= down << 5;
            }
            for said in [&mut node.said, &mut node.heard] {
                said.last = said.last.map(|(term, index)| (term - down, index));
            }
            node.record = node.record.map(|(term, index)| (term - down, index));
        }
    }

    fn fold(&mut self) {
        let [a, b] = &self.nodes;
        let shared = |node: &Node| node.data == Data::Present && !node.empty;
        if !shared(a) || !shared(b) {
            return;
        }
        let mut count = a.durable.min(b.durable);
        for node in [a, b] {
            if node.running {
                count = count.min(node.applied);
                if node.leader && self.applied_conf_of(node).voters.count_ones() > 1 {
                    count = count.min(node.matched);
                }
            }
        }
        let same = (0..count as usize).take_while(|at| a.log[*at] == b.log[*at]).count() as u8;
        if same == 0 {
            return;
        }
        for entry in &self.nodes[0].log[..same as usize] {
            self.base.apply(*entry);
            self.base_term = entry >> 5;
            let kind = entry & 31;
            if (kind::WRITE..kind::ADD).contains(&kind) {
                self.base_writes |= 1 << (kind - kind::WRITE);
            }
        }
        for node in &mut self.nodes {
            node.log.copy_within(same as usize.., 0);
            let len = node.len - same;
            node.truncate(len);
            node.commit -= same;
            node.durable -= same;
            node.applied = node.applied.saturating_sub(same);
            node.matched = node.matched.saturating_sub(same);
            for said in [&mut node.said, &mut node.heard] {
                said.last = said.last.map(|(term, index)| (term, index.saturating_sub(same)));
            }
            node.record = node.record.map(|(term, index)| (term, index.saturating_sub(same)));
        }
    }

    fn applied_conf_of(&self, node: &Node) -> Conf {
        node.conf(self.base, node.applied)
    }
}
