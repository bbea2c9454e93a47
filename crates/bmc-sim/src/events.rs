//! What a BMC was asked, for the lab's timeline.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::power::{PowerState, ResetType};

/// The log keeps this many events; older ones are dropped.
const EVENTS_MAX: usize = 10_000;

/// One thing that happened at a BMC.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its place in the log, from 1 without gaps.
    pub number: u64,
    /// When the answer was ready (or the power was switched), in microseconds since 1970.
    pub at_us: u64,
    /// How long it took since the request was read.
    pub took_us: u64,
    /// Who asked.
    pub peer: Option<SocketAddr>,
    /// Method and path, or what happened without a request.
    pub what: String,
    /// The System that it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What the BMC was told to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<ResetType>,
    /// The power state that was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PowerState>,
    /// The status of the answer; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The fault that was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Why it went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Event {
    pub(crate) fn now(what: impl Into<String>, took: Duration) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            number: 0,
            at_us: since_1970.as_micros() as u64,
            took_us: took.as_micros() as u64,
            peer: None,
            what: what.into(),
            system: None,
            reset: None,
            state: None,
            status: None,
            fault: None,
            error: None,
        }
    }
}

/// The events of one BMC, bounded.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<(VecDeque<Event>, u64)>);

impl Log {
    pub(crate) fn push(&self, mut event: Event) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.1 += 1;
        event.number = log.1;
        if log.0.len() == EVENTS_MAX {
            log.0.pop_front();
        }
        log.0.push_back(event);
    }

    /// The events after this number (0: all that are kept).
    pub(crate) fn after(&self, number: u64) -> Vec<Event> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.0.iter().filter(|event| event.number > number).cloned().collect()
    }
}
