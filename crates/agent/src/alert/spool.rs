//! Events that wait to be delivered: one small file each, in a directory of their own, in their order. Bounded.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags};

use super::event::Event;

/// No more events wait; the oldest are dropped.
pub(crate) const EVENTS_MAX: usize = 256;
/// No event is larger.
const EVENT_BYTES_MAX: u64 = 4096;

/// The directory.
#[derive(Debug, Clone)]
pub struct Spool {
    directory: PathBuf,
}

impl Spool {
    /// The spool in this directory, which must be there.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Whether events are to wait here at all.
    pub fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// Adds an event, whole or not at all; how many older ones had to go for it.
    pub fn put(&self, event: &Event) -> io::Result<usize> {
        let mut waiting = self.waiting()?;
        let room = EVENTS_MAX - 1;
        let dropped = waiting.len().saturating_sub(room);
        for path in waiting.drain(..dropped) {
            let _ = fs::remove_file(path);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:020}-{}", now.as_micros(), std::process::id());
        let making = self.directory.join(format!(".{name}"));
        fs::write(&making, serde_json::to_vec(event)?)?;
        fs::rename(&making, self.directory.join(format!("{name}.json")))?;
        Ok(dropped)
    }

    /// What waits, oldest first.
    pub fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Removes everything, half-made files too.
    pub(crate) fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    /// Removes what somebody began and did not end: nobody works on anything while nothing waits.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        if self.waiting()?.is_empty() { self.clear() } else { Ok(()) }
    }
}

/// The record is put away at this size; one older file is kept.
const RECORD_BYTES_MAX: u64 = 256 << 10;

/// Adds an event to a bounded record.
pub(crate) fn record(path: &Path, event: &Event) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() >= RECORD_BYTES_MAX) {
        fs::rename(path, path.with_extension("1.jsonl"))?;
    }
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(&line)
}

/// Reads one event. The directory belongs to another user: neither a link is followed nor a pipe waited for, and
/// what is not an event is none.
pub(crate) fn read(path: &Path) -> io::Result<Event> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = Vec::new();
    File::from(file).take(EVENT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
