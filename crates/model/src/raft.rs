//! etcd's raft, as far as two nodes can tell: elections, appends, commits, and changes of the membership,
//! which take effect when they are applied, not when they are appended.

use crate::world::{Data, LOG, World, kind, member};

/// The highest term that is modelled.
const TERM_MAX: u8 = 7;

impl World {
    fn own_bit(&self, node: usize) -> u8 {
        1 << member(node, self.nodes[node].generation)
    }

    /// Whether a node would win an election now.
    pub fn can_win(&self, node: usize) -> bool {
        let me = &self.nodes[node];
        let peer = &self.nodes[1 - node];
        if !(me.up && me.running) || me.leader || me.empty {
            return false;
        }
        let own = self.own_bit(node);
        let voters = self.applied_conf(node).voters;
        // etcd does not campaign with a committed change of the membership that it has not applied.
        if voters & own == 0 || me.applied != me.commit {
            return false;
        }
        let others = voters & !own;
        if others == 0 {
            return true;
        }
        if me.standin != 0 && others == 1 << member(1 - node, me.standin - 1) {
            return true;
        }
        let newer = (me.last_term(self.base_term), me.len)
            >= (peer.last_term(self.base_term), if peer.empty { 0 } else { peer.len });
        // A peer that leads and reaches us has not been given up.
        self.voter_answers(node, others) && newer && !peer.leader
    }

    /// Who needs no vote but its own, or has the stand-in's, does not wait for an election.
    pub fn campaign_alone(&mut self, node: usize) {
        let me = &self.nodes[node];
        let alone = self.applied_conf(node).voters == self.own_bit(node);
        if me.running && !me.leader && (alone || me.standin != 0) {
            self.campaign(node);
        }
    }

    /// A node wins an election, and appends the first entry of its term.
    pub fn campaign(&mut self, node: usize) -> Option<()> {
        if !self.can_win(node) {
            return None;
        }
        let own = self.own_bit(node);
        let alone = self.applied_conf(node).voters == own;
        let helped = self.nodes[node].standin != 0;
        let mut term = self.nodes[node].term;
        if !alone && !helped {
            term = term.max(self.nodes[1 - node].term);
        }
        if term == TERM_MAX || usize::from(self.nodes[node].len) == LOG {
            self.truncated = true;
            return Some(());
        }
        term += 1;
        if !alone && !helped {
            self.nodes[1 - node].term = term;
            self.nodes[1 - node].leader = false;
            self.nodes[1 - node].matched = 0;
        }
        let me = &mut self.nodes[node];
        me.term = term;
        me.leader = true;
        me.matched = 0;
        me.append(term << 5 | kind::NOOP);
        Some(())
    }

    /// A leader sends the next entry, or learns that the peer has all.
    pub fn replicate(&mut self, node: usize) -> Option<()> {
        let (base_term, conf) = (self.base_term, self.applied_conf(node));
        let (to, back) = (self.channel(node), self.channel(1 - node));
        let me = self.nodes[node];
        let peer_bit = self.own_bit(1 - node);
        let peer = &mut self.nodes[1 - node];
        if !(me.up && me.running && me.leader && peer.running && to) {
            return None;
        }
        if (conf.voters | conf.learners) & peer_bit == 0 {
            return None;
        }
        if peer.term > me.term {
            if !back {
                return None;
            }
            let term = peer.term;
            let me = &mut self.nodes[node];
            me.term = term;
            me.leader = false;
            me.matched = 0;
            return Some(());
        }
        let _ = base_term;
        peer.term = me.term;
        peer.leader = false;
        peer.matched = 0;
        if peer.empty {
            // A snapshot: everything up to the commit.
            if me.commit == 0 && me.len > 0 && self.base.voters == 0 {
                return None;
            }
            peer.empty = false;
            peer.log = me.log;
            peer.len = me.len;
            peer.truncate(me.commit);
            peer.commit = me.commit;
            peer.durable = me.commit;
            peer.applied = me.commit;
            let len = peer.len;
            if back {
                self.nodes[node].matched = len;
            }
            return Some(());
        }
        let same = (0..me.len.min(peer.len) as usize)
            .take_while(|at| me.log[*at] == peer.log[*at])
            .count() as u8;
        if same == me.len {
            if back && me.matched < same {
                self.nodes[node].matched = same;
                return Some(());
            }
            return None;
        }
        if peer.commit > same {
            // Two histories: the properties tell.
            return None;
        }
        peer.truncate(same);
        peer.append(me.log[same as usize]);
        if back {
            self.nodes[node].matched = same + 1;
        }
        Some(())
    }

    /// Whether everything that a node holds for committed is in the other's log too.
    pub fn shares_committed(&self, node: usize) -> bool {
        let (me, peer) = (&self.nodes[node], &self.nodes[1 - node]);
        let committed = me.commit as usize;
        me.commit <= peer.len && me.log[..committed] == peer.log[..committed]
    }

    /// Of the copies aside, only what clients were told of matters.
    pub fn aside_counts(&mut self, node: usize) {
        self.nodes[node].aside &= self.acked;
    }

