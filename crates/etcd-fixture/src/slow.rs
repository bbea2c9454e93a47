//! A disk that is slow to sync or to rename.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

/// Makes some calls of a member take longer, until it is dropped.
#[derive(Debug)]
pub struct SlowDisk {
    strace: Child,
}

impl SlowDisk {
    /// Every sync ends so much later.
    pub(crate) fn syncing(pid: u32, delay: Duration) -> anyhow::Result<Self> {
        Self::new(pid, "fdatasync", "delay_exit", delay)
    }

    /// Every rename begins so much later.
    pub(crate) fn renaming(pid: u32, delay: Duration) -> anyhow::Result<Self> {
        Self::new(pid, "rename,renameat,renameat2", "delay_enter", delay)
    }

    fn new(pid: u32, calls: &str, when: &str, delay: Duration) -> anyhow::Result<Self> {
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={calls}:{when}={}", delay.as_micros())])
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting strace")?;
        let slow = Self { strace };
        wait_for("strace to attach", || is_traced(pid).then_some(()))?;
        Ok(slow)
    }
}

fn is_traced(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|id| id.trim() != "0"))
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // SIGTERM makes strace let go; the member runs on.
        let _ = kill_process(Pid::from_child(&self.strace), Signal::TERM);
        let _ = self.strace.wait();
    }
}
