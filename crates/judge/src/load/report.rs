//! What a run was like for its clients, told from its history.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::history::History;
use crate::operation::{Operation, Outcome};

/// What a run was like.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// From the first request to the last answer.
    pub duration_ms: f64,
    /// What came of the requests, by action.
    pub by_action: BTreeMap<&'static str, Counts>,
    /// What came of all requests.
    pub total: Counts,
    /// What came of the writes through each node.
    pub writes_by_endpoint: BTreeMap<String, Counts>,
    /// The longest time without an acknowledged write, through any node.
    pub longest_gap: Option<Gap>,
    /// The same through each node.
    pub longest_gap_by_endpoint: BTreeMap<String, Gap>,
    /// The first write through each node that was accepted of those sent after the instant asked for. (What
    /// was under way at that instant may have been accepted before it, and only its answer came later.)
    pub first_write_after: BTreeMap<String, FirstWrite>,
    /// The request whose client waited longest, answered or not.
    pub slowest: Option<Slowest>,
    /// The same through each node.
    pub slowest_by_endpoint: BTreeMap<String, Slowest>,
    /// How long answered reads took.
    pub read_latency: Option<Latency>,
    /// How long acknowledged writes took.
    pub write_latency: Option<Latency>,
}

/// What came of some requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Answered.
    pub ok: u64,
    /// Certainly not executed.
    pub failed: u64,
    /// Nobody knows.
    pub unknown: u64,
}

/// A time without an acknowledged write.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// How long.
    pub length_ms: f64,
    /// The acknowledgement before it, or the start of the run, on the monotonic clock.
    pub from_ns: u64,
    /// The acknowledgement that ended it, or the end of the run.
    pub to_ns: u64,
}

/// The first write after an instant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstWrite {
    /// Its id in the history.
    pub id: u64,
    /// When it was acknowledged, after the instant.
    pub after_ms: f64,
}

/// The slowest request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slowest {
    /// Its id in the history.
    pub id: u64,
    /// What was asked.
    pub action: &'static str,
    /// Of whom.
    pub endpoint: String,
    /// How long the client waited.
    pub waited_ms: f64,
    /// What came of it.
    pub outcome: &'static str,
}

/// How long requests took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// Half of them.
    pub p50_ms: f64,
    /// 90 of 100.
    pub p90_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// 999 of 1,000.
    pub p999_ms: f64,
    /// All.
    pub max_ms: f64,
}

fn ms(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e3
}

/// Tells what the run was like; `since_ns` asks for the first write after that instant of the monotonic
/// clock, say of a fault.
pub fn report(history: &History, since_ns: Option<u64>) -> Report {
    let operations = &history.operations;
    let start = history.start_ns();
    let end = operations.iter().filter_map(ended).max().unwrap_or(start);
    let mut by_action: BTreeMap<&'static str, Counts> = BTreeMap::new();
    let mut total = Counts::default();
    let mut writes_by_endpoint: BTreeMap<String, Counts> = BTreeMap::new();
    for operation in operations {
        if operation.action.mutates() {
            writes_by_endpoint.entry(operation.endpoint.to_string()).or_default().add(operation);
        }
        total.add(operation);
        by_action.entry(operation.action.name()).or_default().add(operation);
    }
    let mut endpoints: Vec<&str> = history.header.endpoints.iter().map(String::as_str).collect();
    endpoints.extend(operations.iter().map(|operation| &*operation.endpoint));
    endpoints.sort_unstable();
    endpoints.dedup();
    let through = |endpoint: &str| acknowledged(operations, Some(endpoint));
    let gap_through = |endpoint: &&str| {
        let gap = longest_gap(&through(endpoint), start, end)?;
        Some((endpoint.to_string(), gap))
    };
    let first_through = |endpoint: &&str| {
        let since = since_ns?;
        // In the order of invocation, as every history is.
        let later = operations.partition_point(|operation| operation.invoke_ns <= since);
        let (complete, id) = *acknowledged(&operations[later..], Some(endpoint)).first()?;
        Some((endpoint.to_string(), FirstWrite { id, after_ms: ms(complete - since) }))
    };
    let slowest_through =
        |endpoint: &&str| Some((endpoint.to_string(), slowest(operations, Some(endpoint))?));
    Report {
        duration_ms: ms(end - start),
        by_action,
        total,
        writes_by_endpoint,
        longest_gap: longest_gap(&acknowledged(operations, None), start, end),
        longest_gap_by_endpoint: endpoints.iter().filter_map(gap_through).collect(),
        first_write_after: endpoints.iter().filter_map(first_through).collect(),
        slowest: slowest(operations, None),
        slowest_by_endpoint: endpoints.iter().filter_map(slowest_through).collect(),
        read_latency: latency(operations, false),
        write_latency: latency(operations, true),
    }
}

