//! The judge on trial: histories known to be good or bad, and random ones against the definition.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Limits, Linearizability, brute, check};
use crate::fixture::operations;
use crate::operation::{Action, Answer, Item, Operation, Outcome};

fn judge(text: &str) -> Linearizability {
    let found = check(&operations(text), Limits::default());
    assert!(found.undecided.is_empty(), "undecided: {text}");
    found
}

#[track_caller]
fn good(text: &str) {
    let found = judge(text);
    assert!(found.violations.is_empty(), "{:?} in {text}", found.violations);
}

/// Bad, and shown by exactly these operations.
#[track_caller]
fn bad(text: &str, shown_by: &[u64], culprit: u64) {
    let found = judge(text);
    let [violation] = &found.violations[..] else { panic!("not one violation in {text}") };
    let ids: Vec<u64> = violation.operations.iter().map(|operation| operation.id).collect();
    assert_eq!((&ids[..], violation.culprit), (shown_by, culprit), "{text}");
}

/// Operations that overlap may come in either order, and a read may see either.
#[test]
fn overlapping_operations_may_come_in_any_order() {
    good(
        "1 a k put x 0-10 ok 2
         2 b k get   5-15 ok 2
         3 b k get   5-15 ok 2 x@2
         4 b k put y 8-20 ok 3
         1 a k get   12-30 ok 2 x@2
         2 a k get   31-32 ok 3 y@3",
    );
}

/// At the same instant nothing is over yet: the clock's grain must not accuse anybody.
#[test]
fn operations_that_touch_overlap() {
    good(
        "1 a k put x 0-10 ok 2
         2 b k get   10-20 ok 1",
    );
}

/// A read that began after a write was acknowledged must not miss it.
#[test]
fn a_stale_read_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         2 a k get   11-19 ok 2 x@2
         1 a k put y 20-30 ok 3
         2 b k get   40-50 ok 2 x@2
         1 a k put z 60-70 ok 4
         2 a k get   80-90 ok 4 z@4",
        &[1, 3, 4],
        4,
    );
}

/// Two clients see two writes in opposite orders.
#[test]
fn reads_that_go_back_in_time_are_caught() {
    bad(
        "1 a k put x 0-100 ok 2
         2 b k put y 0-100 ok 3
         3 a k get   10-20 ok 2 x@2
         3 b k get   30-40 ok 3 y@3
         3 a k get   50-60 ok 2 x@2",
        &[1, 2, 3, 4, 5],
        5,
    );
}

/// Of two compare-and-swaps from the same value only one may win.
#[test]
fn two_winners_of_one_comparison_are_caught() {
    bad(
        "1 a k put x   0-10 ok 2
         2 a k cas x y 20-30 ok 3
         3 b k cas x z 20-31 ok 3",
        &[1, 2, 3],
        3,
    );
}

/// Of two inserts of one key only one may win, unless it was removed between them.
#[test]
fn two_inserts_of_one_key_are_caught() {
    bad(
        "1 a k insert x 0-10 ok 2
         2 b k insert y 0-11 ok 3",
        &[1, 2],
        2,
    );
    good(
        "1 a k insert x 0-10 ok 2
         3 a k delete   0-12 ok 3 x@2
         2 b k insert y 0-11 ok 4",
    );
}

/// An update read-modify-write that was overwritten unseen: the comparison must have failed.
#[test]
fn a_lost_update_is_caught() {
    bad(
        "1 a k put x   0-10 ok 2
         2 a k cas x y 20-30 ok 3
         3 b k cas y z 40-50 ok 4
         1 a k get     60-70 ok 3 y@3",
        &[1, 2, 3, 4],
        4,
    );
}

/// An acknowledged write that is gone later, with nothing to explain it.
#[test]
fn a_lost_acknowledgement_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         2 b k get   20-30 ok 1",
        &[1, 2],
        2,
    );
}

/// What certainly was not executed must not be seen.
#[test]
fn a_dirty_read_of_a_failed_write_is_caught() {
    bad(
        "1 a k put x 0-10 failed
         2 b k get   20-30 ok 2 x@2",
        &[2],
        2,
    );
}

