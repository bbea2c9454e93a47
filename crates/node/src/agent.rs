//! One call of the resource agent: from Pacemaker's words to its exit code.

use dyad_core::decision::Outcome as Word;
use dyad_core::facts::{Notification, Operation, Request, Role, When};

use crate::gather::words;
use crate::node::{Error, Node, Outcome, is_retried, service};
use crate::ocf::{Action, Environment, META_DATA, code, exit_code};
use crate::place::Place;
use crate::{blind, boot, connections, follow, lock, record};

/// How the agent is called.
const USAGE: &str =
    "usage: etcd {start|stop|promote|demote|monitor|notify|meta-data|validate-all|usage}\n";

/// What this agent last did of its own knowledge.
const ROLE: &str = "role.json";

/// What a call comes to: its exit code, and what is printed.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// For Pacemaker.
    pub code: u8,
    /// Data.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

impl Answer {
    fn silent(code: u8) -> Self {
        Self { code, stdout: String::new(), stderr: String::new() }
    }

    fn data(text: &str) -> Self {
        Self { stdout: text.to_owned(), ..Self::silent(code::SUCCESS) }
    }

    pub(crate) fn failed(code: u8, why: String) -> Self {
        Self { stderr: why, ..Self::silent(code) }
    }
}

/// Runs one call.
pub fn run(word: &str, environment: &Environment, place: Place) -> Answer {
    match environment.action(word) {
        Action::MetaData => Answer::data(META_DATA),
        Action::Usage => Answer::data(USAGE),
        Action::Unknown(word) => {
            Answer::failed(code::UNIMPLEMENTED, format!("there is no action `{word}`\n{USAGE}"))
        }
        Action::Operate(request) => operate(&request, environment, place),
    }
}

fn operate(request: &Request, environment: &Environment, place: Place) -> Answer {
    // Pacemaker says which node it is; its tools, and people, do not.
    let name = environment.node().unwrap_or_else(boot::host_name);
    match Node::open_with_faults(place.clone(), &name) {
        Ok(node) => operate_on(&node, request, environment),
        Err(fault) => blind::operate(request, &place, &service(), &fault),
    }
}

fn operate_on(node: &Node, request: &Request, environment: &Environment) -> Answer {
    // Pacemaker waits for every answer to a notification of what is to come, in the middle of a take-over,
    // and nothing follows from it: it proves nothing (R2), and what is true is told afterwards.
    if let Operation::Notify(Notification { when: When::Pre, .. }) = request.operation {
        return Answer::silent(code::SUCCESS);
    }
    // etcd would not start with such files either. What runs goes on, and can be stopped.
    let starts = [Operation::Start, Operation::Promote, Operation::Validate];
    if let Some(fault) = node.fault().filter(|_| starts.contains(&request.operation)) {
        return Answer::failed(blind::code_of(fault), words(fault));
    }
    let lock = match node.lock_within(lock::limit(request)) {
        Ok(lock) => lock,
        Err(error) => return without_lock(node, request, &error),
    };
    let role = role(node, environment);
    let glance = request.operation == Operation::Monitor && environment.interval_ms() > 0;
    if glance {
        connections::renew_silent(node);
    }
    if glance && node.is_settled(role) {
        return Answer::silent(exit_code(Word::Promoted));
    }
    let outcome = node.operate(request, role);
    let answer = answer(node, request, &outcome);
    remember_role(node, request, &answer, role);
    drop(lock);
    let near = outcome.decision.action.next_is_soon() && outcome.gathered.facts.peer.present;
    if near && outcome.news && role_now(node).is_some_and(|role| role != Role::Stopped) {
        follow::start();
    }
    answer
}

/// R9: an operation that cannot get hold of the node in time is not a failure of etcd.
fn without_lock(node: &Node, request: &Request, error: &Error) -> Answer {
    let promoted = role_now(node) == Some(Role::Promoted);
    let code = match request.operation {
        Operation::Monitor if promoted => exit_code(Word::DegradedPromoted),
        Operation::Monitor | Operation::Notify(_) => code::SUCCESS,
        _ => code::GENERIC,
    };
    Answer::failed(code, words(error))
}

/// What the local instance is held for: what this agent last did of its own knowledge, else what Pacemaker
/// says.
fn role(node: &Node, environment: &Environment) -> Role {
    role_now(node).or_else(|| environment.role(&node.own().name)).unwrap_or_default()
}

/// What this agent last did of its own knowledge.
pub fn role_now(node: &Node) -> Option<Role> {
    role_in(&node.place)
}

/// See [`role_now`].
pub(crate) fn role_in(place: &Place) -> Option<Role> {
    record::read(&place.runtime.join(ROLE)).ok().flatten()
}

pub(crate) fn write_role(place: &Place, role: Role) {
    let _ = record::write_volatile(&place.runtime.join(ROLE), &role);
}

fn remember_role(node: &Node, request: &Request, answer: &Answer, last: Role) {
    let role = match request.operation {
        Operation::Start | Operation::Demote if answer.code == code::SUCCESS => Role::Unpromoted,
        Operation::Promote if answer.code == code::SUCCESS => Role::Promoted,
        Operation::Stop if answer.code == code::SUCCESS => Role::Stopped,
        _ => return,
    };
    if role != last || role_now(node).is_none() {
        write_role(&node.place, role);
    }
}

fn answer(node: &Node, request: &Request, outcome: &Outcome) -> Answer {
    let decided = exit_code(outcome.decision.outcome);
    let Some(failure) = &outcome.failure else {
        let blind = node.fault().map(|fault| words(fault)).unwrap_or_default();
        return Answer::failed(decided, blind);
    };
    let stderr = format!("{}: {failure}", outcome.decision.because);
    let code = match request.operation {
        // A look that could not do what was due looks again soon; it is not a failure of etcd (R9).
        Operation::Monitor | Operation::Notify(_) => decided,
        // A start that only could not say something is repeated by the monitor.
        Operation::Start if is_retried(&outcome.decision.action) => decided,
        _ => code::GENERIC,
    };
    Answer::failed(code, stderr)
}

#[cfg(test)]
mod tests;
