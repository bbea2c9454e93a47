//! What must be so of a pair that is whole again, whatever it went through.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::plan::Step;
use super::report::Violation;
use crate::Lab;
use crate::error::Result;
use crate::events::{self, EventKind};

/// A data disk that is fuller than this after a recovery is filling up.
const DISK_PERCENT_MAX: u64 = 85;

/// What one step has left behind.
pub(super) struct Audit<'a> {
    /// The pair.
    pub(super) lab: &'a Lab,
    /// What was done.
    pub(super) step: &'a Step,
    /// When the step began, in microseconds since 1970.
    pub(super) began_us: u64,
    /// What the nodes decided in it.
    pub(super) decisions: &'a [(String, Value)],
}

impl Audit<'_> {
    /// Looks at everything; the first thing that is wrong is told.
    pub(super) fn check(&self) -> Result<Result<(), Violation>> {
        let supervisor = self.lab.status()?.supervisor;
        let fencings = self.fencings()?;
        Ok(self
            .one_history()
            .and_then(|()| only_voters_take_over(self.decisions))
            .and_then(|()| self.no_fencing_loop(fencings))
            .and_then(|()| {
                self.lab.names().iter().try_for_each(|node| {
                    let data = data_directory(self.lab, supervisor, node);
                    self.nothing_deleted(node, &data)?;
                    no_mark_left(node, &data)?;
                    disk_is_bounded(node, &data)
                })
            }))
    }

    /// How often nodes were switched off since the step began, other than by the campaign itself.
    pub(super) fn fencings(&self) -> Result<usize> {
        let events = events::read(&self.lab.place().events())?;
        let off = events
            .iter()
            .filter(|event| event.kind == EventKind::PowerOff && event.time_us >= self.began_us);
        let own = self.step.acts.iter().filter(|timed| timed.act.takes_power_of().is_some());
        Ok(off.count().saturating_sub(own.count()))
    }

    /// P1: both nodes serve one and the same dataset: one cluster, one leader, two voters, and what is written
    /// through one is read through the other.
    fn one_history(&self) -> Result<(), Violation> {
        let split = |what: String| Violation::new("P1", what);
        let [first, second] = self.lab.names();
        let said = |node: &str| {
            let status = self.lab.etcd_status(node);
            status.ok_or_else(|| split(format!("etcd on {node} does not answer")))
        };
        let (one, other) = (said(first)?, said(second)?);
        let (cluster, others) = (&one["header"]["cluster_id"], &other["header"]["cluster_id"]);
        if cluster != others {
            return Err(split(format!("{first} serves cluster {cluster}, {second} {others}")));
        }
        let members = self.lab.names().map(|node| self.lab.members(node));
        if members[0] != members[1] || members[0].len() != 2 {
            return Err(split(format!("members on {first} and {second}: {members:?}")));
        }
        for (writer, reader) in [(first, second), (second, first)] {
            let value = self.began_us.to_string();
            let key = format!("campaign/audit/{writer}");
            if self.lab.etcdctl(writer, &["put", &key, &value]).is_none() {
                return Err(split(format!("no write is accepted through {writer}")));
            }
            let read = self.lab.etcdctl(reader, &["get", "--print-value-only", &key]);
            if read.as_deref().map(str::trim) != Some(value.as_str()) {
                let what =
                    format!("written through {writer}: {value}, read through {reader}: {read:?}");
                return Err(split(what));
            }
        }
        Ok(())
    }

    /// P5: each thing that happened may cost a node its power once; more is a loop.
    fn no_fencing_loop(&self, fencings: usize) -> Result<(), Violation> {
        let allowed = self.step.acts.len() + 1;
        if fencings <= allowed {
            return Ok(());
        }
        let what = format!("{fencings} nodes were switched off in a step of {} acts", allowed - 1);
        Err(Violation::new("P5", what))
    }

    /// P3: the dataset that a node gave up in its last join is still there. (Older copies may have been pruned:
    /// since then the barrier has passed.)
    fn nothing_deleted(&self, node: &str, data: &Path) -> Result<(), Violation> {
        let joins = self.decisions.iter().filter(|(who, entry)| {
            who == node
                && entry["decision"]["action"] == "joinAsLearner"
                && entry["failure"].is_null()
        });
        let given_up = joins
            .filter_map(|(_, entry)| entry["facts"]["dataset"]["memberId"].as_str())
            .next_back();
        let Some(member) = given_up else { return Ok(()) };
        let copies = copies_of(data);
        let there = copies.iter().any(|name| name.split('-').nth(1) == Some(member));
        if there {
            return Ok(());
        }
        let what =
            format!("{node} joined anew, and its copy as member {member} is gone: {copies:?}");
        Err(Violation::new("P3", what))
    }
}

