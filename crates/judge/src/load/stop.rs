//! When to stop: at a moment, or when told.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared by all clients of a run.
#[derive(Debug)]
pub struct Stop {
    told: Mutex<bool>,
    changed: Condvar,
    at: Option<Instant>,
}

impl Stop {
    /// To stop at this moment, or when told.
    pub(super) fn new(at: Option<Instant>) -> Self {
        Self { told: Mutex::new(false), changed: Condvar::new(), at }
    }

    /// Tells everybody to stop.
    pub fn stop(&self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until it is time to stop. Says whether it is.
    pub fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let until = self.at.map_or(until, |at| until.min(at));
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            if *told || self.at.is_some_and(|at| now >= at) {
                return true;
            }
            if now >= until {
                return false;
            }
            let waited = self.changed.wait_timeout(told, until - now);
            told = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
