//! Liveness: from every state, serving can be reached again.

use crate::check::{self, Property};
use crate::view::{Ask, View};
use crate::{Model, Step, World};

/// Which steps are good for a liveness question.
const FREE: u8 = 1;
const SURVIVOR: [u8; 2] = [2, 4];

/// The graph of states, kept for the question which of them are stuck.
#[derive(Debug, Default)]
pub struct Edges {
    from: Vec<u32>,
    to: Vec<u32>,
    good: Vec<u8>,
    /// For each state: serves now, or its future is cut short by the bounds.
    goal: Vec<u8>,
    /// For each state: which node has to serve by itself.
    must: Vec<u8>,
}

impl Edges {
    /// Notes what a state is.
    pub fn state(&mut self, model: &Model, number: u32, world: &World) {
        let need = number as usize + 1;
        if self.goal.len() < need {
            self.goal.resize(need, 0);
            self.must.resize(need, 0);
        }
        // Where a person has erred, or the only copy of the newest data is gone, a person has to help.
        let goal = check::serves(world) || world.truncated || world.excused || world.disk_lost;
        self.goal[number as usize] = u8::from(goal);
        for (node, bit) in SURVIVOR.into_iter().enumerate() {
            let said = model.judge(View::of(world, node, Ask::Look)).said;
            if check::must_serve(world, node, &said) {
                self.must[number as usize] |= bit;
            }
        }
    }

    /// Notes a step from one state to another.
    pub fn add(&mut self, from: u32, to: u32, step: Step) {
        let mut good = 0;
        if !step.is_disturbance() {
            good |= FREE;
        }
        for (node, bit) in SURVIVOR.iter().enumerate() {
            if step.is_of_survivor(node) {
                good |= bit;
            }
        }
        if good != 0 && from != to {
            self.from.push(from);
            self.to.push(to);
            self.good.push(good);
        }
    }

    /// The first state from which serving cannot be reached without a person, or by a survivor alone.
    pub fn stuck(mut self, states: usize) -> Option<(Property, u32)> {
        self.goal.resize(states, 0);
        self.must.resize(states, 0);
        let reverse = self.reverse(states);
        for bit in SURVIVOR {
            let reached = self.backward(&reverse, bit);
            let stuck = (0..states).find(|at| self.must[*at] & bit != 0 && !reached[*at]);
            if let Some(number) = stuck {
                return Some((Property::SurvivorServes, number as u32));
            }
        }
        let reached = self.backward(&reverse, FREE);
        let stuck = reached.iter().position(|reached| !reached)?;
        Some((Property::Recovers, stuck as u32))
    }

    /// Edges sorted by their target: offsets, then edge numbers.
    fn reverse(&self, states: usize) -> (Vec<u32>, Vec<u32>) {
        let mut offsets = vec![0_u32; states + 1];
        for to in &self.to {
            offsets[*to as usize + 1] += 1;
        }
        for at in 0..states {
            offsets[at + 1] += offsets[at];
        }
        let mut fill = offsets.clone();
        let mut order = vec![0_u32; self.to.len()];
        for (edge, to) in self.to.iter().enumerate() {
            let slot = &mut fill[*to as usize];
            order[*slot as usize] = edge as u32;
            *slot += 1;
        }
        (offsets, order)
    }

    fn backward(&self, (offsets, order): &(Vec<u32>, Vec<u32>), bit: u8) -> Vec<bool> {
        let mut reached: Vec<bool> = self.goal.iter().map(|goal| *goal != 0).collect();
        let mut open: Vec<u32> =
            (0..reached.len() as u32).filter(|at| reached[*at as usize]).collect();
        while let Some(at) = open.pop() {
            let range = offsets[at as usize] as usize..offsets[at as usize + 1] as usize;
            for edge in &order[range] {
                let from = self.from[*edge as usize];
                if self.good[*edge as usize] & bit != 0 && !reached[from as usize] {
                    reached[from as usize] = true;
                    open.push(from);
                }
            }
        }
        reached
    }
}
