//! Decisions that were written down, made again in `core`: the same facts must give the same decision (P8).

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use dyad_core::Facts;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};

/// A decision that comes out differently.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The node that decided.
    pub node: String,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// What it decided.
    pub logged: Value,
    /// What its facts give now; nothing if they cannot be read.
    pub replayed: Option<Value>,
}

/// What a replay came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// Decisions that were made again.
    pub decisions: usize,
    /// Those that came out differently.
    pub different: Vec<Difference>,
}

impl Replayed {
    /// Makes one decision again.
    pub(super) fn add(&mut self, node: &str, entry: &Value) {
        self.decisions += 1;
        let facts: Option<Facts> = serde_json::from_value(entry["facts"].clone()).ok();
        let replayed = facts.and_then(|facts| serde_json::to_value(dyad_core::decide(&facts)).ok());
        if replayed.as_ref() != Some(&entry["decision"]) {
            self.different.push(Difference {
                node: node.to_owned(),
                time_ms: entry["timeMs"].as_u64().unwrap_or_default(),
                logged: entry["decision"].clone(),
                replayed,
            });
        }
    }
}

/// Replays every decision in a directory that a campaign has kept (`decisions-NODE.jsonl`).
pub fn replay(directory: &Path) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    let entries = std::fs::read_dir(directory).map_err(Error::io("reading", directory))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let node = name.strip_prefix("decisions-").and_then(|rest| rest.strip_suffix(".jsonl"));
        let Some(node) = node else { continue };
        let file = File::open(&path).map_err(Error::io("opening", &path))?;
        for line in BufReader::new(file).lines() {
            let line = line.map_err(Error::io("reading", &path))?;
            let entry = serde_json::from_str(&line).map_err(|error| Error::Io {
                step: "understanding",
                object: path.clone(),
                source: error.into(),
            })?;
            replayed.add(node, &entry);
        }
    }
    if replayed.decisions == 0 {
        let text = format!("{}: no decisions-NODE.jsonl with decisions", directory.display());
        return Err(Error::Config(text));
    }
    Ok(replayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(decision: &Value, facts: &Value) -> Value {
        serde_json::json!({ "timeMs": 7, "decision": decision, "facts": facts })
    }

    /// The same facts give the same decision; a decision that was tampered with, or facts that cannot be read, are
    /// found with their node and time.
    #[test]
    fn a_different_decision_is_found() {
        let text = include_str!("../../../dyad/tests/data/facts.json");
        let facts: Value = serde_json::from_str(text).unwrap();
        let parsed: Facts = serde_json::from_str(text).unwrap();
        let decision = serde_json::to_value(dyad_core::decide(&parsed)).unwrap();
        let mut replayed = Replayed::default();
        replayed.add("node-a", &entry(&decision, &facts));
        assert_eq!((replayed.decisions, replayed.different.len()), (1, 0));

        let mut other = decision.clone();
        other["action"] = "takeOver".into();
        replayed.add("node-a", &entry(&other, &facts));
        replayed.add("node-b", &entry(&decision, &Value::Null));
        assert_eq!(replayed.decisions, 3);
        let found: Vec<_> =
            replayed.different.iter().map(|it| (it.node.as_str(), it.time_ms)).collect();
        assert_eq!(found, [("node-a", 7), ("node-b", 7)]);
        assert_eq!(replayed.different[0].replayed, Some(decision));
        assert_eq!(replayed.different[1].replayed, None);
    }

    /// A directory of a campaign is replayed file by file; one without decisions is refused, not called good.
    #[test]
    fn a_directory_without_decisions_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(replay(directory.path()).is_err());
        let facts: Value =
            serde_json::from_str(include_str!("../../../dyad/tests/data/facts.json")).unwrap();
        let line = entry(&Value::Null, &facts).to_string();
        std::fs::write(directory.path().join("decisions-node-a.jsonl"), line + "\n").unwrap();
        let replayed = replay(directory.path()).unwrap();
        assert_eq!((replayed.decisions, replayed.different.len()), (1, 1));
    }
}
