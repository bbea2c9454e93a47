//! Visits every state within the bounds, breadth first, and checks each.

pub mod hash;
pub mod liveness;

use crate::check::{self, Property};
use crate::search::hash::{Seen, fingerprint};
use crate::search::liveness::Edges;
use crate::{Model, Step, World};

/// What a search is asked to do.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Give up above this many states.
    pub states_max: usize,
    /// Whether to check that every state can recover.
    pub liveness: bool,
}

/// What a search has found.
#[derive(Debug)]
pub struct Found {
    /// How many states were visited.
    pub states: usize,
    /// The longest shortest path to a state.
    pub depth: usize,
    /// How many sets of facts were decided on.
    pub decisions: usize,
    /// Whether the whole space within the bounds was visited.
    pub complete: bool,
    /// States at which the bounds of logs, terms or incarnations cut the future short.
    pub truncated: usize,
    /// The first promise that was broken, and how it came to that.
    pub violation: Option<Violation>,
}

/// A promise that was broken, and the shortest way to it.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The promise.
    pub property: Property,
    /// Where it began.
    pub start: World,
    /// The steps.
    pub steps: Vec<Step>,
}

/// The steps by which each state was reached first.
#[derive(Debug, Default)]
struct Ways {
    parents: Vec<u32>,
    steps: Vec<u8>,
}

impl Ways {
    fn back(&self, mut number: u32, all: &[Step]) -> (usize, Vec<Step>) {
        let mut steps = Vec::new();
        while self.steps[number as usize] != u8::MAX {
            steps.push(all[usize::from(self.steps[number as usize])]);
            number = self.parents[number as usize];
        }
        steps.reverse();
        (self.parents[number as usize] as usize, steps)
    }
}

/// Visits every state that can be reached from these.
pub fn search(model: &Model, starts: &[World], bounds: Bounds) -> Found {
    let all = Step::all();
    let mut seen = Seen::new();
    let mut ways = Ways::default();
    let mut edges = bounds.liveness.then(Edges::default);
    let mut found =
        Found { states: 0, depth: 0, decisions: 0, complete: true, truncated: 0, violation: None };
    let mut level: Vec<(u32, World)> = Vec::new();
    for (at, start) in starts.iter().enumerate() {
        if let Ok(number) = seen.number(fingerprint(start)) {
            ways.parents.push(at as u32);
            ways.steps.push(u8::MAX);
            level.push((number, *start));
        }
    }
    while !level.is_empty() && found.violation.is_none() {
        found.depth += 1;
        let mut next = Vec::new();
        for (number, world) in &level {
            found.truncated += usize::from(world.truncated);
            if let Some(edges) = &mut edges {
                edges.state(model, *number, world);
            }
            if check::settled(world) {
                continue;
            }
            for (at, step) in all.iter().enumerate() {
                let Some(after) = model.step(world, *step) else { continue };
                let fresh = seen.number(fingerprint(&after));
                let target = match fresh {
                    Ok(target) | Err(target) => target,
                };
                if let Some(edges) = &mut edges {
                    edges.add(*number, target, *step);
                }
                if fresh.is_err() {
                    continue;
                }
                ways.parents.push(*number);
                ways.steps.push(at as u8);
                if let Some(property) = check::broken(&after) {
                    let (start, steps) = ways.back(target, &all);
                    found.violation = Some(Violation { property, start: starts[start], steps });
                    found.states = ways.parents.len();
                    found.decisions = model.decisions();
                    return found;
                }
                next.push((target, after));
            }
        }
        found.states = ways.parents.len();
        if found.states > bounds.states_max {
            found.complete = false;
            break;
        }
        level = next;
    }
    found.decisions = model.decisions();
    if found.complete
        && let Some(edges) = edges
        && let Some((property, number)) = edges.stuck(ways.parents.len())
    {
        let (start, steps) = ways.back(number, &all);
        found.violation = Some(Violation { property, start: starts[start], steps });
    }
    found
}
