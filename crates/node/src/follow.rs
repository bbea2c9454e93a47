//! The steps of a join follow each other at once, not at the pace of Pacemaker's monitor.
//!
//! Coming back takes a handful of steps on both nodes, each decided from what the other has published. Left to
//! monitors alone each would wait for the next one, seconds later, and all that time the pair is not
//! protected. This loop asks the same question as the monitor, more often, for as long as there is progress.
//! It is a unit of its own: a monitor that stayed would hold up the notification that a take-over waits for.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use dyad_core::facts::{Operation, Request, Role};

use crate::agent::role_now;
use crate::gather::words;
use crate::node::{Error, Node};
use crate::{aside, journal};

/// The unit that runs the loop.
pub const UNIT: &str = "dyad-follow.service";
/// The first pause between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(150);
/// Without progress the pause grows, but it is never much of what the step has taken already: a database of
/// gigabytes is copied in one step, and the next one should not wait for long.
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// What part of the time since the last progress a pause may be.
const PAUSE_SHARE: u32 = 20;
/// Nothing new for so long: Pacemaker's monitor is enough.
const PATIENCE: Duration = Duration::from_mins(1);
/// However much there is to copy: the next monitor starts the loop anew.
const LIMIT: Duration = Duration::from_mins(10);

/// Looks until no next step is near, or nothing has changed for a while. What its steps, and the agent's, leave to be
/// deleted is deleted here: the node is not held meanwhile, and no operation of Pacemaker's waits for it.
pub fn watch(node: &Node) -> Result<(), Error> {
    sweep(node);
    let ended = watch_steps(node);
    sweep(node);
    ended
}

fn sweep(node: &Node) {
    if let Err(error) = aside::sweep(node.memory.beside()) {
        journal::warn(&format!("cannot delete an old copy: {}", words(&error)));
    }
}

fn watch_steps(node: &Node) -> Result<(), Error> {
    let request = Request { operation: Operation::Monitor, ..Request::default() };
    let start = Instant::now();
    let mut progress = start;
    let mut pause = PAUSE_MIN;
    let mut seen = HashSet::new();
    while start.elapsed() < LIMIT && progress.elapsed() < PATIENCE {
        std::thread::sleep(pause);
        let lock = node.lock()?;
        // Pacemaker may have stopped the resource meanwhile: then nothing is due.
        let role = role_now(node).unwrap_or(Role::Stopped);
        if role == Role::Stopped {
            return Ok(());
        }
        let outcome = node.operate(&request, role);
        drop(lock);
        if !outcome.decision.action.next_is_soon() || !outcome.gathered.facts.peer.present {
            return Ok(());
        }
        // An etcd that starts and crashes by turns is no progress.
        if seen.insert(outcome.decision.action.clone()) {
            sweep(node);
            progress = Instant::now();
            pause = PAUSE_MIN;
        } else {
            pause = pause.mul_f64(1.25).min(PAUSE_MAX.max(progress.elapsed() / PAUSE_SHARE));
        }
    }
    Ok(())
}

/// Starts the loop, if it does not run. That it cannot be started only makes the join slower.
pub(crate) fn start() {
    let arguments = ["start", "--no-block", UNIT];
    let mut systemctl = dyad_program::command("systemctl", arguments);
    if let Err(error) = dyad_program::output(&mut systemctl, "", Duration::from_secs(5)) {
        journal::warn(&format!("cannot start {UNIT}: {}", words(&error)));
    }
}
