//! Histories of the size that a real run has: a working store is accepted, one false answer among a hundred
//! thousand is found and shown with a handful of operations.

use dyad_judge::linearizable::Limits;
use dyad_judge::operation::{Action, Outcome};
use dyad_judge::simulate::{Simulation, simulate};
use dyad_judge::verdict::{Answer, judge};

/// A working store is accepted, whether clients spread out or crowd on one key, with hundreds of requests
/// whose outcome nobody knows.
#[test]
fn a_working_store_is_accepted() {
    let crowded = Simulation { operations: 20_000, keys: 1, hot_keys: 1, ..Simulation::default() };
    let shaky = Simulation { operations: 20_000, unknown_one_in: 20, ..Simulation::default() };
    for simulation in [Simulation::default(), crowded, shaky] {
        let verdict = judge(&simulate(simulation), Limits::default());
        assert_eq!(verdict.answer, Answer::Good, "{simulation:?}: {}", verdict.render());
    }
}

/// One stale answer among a hundred thousand is found, and shown with a handful of operations.
#[test]
fn one_stale_read_is_found() {
    let mut history = simulate(Simulation::default());
    // A read in the middle is given the answer of a much earlier one of the same key.
    let is_read = |position: usize| {
        let operation = &history.operations[position];
        matches!((&operation.action, &operation.outcome), (Action::Get { .. }, Outcome::Ok(answer))
            if answer.observed.is_some())
            && &*operation.key == "r/0"
    };
    let count = history.operations.len();
    let late = (count / 2..count).find(|position| is_read(*position)).unwrap();
    let early = (count / 4..count / 2).find(|position| is_read(*position)).unwrap();
    let outcome = history.operations[early].outcome.clone();
    history.operations[late].outcome = outcome;

    let verdict = judge(&history, Limits::default());
    assert_eq!(verdict.answer, Answer::Bad);
    let [violation] = &verdict.linearizability.violations[..] else {
        panic!("{}", verdict.render())
    };
    assert_eq!(violation.culprit, late as u64 + 1, "{}", verdict.render());
    assert!(violation.operations.len() <= 6, "{}", verdict.render());
}

/// One acknowledged insert that is missing in the end is found.
#[test]
fn one_lost_insert_is_found() {
    let mut history = simulate(Simulation { operations: 20_000, ..Simulation::default() });
    let insert = history
        .operations
        .iter()
        .find(|op| op.key.starts_with("u/") && op.acknowledged_revision().is_some())
        .unwrap();
    history.finals[1].items.remove(&*insert.key);
    let verdict = judge(&history, Limits::default());
    assert_eq!(verdict.answer, Answer::Bad);
    let lost = &verdict.lost.findings[0];
    assert_eq!(lost.operations, [insert.id], "{}", verdict.render());
}
