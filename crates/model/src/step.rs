//! What can happen to the pair, one thing at a time.

use std::fmt;
use std::str::FromStr;

use crate::Model;
use crate::act::Doer as _;
use crate::variant::breaks;
use crate::view::{Ask, NAMES};
use crate::world::{Data, Said, World};

/// One thing that happens. The number is the node it happens to, or from which it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Pacemaker runs the agent: it looks, decides and does one thing.
    Agent(usize),
    /// The lone-boot unit; whether an unsynced commit mark of the peer survives being forced off.
    BootUnit(usize, bool),
    /// etcd wins an election.
    Elect(usize),
    /// The leader sends its next entry.
    Send(usize),
    /// The leader applies a change of the membership.
    Apply(usize),
    /// The other side hears how far the leader has committed.
    Beat(usize),
    /// The stand-in proposes the removal of the dead member.
    Remove(usize),
    /// A client writes.
    Write(usize),
    /// The node boots.
    Boot(usize),
    /// Both nodes see each other in Corosync.
    Meet,
    /// Corosync on this node notices that the peer is gone.
    Lose(usize),
    /// Pacemaker on this node fences the peer; whether an unsynced commit mark survives.
    Fence(usize, bool),
    /// The network heals.
    Heal,
    /// etcd's peer port heals.
    HealPort,
    /// A BMC answers again.
    HealBmc(usize),
    /// Power is lost; whether an unsynced commit mark survives.
    Power(usize, bool),
    /// etcd crashes.
    Crash(usize),
    /// The network is cut: from this node, or (2) both ways.
    Cut(usize),
    /// etcd's peer port is cut: from this node, or (2) both ways.
    CutPort(usize),
    /// A node's BMC stops answering.
    FailBmc(usize),
    /// A node's data become unreadable.
    LoseDisk(usize),
    /// A planned stop of the node begins.
    Plan(usize),
    /// The planned stop is called off: the node is to stay.
    CallOff(usize),
    /// A person confirms on this node that the peer is down; whether a loss is accepted.
    Confirm(usize, bool),
    /// A person gives this node's diverged dataset up.
    GiveUp(usize),
}

impl Step {
    /// All of them, cheap and frequent ones first.
    pub fn all() -> Vec<Self> {
        let mut steps = Vec::new();
        for node in 0..2 {
            steps.extend([
                Self::Agent(node),
                Self::BootUnit(node, true),
                Self::BootUnit(node, false),
                Self::Elect(node),
                Self::Send(node),
                Self::Apply(node),
                Self::Beat(node),
                Self::Remove(node),
                Self::Write(node),
                Self::Boot(node),
                Self::Lose(node),
                Self::Fence(node, true),
                Self::Fence(node, false),
                Self::HealBmc(node),
                Self::Power(node, true),
                Self::Power(node, false),
                Self::Crash(node),
                Self::FailBmc(node),
                Self::LoseDisk(node),
                Self::Plan(node),
                Self::CallOff(node),
                Self::Confirm(node, false),
                Self::Confirm(node, true),
                Self::GiveUp(node),
            ]);
        }
        steps.extend([Self::Meet, Self::Heal, Self::HealPort]);
        steps.extend((0..3).flat_map(|way| [Self::Cut(way), Self::CutPort(way)]));
        steps
    }

    /// Whether it is a fault, a person's act or a plan: what nothing promises to happen, or not to.
    pub fn is_disturbance(self) -> bool {
        matches!(
            self,
            Self::Power(..)
                | Self::Crash(_)
                | Self::Cut(_)
                | Self::CutPort(_)
                | Self::FailBmc(_)
                | Self::LoseDisk(_)
                | Self::Plan(_)
                | Self::CallOff(_)
                | Self::Confirm(..)
                | Self::GiveUp(_)
        )
    }

    /// Whether only this node, and the fencing it asks for, takes part in it.
    pub fn is_of_survivor(self, node: usize) -> bool {
        match self {
            Self::Agent(who)
            | Self::Elect(who)
            | Self::Apply(who)
            | Self::Remove(who)
            | Self::Lose(who)
            | Self::Fence(who, _) => who == node,
            _ => false,
        }
    }
}

