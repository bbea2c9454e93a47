//! The record of a run: one JSON document per line, appended as things happen.
//!
//! An operation has two lines, one before it is sent and one after its answer, and the first reaches the
//! kernel before the request does. So when the generator is killed, every request that may have reached a
//! node is in the file; one without a second line has an unknown outcome. Without that, a write in flight
//! at the moment of the kill would later look like a value out of nowhere.

mod reader;
mod recorder;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use reader::{HistoryError, read};
pub use recorder::Recorder;

use crate::operation::{Action, Operation, Outcome};

/// The version of the file's format.
pub const API_VERSION: &str = "dyad/v1";

/// Everything that a run left.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// How the run began.
    pub header: Header,
    /// Every operation, in the order of invocation.
    pub operations: Vec<Operation>,
    /// What each node held in the end.
    pub finals: Vec<FinalState>,
    /// Whether the generator ended in good order. If not, the last operations have unknown outcomes.
    pub ended: bool,
}

impl History {
    /// One history of several generators that ran on the same machine: they share the clock.
    #[must_use]
    pub fn merge(histories: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self { ended: true, ..Self::default() };
        for (position, history) in histories.into_iter().enumerate() {
            if position == 0 {
                merged.header = history.header;
            } else {
                merged.header.endpoints.extend(history.header.endpoints);
                merged.header.endpoints.sort_unstable();
                merged.header.endpoints.dedup();
            }
            // Ids and clients are unique within one file only.
            let first_id = merged.operations.iter().map(|op| op.id + 1).max().unwrap_or(0);
            let first_client = merged.operations.iter().map(|op| op.client + 1).max().unwrap_or(0);
            merged.operations.extend(history.operations.into_iter().map(|mut operation| {
                operation.id += first_id;
                operation.client += first_client;
                operation
            }));
            merged.finals.extend(history.finals);
            merged.ended &= history.ended;
        }
        merged.operations.sort_by_key(|operation| operation.invoke_ns);
        merged
    }

    /// The moment of the first invocation: what times are shown relative to.
    pub fn start_ns(&self) -> u64 {
        self.operations.first().map_or(0, |operation| operation.invoke_ns)
    }
}

/// How a run began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The version of the format.
    pub api_version: String,
    /// The seed of the generator's choices.
    #[serde(default)]
    pub seed: u64,
    /// The monotonic clock at the start.
    pub started_ns: u64,
    /// The wall clock at the start, in milliseconds since 1970: for people, never compared.
    pub started_unix_ms: u64,
    /// Every endpoint that is used, by the name it has in the operations.
    pub endpoints: Vec<String>,
}

/// What one node held after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinalState {
    /// Which node.
    pub endpoint: String,
    /// Every key under this was read, and no other.
    pub prefix: String,
    /// Its revision.
    pub revision: u64,
    /// The cluster that it says it belongs to, as etcd writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Every key under the prefix.
    pub items: BTreeMap<String, FinalItem>,
}

/// What a key held after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinalItem {
    /// Its value.
    pub value: String,
    /// The revision of its creation.
    pub create_revision: u64,
    /// The revision of its last change.
    pub mod_revision: u64,
    /// The number of changes since its creation, itself included.
    pub version: u64,
}

/// One line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "line")]
enum Line {
    /// The first line.
    Header(Header),
    /// An operation is about to be sent.
    Invoke(Invoke),
    /// An operation came to its end.
    Complete(Complete),
    /// What a node held after the run.
    Final(FinalState),
    /// The generator ended in good order.
    End,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Invoke {
    id: u64,
    client: u32,
    endpoint: Arc<str>,
    key: Arc<str>,
    action: Action,
    time_ns: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complete {
    id: u64,
    time_ns: u64,
    outcome: Outcome,
}
