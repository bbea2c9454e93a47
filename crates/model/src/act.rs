//! The driver: asks `core`, does the one thing it is told, and publishes.

use dyad_core::{Action, Decision, Statement};

use crate::variant::breaks;
use crate::view::{Ask, View, etcd_state, incarnation, is_failed};
use crate::world::{Data, GENERATIONS, LOG, Said, World, kind, member};
use crate::{Judged, Model};

/// What the drivers of a node do.
pub(crate) trait Doer {
    /// Pacemaker runs the agent.
    fn agent(&self, world: &mut World, node: usize) -> Option<()>;
    /// systemd runs the lone-boot unit.
    fn boot_unit(&self, world: &mut World, node: usize, keep: bool) -> Option<()>;
    /// Something else asks.
    fn ask(&self, world: &mut World, node: usize, ask: Ask) -> Option<()>;
}

impl Model {
    /// What `core` decides for this view, and what the node has to say.
    pub fn judge(&self, view: View) -> Judged {
        if let Some(judged) = self.cache.borrow().get(&view) {
            return judged.clone();
        }
        let facts = view.facts(self.variant);
        let decision: Decision = dyad_core::decide(&facts);
        let statement = Statement::of(&facts, view.record());
        let gives_up = matches!(decision.action, Action::StayInert { .. } | Action::Refuse { .. });
        let judged = Judged {
            failed: is_failed(decision.outcome),
            gives_up,
            action: if gives_up { Action::Nothing } else { decision.action },
            said: Said::from_statement(&statement, false),
        };
        self.cache.borrow_mut().insert(view, judged.clone());
        judged
    }

    /// Publishes what the node has to say. The peer hears it if both see each other.
    fn publish(&self, world: &mut World, node: usize) {
        let ask = if world.nodes[node].leaving { Ask::Plan(false) } else { Ask::Look };
        let mut said = self.judge(View::of(world, node, ask)).said;
        let me = &mut world.nodes[node];
        said.answers = me.heard.valid && me.heard.fresh;
        me.said = said;
        if world.nodes[0].sees && world.nodes[1].sees && world.link == 3 {
            world.nodes[1 - node].heard = said;
        }
    }

    fn perform(&self, world: &mut World, node: usize, action: &Action) {
        match action {
            Action::StartPlain => start(world, node),
            Action::RecordComparison { with } => {
                world.nodes[node].eligible = incarnation(*with);
                world.nodes[node].eligible_stale = false;
            }
            Action::DropEligibility => world.nodes[node].eligible = 0,
            Action::AnnounceTakeOver { dead } => {
                let me = &mut world.nodes[node];
                me.mark = true;
                me.without |= 1 << (incarnation(*dead) - 1);
                if me.promoting == incarnation(*dead) {
                    me.promoting = 0;
                }
            }
            Action::TakeOver { dead } => {
                if !world.nodes[node].running {
                    start(world, node);
                }
                world.nodes[node].standin = incarnation(*dead);
            }
            Action::Yield => {
                world.nodes[node].yielded = true;
                world.nodes[node].eligible = 0;
            }
            Action::TakeBackYield => world.nodes[node].yielded = false,
            Action::AddPeerAsLearner => add_peer(world, node),
            Action::DropLearner { member } => {
                let entry = kind::REMOVE + self::member(1 - node, incarnation(*member) - 1);
                world.propose(node, entry);
            }
            Action::JoinAsLearner { member } => self.join(world, node, *member),
            Action::PromoteLearner { member } => {
                let learner = incarnation(*member);
                world.nodes[node].mark = true;
                world.nodes[node].promoting = learner;
                world.propose(node, kind::PROMOTE + self::member(1 - node, learner - 1));
            }
            Action::Barrier { with } => self.barrier(world, node, incarnation(*with)),
            Action::HandOver { .. } => hand_over(world, node),
            Action::Leave => {
                let own = member(node, world.nodes[node].generation);
                let leader = if world.nodes[node].leader { node } else { 1 - node };
                world.propose(leader, kind::REMOVE + own);
            }
            Action::Stop => {
                world.nodes[node].stop_process();
                world.nodes[node].orderly = true;
            }
            Action::ReleaseWaitForAll => world.nodes[node].quorate = true,
            Action::AcceptConfirmation { accept_loss } => {
                // A wrong word, or one that accepts a loss: what follows was warned of.
                world.excused |= world.nodes[1 - node].up || *accept_loss;
                if *accept_loss {
                    // What this copy lacks was named, and is given up. What is acknowledged from now on is not.
                    world.acked &= world.nodes[node].writes(world.base_writes);
                }
                let me = &mut world.nodes[node];
                me.person = if *accept_loss { 2 } else { 1 };
                me.quorate = true;
                me.clean = !breaks!(self.variant, ConfirmIsIgnored);
            }
            Action::ForcePeerOff
            | Action::AskForRestart
            | Action::CreateDataset
            | Action::Nothing
            | Action::Offer
            | Action::Wait { .. }
            | Action::StayInert { .. }
            | Action::Refuse { .. } => {}
        }
    }

