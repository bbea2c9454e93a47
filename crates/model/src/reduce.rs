//! Reductions: states that no rule and no promise can tell apart are taken for one.
//!
//! Each maps a state to a representative of its class. A test (`tests/reductions.rs`) visits whole spaces without
//! them and checks of every state and every step that the representative can take the same step to the
//! representative of the next state, and breaks the same promise: what the full model can do, the reduced one can.

use crate::variant::breaks;
use crate::world::{GENERATIONS, Node, Said, World, kind};
use crate::{Model, Variant};

/// Which reductions are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reductions {
    /// What a statement says, where nobody can act on it.
    pub statements: bool,
    /// The names of incarnations that nobody remembers.
    pub generations: bool,
}

impl Reductions {
    /// None of them.
    pub const NONE: Self = Self { statements: false, generations: false };
    /// All of them.
    pub const ALL: Self = Self { statements: true, generations: true };

    /// All that hold although this rule is broken.
    pub fn sound_for(variant: Variant) -> Self {
        let stale = breaks!(variant, StaleStatementsAreTrusted);
        Self { statements: !stale, ..Self::ALL }
    }
}

impl Model {
    /// The representative of a state.
    pub fn reduce(&self, world: &mut World) {
        let reductions = self.reductions;
        if reductions.statements {
            forget_words(world);
        }
        world.normalise();
        if reductions.generations {
            rename_generations(world);
        }
    }
}

/// A statement that does not answer the listener's present boot is not acted on (`Facts::heard`): of it counts only
/// that there was one, for the answer to it. Of what a node said itself it reads back only whether it was `Alone`
/// (R2a) or leaving (R7); and if it is heard later, it is heard as one that does not answer.
fn forget_words(world: &mut World) {
    for node in &mut world.nodes {
        for (own, said) in [(true, &mut node.said), (false, &mut node.heard)] {
            if said.valid && !said.answers {
                *said = Said {
                    valid: true,
                    fresh: said.fresh,
                    class: if own && said.class == ALONE { ALONE } else { 0 },
                    leaving: own && said.leaving,
                    ..Said::default()
                };
            }
        }
    }
}

/// The eligibility record names an incarnation that is gone for good.
pub const GONE: u8 = 7;

const ALONE: u8 = 2;

/// An incarnation of which only the removal below both logs is left is forgotten, and those after it move up: the
/// ids of members are compared, never counted with. So a pair that has recovered is the pair it was before.
fn rename_generations(world: &mut World) {
    for node in 0..2 {
        let mask = (1_u8 << GENERATIONS) - 1;
        let shift = node as u8 * GENERATIONS;
        // Most states know of no second incarnation.
        if (world.started | world.base.removed) >> shift & mask == 1 {
            continue;
        }
        let mut used = 1 << world.nodes[node].generation;
        used |= (world.base.voters | world.base.learners) >> shift & mask;
        let me = &world.nodes[node];
        let peer = &world.nodes[1 - node];
        for name in [
            me.said.generation,
            peer.heard.generation,
            peer.said.listener.0,
            me.heard.listener.0,
            peer.standin,
        ] {
            used |= name.checked_sub(1).map_or(0, |generation| 1 << generation);
        }
        for entry in me.log.iter().chain(&peer.log) {
            if let Some(generation) = changed(*entry, node) {
                used |= 1 << generation;
            }
        }
        // Kept in a mark or a record only, and removed for good on both sides.
        let gone = world.base.removed >> shift & mask & !used;
        let peer = &mut world.nodes[1 - node];
        let kept = |name: u8| name.checked_sub(1).filter(|name| *name < GENERATIONS);
        if kept(peer.eligible).is_some_and(|generation| gone & 1 << generation != 0) {
            peer.eligible = GONE;
        }
        if kept(peer.promoting).is_some_and(|generation| gone & 1 << generation != 0) {
            peer.promoting = 0;
        }
        peer.without &= !gone;
        used |= peer.without;
        for name in [peer.eligible, peer.promoting] {
            used |= kept(name).map_or(0, |generation| 1 << generation);
        }
        let known = (world.started | world.base.removed) >> shift & mask;
        let dense = used & (used + 1) == 0;
        if !dense || known & !used != 0 {
            rename(world, node, used);
        }
    }
}

/// The incarnation of a node that an entry changes.
fn changed(entry: u8, node: usize) -> Option<u8> {
    let kind = entry & 31;
    let first = node as u8 * GENERATIONS;
    [kind::REMOVE, kind::PROMOTE, kind::ADD]
        .into_iter()
        .find(|base| kind >= *base)
        .and_then(|base| (kind - base).checked_sub(first))
        .filter(|generation| *generation < GENERATIONS)
}

fn rename(world: &mut World, node: usize, used: u8) {
    // The new name of each: how many used ones are below it.
    let new = |generation: u8| (used & ((1 << generation) - 1)).count_ones() as u8;
    let shift = node as u8 * GENERATIONS;
    let bits = |bits: u8| {
        (0..GENERATIONS)
            .filter(|generation| bits & used & 1 << generation != 0)
            .fold(0, |all, generation| all | 1 << new(generation))
    };
    let mask = (1_u8 << GENERATIONS) - 1;
    let part = |all: u8| all & !(mask << shift) | bits(all >> shift & mask) << shift;
    let name = |name: u8| match name {
        0 => 0,
        GONE => GONE,
        name => new(name - 1) + 1,
    };
    let base = &mut world.base;
    base.voters = part(base.voters);
    base.learners = part(base.learners);
    base.removed = part(base.removed);
    world.started = part(world.started);
    let log = |owner: &mut Node| {
        for entry in &mut owner.log {
            if let Some(generation) = changed(*entry, node) {
                *entry = *entry - generation + new(generation);
            }
        }
    };
    let [a, b] = &mut world.nodes;
    let (me, peer) = if node == 0 { (a, b) } else { (b, a) };
    log(me);
    log(peer);
    me.generation = new(me.generation);
    me.said.generation = name(me.said.generation);
    me.heard.listener.0 = name(me.heard.listener.0);
    peer.heard.generation = name(peer.heard.generation);
    peer.said.listener.0 = name(peer.said.listener.0);
    peer.standin = name(peer.standin);
    peer.eligible = name(peer.eligible);
    peer.promoting = name(peer.promoting);
    peer.without = bits(peer.without);
}