/// What may happen at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// The number of clients' writes.
    pub writes: u8,
    /// Whether the network may be cut in one direction only.
    pub one_way: bool,
    /// Whether etcd's peer port may be cut.
    pub ports: bool,
    /// Whether BMCs may fail.
    pub bmc: bool,
    /// Whether a disk may be lost.
    pub disks: bool,
    /// Whether a planned stop may be called off again.
    pub call_off: bool,
    /// Whether fencings are counted, for P5.
    pub count_fencings: bool,
}

impl Model {
    /// The world after this step, if it can happen.
    pub fn step(&self, world: &World, step: Step) -> Option<World> {
        if world.truncated || !is_thinkable(world, step) {
            return None;
        }
        let mut next = *world;
        self.happen(&mut next, step)?;
        for node in 0..2 {
            next.aside_counts(node);
            next.campaign_alone(node);
            next.commit(node);
            if !self.scope.disks {
                next.nodes[node].orderly = false;
            }
        }
        self.reduce(&mut next);
        (next != *world).then_some(next)
    }

    fn happen(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Agent(node) => self.agent(world, node),
            Step::BootUnit(node, keep) => self.boot_unit(world, node, keep),
            Step::Elect(node) => world.campaign(node),
            Step::Send(node) => world.replicate(node),
            Step::Apply(node) => world.apply(node),
            Step::Beat(node) => world.beat(node),
            Step::Remove(node) => world.propose_removal(node),
            Step::Write(node) => world.write(node, self.scope.writes),
            Step::Boot(node) => boot(world, node),
            Step::Meet => self.meet(world),
            Step::Lose(node) => {
                self.lose(world, node);
                Some(())
            }
            Step::Fence(node, keep) => self.fence(world, node, keep),
            Step::Heal => repair(&mut world.link, 3),
            Step::HealPort => repair(&mut world.port, 3),
            Step::HealBmc(node) => {
                let healed = world.bmc | 1 << node;
                repair(&mut world.bmc, healed)
            }
            Step::Plan(node) => plan(world, node),
            Step::CallOff(node) => {
                self.scope.call_off.then_some(())?;
                world.nodes[node].leaving = false;
                // Pacemaker starts the instance, which says so.
                world.nodes[node].said.leaving = false;
                if world.nodes[1 - node].sees {
                    world.nodes[1 - node].heard.leaving = false;
                }
                Some(())
            }
            Step::Confirm(node, accept) => self.confirm(world, node, accept),
            Step::GiveUp(node) => self.give_up(world, node),
            Step::Power(..)
            | Step::Crash(_)
            | Step::Cut(_)
            | Step::CutPort(_)
            | Step::FailBmc(_)
            | Step::LoseDisk(_) => {
                world.faults = world.faults.checked_sub(1)?;
                world.fencings = 0;
                self.fault(world, step)
            }
        }
    }

    fn fault(&self, world: &mut World, step: Step) -> Option<()> {
        match step {
            Step::Power(node, keep) => self.off(world, node, keep),
            Step::Crash(node) => {
                let me = &mut world.nodes[node];
                (me.up && me.running).then_some(())?;
                me.stop_process();
                me.orderly = false;
                Some(())
            }
            Step::Cut(way) => cut(&mut world.link, way, self.scope.one_way),
            Step::CutPort(way) => {
                self.scope.ports.then_some(())?;
                cut(&mut world.port, way, true)
            }
            Step::FailBmc(node) => {
                self.scope.bmc.then_some(())?;
                let left = world.bmc & !(1 << node);
                repair(&mut world.bmc, left)
            }
            Step::LoseDisk(node) => {
                self.scope.disks.then_some(())?;
                lose_disk(world, node)
            }
            _ => None,
        }
    }

    /// Switches a node off, and makes what others know of it out of date.
    pub(crate) fn off(&self, world: &mut World, node: usize, keep: bool) -> Option<()> {
        world.power_loss(node, keep)?;
        self.forget(world, node);
        Some(())
    }

    pub(crate) fn forget(&self, world: &mut World, node: usize) {
        let me = &mut world.nodes[node];
        if breaks!(self.variant, EligibilityOutlivesTheBoot) {
            me.eligible_stale = true;
        } else {
            me.eligible = 0;
        }
        let peer = &mut world.nodes[1 - node];
        peer.said.answers = false;
        if breaks!(self.variant, StaleStatementsAreTrusted) {
            peer.heard.fresh = false;
        } else {
            peer.heard = Said::default();
        }
    }

    fn meet(&self, world: &mut World) -> Option<()> {
        let [a, b] = &world.nodes;
        (a.up && b.up && world.link == 3 && !(a.sees && b.sees)).then_some(())?;
        let said = [a.said, b.said];
        for (at, node) in world.nodes.iter_mut().enumerate() {
            node.sees = true;
            node.quorate = true;
            if said[1 - at].valid {
                node.heard = said[1 - at];
            }
            if breaks!(self.variant, ProofOutlivesSight) {
                node.proof_stale = node.bmc_off || node.person > 0;
            } else {
                node.clean = false;
                node.bmc_off = false;
                node.person = 0;
            }
        }
        Some(())
    }

    /// Pacemaker drops what a lost node has said.
    fn lose(&self, world: &mut World, node: usize) {
        let me = &mut world.nodes[node];
        me.sees = false;
        if !breaks!(self.variant, StaleStatementsAreTrusted) {
            me.heard = Said::default();
        }
    }

    fn fence(&self, world: &mut World, node: usize, keep: bool) -> Option<()> {
        let me = &world.nodes[node];
        let works = world.bmc & 1 << (1 - node) != 0;
        (me.up && me.quorate && !me.sees && !me.clean && works).then_some(())?;
        if world.nodes[1 - node].up {
            self.off(world, 1 - node, keep)?;
        } else if !keep {
            return None;
        }
        let me = &mut world.nodes[node];
        me.clean = true;
        me.fenced_before = breaks!(self.variant, FencingHistoryIsProof);
        self.count_fencing(world);
        Some(())
    }

    pub(crate) fn count_fencing(&self, world: &mut World) {
        if self.scope.count_fencings {
            world.fencings = (world.fencings + 1).min(7);
        }
    }

    fn confirm(&self, world: &mut World, node: usize, accept: bool) -> Option<()> {
        world.humans = world.humans.checked_sub(1)?;
        let me = &world.nodes[node];
        (me.up && !me.sees).then_some(())?;
        self.ask(world, node, Ask::Confirm(accept))
    }

    fn give_up(&self, world: &mut World, node: usize) -> Option<()> {
        world.humans = world.humans.checked_sub(1)?;
        world.nodes[node].up.then_some(())?;
        self.ask(world, node, Ask::GiveUp)
    }
}

