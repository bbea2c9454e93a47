//! The times in which the pair was not protected: when each began and ended, and how it went on.

use dyad_core::state::State;

use crate::document::{Incident, Step};
use crate::events::Event;
use crate::history::Moment;

/// A node that was lost longer before the first decision was not lost for this.
const LOSS_MS_MAX: u64 = 15 * 60 * 1_000;
/// Of an incident with more steps the first and the last ones are told.
const STEPS_MAX: usize = 12;

/// The last time that the pair was not protected, up to now if it is not.
pub fn last_incident(
    moments: &[Moment],
    events: &[Event],
    now: State,
    now_ms: u64,
) -> Option<Incident> {
    incidents(moments, events, now, now_ms, 1).pop()
}

/// The last times that the pair was not protected, newest first.
pub fn incidents(
    moments: &[Moment],
    events: &[Event],
    now: State,
    now_ms: u64,
    most: usize,
) -> Vec<Incident> {
    let mut list = Vec::new();
    let mut rest = moments;
    while list.len() < most
        && let Some(last) = rest.iter().rposition(|moment| !is_quiet(moment.state))
    {
        let before = rest[..last].iter().rposition(|moment| is_quiet(moment.state));
        let first = before.map_or(0, |at| at + 1);
        let end = moments.get(last + 1).map(|moment| moment.time_ms);
        // The log's end may be older than what is seen now.
        let end_ms = end.or_else(|| is_quiet(now).then_some(moments[last].time_ms));
        let stretch = &moments[first..moments.len().min(last + 2)];
        let start_ms = beginning(before.map(|at| moments[at].time_ms), stretch, events);
        let duration_ms = end_ms.unwrap_or(now_ms).saturating_sub(start_ms);
        let matters = moments[first..=last].iter().max_by_key(|moment| weight(&moment.action));
        let what = matters.map(|moment| moment.because.clone()).unwrap_or_default();
        let steps = steps(stretch, events, start_ms, end_ms.unwrap_or(now_ms));
        list.push(Incident { start_ms, end_ms, duration_ms, what, steps });
        rest = &moments[..first];
    }
    list
}

fn is_quiet(state: State) -> bool {
    matches!(state, State::Protected | State::AtRisk)
}

/// The loss of a node comes before the first decision about it: an incident begins there.
fn beginning(quiet_ms: Option<u64>, stretch: &[Moment], events: &[Event]) -> u64 {
    let decided_ms = stretch.first().map_or(0, |moment| moment.time_ms);
    let from_ms = quiet_ms.unwrap_or(0).max(decided_ms.saturating_sub(LOSS_MS_MAX));
    let lost = events.iter().filter(|event| event.is_lost(&event.node)).map(|event| event.time_ms);
    lost.filter(|time_ms| (from_ms..decided_ms).contains(time_ms)).min().unwrap_or(decided_ms)
}

/// What happened to the nodes, and each time that the pair came to stand elsewhere, in one order.
fn steps(stretch: &[Moment], events: &[Event], start_ms: u64, end_ms: u64) -> Vec<Step> {
    let inside = events.iter().filter(|event| (start_ms..=end_ms).contains(&event.time_ms));
    let mut marks: Vec<(u64, String)> =
        inside.filter_map(|event| Some((event.time_ms, mark(event)?))).collect();
    let mut stood = None;
    for moment in stretch {
        if stood.replace(moment.state) != Some(moment.state) {
            marks.push((moment.time_ms, moment.state.word().to_lowercase()));
        }
    }
    marks.sort_by_key(|(time_ms, _)| *time_ms);
    marks.dedup_by(|later, earlier| later.1 == earlier.1);
    if marks.len() > STEPS_MAX {
        marks.drain(STEPS_MAX / 2..marks.len() - STEPS_MAX / 2);
    }
    let step =
        |(time_ms, what): (u64, String)| Step { after_ms: time_ms.saturating_sub(start_ms), what };
    marks.into_iter().map(step).collect()
}

/// An event in a word or two.
fn mark(event: &Event) -> Option<String> {
    let node = &event.node;
    match (event.event.as_str(), event.what.as_str()) {
        ("node", "lost") => Some(format!("{node} lost")),
        ("node", "member") => Some(format!("{node} back")),
        ("fencing", "reboot" | "off") if event.ok => Some(format!("{node} fenced")),
        ("fencing", "reboot" | "off") => Some(format!("fencing of {node} FAILED")),
        _ => None,
    }
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

    fn event(time_ms: u64, event: &str, what: &str, ok: bool) -> Event {
        let (node, text) = ("node-b".to_owned(), String::new());
        Event { time_ms, event: event.into(), node, what: what.into(), ok, text }
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
        let incident = last_incident(&story(), &[], State::Protected, 50_000).unwrap();
        assert_eq!((incident.start_ms, incident.end_ms), (1_000, Some(12_000)));
        assert_eq!(incident.duration_ms, 11_000);
        assert!(incident.what.contains("Over"), "{}", incident.what);
        let quiet = [at(1, State::Protected, "barrier")];
        assert_eq!(last_incident(&quiet, &[], State::Protected, 2), None);
        assert_eq!(last_incident(&[], &[], State::Unknown, 2), None);
    }

    /// Each incident is told once, the newest first, and no more than are asked for.
    #[test]
    fn incidents_are_told_newest_first() {
        let all = incidents(&story(), &[], State::Protected, 50_000, 5);
        let starts: Vec<_> = all.iter().map(|incident| incident.start_ms).collect();
        assert_eq!(starts, [1_000, 100]);
        assert_eq!(all[1].end_ms, Some(200));
        assert_eq!(incidents(&story(), &[], State::Protected, 50_000, 1).len(), 1);
    }

    /// One that is not over has no end and grows.
    #[test]
    fn an_incident_may_last() {
        let incident = last_incident(&story()[..5], &[], State::Alone, 50_000).unwrap();
        assert_eq!((incident.end_ms, incident.duration_ms), (None, 49_000));
        assert_eq!(incident.steps.last().unwrap().what, "alone");
    }

    /// It begins with the loss of the node, not with the first decision about it, and is told step by step. What happened
    /// while the pair was protected is no part of it.
    #[test]
    fn an_incident_is_told_step_by_step() {
        let events = [
            event(150, "node", "lost", false),
            event(600, "node", "lost", false),
            event(900, "fencing", "reboot", false),
            event(990, "fencing", "reboot", true),
            event(8_000, "node", "member", true),
            event(12_400, "node", "lost", false),
        ];
        let incident = last_incident(&story(), &events, State::Protected, 50_000).unwrap();
        assert_eq!((incident.start_ms, incident.duration_ms), (600, 11_400));
        let told: Vec<_> =
            incident.steps.iter().map(|step| (step.after_ms, step.what.as_str())).collect();
        let wanted = [
            (0, "node-b lost"),
            (300, "fencing of node-b FAILED"),
            (390, "node-b fenced"),
            (400, "failing over"),
            (450, "alone"),
            (7_400, "node-b back"),
            (8_400, "catching up"),
            (11_400, "protected"),
        ];
        assert_eq!(told, wanted);
    }

    /// A pair that comes and goes all day is told by its beginning and its end.
    #[test]
    fn steps_are_bounded() {
        let states = [State::Alone, State::CatchingUp];
        let moments: Vec<_> = (0..100).map(|n| at(n, states[n as usize % 2], "nothing")).collect();
        let incident = last_incident(&moments, &[], State::CatchingUp, 200).unwrap();
        let times: Vec<_> = incident.steps.iter().map(|step| step.after_ms).collect();
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 94, 95, 96, 97, 98, 99]);
    }
}
