//! What a campaign came to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Which promise: `P1` to `P8`.
    pub promise: &'static str,
    /// How that shows.
    pub what: String,
}

impl Violation {
    pub(super) fn new(promise: &'static str, what: impl Into<String>) -> Self {
        Self { promise, what: what.into() }
    }
}

/// How long the pair took to be whole again after everything was repaired.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// In the middle, in seconds.
    pub median_s: f64,
    /// At most, in seconds.
    pub max_s: f64,
    /// The limit.
    pub limit_s: f64,
}

/// What a campaign came to.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What everything was drawn from.
    pub seed: u64,
    /// The Debian release of the nodes.
    pub release: String,
    /// Every promise was kept.
    pub passed: bool,
    /// Faults that were planned.
    pub faults_planned: usize,
    /// Faults that were done.
    pub faults: usize,
    /// Steps that were done; faults of one step may overlap.
    pub steps: usize,
    /// How often each kind of fault was done.
    pub kinds: BTreeMap<String, usize>,
    /// How long all of it took, in seconds.
    pub duration_s: f64,
    /// How long the pair took to be whole again.
    pub recovery: Recovery,
    /// How often a node was switched off by the pair itself.
    pub fencings: usize,
    /// Requests of clients that were judged.
    pub operations: usize,
    /// Changes that clients were told had succeeded.
    pub acknowledged: usize,
    /// The longest time in which no client could write, in seconds, faults included.
    pub longest_gap_s: f64,
    /// Histories that were judged, one after the other.
    pub segments: usize,
    /// Of these, histories in which a person had accepted a loss that was named.
    pub accepted_losses: usize,
    /// Confirmations by a sensible person.
    pub confirmations: usize,
    /// Decisions that were replayed in `core`, with the same result.
    pub decisions: usize,
    /// Decisions that replayed to another result, with deliberately broken rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference_after_faults: Option<usize>,
    /// The promise that was not kept.
    pub violation: Option<Violation>,
    /// In which step, and what was done in it.
    pub failed_step: Option<String>,
    /// The command that does it again.
    pub again: String,
    /// Where everything is kept that tells why.
    pub kept: Option<String>,
}

impl Report {
    /// For people.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let verdict = if self.passed { "passed" } else { "FAILED" };
        let _ = writeln!(
            text,
            "{verdict}: seed {}, {} of {} faults in {} steps, {:.0} min, Debian {}",
            self.seed,
            self.faults,
            self.faults_planned,
            self.steps,
            self.duration_s / 60.0,
            self.release
        );
        if let Some(violation) = &self.violation {
            let _ = writeln!(text, "\n{}: {}", violation.promise, violation.what);
        }
        if let Some(step) = &self.failed_step {
            let _ = writeln!(text, "in {step}");
        }
        let Recovery { median_s, max_s, limit_s } = self.recovery;
        let _ = writeln!(
            text,
            "\nwhole again after a repair: median {median_s:.0} s, at most {max_s:.0} s (limit {limit_s:.0} s)\n\
             switched off by the pair itself: {}\n\
             clients: {} operations, {} changes acknowledged, longest time without a write {:.0} s\n\
             judged: {} histories; a loss was accepted by a person in {}; sensible confirmations: {}\n\
             decisions replayed: {}",
            self.fencings,
            self.operations,
            self.acknowledged,
            self.longest_gap_s,
            self.segments,
            self.accepted_losses,
            self.confirmations,
            self.decisions,
        );
        let kinds: Vec<_> =
            self.kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let _ = writeln!(text, "faults: {}", kinds.join(", "));
        if let Some(after) = self.first_difference_after_faults {
            let _ =
                writeln!(text, "a decision differed from the sound rules' after {after} faults");
        }
        let _ = writeln!(text, "again: {}", self.again);
        if let Some(kept) = &self.kept {
            let _ = writeln!(text, "kept: {kept} (dyad lab campaign --replay {kept})");
        }
        text
    }
}
