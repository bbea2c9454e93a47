//! A key as a register, and what is left of its operations once all that cannot matter is gone.
//!
//! **Unknown outcomes.** Such an operation may take effect at any time after its invocation, or never. Kept
//! as it is, each would stay open to the end of the history and double the search. Most need not be kept:
//!
//! *Claim.* An unknown write (or compare-and-swap, or insert) of a value that no other operation wrote, and
//! that nothing observed, can be dropped: the history is linearizable with it if and only if it is without.
//! *Proof.* "If": it may never take effect, so an order of the rest is an order of all. "Only if": take an
//! order of all in which it took effect, leaving its value `v`. Let `o` be the next operation after it that
//! changes the register. Between them nothing looked at the register, for it would have observed `v`: every
//! read, every failed comparison and every removal records what it saw. `o` does not look either: had it
//! compared or removed `v`, it would have observed it. So `o` writes unconditionally, or there is no `o`; in
//! both cases nothing notices if the register keeps what it held before. What is left is an order of the
//! rest. An unknown operation that *would* have observed `v` had it taken effect is dropped first, by the
//! same argument, unless its own value was observed; then it counts as an observer.
//!
//! Conversely an unknown write whose value *was* observed, and which nothing else wrote, certainly did take
//! effect: it is then like any other, only without an end. What stays optional are removals, since "nothing"
//! is not unique, writes of values that were written more than once, and what only those may have seen.

use std::collections::HashMap;

use crate::operation::{Action, Operation, Outcome};

/// What the register holds: an interned value.
pub(super) type Value = u32;

/// The key does not exist. Also how every register begins.
pub(super) const NOTHING: Value = 0;

/// What an answer saw that contradicts itself: nothing ever writes it.
const CONTRADICTION: Value = 1;

/// A time after all times: the end of what has no known end.
pub(super) const NEVER: u64 = u64::MAX;

/// What an operation does to the register, and what it saw there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It saw this value.
    Read(Value),
    /// It left this value, whatever was there.
    Write(Value),
    /// It saw the first value and left the second.
    Swap(Value, Value),
}

impl Effect {
    /// The value that it saw.
    pub(super) fn observes(self) -> Option<Value> {
        match self {
            Self::Read(value) | Self::Swap(value, _) => Some(value),
            Self::Write(_) => None,
        }
    }

    /// The value that it left.
    pub(super) fn writes(self) -> Option<Value> {
        match self {
            Self::Write(value) | Self::Swap(_, value) => Some(value),
            Self::Read(_) => None,
        }
    }
}

/// One operation as the search sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// What it did.
    pub(super) effect: Effect,
    /// When it began.
    pub(super) invoke: u64,
    /// When it was over, or [`NEVER`].
    pub(super) complete: u64,
    /// Whether it may also never have happened.
    pub(super) optional: bool,
    /// Which of the operations it stands for.
    pub(super) operation: usize,
}

/// The steps of one key, in the order of their beginning, and how many values there are.
#[derive(Debug)]
pub(super) struct Register {
    pub(super) steps: Vec<Step>,
    pub(super) values: usize,
}

/// Turns the operations of one key into steps. Whatever was not over at `cutoff` counts as unknown: the
/// history as it would have been recorded up to then.
pub(super) fn register(operations: &[&Operation], cutoff: u64) -> Register {
    let mut values = Interner::default();
    let mut steps: Vec<Step> = operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| operation.invoke_ns <= cutoff)
        .filter_map(|(position, operation)| step(operation, position, cutoff, &mut values))
        .collect();
    let values = values.count();
    settle_unknown(&mut steps, values);
    steps.sort_by_key(|step| step.invoke);
    Register { steps, values }
}

#[derive(Default)]
struct Interner<'a> {
    known: HashMap<&'a str, Value>,
}

