//! Waiting for the pair, never without a limit, and saying what is not yet true.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dyad_node::Node;
use dyad_status::Status;
use dyad_status::look::{PATIENT, Seen, look};

use crate::exit::{Exit, Failure};

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks until it is done; a limit of zero looks once. Says what it waits for whenever that changes.
pub(super) fn until(
    node: &Arc<Node>,
    limit: Duration,
    what: &str,
    done: impl Fn(&Seen) -> bool,
) -> Result<Status, Failure> {
    let start = Instant::now();
    let mut told = String::new();
    loop {
        let seen = look(node, PATIENT);
        if done(&seen) || limit.is_zero() {
            return Ok(seen.status);
        }
        let now = format!("{}: {}", seen.judgement.state, seen.judgement.because);
        if now != told {
            let elapsed = start.elapsed().as_secs();
            anstream::eprintln!("{elapsed:>4} s  waiting for {what}: {now}");
            told = now;
        }
        if start.elapsed() >= limit {
            let message = format!("no longer waiting for {what} after {limit:?}: {told}");
            return Err(Failure::new(Exit::TimedOut, message).hint("dyad status --watch"));
        }
        std::thread::sleep(INTERVAL);
    }
}
