//! What the alert agent has recorded: fencing, and nodes that come and go, as Pacemaker on this node saw them.

use std::path::Path;

use serde::Deserialize;

use crate::document::FenceEvent;
use crate::words::moment;

/// Where it records them; see the agent.
const RECORD: &str = "/var/spool/dyad/events.jsonl";
/// The part of a time that tells the second: 2026-11-16 05:06:37.
const SECOND: usize = 19;
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

    /// Fencing tried to switch a node off.
    pub fn is_fencing(&self) -> bool {
        self.event == "fencing" && ["reboot", "off"].contains(&self.what.as_str())
    }

    /// A node was switched off by fencing.
    pub fn is_fenced(&self) -> bool {
        self.is_fencing() && self.ok
    }
}

/// The recorded events, oldest first; what cannot be read is left out.
pub fn recorded() -> Vec<Event> {
    read(Path::new(RECORD))
}

/// The later of what Pacemaker remembers and what is recorded here: Pacemaker forgets at its restart, and sometimes when
/// the node was back at once.
pub(crate) fn last_fencing(
    remembered: Option<FenceEvent>,
    recorded: &[Event],
) -> Option<FenceEvent> {
    let recorded = recorded.iter().rev().find(|event| event.is_fenced()).map(|event| FenceEvent {
        node: event.node.clone(),
        action: event.what.clone(),
        outcome: "success".to_owned(),
        completed: Some(format!("{}Z", moment(event.time_ms))),
    });
    let Some(remembered) = remembered else { return recorded };
    let is_later = |recorded: &FenceEvent| match (&recorded.completed, &remembered.completed) {
        // To the second, and only where both are told in UTC.
        (Some(here), Some(there)) if there.ends_with('Z') => {
            here.get(..SECOND) > there.get(..SECOND)
        }
        _ => false,
    };
    Some(recorded.filter(is_later).unwrap_or(remembered))
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

    /// What was recorded counts where Pacemaker has forgotten it, and not where Pacemaker knows of a later one, or of one
    /// that is not over.
    #[test]
    fn the_last_fencing_is_the_later_one() {
        let event = |time_ms| Event {
            time_ms,
            event: "fencing".into(),
            node: "b".into(),
            what: "reboot".into(),
            ok: true,
            text: String::new(),
        };
        let remembered = |completed: Option<&str>| {
            let completed = completed.map(str::to_owned);
            Some(FenceEvent {
                node: "a".into(),
                action: "off".into(),
                outcome: "x".into(),
                completed,
            })
        };
        // 1970-01-01 00:01:40.
        let recorded = [event(5_000), event(100_000)];
        let node = |last: Option<FenceEvent>| last.map(|last| last.node);
        assert_eq!(node(last_fencing(None, &[])), None);
        let last = last_fencing(None, &recorded).unwrap();
        assert_eq!((last.node.as_str(), last.when().as_str()), ("b", "1970-01-01 00:01:40 UTC"));
        for (completed, wins) in [
            (Some("1970-01-01 00:01:39.999999Z"), "b"),
            (Some("1970-01-01 00:01:40.000001Z"), "a"),
            (Some("1970-01-01 01:01:40 +01:00"), "a"),
            (None, "a"),
        ] {
            let last = last_fencing(remembered(completed), &recorded);
            assert_eq!(node(last).as_deref(), Some(wins), "{completed:?}");
        }
    }
}
