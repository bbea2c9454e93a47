//! What clients saw, judged piece by piece: a campaign may last for a night, and memory is bounded.

use dyad_judge::linearizable::Limits;
use dyad_judge::load::report;
use dyad_judge::verdict::{self, Answer};

use super::evidence::Evidence;
use super::report::{Report, Violation};
use crate::Lab;
use crate::clients::{Clients, Load};
use crate::error::{Error, Result};

/// So many faults are judged together.
pub(super) const FAULTS_MAX: usize = 8;

/// Clients at work since some step.
pub(super) struct Segment {
    clients: Clients,
    name: String,
    prefix: String,
    /// Faults since it began.
    pub(super) faults: usize,
}

impl Segment {
    /// Begins the next one.
    pub(super) fn begin(
        lab: &Lab,
        load: &Load,
        evidence: &Evidence,
        number: usize,
    ) -> Result<Self> {
        let name = format!("history-{number:03}.jsonl");
        let prefix = format!("campaign/{number}/");
        let seed = load.seed.map(|seed| seed.wrapping_add(number as u64));
        let load = Load { seed, prefix: Some(prefix.clone()), ..load.clone() };
        let clients = Clients::start(lab, &load, &evidence.path(&name))?;
        Ok(Self { clients, name, prefix, faults: 0 })
    }

    /// Ends and judges it. A loss that a person accepted is not held against the pair. `floor` is the revision that
    /// the store had at the end of the piece before: it never goes back, and is moved on.
    pub(super) fn end(
        self,
        lab: &Lab,
        evidence: &Evidence,
        accepted: bool,
        floor: &mut u64,
        report_to: &mut Report,
    ) -> Result<Result<(), Violation>> {
        let Self { clients, name, prefix, .. } = self;
        let history = clients.end(lab)?;
        let verdict = verdict::judge(&history, Limits::default());
        let seen = report(&history, None);
        report_to.segments += 1;
        report_to.operations += verdict.operations;
        report_to.acknowledged += verdict.lost.acknowledged;
        let gap_s = seen.longest_gap.map_or(0.0, |gap| gap.length_ms / 1e3);
        report_to.longest_gap_s = report_to.longest_gap_s.max(gap_s);
        if accepted {
            report_to.accepted_losses += 1;
            // Not to be held against the pair by a replay either.
            let path = evidence.path(&name);
            let other = evidence.path(&name.replace("history", "accepted"));
            std::fs::rename(&path, other).map_err(Error::io("renaming", &path))?;
        } else if verdict.answer != Answer::Good {
            return Ok(Err(Violation::new("P2", format!("{name}: {}", verdict.render()))));
        } else if verdict.lost.nodes.len() != 2 {
            let what = format!("{name}: not both nodes could be read in the end");
            return Ok(Err(Violation::new("P4", what)));
        }
        let linearizable = history.operations.iter().filter(|it| !it.is_serializable());
        let revisions = linearizable.filter_map(|operation| operation.answer());
        let lowest = revisions.map(|answer| answer.revision).min().unwrap_or(u64::MAX);
        if lowest < *floor && !accepted {
            let what = format!("the store was at revision {floor}, and then at {lowest}");
            return Ok(Err(Violation::new("P2", what)));
        }
        *floor = history.finals.iter().map(|state| state.revision).min().unwrap_or(0);
        clear(lab, &prefix, *floor);
        Ok(Ok(()))
    }
}

/// What was judged is not needed any more, and would fill the disk over a night.
fn clear(lab: &Lab, prefix: &str, revision: u64) {
    let [node, _] = lab.names();
    lab.etcdctl(node, &["del", "--prefix", prefix]);
    lab.etcdctl(node, &["compact", &revision.to_string()]);
}