    /// R4: move aside first; the empty start is a step of its own, so that a crash can come between.
    fn join(&self, world: &mut World, node: usize, id: dyad_core::ids::MemberId) {
        let old = world.nodes[node].writes(world.base_writes);
        let acked = world.acked;
        let me = &mut world.nodes[node];
        if me.data != Data::None {
            if breaks!(self.variant, DeleteBeforeJoin) {
                world.destroyed |= me.data == Data::Present && old & acked != 0;
            } else {
                me.aside |= old;
            }
            me.data = Data::None;
            me.empty = false;
            me.truncate(0);
            me.commit = 0;
            me.durable = 0;
            me.term = 0;
            me.mark = false;
            me.without = 0;
            me.promoting = 0;
            me.yielded = false;
            me.eligible = 0;
            me.record = None;
            return;
        }
        if id.0 == 0 {
            return;
        }
        me.data = Data::Present;
        me.empty = true;
        me.generation = incarnation(id) - 1;
        start(world, node);
    }

    /// A write through both voters. It returns when the own etcd has applied it.
    fn barrier(&self, world: &mut World, node: usize, with: u8) {
        let leader = usize::from(!world.nodes[0].leader);
        let passes = world.can_commit(leader) && world.connected();
        if !breaks!(self.variant, PromotedIsEligible) {
            if !passes || usize::from(world.nodes[leader].len) == LOG {
                world.truncated |= passes;
                return;
            }
            let follower = 1 - leader;
            // raft takes nothing back that was committed: of two histories one etcd ends here.
            if !world.shares_committed(follower) {
                return;
            }
            // What the leader has goes to the follower first; its own fsync carries its commit mark.
            let log = world.nodes[leader];
            if !breaks!(self.variant, BarrierIsARead) {
                let entry = log.term << 5 | kind::NOOP;
                world.nodes[leader].append(entry);
            }
            let reach = if breaks!(self.variant, BarrierIsARead) {
                log.commit
            } else {
                world.nodes[leader].len
            };
            let source = world.nodes[leader];
            let peer = &mut world.nodes[follower];
            let behind =
                peer.len < reach || peer.log[..reach as usize] != source.log[..reach as usize];
            if behind {
                peer.log = source.log;
                peer.len = source.len;
                peer.durable = peer.commit;
            }
            peer.term = source.term;
            peer.leader = false;
            peer.matched = 0;
            let len = peer.len;
            world.nodes[leader].matched = world.nodes[leader].matched.max(len.min(source.len));
            world.commit(leader);
            world.apply(leader);
            if node == follower {
                let peer = &mut world.nodes[follower];
                peer.commit = peer.commit.max(reach);
                peer.applied = peer.commit;
            }
        }
        let me = &mut world.nodes[node];
        if !me.running {
            return;
        }
        me.eligible = with;
        me.eligible_stale = false;
        me.mark = false;
        me.without = 0;
        me.promoting = 0;
        // Old copies may be pruned now.
        me.aside = 0;
    }
}

impl Doer for Model {
    fn agent(&self, world: &mut World, node: usize) -> Option<()> {
        let me = &world.nodes[node];
        (me.up && me.quorate).then_some(())?;
        if me.leaving {
            self.planned_stop(world, node);
            return Some(());
        }
        let mut judged = self.judge(View::of(world, node, Ask::Look));
        if judged.action == Action::Offer {
            judged = self.judge(View::of(world, node, Ask::Promote));
        }
        self.perform(world, node, &judged.action);
        // What concerns nobody else is followed by the next decision at once.
        if matches!(judged.action, Action::RecordComparison { .. } | Action::DropEligibility) {
            judged = self.judge(View::of(world, node, Ask::Promote));
            self.perform(world, node, &judged.action);
        }
        // Pacemaker stops what was reported as failed.
        if judged.failed && world.nodes[node].running {
            let stop = self.judge(View::of(world, node, Ask::Recover));
            self.perform(world, node, &stop.action);
        }
        self.publish(world, node);
        Some(())
    }

