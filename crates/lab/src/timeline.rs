//! What happened after a fault: the journals of both nodes, the BMCs and the lab's own record, merged and
//! in order. All of them share one clock, because all of it is one machine.

pub mod journal;
mod recognise;
mod svg;

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::config::LabConfig;
use crate::error::Result;
use crate::events::{self, Event, EventKind};
use crate::place::Place;

/// What kind of step it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Something was broken on purpose.
    Fault,
    /// Something was repaired.
    Heal,
    /// Something else the lab did.
    Note,
    /// A knet link is down or up.
    Link,
    /// Corosync gave up on a node.
    TokenLost,
    /// Corosync agreed on who is there.
    Membership,
    /// A node waits until it has seen all others.
    Waiting,
    /// Pacemaker asked for a node to be fenced.
    FencingRequested,
    /// Fencing waits for the delay that decides a split.
    FencingDelayed,
    /// A BMC was told something.
    Bmc,
    /// A node has lost its power.
    PowerOff,
    /// A node has power again.
    PowerOn,
    /// Pacemaker knows that the node is off.
    FencingDone,
    /// A fencing attempt failed.
    FencingFailed,
    /// A resource was told about a change.
    Notify,
    /// What a node decided.
    Decision,
    /// A step of a take-over.
    TakeOver,
    /// A resource runs.
    Started,
    /// A resource has ended.
    Stopped,
    /// A client's request after the fault.
    Client,
    /// A node has booted.
    Booted,
}

impl Phase {
    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fault => "FAULT",
            Self::Heal => "healed",
            Self::Note => "note",
            Self::Link => "link",
            Self::TokenLost => "token lost",
            Self::Membership => "membership",
            Self::Waiting => "waiting",
            Self::FencingRequested => "fencing asked",
            Self::FencingDelayed => "fencing delayed",
            Self::Bmc => "BMC",
            Self::PowerOff => "power off",
            Self::PowerOn => "power on",
            Self::FencingDone => "fencing done",
            Self::FencingFailed => "fencing FAILED",
            Self::Notify => "notify",
            Self::Decision => "decision",
            Self::TakeOver => "take-over",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Client => "client",
            Self::Booted => "booted",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Milliseconds after the fault.
    pub ms: f64,
    /// Microseconds since 1970.
    pub time_us: u64,
    /// Who tells it: a node, "BMC" with a node's name, or "lab".
    pub place: String,
    /// What kind of step.
    pub phase: Phase,
    /// In words.
    pub text: String,
}

/// What happened, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The lab's name.
    pub lab: String,
    /// What is counted from, in words.
    pub origin: String,
    /// What is counted from, in microseconds since 1970.
    pub origin_us: u64,
    /// The steps.
    pub entries: Vec<Entry>,
}

impl Timeline {
    /// Puts together what happened since the last fault, or since the start of the lab.
    pub fn read(place: &Place, config: &LabConfig, bmc: &[Event], all: bool) -> Result<Self> {
        let own = events::read(&place.events())?;
        let fault = own.iter().rev().find(|event| event.kind == EventKind::Fault && !all);
        let (origin_us, origin) = match (fault, own.first()) {
            (Some(fault), _) => (fault.time_us, describe(fault)),
            (None, Some(first)) => (first.time_us, "the lab's start".into()),
            (None, None) => (0, "the lab's start".into()),
        };
        let messages = journal::read(place, config, origin_us)?;
        Ok(Self::build(&config.name, config, (origin_us, origin), own.iter().chain(bmc), &messages))
    }

    fn build<'a>(
        lab: &str,
        config: &LabConfig,
        (origin_us, origin): (u64, String),
        events: impl Iterator<Item = &'a Event>,
        messages: &[journal::Message],
    ) -> Self {
        let from_events = events.map(|event| {
            let (place, phase, text) = of_event(event);
            (event.time_us, place, phase, text)
        });
        let from_journals = messages.iter().filter_map(|message| {
            let (phase, text) = recognise::recognise(config, message)?;
            Some((message.time_us, message.node.clone(), phase, text))
        });
        let mut entries: Vec<_> = from_events
            .chain(from_journals)
            .filter(|(time_us, ..)| *time_us >= origin_us)
            .map(|(time_us, place, phase, text)| Entry {
                ms: Duration::from_micros(time_us - origin_us).as_secs_f64() * 1000.0,
                time_us,
                place,
                phase,
                text,
            })
            .collect();
        entries.sort_by_key(|entry| entry.time_us);
        let entries = without_repetitions(entries);
        Self { lab: lab.into(), origin, origin_us, entries }
    }

    /// The first step of a kind.
    pub fn first(&self, phase: Phase) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.phase == phase)
    }

    /// How often a step of a kind happened.
    pub fn count(&self, phase: Phase) -> usize {
        self.entries.iter().filter(|entry| entry.phase == phase).count()
    }

    /// For people: one line per step, at most 80 columns.
    pub fn table(&self) -> String {
        let mut text = format!("milliseconds after: {}\n\n", self.origin);
        let _ = writeln!(text, "{:>9}  {:<14} {:<15} WHAT", "MS", "WHERE", "STEP");
        for entry in &self.entries {
            let line = format!(
                "{:>9.1}  {:<14} {:<15} {}",
                entry.ms,
                shorten(&entry.place, 14),
                entry.phase.name(),
                entry.text
            );
            text += shorten(&line, 80).trim_end();
            text.push('\n');
        }
        text
    }

    /// As a picture that reads well on light and dark pages.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }
}

