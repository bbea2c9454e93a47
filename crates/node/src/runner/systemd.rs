//! etcd as a systemd service.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use dyad_program::{command, output};

use super::{Error, KILL_LIMIT, LOOK_LIMIT, Runner, START_LIMIT, STOP_LIMIT};

/// The service that runs etcd.
#[derive(Debug, Clone)]
pub struct Systemd {
    unit: String,
    /// Where the kernel shows the processes of the service, on a unified hierarchy.
    control_group: PathBuf,
}

impl Systemd {
    /// The service of this name in this slice.
    pub fn new(unit: &str, slice: &str) -> Self {
        let control_group = PathBuf::from("/sys/fs/cgroup").join(slice).join(unit);
        Self { unit: unit.to_owned(), control_group }
    }

    fn systemctl(&self, step: &'static str, limit: Duration) -> Result<(), Error> {
        let mut systemctl = command("systemctl", [step, self.unit.as_str()]);
        output(&mut systemctl, "", limit).map(drop).map_err(|source| Error::Tool { step, source })
    }

    /// Whether the kernel shows a process of the service; `None` if it does not say.
    fn populated(&self) -> Option<bool> {
        let events = fs::read_to_string(self.control_group.join("cgroup.events")).ok()?;
        let line = events.lines().find_map(|line| line.strip_prefix("populated "))?;
        Some(line.trim() == "1")
    }
}

impl Runner for Systemd {
    fn start(&self) -> Result<(), Error> {
        self.systemctl("start", START_LIMIT)
    }

    fn stop(&self) -> Result<(), Error> {
        let stopped = self.systemctl("stop", STOP_LIMIT);
        // The processes count, not the tool's word: it also fails if the service was never there.
        if self.is_running()? { stopped.and(Err(Error::StillRuns)) } else { Ok(()) }
    }

    fn kill(&self) -> Result<(), Error> {
        let arguments = ["kill", "--signal=KILL", self.unit.as_str()];
        output(&mut command("systemctl", arguments), "", KILL_LIMIT)
            .map_err(|source| Error::Tool { step: "kill", source })?;
        let start = Instant::now();
        while self.is_running()? {
            if start.elapsed() > KILL_LIMIT {
                return Err(Error::Held);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn is_running(&self) -> Result<bool, Error> {
        // The common case costs no process: the service runs and the kernel shows it.
        if self.populated() == Some(true) {
            return Ok(true);
        }
        let arguments = ["show", "--property", "ActiveState", "--value", self.unit.as_str()];
        let state = output(&mut command("systemctl", arguments), "", LOOK_LIMIT)
            .map_err(|source| Error::Tool { step: "look at", source })?;
        Ok(!matches!(state.trim(), "inactive" | "failed"))
    }
}
