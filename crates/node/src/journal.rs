//! The decision log: every decision with its facts, rule and reason, bounded (P8).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use dyad_core::facts::{Notification, Operation};
use dyad_core::{Decision, Facts};
use serde::{Deserialize, Serialize};

/// A log file is put away at this size; one older file is kept.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The system log: facility daemon, severity info and warning.
const INFO: u8 = 3 * 8 + 6;
/// See above.
const WARNING: u8 = 3 * 8 + 4;

/// One line of the log. `facts` replay the decision: `dyad decide`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    /// Milliseconds since 1970, for people. Nothing compares it.
    time_ms: u64,
    decision: &'a Decision,
    /// What became of the action, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    troubles: &'a [String],
    facts: &'a Facts,
}

/// A line of the log, as it is read back.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Logged {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The decision, as it was written.
    pub decision: serde_json::Value,
    /// What became of the action, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
    /// The facts, for `dyad decide`.
    pub facts: serde_json::Value,
}

/// The decision log of a node.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PathBuf,
}

impl Journal {
    /// The log in this directory.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    fn file(&self) -> PathBuf {
        self.directory.join("decisions.jsonl")
    }

    fn older(&self) -> PathBuf {
        self.directory.join("decisions.1.jsonl")
    }

    /// Writes a decision down, here and in the system log. A log that cannot be written stops nothing.
    pub fn write(
        &self,
        facts: &Facts,
        decision: &Decision,
        failure: Option<&str>,
        troubles: &[String],
    ) {
        let entry = Entry { time_ms: now_ms(), decision, failure, troubles, facts };
        let _ = self.append(&entry);
        let severity = if failure.is_some() { WARNING } else { INFO };
        say(severity, &line(facts, decision, failure));
    }

    fn append(&self, entry: &Entry<'_>) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        if fs::metadata(self.file()).is_ok_and(|file| file.len() >= FILE_BYTES_MAX) {
            fs::rename(self.file(), self.older())?;
        }
        let mut text = serde_json::to_vec(entry)?;
        text.push(b'\n');
        let mut file =
            OpenOptions::new().append(true).create(true).mode(0o600).open(self.file())?;
        file.write_all(&text)
    }

    /// The last decisions, oldest first. Lines that cannot be read (a torn one after a power cut) are left
    /// out.
    pub fn last(&self, count: usize) -> Vec<Logged> {
        let mut entries: Vec<Logged> = Vec::new();
        for path in [self.older(), self.file()] {
            let Ok(file) = File::open(&path) else { continue };
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            entries.extend(lines.filter_map(|line| serde_json::from_str(&line).ok()));
        }
        entries.split_off(entries.len().saturating_sub(count))
    }
}

/// One line for people.
fn line(facts: &Facts, decision: &Decision, failure: Option<&str>) -> String {
    let action = serde_json::to_value(&decision.action)
        .ok()
        .and_then(|value| value.get("action").and_then(|name| name.as_str().map(str::to_owned)))
        .unwrap_or_default();
    let failure = failure.map(|failure| format!("; FAILED: {failure}")).unwrap_or_default();
    let operation = operation(facts.request.operation);
    format!("{operation}: {action} ({}): {}{failure}", decision.rule, decision.because)
}

/// An operation in words.
fn operation(operation: Operation) -> String {
    match operation {
        Operation::Notify(Notification { when, of }) => format!("{when:?}-{of:?}").to_lowercase(),
        Operation::Confirm { .. } => "confirm".to_owned(),
        Operation::GiveUp => "give up".to_owned(),
        Operation::Begin => "set-up".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// Says one line to the system log.
pub fn tell(text: &str) {
    say(INFO, text);
}

/// Says one line of warning to the system log.
pub fn warn(text: &str) {
    say(WARNING, text);
}

/// Says one line to the system log. Where there is none, nothing is said.
fn say(severity: u8, text: &str) {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    // A system log that is stuck must not hold an agent.
    let _ = socket.set_nonblocking(true);
    let message = format!("<{severity}>dyad[{}]: {text}", std::process::id());
    let _ = socket.send_to(message.as_bytes(), "/dev/log");
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
