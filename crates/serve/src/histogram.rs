//! How long things took, counted as they happen.

use dyad_status::events::Event;
use dyad_status::history::Moment;

use crate::watch::Counts;

/// The upper ends of the classes of fencing, in seconds.
pub(crate) const FENCING_SECONDS: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];
/// The upper ends of the classes of a take-over, in seconds.
pub(crate) const TAKE_OVER_SECONDS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0];
/// A node that was lost longer ago was not fenced for that.
const FENCING_MS_MAX: u64 = 15 * 60 * 1000;

/// Durations in classes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Histogram {
    /// How many were not longer than the class's end.
    pub(crate) classes: [u64; 9],
    /// All together, in seconds.
    pub(crate) sum: f64,
    /// How many.
    pub(crate) count: u64,
}

impl Histogram {
    fn add(&mut self, ends: &[f64; 9], ms: u64) {
        let seconds = std::time::Duration::from_millis(ms).as_secs_f64();
        for (class, end) in self.classes.iter_mut().zip(ends) {
            *class += u64::from(seconds <= *end);
        }
        self.sum += seconds;
        self.count += 1;
    }
}

/// Up to when the past has been counted, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Past {
    take_over: u64,
    fencing: u64,
    attempt: u64,
}

impl Past {
    /// Counts what is new in the decision log and in the record of events. What happened before this process began is
    /// looked at, and not counted.
    pub(crate) fn count(
        &mut self,
        counts: &mut Counts,
        moments: &[Moment],
        events: &[Event],
        first: bool,
    ) {
        for (end_ms, took_ms) in take_overs(moments) {
            if end_ms > self.take_over {
                self.take_over = end_ms;
                if !first {
                    // Counted here, not from what was seen: a node may be back between two looks.
                    counts.failovers += 1;
                    counts.take_over.add(&TAKE_OVER_SECONDS, took_ms);
                }
            }
        }
        for (end_ms, took_ms) in fencings(events) {
            if end_ms > self.fencing {
                self.fencing = end_ms;
                if !first {
                    counts.fencing.add(&FENCING_SECONDS, took_ms);
                }
            }
        }
        // Each attempt counts, also one without a loss before it, as in a drill.
        for event in events.iter().filter(|event| event.is_fencing()) {
            if event.time_ms > self.attempt {
                self.attempt = event.time_ms;
                if !first {
                    let counter =
                        if event.ok { &mut counts.fenced } else { &mut counts.fencings_failed };
                    *counter += 1;
                }
            }
        }
    }
}

/// When each take-over ended, and how long it took from its announcement.
fn take_overs(moments: &[Moment]) -> Vec<(u64, u64)> {
    let mut announced = None;
    let mut found = Vec::new();
    for moment in moments {
        match moment.action.as_str() {
            "announceTakeOver" => announced = Some(moment.time_ms),
            "takeOver" => {
                let begin: Option<u64> = announced.take();
                found.extend(
                    begin.map(|begin| (moment.time_ms, moment.time_ms.saturating_sub(begin))),
                );
            }
            _ => {}
        }
    }
    found
}

/// When each fencing ended well, and how long after the node was lost that was.
fn fencings(events: &[Event]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for (place, event) in events.iter().enumerate().filter(|(_, event)| event.is_fenced()) {
        let lost = events[..place].iter().rev().find(|before| before.is_lost(&event.node));
        let took = lost.map(|lost| event.time_ms.saturating_sub(lost.time_ms));
        found.extend(took.filter(|took| *took < FENCING_MS_MAX).map(|took| (event.time_ms, took)));
    }
    found
}

#[cfg(test)]
mod tests {
    use dyad_core::state::State;

    use super::*;

    /// A duration counts in its class and in every larger one.
    #[test]
    fn durations_are_classed() {
        let mut histogram = Histogram::default();
        for ms in [5, 20, 700, 9_000] {
            histogram.add(&TAKE_OVER_SECONDS, ms);
        }
        assert_eq!(histogram.classes, [1, 2, 2, 2, 2, 2, 3, 3, 3]);
        assert_eq!(histogram.count, 4);
        assert!((histogram.sum - 9.725).abs() < 1e-9);
    }

    /// What lies before the beginning of this process is not counted, and nothing is counted twice.
    #[test]
    fn the_past_is_counted_once() {
        let at = |time_ms, action: &str| Moment {
            time_ms,
            state: State::FailingOver,
            action: action.into(),
            because: String::new(),
        };
        let mut moments =
            vec![at(100, "announceTakeOver"), at(130, "takeOver"), at(200, "takeOver")];
        let (mut past, mut counts) = (Past::default(), Counts::default());
        past.count(&mut counts, &moments, &[], true);
        assert_eq!(counts.take_over.count, 0);
        moments.extend([at(900, "announceTakeOver"), at(960, "takeOver")]);
        for _ in 0..2 {
            past.count(&mut counts, &moments, &[], false);
            assert_eq!((counts.take_over.count, counts.take_over.sum), (1, 0.06));
            assert_eq!(counts.failovers, 1);
        }
    }

    /// Fencings are counted by their result, each once; what is not switched off is none.
    #[test]
    fn fencings_are_counted_by_result() {
        let event = |time_ms, event: &str, what: &str, ok| Event {
            time_ms,
            event: event.into(),
            node: "node-b".into(),
            what: what.into(),
            ok,
            text: String::new(),
        };
        let mut events = vec![event(100, "fencing", "reboot", false)];
        let (mut past, mut counts) = (Past::default(), Counts::default());
        past.count(&mut counts, &[], &events, true);
        events.extend([
            event(200, "node", "lost", false),
            event(300, "fencing", "reboot", false),
            event(400, "fencing", "off", true),
            event(500, "fencing", "on", true),
        ]);
        for _ in 0..2 {
            past.count(&mut counts, &[], &events, false);
            assert_eq!((counts.fenced, counts.fencings_failed, counts.fencing.count), (1, 1, 1));
        }
    }
}
