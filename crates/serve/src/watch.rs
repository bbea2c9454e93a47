//! The one who looks, and what everybody else gets to see of it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyad_core::state::State;
use dyad_node::Node;
use dyad_status::document::Incident;
use dyad_status::incidents::incidents;
use dyad_status::look::{PATIENT, look};
use dyad_status::{Status, events, history};

use crate::histogram::{Histogram, Past};
use crate::{metrics, page};

/// How many incidents the page tells of.
const INCIDENTS: usize = 5;

/// What was seen, and everything that is made of it.
#[derive(Debug, Clone)]
pub struct View {
    /// Grows with every change that people would notice.
    pub number: u64,
    /// When it was seen.
    pub seen: Instant,
    /// Where the pair stands.
    pub state: State,
    /// The document.
    pub json: Arc<[u8]>,
    /// The page.
    pub html: Arc<[u8]>,
    /// The metrics.
    pub metrics: Arc<[u8]>,
}

/// What has been counted since this process began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// How often a node was lost and the other went on.
    pub failovers: u64,
    /// For how long one node served alone, maintenance not counted.
    pub alone: Duration,
    /// How often a node was switched off by fencing.
    pub fenced: u64,
    /// How often fencing could not switch a node off.
    pub fencings_failed: u64,
    /// The longest silence of Corosync's token that a look met lately.
    pub silence_ms: Option<u64>,
    /// From the loss of a node to the end of its fencing.
    pub fencing: Histogram,
    /// From the proof that the other is dead to the end of the take-over.
    pub take_over: Histogram,
}

/// How often the description and the certificates are read anew: both may have been changed meanwhile.
const OPEN_AGAIN: Duration = Duration::from_mins(1);

/// The one who looks.
struct Watcher {
    node: Arc<Node>,
    opened: Instant,
    counts: Counts,
    past: Past,
    silences: Silences,
}

/// How long a silence of the token is remembered: no scrape is so rare that it misses one.
const SILENCE_KEPT_MS: u64 = 5 * 60 * 1_000;

/// The token's silences that the looks of the last minutes met, with their times.
#[derive(Debug, Default)]
struct Silences(VecDeque<(u64, u64)>);

impl Silences {
    /// Adds what this look met, and gives the longest.
    fn longest(&mut self, status: &Status) -> Option<u64> {
        let now_ms = status.time_ms;
        // Without Corosync nothing is known, least of all that all is well.
        let silence_ms = status.detection.as_ref()?.token_silence_ms;
        self.0.push_back((now_ms, silence_ms));
        self.0.retain(|(time_ms, _)| now_ms.abs_diff(*time_ms) < SILENCE_KEPT_MS);
        self.0.iter().map(|(_, silence_ms)| *silence_ms).max()
    }
}

impl Watcher {
    fn open_again(&mut self) {
        if self.opened.elapsed() < OPEN_AGAIN {
            return;
        }
        self.opened = Instant::now();
        if let Ok(node) = Node::open(self.node.place.clone(), &self.node.own().name) {
            self.node = Arc::new(node);
        }
    }
}

/// Hands out what was seen last.
#[derive(Debug, Default)]
pub struct Watch {
    view: Mutex<Option<View>>,
    news: Condvar,
}

impl Watch {
    /// Looks now, then every `interval` in a thread of its own.
    pub fn start(node: Arc<Node>, interval: Duration) -> Arc<Self> {
        let watch = Arc::new(Self::default());
        let own = Arc::clone(&watch);
        let mut watcher = Watcher {
            node,
            opened: Instant::now(),
            counts: Counts::default(),
            past: Past::default(),
            silences: Silences::default(),
        };
        let mut last = own.look(&mut watcher, None, Duration::ZERO);
        thread::spawn(move || {
            loop {
                let start = Instant::now();
                thread::sleep(interval);
                watcher.open_again();
                last = own.look(&mut watcher, Some(last), start.elapsed());
            }
        });
        watch
    }

    fn look(&self, watcher: &mut Watcher, last: Option<State>, since: Duration) -> State {
        let Watcher { node, counts, past, silences, .. } = watcher;
        let status = look(node, PATIENT).status;
        count(counts, last, since);
        let moments = history::moments(&node.place.log);
        let events = events::recorded();
        past.count(counts, &moments, &events, last.is_none());
        counts.silence_ms = silences.longest(&status);
        let incidents = incidents(&moments, &events, status.state, status.time_ms, INCIDENTS);
        self.show(&status, &incidents, *counts);
        status.state
    }

    /// Makes everything of a status, once.
    pub fn show(&self, status: &Status, incidents: &[Incident], counts: Counts) {
        let number = self.latest().map_or(0, |view| view.number) + 1;
        let json = document(status);
        let view = View {
            number,
            seen: Instant::now(),
            state: status.state,
            json: json.into(),
            html: page::page(status, incidents).into_bytes().into(),
            metrics: metrics::metrics(status, counts).into_bytes().into(),
        };
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
        self.news.notify_all();
    }

    /// What was seen last.
    pub fn latest(&self) -> Option<View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for something newer than this, at most for `limit`.
    pub fn newer_than(&self, number: u64, limit: Duration) -> Option<View> {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |view: &mut Option<View>| view.as_ref().is_none_or(|v| v.number <= number);
        let waited = self.news.wait_timeout_while(view, limit, is_old);
        let (view, _) = waited.unwrap_or_else(PoisonError::into_inner);
        view.clone().filter(|view| view.number > number)
    }
}

fn count(counts: &mut Counts, last: Option<State>, since: Duration) {
    let alone = |state: State| matches!(state, State::Alone | State::CatchingUp);
    if last.is_some_and(alone) {
        counts.alone += since;
    }
}

/// The document as `dyad status -o json` prints it.
fn document(status: &Status) -> Vec<u8> {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), "dyad/v1".into());
        fields.insert("kind".into(), "Status".into());
    }
    serde_json::to_vec_pretty(&value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only time alone counts as such; maintenance does not.
    #[test]
    fn counting() {
        let mut counts = Counts::default();
        let second = Duration::from_secs(1);
        let story = [
            State::Protected,
            State::FailingOver,
            State::Alone,
            State::Alone,
            State::CatchingUp,
            State::Protected,
            State::Maintenance,
            State::Protected,
        ];
        let mut last = None;
        for state in story {
            count(&mut counts, last, second);
            last = Some(state);
        }
        assert_eq!(counts.alone, second * 3);
    }

    /// A long silence is remembered for minutes, also through looks that Corosync did not answer; without an answer now
    /// nothing is told.
    #[test]
    fn the_longest_silence_is_remembered() {
        let mut status: Status =
            serde_json::from_str(include_str!("../tests/data/protected.json")).unwrap();
        let mut silences = Silences::default();
        let mut met = |time_ms, silence_ms: Option<u64>| {
            status.time_ms = time_ms;
            status.detection = silence_ms.map(|token_silence_ms| {
                let (token_timeout_ms, tokens_lost) = (1_000, 0);
                dyad_status::document::Detection { token_timeout_ms, token_silence_ms, tokens_lost }
            });
            silences.longest(&status)
        };
        assert_eq!(met(0, Some(180)), Some(180));
        assert_eq!(met(5_000, Some(740)), Some(740));
        assert_eq!(met(10_000, None), None);
        assert_eq!(met(15_000, Some(180)), Some(740));
        assert_eq!(met(305_000, Some(180)), Some(180));
    }
}