impl Counts {
    /// Not known to have worked.
    pub fn unanswered(&self) -> u64 {
        self.failed + self.unknown
    }

    fn add(&mut self, operation: &Operation) {
        match operation.outcome {
            Outcome::Ok(_) => self.ok += 1,
            Outcome::Failed { .. } => self.failed += 1,
            Outcome::Unknown { .. } => self.unknown += 1,
        }
    }
}

/// When the client had its answer or gave up.
fn ended(operation: &Operation) -> Option<u64> {
    operation.complete_ns.or(operation.gave_up_ns)
}

/// When and by whom writes were acknowledged, in order. A comparison that failed went through the log like
/// any write: the node was able to write.
fn acknowledged(operations: &[Operation], endpoint: Option<&str>) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = operations
        .iter()
        .filter(|operation| operation.action.mutates() && operation.answer().is_some())
        .filter(|operation| endpoint.is_none_or(|endpoint| &*operation.endpoint == endpoint))
        .filter_map(|operation| Some((operation.complete_ns?, operation.id)))
        .collect();
    times.sort_unstable();
    times
}

fn longest_gap(acknowledged: &[(u64, u64)], start: u64, end: u64) -> Option<Gap> {
    let times: Vec<u64> =
        [start].into_iter().chain(acknowledged.iter().map(|(at, _)| *at)).chain([end]).collect();
    let (from_ns, to_ns) = times
        .windows(2)
        .map(|pair| (pair[0], pair[1].max(pair[0])))
        .max_by_key(|(from, to)| to - from)?;
    Some(Gap { length_ms: ms(to_ns - from_ns), from_ns, to_ns })
}

fn slowest(operations: &[Operation], endpoint: Option<&str>) -> Option<Slowest> {
    let waited = |operation: &Operation| Some(ended(operation)? - operation.invoke_ns);
    let operation = operations
        .iter()
        .filter(|operation| endpoint.is_none_or(|endpoint| &*operation.endpoint == endpoint))
        .max_by_key(|operation| waited(operation))?;
    Some(Slowest {
        id: operation.id,
        action: operation.action.name(),
        endpoint: operation.endpoint.to_string(),
        waited_ms: ms(waited(operation)?),
        outcome: match operation.outcome {
            Outcome::Ok(_) => "ok",
            Outcome::Failed { .. } => "failed",
            Outcome::Unknown { .. } => "unknown",
        },
    })
}

fn latency(operations: &[Operation], writes: bool) -> Option<Latency> {
    let mut times: Vec<u64> = operations
        .iter()
        .filter(|operation| operation.action.mutates() == writes && operation.answer().is_some())
        .filter_map(|operation| Some(operation.complete_ns? - operation.invoke_ns))
        .collect();
    times.sort_unstable();
    let max = *times.last()?;
    // Nearest rank: the smallest value that so many are not above.
    let at = |per_mille: usize| ms(times[(times.len() * per_mille).div_ceil(1000).max(1) - 1]);
    Some(Latency {
        p50_ms: at(500),
        p90_ms: at(900),
        p99_ms: at(990),
        p999_ms: at(999),
        max_ms: ms(max),
    })
}

