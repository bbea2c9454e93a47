//! Is everything that was acknowledged still there, once, under one revision, on every node?
//!
//! The other half of the judgement: it believes what the store says about revisions, and holds it to that.
//! Each check is a plain statement about etcd that must hold whatever fails:
//!
//! - a revision stands for one change of one key, on every node and for every client;
//! - what was over before something else began has the smaller revision;
//! - a read sees at least what was acknowledged before it began;
//! - a value that is seen was written by somebody, and not by a request that certainly failed;
//! - in the end every node holds each key's last acknowledged change, or a later one; a key was changed as
//!   often as was acknowledged, plus at most once for each request of unknown outcome.
//!
//! Nothing is searched for: it takes one pass over the history sorted by time.

mod final_state;
mod revisions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::history::History;
use crate::operation::Operation;

/// The most findings of one kind that are kept; the rest is counted.
pub const KEPT_MAX: usize = 10;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A change that a client was told had succeeded is gone.
    LostAcknowledgement,
    /// Two answers or two nodes disagree on what a revision holds.
    TwoHistories,
    /// A revision is smaller than one that was seen before.
    RevisionWentBack,
    /// A linearizable read missed a change that was acknowledged before it began.
    StaleRead,
    /// A value was seen whose write certainly was not executed.
    DirtyRead,
    /// A value was seen that nobody wrote.
    Unwritten,
    /// A change was made more often than it was asked for.
    Duplicate,
}

impl Kind {
    /// What is wrong, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::LostAcknowledgement => "acknowledged changes are gone",
            Self::TwoHistories => "two histories",
            Self::RevisionWentBack => "the revision went back",
            Self::StaleRead => "linearizable reads were old",
            Self::DirtyRead => "values of failed writes were seen",
            Self::Unwritten => "values were seen that nobody wrote",
            Self::Duplicate => "changes were made twice",
        }
    }
}

/// One thing that is wrong, with what shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// Which key it is about.
    pub key: String,
    /// The whole statement.
    pub message: String,
    /// The ids of the operations that show it.
    pub operations: Vec<u64>,
}

/// What was found about a whole history.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lost {
    /// Changes that were acknowledged.
    pub acknowledged: usize,
    /// Nodes whose final state was compared with them.
    pub nodes: Vec<String>,
    /// Nodes that the clients used and whose final state is not known: a lost node, as a rule.
    pub unread: Vec<String>,
    /// How many findings there are of each kind.
    pub counts: BTreeMap<Kind, usize>,
    /// The first findings of each kind.
    pub findings: Vec<Finding>,
    /// Why this could not be decided, if it could not.
    pub undecided: Option<String>,
    /// Serializable reads that were older than an earlier answer of the same node. They are allowed to be.
    pub old_serializable_reads: usize,
}

impl Lost {
    fn add(
        &mut self,
        kind: Kind,
        key: &str,
        operations: impl IntoIterator<Item = u64>,
        message: String,
    ) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= KEPT_MAX {
            let operations = operations.into_iter().collect();
            self.findings.push(Finding { kind, key: key.to_owned(), message, operations });
        }
    }
}

/// Checks a whole history.
pub fn check(history: &History) -> Lost {
    let mut lost = Lost::default();
    let facts = Facts::of(history);
    lost.acknowledged = facts.keys.values().map(|key| key.acknowledged.len()).sum();
    revisions::one_change_per_revision(history, &mut lost);
    revisions::order(&history.operations, &mut lost);
    revisions::old_serializable_reads(&history.operations, &mut lost);
    revisions::reads(&facts, &mut lost);
    final_state::check(history, &facts, &mut lost);
    lost.findings.sort_by_key(|finding| finding.kind);
    lost
}

/// The history by key.
struct Facts<'a> {
    keys: BTreeMap<&'a str, KeyFacts<'a>>,
}

/// What happened to one key.
#[derive(Default)]
struct KeyFacts<'a> {
    /// Everything, in the order of invocation.
    operations: Vec<&'a Operation>,
    /// Acknowledged changes by revision. Two of one revision are found elsewhere; the first stays here.
    acknowledged: BTreeMap<u64, &'a Operation>,
    /// Changes that may have been made without anybody being told.
    unknown: Vec<&'a Operation>,
    /// Who wrote, or tried to write, each value.
    writers: HashMap<&'a str, Vec<&'a Operation>>,
}

impl<'a> Facts<'a> {
    fn of(history: &'a History) -> Self {
        let mut keys: BTreeMap<&str, KeyFacts> = BTreeMap::new();
        for operation in &history.operations {
            let key = keys.entry(&operation.key).or_default();
            key.operations.push(operation);
            if let Some(revision) = operation.acknowledged_revision() {
                key.acknowledged.entry(revision).or_insert(operation);
            } else if operation.is_unknown() && operation.action.mutates() {
                key.unknown.push(operation);
            }
            if let Some(value) = operation.action.value() {
                key.writers.entry(value).or_default().push(operation);
            }
        }
        Self { keys }
    }
}

impl KeyFacts<'_> {
    /// Whether a removal may have been made without anybody being told.
    fn perhaps_removed(&self) -> bool {
        self.unknown.iter().any(|operation| operation.action.value().is_none())
    }

    /// What is wrong with somebody having seen this value under this revision.
    fn origin(&self, value: &str, revision: u64) -> Result<(), (Kind, Vec<u64>, String)> {
        let Some(writers) = self.writers.get(value) else {
            return Err((Kind::Unwritten, Vec::new(), format!("{value}, which nobody wrote")));
        };
        let ids = writers.iter().map(|operation| operation.id).collect();
        if writers.iter().all(|operation| operation.is_failed()) {
            let why = format!("{value}, whose write certainly failed");
            return Err((Kind::DirtyRead, ids, why));
        }
        let explains = |operation: &&Operation| {
            operation.is_unknown() || operation.acknowledged_revision() == Some(revision)
        };
        if writers.iter().any(explains) {
            return Ok(());
        }
        let acknowledged = writers.iter().find_map(|operation| operation.acknowledged_revision());
        let Some(acknowledged) = acknowledged else {
            // Every writer was told that its comparison failed.
            let why = format!("{value}, whose write was answered with \"comparison failed\"");
            return Err((Kind::DirtyRead, ids, why));
        };
        let why = format!(
            "{value} as changed at revision {revision}, but it was acknowledged at {acknowledged}"
        );
        Err((Kind::Duplicate, ids, why))
    }
}

/// How a change is named in messages.
fn name(operation: &Operation) -> String {
    format!("#{} ({} via {})", operation.id, operation.action, operation.endpoint)
}