    /// A leader commits what a majority of its applied membership has: at once, for that is when clients are
    /// told at the earliest. The mark on disk is another matter.
    pub fn commit(&mut self, node: usize) -> Option<()> {
        let me = &self.nodes[node];
        if !(me.up && me.running && me.leader) {
            return None;
        }
        let own = self.own_bit(node);
        let others = self.applied_conf(node).voters & !own;
        let by_standin = me.standin != 0 && others == 1 << member(1 - node, me.standin - 1);
        let peer_votes = others == self.own_bit(1 - node);
        let reach = if others == 0 || by_standin {
            me.len
        } else if peer_votes {
            me.len.min(me.matched)
        } else {
            return None;
        };
        if reach <= me.commit || me.log[reach as usize - 1] >> 5 != me.term {
            return None;
        }
        let promotes = me.log[me.commit as usize..reach as usize]
            .iter()
            .any(|entry| (kind::PROMOTE..kind::REMOVE).contains(&(entry & 31)));
        let mut acked = 0;
        for entry in &me.log[..reach as usize] {
            let kind = entry & 31;
            if (kind::WRITE..kind::ADD).contains(&kind) {
                acked |= 1 << (kind - kind::WRITE);
            }
        }
        self.acked |= acked;
        let me = &mut self.nodes[node];
        let in_step = me.applied == me.commit;
        me.commit = reach;
        // Only a promotion is worth a state of its own between commit and apply: it alone makes the majority
        // larger, so that what was proposed before it takes effect needs one vote less than what comes after.
        if !promotes && in_step {
            me.applied = reach;
            self.after_apply(node);
        }
        Some(())
    }

    /// A leader applies what is committed; a change of the membership takes effect now.
    pub fn apply(&mut self, node: usize) -> Option<()> {
        let me = &self.nodes[node];
        if !(me.up && me.running && me.leader) || me.applied == me.commit {
            return None;
        }
        self.nodes[node].applied = self.nodes[node].commit;
        self.after_apply(node);
        Some(())
    }

    /// A follower hears how far the leader has committed, and applies that.
    pub fn beat(&mut self, node: usize) -> Option<()> {
        let me = self.nodes[node];
        let to = self.channel(node);
        let conf = self.applied_conf(node);
        let peer_bit = self.own_bit(1 - node);
        let peer = &mut self.nodes[1 - node];
        let hears = me.up && me.running && me.leader && peer.running && to && !peer.empty;
        if !hears || peer.leader || peer.term > me.term {
            return None;
        }
        if (conf.voters | conf.learners) & peer_bit == 0 {
            return None;
        }
        let same = (0..me.len.min(peer.len) as usize)
            .take_while(|at| me.log[*at] == peer.log[*at])
            .count() as u8;
        let reach = me.commit.min(same);
        if reach <= peer.commit {
            return None;
        }
        peer.term = me.term;
        peer.commit = reach;
        peer.applied = reach;
        self.after_apply(1 - node);
        Some(())
    }

    /// A member that has applied its own removal ends; a stand-in ends with the member it stood in for.
    fn after_apply(&mut self, node: usize) {
        let conf = self.applied_conf(node);
        let own = self.own_bit(node);
        let me = &mut self.nodes[node];
        if conf.removed & own != 0 {
            me.stop_process();
            return;
        }
        if me.standin != 0 && conf.removed & (1 << member(1 - node, me.standin - 1)) != 0 {
            me.standin = 0;
        }
    }

    /// A client's write reaches the leader's log.
    pub fn write(&mut self, node: usize, writes: u8) -> Option<()> {
        let number = self.writes;
        let me = &mut self.nodes[node];
        if !(me.up && me.running && me.leader) || number >= writes || usize::from(me.len) == LOG {
            return None;
        }
        me.append(me.term << 5 | (kind::WRITE + number));
        self.writes += 1;
        Some(())
    }

    /// A change of the membership is proposed to the leader: one at a time, after the last was applied.
    pub fn propose(&mut self, node: usize, what: u8) -> Option<()> {
        let me = &mut self.nodes[node];
        let pending = me.log[me.applied as usize..me.len as usize]
            .iter()
            .any(|entry| entry & 31 >= kind::ADD);
        if !(me.up && me.running && me.leader) || pending {
            return None;
        }
        if usize::from(me.len) == LOG {
            self.truncated = true;
            return Some(());
        }
        me.append(me.term << 5 | what);
        Some(())
    }

    /// The stand-in proposes the removal, once the first entry of the leader's term is committed.
    pub fn propose_removal(&mut self, node: usize) -> Option<()> {
        let me = &self.nodes[node];
        let dead = me.standin.checked_sub(1)?;
        let last = me.commit.checked_sub(1).map_or(self.base_term, |at| me.log[at as usize] >> 5);
        let committed = last == me.term;
        let dead = member(1 - node, dead);
        if !committed || self.applied_conf(node).voters & 1 << dead == 0 {
            return None;
        }
        self.propose(node, kind::REMOVE + dead)
    }

    /// The node loses power. `keep` tells whether the commit mark that was written but not fsynced survives.
    pub fn power_loss(&mut self, node: usize, keep: bool) -> Option<()> {
        let me = &mut self.nodes[node];
        if !me.up || (!keep && me.durable == me.commit) {
            return None;
        }
        if keep {
            me.durable = me.commit;
        } else {
            me.commit = me.durable;
        }
        if me.running {
            me.orderly = false;
        }
        self.switch_off(node);
        Some(())
    }

    /// Everything that a reboot loses.
    pub fn switch_off(&mut self, node: usize) {
        let me = &mut self.nodes[node];
        me.stop_process();
        me.up = false;
        me.sees = false;
        me.quorate = false;
        me.clean = false;
        me.bmc_off = false;
        me.person = 0;
        me.fenced_before = false;
        me.proof_stale = false;
        me.leaving = false;
        me.said = crate::world::Said::default();
        me.heard = crate::world::Said::default();
        if me.data != Data::Present {
            me.orderly = false;
        }
    }
}
