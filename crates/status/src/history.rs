//! What the decision log tells of the past: where the pair stood, and since when it stands where it stands.
//!
//! Each logged decision carries its facts; they are judged by the same function as the present.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use dyad_core::Facts;
use dyad_core::state::{Sight, State};
use serde_json::Value;

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
    let newer = tail(&log.join("decisions.jsonl"), TAIL_BYTES_MAX).unwrap_or_default();
    // A log that was just put away left a short one behind: the past goes on in the older file.
    let rest = TAIL_BYTES_MAX.saturating_sub(newer.len() as u64);
    let older = match rest {
        0 => String::new(),
        rest => tail(&log.join("decisions.1.jsonl"), rest).unwrap_or_default(),
    };
    older.lines().chain(newer.lines()).filter_map(moment).collect()
}

fn tail(path: &Path, bytes_max: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ms: u64, state: State) -> Moment {
        Moment { time_ms, state, action: "nothing".into(), because: String::new() }
    }

    /// "Since" is the beginning of the last stretch, and unknown if the log's end says something else.
    #[test]
    fn since_is_the_beginning_of_the_stretch() {
        let story = [at(1, State::Alone), at(12, State::Protected), at(13, State::Protected)];
        assert_eq!(since(&story, State::Protected), Some(12));
        assert_eq!(since(&story, State::Alone), None);
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

    /// The past does not end where the log was put away; of both files together no more than the limit is read.
    #[test]
    fn the_older_log_is_read_too() {
        let directory = tempfile::tempdir().unwrap();
        let facts: Value =
            serde_json::from_str(include_str!("../../dyad/tests/data/facts.json")).unwrap();
        let line = |time_ms: u64| {
            let decision = serde_json::json!({ "action": "takeOver", "because": "dead" });
            let entry =
                serde_json::json!({ "timeMs": time_ms, "decision": decision, "facts": facts });
            format!("{entry}\n")
        };
        let write = |name: &str, text: String| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        let times = || moments(directory.path()).iter().map(|m| m.time_ms).collect::<Vec<_>>();
        write("decisions.1.jsonl", line(1) + &line(2));
        assert_eq!(times(), [1, 2], "put away, and nothing decided since");
        write("decisions.jsonl", line(3));
        assert_eq!(times(), [1, 2, 3]);
        assert_eq!(since(&moments(directory.path()), State::Alone), Some(1));
        let many = usize::try_from(TAIL_BYTES_MAX).unwrap() / line(3).len() + 2;
        write("decisions.jsonl", line(3).repeat(many));
        assert!(times().iter().all(|time_ms| *time_ms == 3), "the newer file has enough");
    }
}