/// A quick look, before the state is copied: most steps cannot happen in most states.
fn is_thinkable(world: &World, step: Step) -> bool {
    let nodes = &world.nodes;
    match step {
        Step::Agent(node) => nodes[node].up && nodes[node].quorate,
        Step::BootUnit(node, _) => nodes[node].up && !nodes[node].quorate,
        Step::Elect(node) => nodes[node].running && !nodes[node].leader,
        Step::Send(node) | Step::Beat(node) => nodes[node].leader && nodes[1 - node].running,
        Step::Apply(node) => nodes[node].leader && nodes[node].applied < nodes[node].commit,
        Step::Remove(node) => nodes[node].leader && nodes[node].standin != 0,
        Step::Write(node) => nodes[node].leader,
        Step::Boot(node) => !nodes[node].up,
        Step::Meet => world.link == 3 && !(nodes[0].sees && nodes[1].sees),
        Step::Lose(node) => nodes[node].sees && (world.link != 3 || !nodes[1 - node].up),
        Step::Fence(node, _) => nodes[node].quorate && !nodes[node].sees && !nodes[node].clean,
        Step::Heal => world.link != 3,
        Step::HealPort => world.port != 3,
        Step::HealBmc(_) => world.bmc != 3,
        Step::Power(node, _) => world.faults > 0 && nodes[node].up,
        Step::Crash(node) => world.faults > 0 && nodes[node].running,
        Step::Cut(_) | Step::CutPort(_) | Step::FailBmc(_) | Step::LoseDisk(_) => world.faults > 0,
        Step::Plan(_) => world.leaves > 0,
        Step::CallOff(node) => nodes[node].leaving,
        Step::Confirm(..) | Step::GiveUp(_) => world.humans > 0,
    }
}