/// Two nodes that both go on, each with its own clients.
#[test]
fn a_split_brain_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         1 a k get   20-30 ok 2 x@2
         2 b k put y 0-10 ok 2
         2 b k get   20-30 ok 2 y@2",
        &[1, 3, 2, 4],
        2,
    );
}

/// A removed value does not come back.
#[test]
fn a_resurrected_value_is_caught() {
    bad(
        "1 a k insert x 0-10 ok 2
         1 a k delete   20-30 ok 3 x@2
         2 b k get      40-50 ok 3 x@2",
        &[1, 2, 3],
        3,
    );
}

/// A value is not seen before it is written.
#[test]
fn time_travel_is_caught() {
    bad(
        "2 b k get   0-10 ok 2 x@2
         1 a k put x 20-30 ok 2",
        &[1],
        1,
    );
}

/// A write that nobody saw still overwrites.
#[test]
fn an_unseen_write_between_two_reads_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         2 a k get   20-30 ok 2 x@2
         1 a k put y 40-50 ok 3
         2 a k get   60-70 ok 2 x@2",
        &[1, 3, 4],
        4,
    );
}

/// An unknown write may take effect late, once, or never; but not come and go.
#[test]
fn an_unknown_write_takes_effect_at_most_once() {
    good("1 a k put x 0- unknown");
    good(
        "1 a k put x 0- unknown
         2 b k put y 10-20 ok 2
         2 b k get   30-40 ok 2 y@2
         2 b k get   50-60 ok 3 x@3",
    );
    bad(
        "1 a k put x 0- unknown
         2 b k put y 10-20 ok 3
         2 b k get   30-40 ok 2 x@2
         2 b k get   50-60 ok 3 y@3
         2 b k get   70-80 ok 4 x@4",
        &[1, 2, 3, 4],
        4,
    );
}

/// An unknown removal may explain one disappearance, not two.
#[test]
fn an_unknown_removal_explains_one_disappearance() {
    let once = "1 a k put x  0-10 ok 2
                2 b k delete 5- unknown
                1 a k get    20-30 ok 3
                1 a k put y  40-50 ok 4
                1 a k get    60-70 ok 4 y@4\n";
    good(once);
    let twice = format!("{once} 1 a k get 80-90 ok 5");
    assert_eq!(judge(&twice).violations.len(), 1);
    good(&format!("{twice}\n 3 a k delete 75- unknown"));
}

/// A chain of unknown swaps must have happened if its end was seen, and only then.
#[test]
fn a_chain_of_unknown_swaps_is_followed() {
    let chain = "1 a k put x   0-10 ok 2
                 2 a k cas x y 20- unknown
                 3 b k cas y z 30- unknown\n";
    good(&format!("{chain} 4 a k get 40-50 ok 4 z@4"));
    good(&format!("{chain} 4 a k get 40-50 ok 2 x@2"));
    bad(
        &format!("{chain} 4 a k get 40-50 ok 4 z@4\n 4 a k get 60-70 ok 3 y@3"),
        &[1, 2, 3, 4, 5],
        5,
    );
}

/// An unknown write that only another unknown operation may have seen need not have happened.
#[test]
fn what_was_perhaps_seen_perhaps_happened() {
    good(
        "1 a k cas y x  0- unknown
         2 a k put x    0-1 ok 2
         3 a k insert y 2- unknown",
    );
}

/// A comparison cannot fail on the very value that it asked for.
#[test]
fn an_answer_that_contradicts_itself_is_caught() {
    bad("1 a k insert x 0-10 no 1", &[1], 1);
    bad(
        "1 a k put x   0-10 ok 2
         2 a k cas x y 20-30 no 2 x@2",
        &[2],
        2,
    );
}

/// Reads that are allowed to be old are not held against anybody.
#[test]
fn serializable_reads_are_not_judged() {
    good(
        "1 a k put x   0-10 ok 2
         2 b k old-get 20-30 ok 1",
    );
}

