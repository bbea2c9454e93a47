//! Pacemaker's alert agent: fencing, and nodes that come and go, as lines of the system log; and, if the pair names a
//! receiver, as documents that are posted to it.
//!
//! Pacemaker runs the agent as its own unprivileged user. It writes one line and one small file, and ends: whatever
//! the receiver does delays nothing. Another service reads the receiver's address, which may be a secret, and delivers.

mod deliver;
mod event;
mod spool;

use std::path::Path;
use std::process::ExitCode;

use dyad_cluster::pair::Pair;
use dyad_node::{Place, journal, record};

pub use deliver::{Delivery, deliver};
pub use event::{Event, EventKind};
pub use spool::Spool;

/// Where events wait to be delivered.
pub const SPOOL: &str = "/var/spool/dyad/waiting";
/// Where the last ones are recorded, for the status page, metrics and bundles.
pub const RECORD: &str = "/var/spool/dyad/events.jsonl";

/// One event, as Pacemaker tells it in the environment. Never an error: Pacemaker could do nothing about it.
pub fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(event) = Event::from_environment(variable) else { return ExitCode::SUCCESS };
    if event.ok {
        journal::tell(&format!("event: {}", event.text));
    } else {
        journal::warn(&format!("event: {}", event.text));
    }
    // A record that cannot be written stops nothing.
    let _ = spool::record(Path::new(RECORD), &event);
    let spool = Spool::new(Path::new(SPOOL));
    // The place is there if the pair names a receiver; its description may be for root's eyes only.
    if spool.exists() {
        match spool.put(&event) {
            Ok(0) => {}
            Ok(dropped) => journal::warn(&format!(
                "event: {dropped} older events are dropped: too many wait to be delivered"
            )),
            Err(error) => journal::warn(&format!("event: it will not be delivered: {error}")),
        }
    }
    ExitCode::SUCCESS
}

/// Delivers whatever waits, and ends when nothing does.
pub fn run_delivery() -> Result<(), String> {
    let place = Place::default();
    let spool = Spool::new(Path::new(SPOOL));
    let pair: Pair = record::read(&place.pair_file())
        .map_err(|error| dyad_node::gather::words(&error))?
        .ok_or("there is no description of a pair")?;
    deliver(&pair, &spool, &|text| journal::warn(text)).map(drop)
}