fn boot(world: &mut World, node: usize) -> Option<()> {
    let me = &mut world.nodes[node];
    (!me.up).then_some(())?;
    me.up = true;
    if world.excused && world.boots_after_error != u8::MAX {
        world.boots_after_error = world.boots_after_error.checked_sub(1)?;
    }
    Some(())
}

fn cut(bits: &mut u8, way: usize, one_way: bool) -> Option<()> {
    let left = if way == 2 { 0 } else { *bits & !(1 << way) };
    ((way == 2 || one_way) && left != *bits).then_some(())?;
    *bits = left;
    Some(())
}

fn repair(bits: &mut u8, to: u8) -> Option<()> {
    (*bits != to).then_some(())?;
    *bits = to;
    Some(())
}

fn plan(world: &mut World, node: usize) -> Option<()> {
    world.leaves = world.leaves.checked_sub(1)?;
    world.fencings = 0;
    let me = &mut world.nodes[node];
    (me.up && me.quorate && !me.leaving).then_some(())?;
    me.leaving = true;
    Some(())
}

fn lose_disk(world: &mut World, node: usize) -> Option<()> {
    let base_term = world.base_term;
    let me = &mut world.nodes[node];
    (me.data == Data::Present).then_some(())?;
    let pair = me.conf(world.base, me.commit).voters.count_ones() == 2;
    let rested = me.orderly && !me.running && pair && !me.mark && !me.yielded;
    me.record = rested.then(|| (me.last_term(base_term), me.len));
    me.stop_process();
    me.data = Data::Broken;
    me.empty = false;
    me.truncate(0);
    me.commit = 0;
    me.durable = 0;
    me.term = 0;
    world.disk_lost = true;
    Some(())
}

/// A word, and the step it stands for on a node.
type Word = (&'static str, fn(usize) -> Step);

/// The words for a step: short, and read back.
const WORDS: &[Word] = &[
    ("agent", Step::Agent),
    ("boot-unit", |n| Step::BootUnit(n, true)),
    ("boot-unit-losing-mark", |n| Step::BootUnit(n, false)),
    ("elect", Step::Elect),
    ("send", Step::Send),
    ("apply", Step::Apply),
    ("beat", Step::Beat),
    ("remove-dead", Step::Remove),
    ("write", Step::Write),
    ("boot", Step::Boot),
    ("lose-sight", Step::Lose),
    ("fence-from", |n| Step::Fence(n, true)),
    ("fence-from-losing-mark", |n| Step::Fence(n, false)),
    ("heal-bmc", Step::HealBmc),
    ("power-loss", |n| Step::Power(n, true)),
    ("power-loss-losing-mark", |n| Step::Power(n, false)),
    ("etcd-crash", Step::Crash),
    ("fail-bmc", Step::FailBmc),
    ("lose-disk", Step::LoseDisk),
    ("plan-stop", Step::Plan),
    ("call-off-stop", Step::CallOff),
    ("confirm", |n| Step::Confirm(n, false)),
    ("confirm-accepting-loss", |n| Step::Confirm(n, true)),
    ("give-up", Step::GiveUp),
    ("cut-from", Step::Cut),
    ("cut-port-from", Step::CutPort),
];

/// The words for a step of the whole pair.
const PAIR_WORDS: &[(&str, Step)] = &[
    ("meet", Step::Meet),
    ("heal", Step::Heal),
    ("heal-port", Step::HealPort),
    ("cut", Step::Cut(2)),
    ("cut-port", Step::CutPort(2)),
];

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((word, _)) = PAIR_WORDS.iter().find(|(_, step)| step == self) {
            return f.write_str(word);
        }
        for (node, name) in NAMES.iter().enumerate() {
            if let Some((word, _)) = WORDS.iter().find(|(_, make)| make(node) == *self) {
                return write!(f, "{word} {name}");
            }
        }
        write!(f, "{self:?}")
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((_, step)) = PAIR_WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(*step);
        }
        let (word, name) = text.split_once(' ').ok_or_else(|| format!("`{text}` is no step"))?;
        let node = NAMES.iter().position(|known| *known == name);
        let node = node.ok_or_else(|| format!("`{name}` is no node"))?;
        let make = WORDS.iter().find(|(known, _)| *known == word);
        make.map(|(_, make)| make(node)).ok_or_else(|| format!("`{word}` is no step"))
    }
}