/// Each key is judged alone, and named.
#[test]
fn the_bad_key_is_named() {
    let found = judge(
        "1 a good put x 0-10 ok 2
         1 a bad  put x 20-30 ok 3
         2 b bad  get   40-50 ok 3
         2 b good get   60-70 ok 3 x@2",
    );
    assert_eq!(found.keys, 2);
    let keys: Vec<_> = found.violations.iter().map(|violation| &*violation.key).collect();
    assert_eq!(keys, ["bad"]);
}

/// Running out of steps is never called good.
#[test]
fn what_is_not_decided_is_undecided() {
    let text = "1 a k put x 0-10 ok 2
                2 b k get   20-30 ok 2 x@2";
    let found = check(&operations(text), Limits { steps: 1, ..Limits::default() });
    assert_eq!(found.undecided.len(), 1);
    assert!(found.violations.is_empty());
}

/// How an operation is drawn: what, when, with which outcome.
fn drawn(values: u32) -> impl Strategy<Value = Operation> {
    let value = (0..values).prop_map(|value| value.to_string());
    let action = prop_oneof![
        3 => Just(Action::Get { serializable: false }),
        3 => value.clone().prop_map(|value| Action::Put { value }),
        2 => (value.clone(), value.clone()).prop_map(|(expect, value)| Action::Cas { expect, value }),
        1 => value.clone().prop_map(|value| Action::Insert { value }),
        1 => Just(Action::Delete),
    ];
    (action, 0..30_u64, 0..12_u64, prop::option::of(value), any::<bool>(), 0..10_u32).prop_map(
        |(action, invoke_ns, length, seen, applied, fate)| {
            let seen = seen.map(|value| Item { value, mod_revision: 1 });
            let (applied, observed) = match &action {
                Action::Put { .. } => (true, None),
                Action::Cas { .. } | Action::Insert { .. } if applied => (true, None),
                // A removal has removed what it saw.
                Action::Delete => (seen.is_some(), seen),
                Action::Get { .. } | Action::Cas { .. } | Action::Insert { .. } => (false, seen),
            };
            let outcome = match fate {
                0 => Outcome::Failed { reason: String::new() },
                1 | 2 => Outcome::Unknown { reason: String::new() },
                _ => Outcome::Ok(Answer { revision: 1, applied, observed }),
            };
            let complete_ns =
                (!matches!(outcome, Outcome::Unknown { .. })).then_some(invoke_ns + length);
            let (endpoint, key) = (Arc::from("a"), Arc::from("k"));
            Operation {
                id: 0,
                client: 0,
                endpoint,
                key,
                action,
                invoke_ns,
                complete_ns,
                gave_up_ns: None,
                outcome,
            }
        },
    )
}

fn numbered(mut operations: Vec<Operation>) -> Vec<Operation> {
    operations.sort_by_key(|operation| operation.invoke_ns);
    for (position, operation) in operations.iter_mut().enumerate() {
        operation.id = position as u64 + 1;
    }
    operations
}

/// The judge's answer is the definition's, and the example that it shows is itself impossible.
fn agrees_with_the_definition(operations: &[Operation]) -> Result<bool, TestCaseError> {
    let all: Vec<&Operation> = operations.iter().collect();
    let wanted = brute::linearizable(&all);
    let found = check(operations, Limits::default());
    prop_assert!(found.undecided.is_empty());
    prop_assert_eq!(found.violations.is_empty(), wanted);
    for violation in &found.violations {
        let shown: Vec<&Operation> = violation.operations.iter().collect();
        prop_assert!(!brute::linearizable(&shown), "the example is possible: {:?}", violation);
    }
    Ok(wanted)
}

