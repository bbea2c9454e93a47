//! Histories for tests, one line per operation:
//!
//! ```text
//! CLIENT ENDPOINT KEY ACTION... FROM-TO OUTCOME
//! 1 a k put x     0-10  ok 5            acknowledged under revision 5
//! 2 b k get       20-30 ok 5 x@5        saw x, changed at revision 5
//! 2 b k cas x y   20-30 no 6 z@6        the comparison failed, saw z
//! 2 b k delete    20-   unknown
//! 2 b k insert v  20-30 failed
//! final a 6 k=x@5/2/3                   node a at revision 6: k is x, changed at 5, created at 2, version 3
//! ```

use std::sync::Arc;

use crate::history::{FinalItem, FinalState, History};
use crate::operation::{Action, Answer, Item, Operation, Outcome};

/// The history that the text describes.
pub(crate) fn history(text: &str) -> History {
    let (finals, rest): (Vec<&str>, Vec<&str>) =
        text.lines().map(str::trim).partition(|line| line.starts_with("final"));
    History {
        operations: operations(&rest.join("\n")),
        finals: finals.into_iter().map(final_state).collect(),
        ended: true,
        ..History::default()
    }
}

fn final_state(line: &str) -> FinalState {
    let mut words = line.split_whitespace().skip(1);
    let endpoint = words.next().unwrap().to_owned();
    let revision = words.next().unwrap().parse().unwrap();
    let items = words.map(|word| {
        let (key, item) = word.split_once('=').unwrap();
        let (value, numbers) = item.split_once('@').unwrap();
        let numbers: Vec<u64> = numbers.split('/').map(|number| number.parse().unwrap()).collect();
        let [mod_revision, create_revision, version] = numbers[..] else { panic!("{line}") };
        let value = value.to_owned();
        (key.to_owned(), FinalItem { value, create_revision, mod_revision, version })
    });
    let items = items.collect();
    FinalState { endpoint, prefix: String::new(), revision, cluster_id: None, items }
}

/// The operations that the text describes.
pub(crate) fn operations(text: &str) -> Vec<Operation> {
    let mut operations: Vec<Operation> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .enumerate()
        .map(|(position, line)| operation(line, position as u64 + 1))
        .collect();
    operations.sort_by_key(|operation| operation.invoke_ns);
    operations
}

fn operation(line: &str, id: u64) -> Operation {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("too short: {line}")).to_owned();
    let client = word().parse().unwrap();
    let endpoint = Arc::from(word());
    let key = Arc::from(word());
    let action = match word().as_str() {
        "get" => Action::Get { serializable: false },
        "old-get" => Action::Get { serializable: true },
        "put" => Action::Put { value: word() },
        "cas" => Action::Cas { expect: word(), value: word() },
        "insert" => Action::Insert { value: word() },
        "delete" => Action::Delete,
        other => panic!("no action {other}: {line}"),
    };
    let times = word();
    let (from, to) = times.split_once('-').unwrap();
    let outcome = match word().as_str() {
        "unknown" => Outcome::Unknown { reason: "timed out".to_owned() },
        "failed" => Outcome::Failed { reason: "refused".to_owned() },
        applied => Outcome::Ok(Answer {
            revision: word().parse().unwrap(),
            applied: applied == "ok" && action.mutates(),
            observed: words.next().map(item),
        }),
    };
    Operation {
        id,
        client,
        endpoint,
        key,
        action,
        invoke_ns: from.parse().unwrap(),
        complete_ns: to.parse().ok().filter(|_| !matches!(outcome, Outcome::Unknown { .. })),
        gave_up_ns: to.parse().ok().filter(|_| matches!(outcome, Outcome::Unknown { .. })),
        outcome,
    }
}

fn item(text: &str) -> Item {
    let (value, revision) = text.split_once('@').unwrap();
    Item { value: value.to_owned(), mod_revision: revision.parse().unwrap() }
}
