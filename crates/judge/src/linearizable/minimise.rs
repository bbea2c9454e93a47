//! From a key that is not linearizable to the few operations that show it.
//!
//! First the shortest beginning of the history that is already impossible: its last answer is the culprit.
//! Then parts are left out as long as what remains is still impossible. Only such parts are left out whose
//! absence cannot by itself make anything impossible, so what remains is a proof about the whole:
//!
//! - a read (also a comparison that failed): it changes nothing;
//! - a *block*: all operations that wrote or saw the same values, chained by compare-and-swap. In any order
//!   they stand together, and what follows them does not look. A block that ends in a removal must also
//!   begin from nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Violation;
use super::model::{self, Effect, NEVER, NOTHING, Register, Value};
use super::search::{Budget, Decision, search};
use crate::operation::Operation;

/// The most time spent on making one example smaller.
const TIME_MAX: Duration = Duration::from_secs(5);

/// The example for a key that was found impossible.
pub(super) fn violation(key: &Arc<str>, operations: &[&Operation], budget: Budget) -> Violation {
    let budget = Budget { until: budget.until.max(Instant::now() + TIME_MAX), ..budget };
    let cutoff = shortest_beginning(operations, budget);
    let mut kept: Vec<&Operation> = operations
        .iter()
        .copied()
        .filter(|operation| operation.invoke_ns <= cutoff && !operation.is_failed())
        .collect();
    leave_out(&mut kept, cutoff, budget);

    // What the model dropped takes no part: unknown operations that cannot matter.
    let mut shown: Vec<&Operation> =
        model::register(&kept, cutoff).steps.iter().map(|step| kept[step.operation]).collect();
    shown.sort_by_key(|operation| operation.invoke_ns);
    let culprit = shown.iter().find(|operation| operation.complete_ns == Some(cutoff));
    Violation {
        key: Arc::clone(key),
        culprit: culprit.or(shown.last()).map_or(0, |operation| operation.id),
        from_ns: shown.first().map_or(0, |operation| operation.invoke_ns),
        to_ns: cutoff,
        operations: shown.into_iter().cloned().collect(),
    }
}

fn impossible(operations: &[&Operation], cutoff: u64, budget: Budget) -> bool {
    search(&model::register(operations, cutoff), budget).0 == Decision::Impossible
}

/// The moment of the first answer after which no order exists. A beginning of a linearizable history is
/// linearizable, so this can be found by halving.
fn shortest_beginning(operations: &[&Operation], budget: Budget) -> u64 {
    let mut ends: Vec<u64> = operations.iter().filter_map(|op| op.complete_ns).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|end| !impossible(operations, *end, budget));
    ends.get(first).or(ends.last()).copied().unwrap_or(NEVER)
}

/// Leaves out ever smaller groups of blocks, then single reads, while the rest stays impossible.
fn leave_out(kept: &mut Vec<&Operation>, cutoff: u64, budget: Budget) {
    let until = Instant::now() + TIME_MAX;
    let drop_groups = |kept: &mut Vec<&Operation>, groups: Vec<Vec<u64>>| {
        let mut groups = groups;
        let mut size = groups.len().div_ceil(2);
        while size > 0 && !groups.is_empty() {
            let mut at = 0;
            while at < groups.len() && Instant::now() < until {
                let end = (at + size).min(groups.len());
                let mut ids: Vec<u64> = groups[at..end].iter().flatten().copied().collect();
                ids.sort_unstable();
                let rest: Vec<&Operation> = kept
                    .iter()
                    .copied()
                    .filter(|operation| ids.binary_search(&operation.id).is_err())
                    .collect();
                if impossible(&rest, cutoff, budget) {
                    *kept = rest;
                    groups.drain(at..end);
                } else {
                    at = end;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    };
    let removable = blocks(kept, cutoff);
    drop_groups(kept, removable);
    let reads = reads(kept, cutoff);
    drop_groups(kept, reads);
    // Without the reads some blocks have become superfluous.
    let removable = blocks(kept, cutoff);
    drop_groups(kept, removable);
}

fn reads(operations: &[&Operation], cutoff: u64) -> Vec<Vec<u64>> {
    let register = model::register(operations, cutoff);
    register
        .steps
        .iter()
        .filter(|step| matches!(step.effect, Effect::Read(_)))
        .map(|step| vec![operations[step.operation].id])
        .collect()
}

/// The ids of the operations of each block that may be left out, in order of their beginning.
fn blocks(operations: &[&Operation], cutoff: u64) -> Vec<Vec<u64>> {
    let register = model::register(operations, cutoff);
    let of_value = chains(&register);
    let mut blocks: HashMap<Value, Block> = HashMap::new();
    let mut writers: HashMap<Value, u32> = HashMap::new();
    for step in &register.steps {
        if let Some(value) = step.effect.writes() {
            *writers.entry(value).or_default() += 1;
        }
    }
    for step in &register.steps {
        let value = match step.effect {
            Effect::Read(value) | Effect::Write(value) if value != NOTHING => value,
            Effect::Swap(seen, NOTHING) if seen != NOTHING => seen,
            Effect::Swap(_, left) if left != NOTHING => left,
            // Reads of nothing go by themselves; other removals stay.
            _ => continue,
        };
        let block = blocks.entry(of_value[value as usize]).or_default();
        block.ids.push(operations[step.operation].id);
        block.begins_from_nothing |= matches!(step.effect, Effect::Swap(NOTHING, _));
        block.ends_in_nothing |= matches!(step.effect, Effect::Swap(_, NOTHING));
        block.ambiguous |= writers.get(&value).is_none_or(|writers| *writers != 1);
    }
    let mut removable: Vec<Vec<u64>> = blocks
        .into_values()
        .filter(|block| !block.ambiguous && (!block.ends_in_nothing || block.begins_from_nothing))
        .map(|block| block.ids)
        .collect();
    removable.sort();
    removable
}

#[derive(Default)]
struct Block {
    ids: Vec<u64>,
    begins_from_nothing: bool,
    ends_in_nothing: bool,
    /// A value in it was written more than once, or never: leaving it out proves nothing.
    ambiguous: bool,
}

/// For each value the one that stands for its chain of compare-and-swaps.
fn chains(register: &Register) -> Vec<Value> {
    let mut parent: Vec<Value> = (0..register.values as Value).collect();
    let root = |parent: &mut Vec<Value>, mut value: Value| {
        while parent[value as usize] != value {
            parent[value as usize] = parent[parent[value as usize] as usize];
            value = parent[value as usize];
        }
        value
    };
    for step in &register.steps {
        if let Effect::Swap(seen, left) = step.effect
            && seen != NOTHING
            && left != NOTHING
        {
            let (from, to) = (root(&mut parent, seen), root(&mut parent, left));
            parent[from as usize] = to;
        }
    }
    (0..parent.len() as Value).map(|value| root(&mut parent, value)).collect()
}
