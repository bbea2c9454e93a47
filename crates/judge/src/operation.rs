//! What a client asked, and what it was told.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One request of one client, from the moment before it was sent to the moment its answer was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Unique within one history.
    pub id: u64,
    /// Who asked. A client asks one thing at a time.
    pub client: u32,
    /// Which node was asked.
    pub endpoint: Arc<str>,
    /// Which key it was about.
    pub key: Arc<str>,
    /// What was asked.
    pub action: Action,
    /// When, on the [monotonic clock](crate::clock): before the first byte was sent.
    pub invoke_ns: u64,
    /// When the answer was read. None for an operation without a known outcome: it may still take effect.
    pub complete_ns: Option<u64>,
    /// When the client gave up, for an operation without a known outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up_ns: Option<u64>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a client asks of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Action {
    /// Read the key. A serializable read is answered from one node's own state and may be old.
    Get {
        /// Whether an old answer is allowed.
        #[serde(default)]
        serializable: bool,
    },
    /// Write the key, whatever it holds.
    Put {
        /// What to write.
        value: String,
    },
    /// Write the key if it holds this very value, else read it.
    Cas {
        /// What it must hold.
        expect: String,
        /// What to write.
        value: String,
    },
    /// Write the key if it does not exist, else read it.
    Insert {
        /// What to write.
        value: String,
    },
    /// Remove the key, and say what it held.
    Delete,
}

impl Action {
    /// Whether it can change anything.
    pub fn mutates(&self) -> bool {
        !matches!(self, Self::Get { .. })
    }

    /// The value that it leaves in the key if it takes effect; None for a read or a removal.
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Put { value } | Self::Cas { value, .. } | Self::Insert { value } => Some(value),
            Self::Get { .. } | Self::Delete => None,
        }
    }

    /// One word for it, in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Get { serializable: false } => "get",
            Self::Get { serializable: true } => "get (serializable)",
            Self::Put { .. } => "put",
            Self::Cas { .. } => "cas",
            Self::Insert { .. } => "insert",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { .. } | Self::Delete => f.write_str(self.name()),
            Self::Put { value } => write!(f, "put {value}"),
            Self::Cas { expect, value } => write!(f, "cas {expect} -> {value}"),
            Self::Insert { value } => write!(f, "insert {value}"),
        }
    }
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It was answered.
    Ok(Answer),
    /// It was certainly not executed, and never will be.
    Failed {
        /// Why.
        reason: String,
    },
    /// Nobody knows: it may have been executed, may be executed later, or never.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// What the store answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The store's revision when it answered. For a change: the revision of that very change.
    pub revision: u64,
    /// Whether the key was changed.
    #[serde(default)]
    pub applied: bool,
    /// What the key held: for a read, for a comparison that failed, and for a removal before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Item>,
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its value.
    pub value: String,
    /// The revision of its last change.
    pub mod_revision: u64,
}

impl Operation {
    /// The answer, if there was one.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Ok(answer) => Some(answer),
            Outcome::Failed { .. } | Outcome::Unknown { .. } => None,
        }
    }

    /// Whether it may have been executed without the client knowing.
    pub fn is_unknown(&self) -> bool {
        matches!(self.outcome, Outcome::Unknown { .. })
    }

    /// Whether it certainly never was executed.
    pub fn is_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }

    /// The revision under which its change was acknowledged; None if nothing was changed or acknowledged.
    pub fn acknowledged_revision(&self) -> Option<u64> {
        self.answer().filter(|answer| answer.applied).map(|answer| answer.revision)
    }

    /// Whether a read that is allowed to be old.
    pub fn is_serializable(&self) -> bool {
        matches!(self.action, Action::Get { serializable: true })
    }

    /// Whether this one was over before that one began: the order that real time imposes.
    pub fn precedes(&self, other: &Self) -> bool {
        self.complete_ns.is_some_and(|complete| complete < other.invoke_ns)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok(answer) => answer.fmt(f),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Unknown { reason } => write!(f, "unknown: {reason}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.observed, self.applied) {
            (Some(item), true) => write!(f, "ok, held {item}")?,
            (Some(item), false) => write!(f, "holds {item}")?,
            (None, true) => f.write_str("ok")?,
            (None, false) => f.write_str("holds nothing")?,
        }
        write!(f, ", revision {}", self.revision)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (changed at {})", self.value, self.mod_revision)
    }
}
