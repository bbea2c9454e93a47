//! What is kept of a campaign: its plan, what was done, every decision, and, if it fails, everything else.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::Lab;
use crate::error::{Error, Result};
use crate::image::write;

/// The journals are kept from this long before the step that failed.
const JOURNAL_BEFORE_US: u64 = 180_000_000;

/// The directory of a campaign.
#[derive(Debug)]
pub(super) struct Evidence {
    directory: PathBuf,
    logs: Vec<DecisionLog>,
}

/// A node's decision log, followed over its changes of files.
#[derive(Debug)]
struct DecisionLog {
    node: String,
    /// The file that was read last, and how far.
    inode: u64,
    read: u64,
}

impl Evidence {
    /// Begins in this directory, which is empty.
    pub(super) fn begin(directory: &Path, lab: &Lab) -> Self {
        let logs = lab.names().map(|node| DecisionLog { node: node.to_owned(), inode: 0, read: 0 });
        Self { directory: directory.to_owned(), logs: logs.into() }
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a document.
    pub(super) fn document(&self, name: &str, body: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(body).unwrap_or_default() + "\n";
        write(&self.path(name), &text, 0o644)
    }

    /// Adds a line to a file.
    pub(super) fn add(&self, name: &str, line: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(line).unwrap_or_default() + "\n";
        append(&self.path(name), text.as_bytes())
    }

    /// Takes over what the nodes have decided since the last time, and gives it.
    pub(super) fn decisions(&mut self, lab: &Lab) -> Result<Vec<(String, Value)>> {
        let mut entries = Vec::new();
        for log in &mut self.logs {
            let text = log.news(&lab.place().node(&log.node).join("upper/var/log/dyad"))?;
            let kept = self.directory.join(format!("decisions-{}.jsonl", log.node));
            for line in text.lines() {
                // A line that a power cut has torn is none.
                if let Ok(entry) = serde_json::from_str(line) {
                    append(&kept, format!("{line}\n").as_bytes())?;
                    entries.push((log.node.clone(), entry));
                }
            }
        }
        Ok(entries)
    }

    /// Keeps whatever may tell why a step failed. What cannot be had is left out: the rest matters more.
    pub(super) fn keep_all(&self, lab: &Lab, step_began_us: u64) {
        let since_us = step_began_us.saturating_sub(JOURNAL_BEFORE_US);
        let mut text = String::new();
        for message in lab.journals(since_us).unwrap_or_default() {
            let crate::timeline::journal::Message { time_us, node, program, text: said, .. } =
                message;
            let _ = writeln!(text, "{time_us} {node} {program}: {said}");
        }
        let _ = write(&self.path("journal.txt"), &text, 0o600);
        if let Ok(timeline) = lab.timeline(false) {
            let _ = write(&self.path("timeline.txt"), &timeline.table(), 0o600);
        }
        let _ = fs::copy(lab.place().events(), self.path("events.jsonl"));
        for node in lab.names() {
            let logs = lab.place().node(node).join("upper/var/log/dyad");
            for name in ["confirmations.jsonl", "acts.jsonl"] {
                let _ = fs::copy(logs.join(name), self.path(&format!("{node}-{name}")));
            }
            if let Some(status) = lab.pair_status(node) {
                let _ = self.document(&format!("status-{node}.json"), &status);
            }
        }
        if let Ok(status) = lab.status() {
            let _ = self.document("lab-status.json", &status);
        }
    }
}

impl DecisionLog {
    /// The whole lines that were added since the last time.
    fn news(&mut self, directory: &Path) -> Result<String> {
        let (now, older) = (directory.join("decisions.jsonl"), directory.join("decisions.1.jsonl"));
        let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
        let mut text = String::new();
        if let Some(current) = inode(&now)
            && current != self.inode
        {
            // It was put away meanwhile; what was added before that comes first.
            if self.inode != 0 && inode(&older) == Some(self.inode) {
                read_from(&older, &mut self.read, &mut text)?;
            }
            (self.inode, self.read) = (current, 0);
        }
        if self.inode != 0 {
            read_from(&now, &mut self.read, &mut text)?;
        }
        Ok(text)
    }
}

/// Reads the whole lines after a place, and moves the place.
fn read_from(path: &Path, place: &mut u64, text: &mut String) -> Result<()> {
    let mut file = File::open(path).map_err(Error::io("opening", path))?;
    file.seek(SeekFrom::Start(*place)).map_err(Error::io("reading", path))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io("reading", path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    *place += whole as u64;
    text.push_str(&String::from_utf8_lossy(&bytes[..whole]));
    Ok(())
}

fn append(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let mut file = file.map_err(Error::io("opening", path))?;
    file.write_all(bytes).map_err(Error::io("writing", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line of a log is read once, whole, also when the log is put away and begun anew in between.
    #[test]
    fn a_log_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let mut log = DecisionLog { node: "node-a".into(), inode: 0, read: 0 };
        assert_eq!(log.news(place).unwrap(), "");
        let now = place.join("decisions.jsonl");
        append(&now, b"one\ntwo\nthr").unwrap();
        assert_eq!(log.news(place).unwrap(), "one\ntwo\n");
        append(&now, b"ee\nfour\n").unwrap();
        fs::rename(&now, place.join("decisions.1.jsonl")).unwrap();
        append(&now, b"five\n").unwrap();
        assert_eq!(log.news(place).unwrap(), "three\nfour\nfive\n");
        assert_eq!(log.news(place).unwrap(), "");
    }
}