/// Leaves out what a place says again and again with nothing else in between.
fn without_repetitions(entries: Vec<Entry>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::new();
    for entry in entries {
        let mut own = kept.iter().rev().filter(|earlier| earlier.place == entry.place);
        // Corosync says at every step that it still waits: once per boot is enough.
        let again = if entry.phase == Phase::Waiting {
            own.take_while(|earlier| earlier.phase != Phase::PowerOn)
                .any(|earlier| earlier.phase == Phase::Waiting)
        } else {
            own.next().is_some_and(|last| last.phase == entry.phase && last.text == entry.text)
        };
        if !again {
            kept.push(entry);
        }
    }
    kept
}

fn describe(event: &Event) -> String {
    event.node.as_ref().map_or_else(|| event.text.clone(), |node| format!("{node}: {}", event.text))
}

/// An entry of the lab's record or of a BMC as a step.
fn of_event(event: &Event) -> (String, Phase, String) {
    let node = event.node.clone().unwrap_or_default();
    let phase = match event.kind {
        EventKind::Fault => Phase::Fault,
        EventKind::Heal => Phase::Heal,
        EventKind::PowerOn => Phase::PowerOn,
        EventKind::PowerOff => Phase::PowerOff,
        EventKind::BmcRequest => Phase::Bmc,
        EventKind::Client => Phase::Client,
        EventKind::Note => Phase::Note,
    };
    match event.kind {
        EventKind::BmcRequest => (format!("BMC {node}"), phase, event.text.clone()),
        EventKind::PowerOn | EventKind::PowerOff => (node, phase, String::new()),
        EventKind::Client => ("client".into(), phase, event.text.clone()),
        _ => ("lab".into(), phase, describe(event)),
    }
}

/// At most so many characters, with a mark where something is missing.
fn shorten(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.into();
    }
    let mut short: String = text.chars().take(longest - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Timeline {
        let config = LabConfig::named("test");
        let event = |time_us, kind, node: Option<&str>, text: &str| Event {
            time_us,
            kind,
            node: node.map(Into::into),
            text: text.into(),
        };
        let message = |time_us, node: &str, program: &str, text: &str| journal::Message {
            time_us,
            node: node.into(),
            program: program.into(),
            unit: None,
            pid: None,
            text: text.into(),
        };
        let events = [
            event(1_000_000, EventKind::Note, None, "lab started"),
            event(5_000_000, EventKind::Fault, Some("node-b"), "plug pulled"),
            event(5_100_000, EventKind::PowerOff, Some("node-b"), "power off"),
            event(7_300_000, EventKind::BmcRequest, Some("node-b"), "ForceOff asked"),
        ];
        let messages = [
            message(4_000_000, "node-a", "corosync", "[MAIN  ] before the fault"),
            message(
                7_200_000,
                "node-a",
                "corosync",
                "[TOTEM ] A new membership (1.8) was formed. Members left: 2",
            ),
            message(
                6_000_000,
                "node-a",
                "corosync",
                "[TOTEM ] A processor failed, forming new configuration: token timed out (1000ms)",
            ),
            message(
                7_900_000,
                "node-a",
                "pacemaker-fenced",
                " notice: Operation 'reboot' targeting node-b by node-a for pacemaker-controld.87@node-a: OK (complete)",
            ),
        ];
        let origin = (5_000_000, "node-b: plug pulled".to_owned());
        Timeline::build("test", &config, origin, events.iter(), &messages)
    }

    /// Sources are merged by time, what was before the fault is left out, and no line is too long.
    #[test]
    fn sources_are_merged_in_order_from_the_fault_on() {
        let table = example().table();
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        insta::assert_snapshot!(table, @r"
        milliseconds after: node-b: plug pulled

               MS  WHERE          STEP            WHAT
              0.0  lab            FAULT           node-b: plug pulled
            100.0  node-b         power off
           1000.0  node-a         token lost      a node does not answer
           2200.0  node-a         membership      node-b left
           2300.0  BMC node-b     BMC             ForceOff asked
           2900.0  node-a         fencing done    node-b is off, by node-a
        ");
    }

    /// The picture is well-formed XML and shows every step.
    #[test]
    fn the_picture_shows_every_step() {
        let timeline = example();
        let svg = timeline.svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let dots = document.descendants().filter(|node| node.has_tag_name("circle")).count();
        assert_eq!(dots, timeline.entries.len());
    }
}
