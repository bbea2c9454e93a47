//! Whose turn it is to switch a System: the latest action's.
//!
//! After a reboot a process of its own powers the node on. If an off comes meanwhile, that process must not
//! switch the node on behind its back. Both use one small file: each action that switches takes the next
//! number, and the process asks for On only while it holds the file's lock and its number is still the
//! last. So when an action has taken its number, no earlier one will ask for anything any more.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use dyad_http::{Deadline, Fingerprint};
use dyad_power::fence::Settings;
use serde::{Deserialize, Serialize};

/// How often a held lock is tried again.
const LOOK: Duration = Duration::from_millis(5);

/// The place where actions on one System meet.
#[derive(Debug)]
pub(crate) struct Turns {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// Nothing else is kept here: an action that could not wait for the lock writes it all the same, and whoever wrote
    /// another word beside it would put the old number back.
    number: u64,
}

impl Turns {
    pub(crate) fn of(settings: &Settings) -> Self {
        let system = settings.system.as_ref().map_or("", |system| system.as_str());
        let key = Fingerprint::of(format!("{} {system}", settings.endpoint).as_bytes()).to_string();
        let name = key.trim_start_matches("sha256:").get(..16).unwrap_or_default().to_owned();
        Self { path: settings.run_directory.join(name).with_extension("turn") }
    }

    /// Takes the next number. Whoever had one before is silent when this returns.
    ///
    /// If someone still holds the lock at the deadline, that is an error: the request that he is about may
    /// still take effect. The number is taken all the same, so that it is his last one.
    pub(crate) fn take(&self, deadline: Deadline) -> io::Result<u64> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut file = self.open(true)?;
        let locked = wait_for_lock(&file, deadline);
        let mut record = read(&mut file);
        record.number += 1;
        write(&mut file, &record)?;
        locked.map(|()| record.number)
    }

    /// Does something while the turn is ours for certain; `None` if it no longer is.
    pub(crate) fn during<T>(
        &self,
        number: u64,
        deadline: Deadline,
        act: impl FnOnce() -> T,
    ) -> io::Result<Option<T>> {
        let mut file = self.lock(deadline)?;
        let is_ours = read(&mut file).number == number;
        Ok(is_ours.then(act))
    }

    /// Remembers how powering on ended.
    pub(crate) fn remember_power_on(&self, failure: Option<&str>, deadline: Deadline) {
        let update = || -> io::Result<()> {
            let _lock = self.lock(deadline)?;
            match failure {
                Some(why) => fs::write(self.failure(), why),
                None => fs::remove_file(self.failure()),
            }
        };
        let _ = update();
    }

    /// Why the last powering on failed, if it did.
    pub(crate) fn power_on_failure(&self) -> Option<String> {
        fs::read_to_string(self.failure()).ok()
    }

    /// Holds why the last powering on failed, until one succeeds.
    fn failure(&self) -> PathBuf {
        self.path.with_extension("failure")
    }

    /// Locks what an action has made. A process that outlives it makes nothing anew.
    fn lock(&self, deadline: Deadline) -> io::Result<File> {
        let file = self.open(false)?;
        wait_for_lock(&file, deadline)?;
        Ok(file)
    }

    fn open(&self, create: bool) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)
    }
}

fn wait_for_lock(file: &File, deadline: Deadline) -> io::Result<()> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if deadline.passed() => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
        }
    }
}

/// The record; an empty or broken file counts as a new one.
fn read(file: &mut File) -> Record {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    serde_json::from_str(&text).unwrap_or_default()
}

fn write(file: &mut File, record: &Record) -> io::Result<()> {
    let text = serde_json::to_string(record)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(10))
    }

    fn turns(directory: &std::path::Path) -> Turns {
        Turns { path: directory.join("run/x.turn") }
    }

    /// Only the last number may act, and a new number waits until the one before has finished its act.
    #[test]
    fn only_the_last_may_act() {
        let directory = tempfile::tempdir().unwrap();
        let turns = turns(directory.path());
        let first = turns.take(soon()).unwrap();
        assert_eq!(turns.during(first, soon(), || 1).unwrap(), Some(1));
        let second = turns.take(soon()).unwrap();
        assert_eq!(turns.during(first, soon(), || 1).unwrap(), None);
        let taken_meanwhile = turns.during(second, soon(), || {
            turns.take(Deadline::after(Duration::from_millis(50))).map_err(|error| error.kind())
        });
        assert_eq!(taken_meanwhile.unwrap(), Some(Err(io::ErrorKind::TimedOut)));
        // What it was about could not be stopped, but it was the last thing.
        assert_eq!(turns.during(second, soon(), || 1).unwrap(), None);
    }

    /// A failure is remembered across turns until a success, and a broken file starts anew.
    #[test]
    fn failures_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let turns = turns(directory.path());
        turns.remember_power_on(Some("nobody has taken a turn yet"), soon());
        assert_eq!(turns.power_on_failure(), None);
        assert!(!directory.path().join("run").exists());
        turns.take(soon()).unwrap();
        turns.remember_power_on(Some("no answer"), soon());
        turns.take(soon()).unwrap();
        assert_eq!(turns.power_on_failure().as_deref(), Some("no answer"));
        turns.remember_power_on(None, soon());
        assert_eq!(turns.power_on_failure(), None);
        fs::write(&turns.path, "{").unwrap();
        assert_eq!(turns.take(soon()).unwrap(), 1);
    }

    /// An action that could not wait for the lock has taken its number for good: whoever remembers a failure at that moment
    /// does not write the one that it read before.
    #[test]
    fn a_failure_is_kept_apart_from_the_number() {
        let directory = tempfile::tempdir().unwrap();
        let turns = turns(directory.path());
        turns.take(soon()).unwrap();
        let number = "{ \"number\": 7 }\n";
        fs::write(&turns.path, number).unwrap();
        turns.remember_power_on(Some("no answer"), soon());
        assert_eq!(fs::read_to_string(&turns.path).unwrap(), number);
        assert_eq!(turns.power_on_failure().as_deref(), Some("no answer"));
    }
}
