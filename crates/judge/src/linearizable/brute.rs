//! The definition itself, for small histories: try every order of every subset. Shares nothing with the
//! search but the operations, so that each can show the other wrong.

use crate::operation::{Action, Operation, Outcome};

/// Whether some order, in keeping with real time, explains every answer. For one key, a few operations.
pub(super) fn linearizable(operations: &[&Operation]) -> bool {
    let todo: Vec<&Operation> = operations
        .iter()
        .copied()
        .filter(|operation| !operation.is_failed() && !operation.is_serializable())
        .collect();
    extend(&todo, None)
}

fn extend(todo: &[&Operation], register: Option<&str>) -> bool {
    if todo.iter().all(|operation| operation.is_unknown()) {
        return true;
    }
    (0..todo.len()).any(|position| {
        let next = todo[position];
        if todo.iter().any(|other| other.precedes(next)) {
            return false;
        }
        let mut rest = todo.to_vec();
        rest.remove(position);
        after(next, register).is_ok_and(|register| extend(&rest, register))
    })
}

/// The answer does not fit.
struct Misfit;

/// What the register holds after the operation.
fn after<'a>(
    operation: &'a Operation,
    register: Option<&'a str>,
) -> Result<Option<&'a str>, Misfit> {
    let (written, applies) = match &operation.action {
        Action::Get { .. } => (register, false),
        Action::Put { value } => (Some(value.as_str()), true),
        Action::Cas { expect, value } => (Some(value.as_str()), register == Some(expect.as_str())),
        Action::Insert { value } => (Some(value.as_str()), register.is_none()),
        Action::Delete => (None, register.is_some()),
    };
    let left = if applies { written } else { register };
    let Outcome::Ok(answer) = &operation.outcome else { return Ok(left) };
    let observed = answer.observed.as_ref().map(|item| item.value.as_str());
    let sees = match &operation.action {
        Action::Put { .. } => None,
        Action::Cas { .. } | Action::Insert { .. } if applies => None,
        _ => register,
    };
    if answer.applied == applies && observed == sees { Ok(left) } else { Err(Misfit) }
}
