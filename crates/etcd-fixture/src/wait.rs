//! Waiting for a condition, with an end.

use std::time::{Duration, Instant};

use anyhow::bail;

/// How long any wait of the fixture may last. Generous: it is reached only when something is wrong.
pub const LIMIT: Duration = Duration::from_mins(1);

/// Looks every 10 ms until there is an answer, at most [`LIMIT`]. `what` completes "waited for ...".
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = look() {
            return Ok(answer);
        }
        if start.elapsed() > LIMIT {
            bail!("waited {} s for {what}", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
