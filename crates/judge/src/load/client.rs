//! One client: asks, records, waits, asks again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::stop::Stop;
use super::store::Etcd;
use super::workload::Workload;
use crate::clock;
use crate::history::Recorder;
use crate::operation::Outcome;

pub(super) struct Client {
    pub(super) number: u32,
    pub(super) endpoint: Arc<str>,
    pub(super) workload: Workload,
    pub(super) store: Etcd,
    pub(super) recorder: Arc<Recorder>,
    pub(super) stop: Arc<Stop>,
    /// How many requests all clients together may still make.
    pub(super) budget: Arc<AtomicU64>,
    /// How many writes were acknowledged through this client's node.
    pub(super) acknowledged: Arc<AtomicU64>,
    /// From one request to the next.
    pub(super) pause: Duration,
}

impl Client {
    /// Runs until it is time to stop. Fails only if the history cannot be written: then everybody stops,
    /// for a run without a record proves nothing.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let ran = self.keep_asking();
        if ran.is_err() {
            self.stop.stop();
        }
        ran
    }

    fn keep_asking(&mut self) -> io::Result<()> {
        // The clients begin one after the other, not all at the same instant.
        let mut next = Instant::now() + self.pause * (self.number % 16) / 16;
        while !self.stop.wait(next.saturating_duration_since(Instant::now())) && self.may_ask() {
            // What was missed while a node hung is not made up for in a burst.
            next = Instant::now().max(next) + self.pause;
            self.ask()?;
        }
        Ok(())
    }

    fn may_ask(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn ask(&mut self) -> io::Result<()> {
        let (key, action) = self.workload.next();
        let id = self.recorder.invoke(self.number, &self.endpoint, &key, &action)?;
        let outcome = self.store.perform(&key, &action);
        let now = clock::now_ns();
        if action.mutates() && matches!(outcome, Outcome::Ok(_)) {
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        self.workload.learn(&key, &action, &outcome);
        self.recorder.complete(id, now, outcome)
    }
}
