//! The lab's own record: what was done to the pair, and when.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What an event was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// Something was broken on purpose: times are counted from here.
    Fault,
    /// Something was repaired.
    Heal,
    /// A node got power.
    PowerOn,
    /// A node lost power.
    PowerOff,
    /// A BMC was asked for something.
    BmcRequest,
    /// A client was answered, or not.
    Client,
    /// Anything else worth knowing.
    Note,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Microseconds since 1970: the clock that both nodes share.
    pub time_us: u64,
    /// What it was about.
    pub kind: EventKind,
    /// Which node, if one.
    pub node: Option<String>,
    /// In words.
    pub text: String,
}

/// The time now, as events carry it.
pub fn now_us() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// A file to which events are appended, one JSON object per line.
#[derive(Debug)]
pub struct EventLog {
    file: Mutex<File>,
}

impl EventLog {
    /// Opens the file, making it if it is not there.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self { file: Mutex::new(file.map_err(Error::io("opening", path))?) })
    }

    /// Records what happens now.
    pub fn now(&self, kind: EventKind, node: Option<&str>, text: impl Into<String>) {
        let text = text.into();
        self.record(&Event { time_us: now_us(), kind, node: node.map(Into::into), text });
    }

    /// Records what happened.
    pub fn record(&self, event: &Event) {
        let mut line = serde_json::to_string(event).unwrap_or_default();
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The record must not stop the lab: a full disk shows elsewhere.
        let _ = file.write_all(line.as_bytes());
    }
}

/// Reads a record. A line that was cut off by a crash is skipped.
pub fn read(path: &Path) -> Result<Vec<Event>> {
    let text = std::fs::read_to_string(path).map_err(Error::io("reading", path))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
