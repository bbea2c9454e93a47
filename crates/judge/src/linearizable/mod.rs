//! Is there one order of all operations that explains every answer?
//!
//! Linearizability is compositional: a history is linearizable if and only if it is so for each key alone.
//! So each key is judged by itself, as a register with writes, reads, compare-and-swap, inserts and
//! removals. Reads that were allowed to be old are left out.

#[cfg(test)]
mod brute;
mod minimise;
mod model;
mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::operation::Operation;
use model::NEVER;
use search::{Budget, Decision};

/// How much the judgement may cost. What is not decided within it is called undecided.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for all keys together.
    pub time: Duration,
    /// Steps of the search per key.
    pub steps: u64,
    /// Configurations remembered per key: about 100 bytes each.
    pub remembered: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_mins(1), steps: 200_000_000, remembered: 5_000_000 }
    }
}

/// What was found about a whole history.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Linearizability {
    /// How many keys were judged.
    pub keys: usize,
    /// How many operations were judged, those that cannot matter included.
    pub operations: usize,
    /// How many steps the search took.
    pub steps: u64,
    /// For each key that is not linearizable, the smallest part found that shows it.
    pub violations: Vec<Violation>,
    /// The keys for which the limits ran out.
    pub undecided: Vec<Arc<str>>,
}

/// A few operations on one key that no order explains.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Which key.
    pub key: Arc<str>,
    /// The operations, in the order of invocation.
    pub operations: Vec<Operation>,
    /// The operation with whose answer it became impossible.
    pub culprit: u64,
    /// From the first invocation.
    pub from_ns: u64,
    /// To the last answer.
    pub to_ns: u64,
}

/// Judges every key of a history.
pub fn check(operations: &[Operation], limits: Limits) -> Linearizability {
    let until = Instant::now() + limits.time;
    let mut keys: BTreeMap<&Arc<str>, Vec<&Operation>> = BTreeMap::new();
    for operation in operations.iter().filter(|operation| !operation.is_serializable()) {
        keys.entry(&operation.key).or_default().push(operation);
    }
    let mut found = Linearizability {
        keys: keys.len(),
        operations: keys.values().map(Vec::len).sum(),
        steps: 0,
        violations: Vec::new(),
        undecided: Vec::new(),
    };
    for (key, operations) in keys {
        let budget = Budget { steps: limits.steps, remembered: limits.remembered, until };
        let (decision, steps) = search::search(&model::register(&operations, NEVER), budget);
        found.steps += steps;
        match decision {
            Decision::Linearizable => {}
            Decision::Undecided => found.undecided.push(Arc::clone(key)),
            Decision::Impossible => {
                found.violations.push(minimise::violation(key, &operations, budget));
            }
        }
    }
    found
}