    fn boot_unit(&self, world: &mut World, node: usize, keep: bool) -> Option<()> {
        let me = &world.nodes[node];
        (me.up && !me.quorate).then_some(())?;
        let judged = self.judge(View::of(world, node, Ask::Boot));
        if judged.action == Action::ForcePeerOff {
            (world.bmc & 1 << (1 - node) != 0).then_some(())?;
            if world.nodes[1 - node].up {
                self.off(world, 1 - node, keep)?;
            } else if !keep {
                return None;
            }
            world.nodes[node].bmc_off = true;
            self.count_fencing(world);
            return Some(());
        }
        keep.then_some(())?;
        self.perform(world, node, &judged.action);
        Some(())
    }

    fn ask(&self, world: &mut World, node: usize, ask: Ask) -> Option<()> {
        let judged = self.judge(View::of(world, node, ask));
        if judged.gives_up {
            return None;
        }
        self.perform(world, node, &judged.action);
        self.publish(world, node);
        Some(())
    }
}

impl Model {
    fn planned_stop(&self, world: &mut World, node: usize) {
        let both = world.nodes[1 - node].leaving;
        if world.nodes[node].running {
            let judged = self.judge(View::of(world, node, Ask::Plan(both)));
            self.perform(world, node, &judged.action);
            self.publish(world, node);
            return;
        }
        let judged = self.judge(View::of(world, node, Ask::Plan(both)));
        if judged.action == Action::Yield {
            self.perform(world, node, &judged.action);
            self.publish(world, node);
            return;
        }
        // All is stopped: the node goes down in order, and the peer's Pacemaker knows.
        self.publish(world, node);
        world.nodes[node].durable = world.nodes[node].commit;
        let known = world.nodes[1 - node].sees && world.nodes[node].sees && world.link == 3;
        world.switch_off(node);
        self.forget(world, node);
        let peer = &mut world.nodes[1 - node];
        if known && peer.up {
            peer.sees = false;
            peer.clean = true;
        }
    }
}

fn start(world: &mut World, node: usize) {
    let me = &mut world.nodes[node];
    if me.data != Data::Present {
        return;
    }
    me.running = true;
    me.applied = me.commit;
    me.orderly = false;
    me.record = None;
    world.started |= 1 << member(node, me.generation);
}

fn add_peer(world: &mut World, node: usize) {
    let me = &world.nodes[node];
    let conf = me.conf(world.base, me.len);
    let known = conf.voters | conf.learners | conf.removed | world.started;
    let next = (0..GENERATIONS).find(|generation| {
        (*generation..GENERATIONS).all(|later| known & 1 << member(1 - node, later) == 0)
    });
    match next {
        Some(generation) => {
            world.propose(node, kind::ADD + member(1 - node, generation));
        }
        None => world.truncated = true,
    }
}

/// Leadership moves to a peer that has everything.
fn hand_over(world: &mut World, node: usize) {
    if !world.can_commit(node)
        || etcd_state(world, 1 - node) == dyad_core::facts::EtcdState::Learner
    {
        return;
    }
    if !world.shares_committed(1 - node) {
        return;
    }
    let source = world.nodes[node];
    if usize::from(source.len) == LOG || source.term == 7 || source.applied != source.commit {
        world.truncated |= source.applied == source.commit;
        return;
    }
    let peer = &mut world.nodes[1 - node];
    if peer.len != source.len || peer.log != source.log {
        peer.log = source.log;
        peer.len = source.len;
        peer.durable = peer.commit;
    }
    peer.term = source.term + 1;
    peer.leader = true;
    peer.matched = 0;
    peer.append((source.term + 1) << 5 | kind::NOOP);
    let me = &mut world.nodes[node];
    me.term = source.term + 1;
    me.leader = false;
    me.matched = 0;
}
