//! How long the judgement takes, by the shape of the history. `cargo bench --package dyad-judge`.
//!
//! One run each, timed with the monotonic clock: the question is whether 100,000 operations are judged
//! within seconds, not how the last microsecond is spent.

use std::time::Instant;

use dyad_judge::linearizable::{self, Limits};
use dyad_judge::lost;
use dyad_judge::operation::{Action, Outcome};
use dyad_judge::simulate::{Simulation, simulate};

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let usual = Simulation::default();
    let cases = [
        ("100 keys, 2 of them hot", usual, false),
        ("10 keys", Simulation { keys: 10, ..usual }, false),
        ("one key", Simulation { keys: 1, hot_keys: 1, ..usual }, false),
        ("one key, 128 clients", Simulation { keys: 1, hot_keys: 1, clients: 128, ..usual }, false),
        ("100 keys, 5,000 unknown", Simulation { unknown_one_in: 20, ..usual }, false),
        (
            "one key, 5,000 unknown",
            Simulation { keys: 1, hot_keys: 1, unknown_one_in: 20, ..usual },
            false,
        ),
        ("100 keys, one stale read", usual, true),
        ("one key, one stale read", Simulation { keys: 1, hot_keys: 1, ..usual }, true),
        ("one million operations", Simulation { operations: 1_000_000, ..usual }, false),
    ];
    println!("| history | operations | unknown | verdict | steps | linearizable | lost |");
    println!("|---|---|---|---|---|---|---|");
    for (name, simulation, stale) in cases {
        let mut history = simulate(simulation);
        if stale {
            make_one_read_stale(&mut history.operations);
        }
        let unknown = history.operations.iter().filter(|operation| operation.is_unknown()).count();
        let start = Instant::now();
        let order = linearizable::check(&history.operations, Limits::default());
        let searched = start.elapsed();
        let start = Instant::now();
        let lost = lost::check(&history);
        let compared = start.elapsed();
        assert!(order.undecided.is_empty(), "{name} is undecided");
        let bad = !order.violations.is_empty() || !lost.findings.is_empty();
        println!(
            "| {name} | {} | {unknown} | {} | {} | {} ms | {} ms |",
            history.operations.len(),
            if bad { "bad" } else { "good" },
            order.steps,
            searched.as_millis(),
            compared.as_millis(),
        );
    }
}

fn make_one_read_stale(operations: &mut [dyad_judge::operation::Operation]) {
    let is_read = |position: &usize| {
        let operation = &operations[*position];
        matches!((&operation.action, &operation.outcome), (Action::Get { .. }, Outcome::Ok(answer))
            if answer.observed.is_some())
            && &*operation.key == "r/0"
    };
    let count = operations.len();
    let late = (count * 3 / 4..count).find(is_read).expect("reads are frequent");
    let early = (count / 4..count).find(is_read).expect("reads are frequent");
    operations[late].outcome = operations[early].outcome.clone();
}
