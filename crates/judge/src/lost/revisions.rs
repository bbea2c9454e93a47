//! Revisions against each other and against time.

use std::collections::HashMap;
use std::fmt;

use super::{Facts, KeyFacts, Kind, Lost, name};
use crate::history::History;
use crate::operation::Operation;

/// What somebody says that a revision holds.
#[derive(Clone, Copy)]
struct Claim<'a> {
    key: &'a str,
    /// None for a removal.
    value: Option<&'a str>,
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Acknowledgement(&'a Operation),
    Observation(&'a Operation),
    FinalState(&'a str),
}

impl Claim<'_> {
    fn operation(&self) -> Option<u64> {
        match self.source {
            Source::Acknowledgement(operation) | Source::Observation(operation) => {
                Some(operation.id)
            }
            Source::FinalState(_) => None,
        }
    }
}

impl fmt::Display for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} according to ", self.key, self.value.unwrap_or("nothing"))?;
        match self.source {
            Source::Acknowledgement(operation) => {
                write!(f, "the acknowledgement of {}", name(operation))
            }
            Source::Observation(operation) => write!(f, "what {} saw", name(operation)),
            Source::FinalState(node) => write!(f, "the final state of {node}"),
        }
    }
}

/// A revision stands for one change of one key. Every request changes one key at most, so two answers, or
/// two nodes, that fill the same revision differently have different histories.
pub(super) fn one_change_per_revision(history: &History, lost: &mut Lost) {
    let mut changes: HashMap<u64, Claim> = HashMap::new();
    for (revision, claim) in claims(history) {
        let first = *changes.entry(revision).or_insert(claim);
        if (first.key, first.value) != (claim.key, claim.value) {
            let message = format!("revision {revision} is {first}, but {claim}");
            let operations = first.operation().into_iter().chain(claim.operation());
            lost.add(Kind::TwoHistories, claim.key, operations, message);
        }
    }
}

fn claims(history: &History) -> impl Iterator<Item = (u64, Claim<'_>)> {
    let answers = history.operations.iter().flat_map(|operation| {
        let key = &*operation.key;
        let answer = operation.answer();
        let acknowledged = answer.filter(|answer| answer.applied).map(|answer| {
            let source = Source::Acknowledgement(operation);
            (answer.revision, Claim { key, value: operation.action.value(), source })
        });
        let observed = answer.and_then(|answer| answer.observed.as_ref()).map(|item| {
            let source = Source::Observation(operation);
            (item.mod_revision, Claim { key, value: Some(&*item.value), source })
        });
        acknowledged.into_iter().chain(observed)
    });
    let finals = history.finals.iter().flat_map(|state| {
        state.items.iter().map(|(key, item)| {
            let source = Source::FinalState(&state.endpoint);
            (item.mod_revision, Claim { key, value: Some(&item.value), source })
        })
    });
    answers.chain(finals)
}

/// Calls `each` with every operation and the operation of the largest `revision` that was over before it
/// began; for those that have one.
fn with_floor<'a>(
    operations: impl Iterator<Item = &'a Operation>,
    revision: impl Fn(&Operation) -> Option<u64>,
    mut each: impl FnMut(&'a Operation, u64, &'a Operation),
) {
    let all: Vec<&Operation> = operations.collect();
    let mut over: Vec<(u64, u64, &Operation)> = all
        .iter()
        .filter_map(|operation| Some((operation.complete_ns?, revision(operation)?, *operation)))
        .collect();
    over.sort_by_key(|(complete, ..)| *complete);
    let mut over = over.into_iter().peekable();
    let mut floor: Option<(u64, &Operation)> = None;
    // In the order of invocation, as every history is.
    for operation in all {
        while let Some((_, revision, it)) =
            over.next_if(|(complete, ..)| *complete < operation.invoke_ns)
        {
            if floor.is_none_or(|(highest, _)| revision > highest) {
                floor = Some((revision, it));
            }
        }
        if let Some((revision, it)) = floor {
            each(operation, revision, it);
        }
    }
}

/// What was over before something else began has the smaller revision, across all keys and nodes.
pub(super) fn order(operations: &[Operation], lost: &mut Lost) {
    let linearizable = operations.iter().filter(|operation| !operation.is_serializable());
    let revision = |operation: &Operation| operation.answer().map(|answer| answer.revision);
    with_floor(linearizable, revision, |operation, floor, earlier| {
        let Some(answer) = operation.answer() else { return };
        // A change has a revision of its own, an answer may share one.
        if answer.revision < floor || (answer.applied && answer.revision == floor) {
            let message = format!(
                "{} was answered at revision {}, though {} was already over at revision {floor}",
                name(operation),
                answer.revision,
                name(earlier),
            );
            let ids = [earlier.id, operation.id];
            lost.add(Kind::RevisionWentBack, &operation.key, ids, message);
        }
    });
}

/// Serializable reads may be old; how many are is worth knowing.
pub(super) fn old_serializable_reads(operations: &[Operation], lost: &mut Lost) {
    let mut endpoints: HashMap<&str, Vec<&Operation>> = HashMap::new();
    for operation in operations {
        endpoints.entry(&operation.endpoint).or_default().push(operation);
    }
    let revision = |operation: &Operation| operation.answer().map(|answer| answer.revision);
    for operations in endpoints.into_values() {
        with_floor(operations.into_iter(), revision, |operation, floor, _| {
            let old = operation.answer().is_some_and(|answer| answer.revision < floor);
            lost.old_serializable_reads += usize::from(old && operation.is_serializable());
        });
    }
}

/// What each read saw: from whom it stems, and that it is not older than what was acknowledged before.
pub(super) fn reads(facts: &Facts, lost: &mut Lost) {
    for (key, facts) in &facts.keys {
        for operation in &facts.operations {
            let observed = operation.answer().and_then(|answer| answer.observed.as_ref());
            let Some(item) = observed else { continue };
            if let Err((kind, writers, what)) = facts.origin(&item.value, item.mod_revision) {
                let message = format!("{} saw {what}", name(operation));
                lost.add(kind, key, writers.into_iter().chain([operation.id]), message);
            }
        }
        stale(key, facts, lost);
    }
}

fn stale(key: &str, facts: &KeyFacts, lost: &mut Lost) {
    let linearizable = facts.operations.iter().copied().filter(|op| !op.is_serializable());
    with_floor(linearizable, Operation::acknowledged_revision, |operation, floor, earlier| {
        let Some(answer) = operation.answer() else { return };
        // Who wrote unconditionally or with success has not read; its revision is judged by `order`.
        let read = !answer.applied || answer.observed.is_some();
        let seen = answer.observed.as_ref().map(|item| item.mod_revision);
        let (kind, what) = match seen {
            Some(seen) if seen < floor => {
                (Kind::StaleRead, format!("the change of revision {seen}"))
            }
            None if read && vanished(facts, answer.revision) => {
                (Kind::LostAcknowledgement, "nothing".to_owned())
            }
            _ => return,
        };
        let message = format!(
            "{} saw {what}, though {} had been acknowledged at revision {floor}",
            name(operation),
            name(earlier),
        );
        lost.add(kind, key, [earlier.id, operation.id], message);
    });
}

/// Whether no removal explains that the key did not exist at this revision: the last acknowledged change up
/// to it wrote a value, and no removal has an unknown outcome.
fn vanished(facts: &KeyFacts, revision: u64) -> bool {
    let last = facts.acknowledged.range(..=revision).next_back();
    !facts.perhaps_removed() && last.is_some_and(|(_, last)| last.action.value().is_some())
}