/// A register that is linearizable by construction: each operation takes effect at one instant between its
/// beginning and its end, or, if unknown, at any instant after its beginning, or never.
fn simulated(seeds: &[(u32, u64, u64, u64, u32)], values: u32) -> Vec<Operation> {
    let mut instants: Vec<(u64, usize)> = seeds
        .iter()
        .enumerate()
        .map(|(position, (_, invoke, before, _, _))| (invoke + before, position))
        .collect();
    instants.sort_unstable();
    let mut register: Option<Item> = None;
    let mut operations = Vec::new();
    for (revision, (instant, position)) in instants.into_iter().enumerate() {
        let (kind, invoke_ns, _, after, fate) = seeds[position];
        let revision = revision as u64 + 2;
        let value = if values == 0 { position as u32 } else { kind / 10 % values }.to_string();
        let action = match (kind % 10, &register) {
            (0..4, _) => Action::Get { serializable: false },
            (4..6, _) => Action::Put { value },
            (6, _) => Action::Insert { value },
            (7, _) => Action::Delete,
            (8, Some(item)) => Action::Cas { expect: item.value.clone(), value },
            _ => Action::Cas { expect: "other".to_owned(), value },
        };
        let mut unchanged = register.clone();
        // Some with an unknown outcome never take effect.
        let on = if fate == 1 { &mut unchanged } else { &mut register };
        let answer = perform(&action, on, revision);
        let unknown = fate < 2;
        let outcome =
            if unknown { Outcome::Unknown { reason: String::new() } } else { Outcome::Ok(answer) };
        operations.push(Operation {
            id: 0,
            client: 0,
            endpoint: Arc::from("a"),
            key: Arc::from("k"),
            action,
            invoke_ns,
            complete_ns: (!unknown).then_some(instant + after),
            gave_up_ns: None,
            outcome,
        });
    }
    numbered(operations)
}

fn perform(action: &Action, register: &mut Option<Item>, revision: u64) -> Answer {
    let held = register.clone();
    let applied = match action {
        Action::Get { .. } => false,
        Action::Put { .. } => true,
        Action::Cas { expect, .. } => held.as_ref().is_some_and(|item| item.value == *expect),
        Action::Insert { .. } => held.is_none(),
        Action::Delete => held.is_some(),
    };
    if applied {
        let item = |value: &str| Item { value: value.to_owned(), mod_revision: revision };
        *register = action.value().map(item);
    }
    let silent = applied && !matches!(action, Action::Delete);
    Answer { revision, applied, observed: held.filter(|_| !silent) }
}

/// Kind of operation, beginning, time before and after its instant, fate.
fn seeds(count: usize, spread: u64) -> impl Strategy<Value = Vec<(u32, u64, u64, u64, u32)>> {
    let fate = prop_oneof![1 => 0..2_u32, 6 => Just(2_u32)];
    prop::collection::vec((0..1000_u32, 0..spread, 0..9_u64, 0..9_u64, fate), 1..count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// On any small history, with values that repeat, the judge answers as the definition does.
    #[test]
    fn random_histories_are_judged_by_the_definition(
        operations in prop::collection::vec(drawn(3), 1..8)
    ) {
        agrees_with_the_definition(&numbered(operations))?;
    }

    /// A register that works is accepted, and a single changed answer is judged as the definition does.
    #[test]
    fn a_working_register_is_accepted_and_a_changed_one_judged(
        seeds in seeds(8, 30),
        values in 0..4_u32,
        changed in any::<prop::sample::Index>(),
        seen in prop::option::of(0..8_u32),
        earlier in 0..20_u64,
    ) {
        let mut operations = simulated(&seeds, values);
        prop_assert!(agrees_with_the_definition(&operations)?);

        let changed = changed.index(operations.len());
        let operation = &mut operations[changed];
        operation.complete_ns =
            operation.complete_ns.map(|end| end.saturating_sub(earlier).max(operation.invoke_ns));
        if let Outcome::Ok(answer) = &mut operation.outcome
            && let Action::Get { .. } = operation.action
        {
            answer.observed = seen.map(|seen| Item { value: seen.to_string(), mod_revision: 1 });
        }
        agrees_with_the_definition(&operations)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A longer history of a register that works is accepted, crowded or not, unique values or not.
    #[test]
    fn a_longer_working_register_is_accepted(
        seeds in seeds(300, 1500),
        values in prop_oneof![Just(0_u32), 5..50_u32],
    ) {
        let found = check(&simulated(&seeds, values), Limits::default());
        prop_assert!(found.violations.is_empty());
        prop_assert!(found.undecided.is_empty());
    }
}
