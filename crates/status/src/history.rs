//! What the decision log tells of the past: since when the pair stands where it stands, and the last incident.
//!
//! Each logged decision carries its facts; they are judged by the same function as the present.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use dyad_core::Facts;
use dyad_core::state::{Sight, State};
use serde_json::Value;

use crate::document::Incident;

/// How much of the end of the log is read: days of a quiet pair, hours of a troubled one.
const TAIL_BYTES_MAX: u64 = 512 << 10;

/// One moment of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Where the pair stood.
    pub state: State,
    /// The action that was decided.
    pub action: String,
    /// Why.
    pub because: String,
}

/// The moments at the end of a log, oldest first. What cannot be read (a torn line, facts of another version)
/// is left out.
pub fn moments(log: &Path) -> Vec<Moment> {
    tail(&log.join("decisions.jsonl")).unwrap_or_default().lines().filter_map(moment).collect()
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn moment(line: &str) -> Option<Moment> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let facts: Facts = serde_json::from_value(entry["facts"].clone()).ok()?;
    let action = entry["decision"]["action"].as_str()?.to_owned();
    let failed = entry["failure"].is_string();
    let before = Sight::of(&facts).judge().state;
    let state = if failed { before } else { after(&action, before, facts.eligibility.is_some()) };
    let because = entry["decision"]["because"].as_str().unwrap_or_default().to_owned();
    Some(Moment { time_ms: entry["timeMs"].as_u64()?, state, action, because })
}

/// The facts are those before the step: where the pair stands after it, if the step tells.
fn after(action: &str, before: State, eligible: bool) -> State {
    match action {
        "takeOver" | "leave" => State::Alone,
        "stop" => State::Stopped,
        // The barrier is the step that makes a pair protected. That the other node has passed its own a moment
        // later is no news to this one, and not written down.
        "barrier" if before == State::CatchingUp => State::Protected,
        "nothing" if before == State::CatchingUp && eligible => State::Protected,
        _ => before,
    }
}

/// Since when the pair has been in this state, if the log's end agrees that it is.
pub fn since(moments: &[Moment], state: State) -> Option<u64> {
    let stretch = moments.iter().rev().take_while(|moment| moment.state == state);
    stretch.last().map(|moment| moment.time_ms)
}

/// The last time that the pair was not protected, up to now if it is not.
pub fn last_incident(moments: &[Moment], now: State, now_ms: u64) -> Option<Incident> {
    incidents(moments, now, now_ms, 1).pop()
}

/// The last times that the pair was not protected, newest first.
pub fn incidents(moments: &[Moment], now: State, now_ms: u64, most: usize) -> Vec<Incident> {
    let quiet = |state: State| matches!(state, State::Protected | State::AtRisk);
    let mut list = Vec::new();
    let mut rest = moments;
    while list.len() < most
        && let Some(last) = rest.iter().rposition(|moment| !quiet(moment.state))
    {
        let before = rest[..last].iter().rposition(|moment| quiet(moment.state));
        let first = before.map_or(0, |at| at + 1);
        let end = moments.get(last + 1).map(|moment| moment.time_ms);
        // The log's end may be older than what is seen now.
        let end_ms = end.or_else(|| quiet(now).then_some(moments[last].time_ms));
        let start_ms = moments[first].time_ms;
        let duration_ms = end_ms.unwrap_or(now_ms).saturating_sub(start_ms);
        let matters = moments[first..=last].iter().max_by_key(|moment| weight(&moment.action));
        let what = matters.map(|moment| moment.because.clone()).unwrap_or_default();
        list.push(Incident { start_ms, end_ms, duration_ms, what });
        rest = &moments[..first];
    }
    list
}

/// How much a decision tells of an incident.
fn weight(action: &str) -> u8 {
    match action {
        "refuse" => 6,
        "takeOver" | "announceTakeOver" => 5,
        "leave" => 4,
        "yield" | "stayInert" | "forcePeerOff" => 3,
        "joinAsLearner" | "addPeerAsLearner" => 2,
        "nothing" | "offer" => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ms: u64, state: State, action: &str) -> Moment {
        Moment { time_ms, state, action: action.into(), because: format!("{action} happened") }
    }

    fn story() -> Vec<Moment> {
        vec![
            at(100, State::Starting, "offer"),
            at(200, State::Protected, "barrier"),
            at(1_000, State::FailingOver, "announceTakeOver"),
            at(1_010, State::FailingOver, "takeOver"),
            at(1_050, State::Alone, "nothing"),
            at(9_000, State::CatchingUp, "addPeerAsLearner"),
            at(12_000, State::Protected, "barrier"),
            at(12_500, State::Protected, "nothing"),
        ]
    }

    /// An incident lasts from the first moment that was not protected to the next that was, and is told by
    /// the decision that mattered.
    #[test]
    fn the_last_incident_is_found() {
        let incident = last_incident(&story(), State::Protected, 50_000).unwrap();
        assert_eq!((incident.start_ms, incident.end_ms), (1_000, Some(12_000)));
        assert_eq!(incident.duration_ms, 11_000);
        assert!(incident.what.contains("Over"), "{}", incident.what);
        assert_eq!(last_incident(&[at(1, State::Protected, "barrier")], State::Protected, 2), None);
        assert_eq!(last_incident(&[], State::Unknown, 2), None);
    }

    /// Each incident is told once, the newest first, and no more than are asked for.
    #[test]
    fn incidents_are_told_newest_first() {
        let all = incidents(&story(), State::Protected, 50_000, 5);
        let starts: Vec<_> = all.iter().map(|incident| incident.start_ms).collect();
        assert_eq!(starts, [1_000, 100]);
        assert_eq!(all[1].end_ms, Some(200));
        assert_eq!(incidents(&story(), State::Protected, 50_000, 1).len(), 1);
    }

    /// One that is not over has no end and grows.
    #[test]
    fn an_incident_may_last() {
        let incident = last_incident(&story()[..5], State::Alone, 50_000).unwrap();
        assert_eq!((incident.end_ms, incident.duration_ms), (None, 49_000));
    }

    /// "Since" is the beginning of the last stretch, and unknown if the log's end says something else.
    #[test]
    fn since_is_the_beginning_of_the_stretch() {
        assert_eq!(since(&story(), State::Protected), Some(12_000));
        assert_eq!(since(&story(), State::Alone), None);
    }

    /// A step is told by what it leads to; what only looks is told by what it saw.
    #[test]
    fn a_step_leads_somewhere() {
        assert_eq!(after("takeOver", State::FailingOver, false), State::Alone);
        assert_eq!(after("leave", State::Protected, true), State::Alone);
        assert_eq!(after("barrier", State::CatchingUp, false), State::Protected);
        assert_eq!(after("nothing", State::CatchingUp, false), State::CatchingUp);
        assert_eq!(after("nothing", State::CatchingUp, true), State::Protected);
        assert_eq!(after("nothing", State::Alone, true), State::Alone);
    }

    /// A log with torn and foreign lines is read as far as it goes; none at all is no error.
    #[test]
    fn a_damaged_log_is_read_as_far_as_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(moments(directory.path()), []);
        std::fs::write(directory.path().join("decisions.jsonl"), "{\"timeMs\":1\n{}\nxx").unwrap();
        assert_eq!(moments(directory.path()), []);
    }
}
