//! A node whose description cannot be used: a damaged or missing file, or another version's.
//!
//! That is one node's trouble and must stay so (P4): nothing is started here, what runs is left to run, and what is to
//! be stopped is stopped. None of that needs the description: etcd is the same service on every node. If it runs a
//! container, that ends with it.

use dyad_core::decision::Outcome as Word;
use dyad_core::facts::{Operation, Request, Role};

use crate::agent::{Answer, role_in, write_role};
use crate::gather::words;
use crate::node::Error;
use crate::ocf::{code, exit_code};
use crate::place::Place;
use crate::runner::Runner;
use crate::{journal, lock, record};

/// What a fault means to Pacemaker. Never "not configured": that would end etcd on both nodes.
pub(crate) fn code_of(fault: &Error) -> u8 {
    match fault {
        // It stays until somebody mends a file here.
        Error::NoPair(_)
        | Error::Stranger { .. }
        | Error::Client(_)
        | Error::Record(record::Error::Malformed { .. }) => code::INSTALLED,
        // It may pass.
        Error::Record(record::Error::Io { .. })
        | Error::Boot(_)
        | Error::Certificates(_)
        | Error::Busy(_) => code::GENERIC,
    }
}

/// Answers one call.
pub(crate) fn operate(
    request: &Request,
    place: &Place,
    runner: &dyn Runner,
    fault: &Error,
) -> Answer {
    let code = match request.operation {
        Operation::Stop | Operation::Demote => return stop(request, place, runner, fault),
        Operation::Monitor => monitor(request, place, runner, fault),
        Operation::Notify(_) => code::SUCCESS,
        _ => code_of(fault),
    };
    Answer::failed(code, words(fault))
}

/// By the process, and by what this agent last did.
fn monitor(request: &Request, place: &Place, runner: &dyn Runner, fault: &Error) -> u8 {
    // A process that cannot be seen is taken for one that runs.
    let runs = runner.is_running().unwrap_or(true);
    match (runs, role_in(place)) {
        (true, Some(Role::Promoted)) => exit_code(Word::DegradedPromoted),
        (true, _) => exit_code(Word::Ok),
        (false, Some(Role::Promoted)) if request.recurring => exit_code(Word::FailedPromoted),
        // It looks again and again, and can never do what follows.
        (false, Some(Role::Unpromoted)) if request.recurring => code_of(fault),
        (false, _) => exit_code(Word::NotRunning),
    }
}

/// Success means that etcd is at rest.
fn stop(request: &Request, place: &Place, runner: &dyn Runner, fault: &Error) -> Answer {
    let stopped = lock::hold(place, lock::limit(request))
        .map_err(|error| words(&error))
        .and_then(|_lock| runner.stop().map_err(|error| words(&error)));
    if let Err(error) = stopped {
        return Answer::failed(code::GENERIC, format!("{error}; and {}", words(fault)));
    }
    let demoted = request.operation == Operation::Demote;
    write_role(place, if demoted { Role::Unpromoted } else { Role::Stopped });
    journal::warn(&format!("etcd is stopped, but: {}", words(fault)));
    Answer::failed(code::SUCCESS, words(fault))
}