impl<'a> Interner<'a> {
    fn get(&mut self, value: &'a str) -> Value {
        // NOTHING and CONTRADICTION are not in the table.
        let next = self.count() as Value;
        *self.known.entry(value).or_insert(next)
    }

    fn count(&self) -> usize {
        self.known.len() + 2
    }
}

fn step<'a>(
    operation: &'a Operation,
    position: usize,
    cutoff: u64,
    values: &mut Interner<'a>,
) -> Option<Step> {
    let complete = operation.complete_ns.filter(|complete| *complete <= cutoff);
    let effect = match (&operation.outcome, complete) {
        (Outcome::Failed { .. }, _) => return None,
        (Outcome::Ok(answer), Some(_)) => {
            let observed = answer.observed.as_ref().map_or(NOTHING, |item| values.get(&item.value));
            match &operation.action {
                Action::Get { serializable: true } => return None,
                Action::Put { value } => Effect::Write(values.get(value)),
                Action::Cas { expect, value } if answer.applied => {
                    Effect::Swap(values.get(expect), values.get(value))
                }
                Action::Insert { value } if answer.applied => {
                    Effect::Swap(NOTHING, values.get(value))
                }
                Action::Delete if answer.applied => Effect::Swap(observed, NOTHING),
                // The comparison is said to have failed on the very value that was asked for.
                Action::Cas { expect, .. } if observed == values.get(expect) => {
                    Effect::Read(CONTRADICTION)
                }
                Action::Insert { .. } if observed == NOTHING => Effect::Read(CONTRADICTION),
                _ => Effect::Read(observed),
            }
        }
        _ => match &operation.action {
            Action::Get { .. } => return None,
            Action::Put { value } => Effect::Write(values.get(value)),
            Action::Cas { expect, value } => Effect::Swap(values.get(expect), values.get(value)),
            Action::Insert { value } => Effect::Swap(NOTHING, values.get(value)),
            Action::Delete => Effect::Write(NOTHING),
        },
    };
    let complete = complete.filter(|_| operation.answer().is_some());
    Some(Step {
        effect,
        invoke: operation.invoke_ns,
        complete: complete.unwrap_or(NEVER),
        optional: complete.is_none(),
        operation: position,
    })
}

/// Drops the unknown steps that cannot matter, and makes those certain that must have happened.
fn settle_unknown(steps: &mut Vec<Step>, values: usize) {
    let mut writers = vec![0_u32; values];
    for value in steps.iter().filter_map(|step| step.effect.writes()) {
        writers[value as usize] += 1;
    }
    let unique = |value: Value| value != NOTHING && writers[value as usize] == 1;

    // Who certainly saw a value, and who perhaps did: steps that themselves are optional for good.
    let mut certainly = Vec::new();
    let mut perhaps = Vec::new();
    let mut chain: HashMap<Value, Value> = HashMap::new();
    for step in steps.iter() {
        let Some(seen) = step.effect.observes() else { continue };
        match step.effect {
            Effect::Swap(_, left) if step.optional && unique(left) => {
                chain.insert(left, seen);
            }
            _ if step.optional => perhaps.push(seen),
            _ => certainly.push(seen),
        }
    }
    let certainly = follow(certainly, &chain, values);
    let perhaps = follow(perhaps, &chain, values);

    steps.retain_mut(|step| {
        let Some(left) = step.effect.writes().filter(|left| step.optional && unique(*left)) else {
            return true;
        };
        // Certainly seen, and nobody else wrote it: it did happen.
        step.optional = !certainly[left as usize];
        certainly[left as usize] || perhaps[left as usize]
    });
}

/// Which values were seen, if these were: an unknown swap whose value was seen has seen another.
fn follow(mut todo: Vec<Value>, chain: &HashMap<Value, Value>, values: usize) -> Vec<bool> {
    let mut seen = vec![false; values];
    while let Some(value) = todo.pop() {
        if !std::mem::replace(&mut seen[value as usize], true) {
            todo.extend(chain.get(&value));
        }
    }
    seen
}