impl Report {
    /// The report for people.
    pub fn render(&self) -> String {
        let mut text = format!(
            "{} operations in {:.1} s: {} ok, {} failed, {} unknown\n",
            self.total.ok + self.total.failed + self.total.unknown,
            self.duration_ms / 1e3,
            self.total.ok,
            self.total.failed,
            self.total.unknown,
        );
        for (action, counts) in &self.by_action {
            let Counts { ok, failed, unknown } = counts;
            let _ = writeln!(text, "  {action:<18} {ok:>8} {failed:>8} {unknown:>8}");
        }
        for (name, latency) in [("reads", self.read_latency), ("writes", self.write_latency)] {
            if let Some(Latency { p50_ms, p90_ms, p99_ms, p999_ms, max_ms }) = latency {
                let _ = writeln!(
                    text,
                    "{name}: p50 {p50_ms:.1} ms, p90 {p90_ms:.1} ms, p99 {p99_ms:.1} ms, p99.9 {p999_ms:.1} ms, max {max_ms:.1} ms",
                );
            }
        }
        if let Some(gap) = self.longest_gap {
            let _ = write!(text, "longest without a write: {:.0} ms", gap.length_ms);
            for (endpoint, gap) in &self.longest_gap_by_endpoint {
                let _ = write!(text, "; through {endpoint} {:.0} ms", gap.length_ms);
            }
            text.push('\n');
        }
        for (endpoint, first) in &self.first_write_after {
            let after = first.after_ms;
            let _ = writeln!(text, "first write through {endpoint}: {after:.0} ms (#{})", first.id);
        }
        if let Some(Slowest { id, action, endpoint, waited_ms, outcome }) = &self.slowest {
            let _ = writeln!(
                text,
                "slowest: {action} through {endpoint}, {waited_ms:.0} ms, {outcome} (#{id})"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::history;

    /// Gaps reach from the start of the run to its end, also through a node that never answers.
    #[test]
    fn a_run_is_told() {
        let mut history = history(
            "1 a k put x  1000000-2000000 ok 2
             2 b k put y  1000000-9000000 unknown
             1 a k get    2000000-3000000 ok 2 x@2
             1 a k cas y z 6000000-7000000 no 2 x@2
             2 b k put w  9000000-9500000 failed",
        );
        history.header.endpoints = vec!["a".to_owned(), "b".to_owned()];
        let report = report(&history, Some(2_500_000));
        assert_eq!(report.total, Counts { ok: 3, failed: 1, unknown: 1 });
        assert_eq!(report.by_action["put"], Counts { ok: 1, failed: 1, unknown: 1 });
        assert_eq!(report.writes_by_endpoint["a"], Counts { ok: 2, failed: 0, unknown: 0 });
        assert_eq!(report.writes_by_endpoint["b"], Counts { ok: 0, failed: 1, unknown: 1 });
        let gap = report.longest_gap.unwrap();
        assert_eq!((gap.from_ns, gap.to_ns), (2_000_000, 7_000_000));
        let never = report.longest_gap_by_endpoint["b"];
        assert_eq!((never.from_ns, never.to_ns), (1_000_000, 9_500_000));
        let first = report.first_write_after["a"];
        assert_eq!((first.id, first.after_ms), (4, 4.5));
        assert!(!report.first_write_after.contains_key("b"));
        let slowest = report.slowest.clone().unwrap();
        assert_eq!((slowest.id, slowest.outcome, slowest.waited_ms), (2, "unknown", 8.0));
        assert_eq!(report.read_latency.map(|it| (it.p50_ms, it.max_ms)), Some((1.0, 1.0)));
        let text = report.render();
        assert!(
            text.contains("longest without a write: 5 ms; through a 5 ms; through b 8"),
            "{text}"
        );
    }

    /// An empty history has nothing to tell, and does not divide by zero.
    #[test]
    fn an_empty_run_is_told() {
        let report = report(&History::default(), None);
        assert_eq!(report.total, Counts::default());
        assert_eq!(report.slowest, None);
        assert!(!report.render().is_empty());
    }
}
