//! Waiting for the pair, never without a limit, and saying what is not yet true.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dyad_node::Node;
use dyad_status::Status;
use dyad_status::look::{PATIENT, Seen, look};
use dyad_status::words::duration;

use crate::exit::{Exit, Failure};

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks until it is done; a limit of zero looks once. Says what it waits for whenever that changes.
pub(super) fn until(
    node: &Arc<Node>,
    limit: Duration,
    what: &str,
    done: impl Fn(&Seen) -> bool,
) -> Result<Status, Failure> {
    let start = Instant::now();
    let mut told = String::new();
    loop {
        let seen = look(node, PATIENT);
        if done(&seen) || limit.is_zero() {
            return Ok(seen.status);
        }
        let now = format!("{}: {}", seen.judgement.state, seen.judgement.because);
        if without_durations(&now) != without_durations(&told) {
            let first = told.is_empty().then_some(limit);
            anstream::eprintln!("{}", news(start.elapsed(), first, what, &now));
        }
        told = now;
        if start.elapsed() >= limit {
            let message = format!("no longer waiting for {what} after {limit:?}: {told}");
            return Err(Failure::new(Exit::TimedOut, message).hint("dyad status --watch"));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// One line of a wait; the first one says how long it may last.
fn news(elapsed: Duration, limit: Option<Duration>, what: &str, now: &str) -> String {
    let most = limit.map_or_else(String::new, |limit| {
        let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        format!(", at most {}", duration(ms))
    });
    format!("{:>4} s  waiting for {what}{most}: {now}", elapsed.as_secs())
}

/// A text without the times in it: that a wait has become longer is no news.
fn without_durations(text: &str) -> String {
    const UNITS: [&str; 5] = ["ms", "s", "min", "h", "days"];
    let words: Vec<&str> = text.split(' ').collect();
    let is_unit = |word: &&str| UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
    let is_number = |word: &str| {
        let digits = word.trim_start_matches('(');
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let kept = words
        .iter()
        .enumerate()
        .filter(|(place, word)| !(is_number(word) && words.get(place + 1).is_some_and(is_unit)));
    kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waits knows for how long at most, and is told so once.
    #[test]
    fn a_wait_says_how_long_it_may_last() {
        let limit = Duration::from_mins(10);
        let second = Duration::from_secs(1);
        let first = news(Duration::ZERO, Some(limit), "node-b to leave", "MAINTENANCE: told");
        assert_eq!(first, "   0 s  waiting for node-b to leave, at most 10 min: MAINTENANCE: told");
        assert_eq!(news(second, None, "it", "ALONE: x"), "   1 s  waiting for it: ALONE: x");
    }

    /// Only a longer wait is no news; another number is.
    #[test]
    fn a_longer_wait_is_no_news() {
        let same = |one, other| without_durations(one) == without_durations(other);
        assert!(same("etcd has had no leader for 3 s", "etcd has had no leader for 41 s"));
        assert!(same("fencing lasts (12 s)", "fencing lasts (13 s)"));
        assert!(!same("node-b copies the data (43 %)", "node-b copies the data (44 %)"));
        assert!(!same("etcd has no leader yet", "etcd has had no leader for 1 s"));
        assert!(!same("1 of 2 nodes vote", "2 of 2 nodes vote"));
    }
}
