//! What the set-up of this node has come to, kept where `dyad status` and people find it.

use std::path::{Path, PathBuf};

use dyad_node::record;
use serde::{Deserialize, Serialize};

/// The state of a node's set-up: one small document, replaced at every step. It holds no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupState {
    /// Version of the document.
    pub api_version: String,
    /// Kind of the document.
    pub kind: String,
    /// The node.
    pub node: String,
    /// The name of the pair, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    /// What it has come to.
    pub result: SetupResult,
    /// When it began, in milliseconds since 1970. For people.
    pub started_ms: u64,
    /// When this was written, in milliseconds since 1970. For people.
    pub updated_ms: u64,
    /// With which description this node was last ready: a fingerprint of what was rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The steps so far, in order.
    pub steps: Vec<StepState>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SetupFailure>,
}

/// What a set-up has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SetupResult {
    /// It runs, or was cut off: the next run goes on.
    Running,
    /// A step failed.
    Failed,
    /// Both nodes vote, fencing answers, a write went through: proven.
    Ready,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepState {
    /// Its name, which stays the same.
    pub name: String,
    /// How it stands.
    pub result: StepResult,
    /// How long it has taken.
    pub took_ms: u64,
    /// What was found or done, or is waited for.
    pub detail: String,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepResult {
    /// It runs, or was cut off.
    Running,
    /// It is done.
    Done,
    /// It failed.
    Failed,
}

/// What went wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupFailure {
    /// In which step.
    pub step: String,
    /// Why. Nothing secret.
    pub why: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What kind of failure it is.
    pub kind: FailureKind,
}

/// What kind of failure it is: what a script or a unit does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// It was tried and failed.
    Failed,
    /// Something is not as it must be; nothing was tried.
    NotFit,
    /// Going on could lose or fork data.
    Refused,
    /// A limit ran out; a later run may succeed.
    TimedOut,
}

impl SetupState {
    /// Where a node keeps it, below its directory of state.
    pub fn path(state: &Path) -> PathBuf {
        state.join("setup.json")
    }

    /// The state of this machine's set-up; nothing if it was never begun.
    pub fn read() -> Result<Option<Self>, record::Error> {
        record::read(&Self::path(&dyad_node::Place::default().state))
    }

    /// Whether the node is one of a pair that was proven to work.
    pub fn is_ready(&self) -> bool {
        self.result == SetupResult::Ready
    }

    /// The step that runs or failed.
    pub fn current(&self) -> Option<&StepState> {
        self.steps.iter().find(|step| step.result != StepResult::Done)
    }
}
