//! What Dyad promises, checked in each state.

use std::fmt;

use crate::world::{Data, Said, World};

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// P1: one history.
    OneHistory,
    /// P2: nothing acknowledged is lost.
    NothingLost,
    /// P3: no only copy is destroyed.
    NoCopyDestroyed,
    /// P5: no fencing loop.
    NoFencingLoop,
    /// Without a person: from every state, serving can be reached again.
    Recovers,
    /// An eligible survivor with working fencing serves again by itself.
    SurvivorServes,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneHistory => "P1 one history",
            Self::NothingLost => "P2 nothing acknowledged is lost",
            Self::NoCopyDestroyed => "P3 no only copy is destroyed",
            Self::NoFencingLoop => "P5 no fencing loop",
            Self::Recovers => "liveness: recovers without a person",
            Self::SurvivorServes => "liveness: an eligible survivor serves",
        })
    }
}

/// More fencings than this without a new fault are a loop: one forced Off by the lone-boot unit, and one by
/// Pacemaker for each node, is what a single fault can lead to.
const FENCINGS_MAX: u8 = 3;

/// The promise that this state breaks, if any.
pub fn broken(world: &World) -> Option<Property> {
    if world.destroyed || copy_lost(world) {
        return Some(Property::NoCopyDestroyed);
    }
    // Behind a cut, two nodes that a person let go on alone can only force each other off.
    if world.excused {
        return None;
    }
    if world.fencings > FENCINGS_MAX {
        return Some(Property::NoFencingLoop);
    }
    let serving = [world.can_commit(0), world.can_commit(1)];
    if serving == [true, true] || diverged(world) {
        return Some(Property::OneHistory);
    }
    for (node, serves) in world.nodes.iter().zip(serving) {
        if serves && node.writes(world.base_writes) & world.acked != world.acked {
            return Some(Property::NothingLost);
        }
    }
    None
}

fn copy_lost(world: &World) -> bool {
    if world.disk_lost {
        return false;
    }
    let held =
        world.nodes.iter().fold(0, |held, node| held | node.writes(world.base_writes) | node.aside);
    held & world.acked != world.acked
}

/// Committed entries that differ.
fn diverged(world: &World) -> bool {
    let [a, b] = &world.nodes;
    let readable = |node: &crate::world::Node| node.data == Data::Present && !node.empty;
    let shared = a.commit.min(b.commit) as usize;
    readable(a) && readable(b) && a.log[..shared] != b.log[..shared]
}

/// Whether a client can write now.
pub fn serves(world: &World) -> bool {
    world.can_commit(0) || world.can_commit(1)
}

/// Whether this node is a survivor that has to serve by itself: up, with quorum, without its peer, eligible
/// or already alone, and able to fence.
pub fn must_serve(world: &World, node: usize, said: &Said) -> bool {
    let me = &world.nodes[node];
    let alone = usize::from(said.class) == 2;
    let fences = me.clean || world.bmc & 1 << (1 - node) != 0;
    let calm = !me.leaving && !me.sees && !world.truncated && !world.excused;
    me.up && me.quorate && (said.eligible || alone) && me.data == Data::Present && fences && calm
}

/// Whether nothing can go wrong any more, so that the search need not go on: no disturbance is left, both nodes
/// are up and see each other, so that nobody can be fenced; both etcds run and reach each other; one leads and
/// can commit, has everything that clients were told of (else a copy aside may be the only one, and P3 is at stake),
/// and the other has nothing in its log that the leader has not, in the same term.
pub fn settled(world: &World) -> bool {
    if !quiet(world) || world.port != 3 {
        return false;
    }
    let leader = usize::from(!world.nodes[0].leader);
    let (lead, other) = (&world.nodes[leader], &world.nodes[1 - leader]);
    let in_step = other.running
        && !other.leader
        && !other.empty
        && !other.yielded
        && other.term == lead.term
        && other.len <= lead.len
        && other.log[..other.len as usize] == lead.log[..other.len as usize];
    let conf = lead.conf(world.base, lead.applied);
    let bit = 1 << crate::world::member(1 - leader, other.generation);
    let complete = lead.writes(world.base_writes) & world.acked == world.acked;
    world.can_commit(leader)
        && complete
        && !lead.yielded
        && lead.standin == 0
        && in_step
        && (conf.voters | conf.learners) & bit != 0
}

/// Whether no disturbance is left and both nodes are up and see each other: no node can go down any more.
pub fn quiet(world: &World) -> bool {
    let [a, b] = &world.nodes;
    let spent = world.faults == 0 && world.leaves == 0 && world.humans == 0;
    spent && a.up && b.up && a.sees && b.sees && world.link == 3 && !a.leaving && !b.leaving
}
