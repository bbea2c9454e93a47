//! What the alert agent has recorded: fencing, and nodes that come and go, as Pacemaker on this node saw them.

use std::path::Path;

use serde::Deserialize;

/// Where it records them; see the agent.
const RECORD: &str = "/var/spool/dyad/events.jsonl";
/// The record is kept smaller than this.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// One event, as far as it is needed here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// `fencing` or `node`.
    pub event: String,
    /// The node that it is about.
    pub node: String,
    /// `lost`, `member`, `reboot`, ...
    pub what: String,
    /// Whether all is well with it.
    pub ok: bool,
    /// The same in words.
    pub text: String,
}

impl Event {
    /// This node was lost.
    pub fn is_lost(&self, node: &str) -> bool {
        self.event == "node" && self.what == "lost" && self.node == node
    }

    /// A node was switched off by fencing.
    pub fn is_fenced(&self) -> bool {
        self.event == "fencing" && self.ok && ["reboot", "off"].contains(&self.what.as_str())
    }
}

/// The recorded events, oldest first; what cannot be read is left out.
pub fn recorded() -> Vec<Event> {
    read(Path::new(RECORD))
}

fn read(path: &Path) -> Vec<Event> {
    let small =
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < RECORD_BYTES_MAX);
    if !small {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Torn and foreign lines are left out; none at all is no error.
    #[test]
    fn a_record_is_read_as_far_as_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        assert_eq!(read(&path), []);
        let line = r#"{"timeMs":5,"event":"node","node":"b","what":"lost","ok":false,"text":"b is lost","id":"x"}"#;
        std::fs::write(&path, format!("{{\n{line}\n{{}}\n{}", &line[..20])).unwrap();
        let events = read(&path);
        assert_eq!(events.len(), 1);
        assert!(events[0].is_lost("b") && !events[0].is_lost("a") && !events[0].is_fenced());
    }
}
