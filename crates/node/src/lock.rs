//! One operation at a time on a node.

use std::fs::{File, OpenOptions};
use std::thread;
use std::time::{Duration, Instant};

use dyad_core::facts::{Operation, Request};
use nix::fcntl::{Flock, FlockArg};

use crate::node::Error;
use crate::place::Place;
use crate::record;

/// How long to wait for another operation on this node to end.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);
/// A stop waits longer: one that gives up is followed by fencing, and whoever holds the node may be in the middle of a
/// take-over or a join. What it takes itself still fits behind it into Pacemaker's time-out.
const STOP_LIMIT: Duration = Duration::from_secs(25);
/// How often to look.
const INTERVAL: Duration = Duration::from_millis(5);

/// How long an operation waits.
pub(crate) fn limit(request: &Request) -> Duration {
    match request.operation {
        Operation::Stop | Operation::Demote => STOP_LIMIT,
        _ => LIMIT,
    }
}

/// Keeps every other operation on this node out until the result is dropped.
pub(crate) fn hold(place: &Place, limit: Duration) -> Result<Flock<File>, Error> {
    record::create_directory(&place.runtime)?;
    let path = place.lock();
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let mut file = opened.map_err(record::failed("open", &path))?;
    let start = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((_, _)) if start.elapsed() > limit => return Err(Error::Busy(limit)),
            Err((again, _)) => file = again,
        }
        thread::sleep(INTERVAL);
    }
}
