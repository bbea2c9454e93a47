//! Telling people what is going on, and how long it may last.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Who is told about progress.
pub trait Progress: Sync {
    /// A step begins.
    fn step(&self, text: &str);
    /// A wait goes on: what is not yet true, for how long, and the limit.
    fn waiting(&self, missing: &str, elapsed: Duration, limit: Duration);
}

/// Nobody is told.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
    fn waiting(&self, _: &str, _: Duration, _: Duration) {}
}

/// Steps go to stderr, one line each with the seconds since the start; on a terminal, waits are shown on
/// a line that is rewritten.
#[derive(Debug)]
pub struct ToStderr {
    start: Instant,
    shown: Mutex<String>,
}

impl Default for ToStderr {
    fn default() -> Self {
        Self { start: Instant::now(), shown: Mutex::default() }
    }
}

impl Progress for ToStderr {
    fn step(&self, text: &str) {
        let mut shown = self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut stderr = std::io::stderr().lock();
        let clear = if shown.is_empty() { "" } else { "\r\x1b[K" };
        let seconds = self.start.elapsed().as_secs_f64();
        // Nobody to talk to is no reason to fail.
        let _ = writeln!(stderr, "{clear}{seconds:6.1} s  {text}");
        shown.clear();
    }

    fn waiting(&self, missing: &str, elapsed: Duration, limit: Duration) {
        let mut stderr = std::io::stderr().lock();
        if !stderr.is_terminal() {
            return;
        }
        let mut shown = self.shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = format!("waiting {} s of {} s: {missing}", elapsed.as_secs(), limit.as_secs());
        if *shown == text {
            return;
        }
        let short: String = text.chars().take(68).collect();
        let _ = write!(stderr, "\r\x1b[K{:6.1} s  {short}", self.start.elapsed().as_secs_f64());
        let _ = stderr.flush();
        *shown = text;
    }
}

/// Asks again and again until it is so, or says what is still missing when the limit is reached.
pub fn wait_until(
    what: &str,
    limit: Duration,
    progress: &dyn Progress,
    mut missing: impl FnMut() -> Option<String>,
) -> crate::Result<()> {
    let start = Instant::now();
    loop {
        let Some(still) = missing() else { return Ok(()) };
        if start.elapsed() >= limit {
            return Err(crate::Error::TimedOut { what: what.into(), limit, missing: still });
        }
        progress.waiting(&still, start.elapsed(), limit);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait that runs out says what was waited for and what was not yet true.
    #[test]
    fn a_wait_that_runs_out_says_what_is_missing() {
        let limit = Duration::from_millis(150);
        let error = wait_until("two nodes", limit, &Silent, || Some("node-b is not online".into()))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "two nodes took longer than 0.15 s; still missing: node-b is not online"
        );
    }
}
