//! A disk that is slow to sync.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

/// Makes every `fdatasync` of a member take longer, until it is dropped.
#[derive(Debug)]
pub struct SlowDisk {
    strace: Child,
}

impl SlowDisk {
    pub(crate) fn new(pid: u32, delay: Duration) -> anyhow::Result<Self> {
        let delay_us = delay.as_micros();
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"])
            .args(["-e", &format!("inject=fdatasync:delay_exit={delay_us}")])
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