/// P2: only a voter's copy can have everything. Looked at in what was decided, not through the rules.
fn only_voters_take_over(decisions: &[(String, Value)]) -> Result<(), Violation> {
    let took = decisions.iter().find(|(_, entry)| {
        let action = entry["decision"]["action"].as_str().unwrap_or_default();
        let class = entry["facts"]["dataset"]["class"].as_str().unwrap_or_default();
        ["announceTakeOver", "takeOver"].contains(&action) && !["pair", "alone"].contains(&class)
    });
    let Some((node, entry)) = took else { return Ok(()) };
    let class = &entry["facts"]["dataset"]["class"];
    Err(Violation::new("P2", format!("{node} took over with a copy of class {class}")))
}

/// The data directory of a node, from outside, whether the node runs or not. Only the lab's supervisor sees it.
fn data_directory(lab: &Lab, supervisor: u32, node: &str) -> PathBuf {
    let inside = lab.place().node(node).join("etcd");
    let root = PathBuf::from(format!("/proc/{supervisor}/root"));
    root.join(inside.strip_prefix("/").unwrap_or(&inside))
}

/// The names of the copies that were moved aside.
fn copies_of(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data.join("dyad/aside")).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A pair that is whole has passed the barrier: a mark that is left would decide a later failure wrongly.
fn no_mark_left(node: &str, data: &Path) -> Result<(), Violation> {
    if !data.join("member/wal").is_dir() {
        return Err(Violation::new("P3", format!("{node} has no data")));
    }
    for mark in ["take-over.json", "yield.json"] {
        if data.join("dyad").join(mark).exists() {
            return Err(Violation::new("P1", format!("{node} is whole and still has {mark}")));
        }
    }
    Ok(())
}

/// P6: nothing grows for ever.
fn disk_is_bounded(node: &str, data: &Path) -> Result<(), Violation> {
    let Ok(stat) = nix::sys::statvfs::statvfs(data) else { return Ok(()) };
    let used = stat.blocks().saturating_sub(stat.blocks_free());
    let percent = 100 * used / stat.blocks().max(1);
    if percent <= DISK_PERCENT_MAX {
        return Ok(());
    }
    let what = format!("{node}'s data disk is {percent} % full: {:?}", copies_of(data));
    Err(Violation::new("P6", what))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A take-over with a learner's copy is found, whatever the rules that allowed it say; one with a voter's is not.
    #[test]
    fn a_learner_that_takes_over_is_found() {
        let decided = |action: &str, class: &str| {
            let entry = serde_json::json!({
                "decision": { "action": action }, "facts": { "dataset": { "class": class } },
            });
            ("node-a".to_owned(), entry)
        };
        let sound = [decided("takeOver", "pair"), decided("wait", "learner")];
        assert_eq!(only_voters_take_over(&sound), Ok(()));
        let broken = [decided("takeOver", "alone"), decided("announceTakeOver", "learner")];
        assert_eq!(only_voters_take_over(&broken).unwrap_err().promise, "P2");
    }
}
