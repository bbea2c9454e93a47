//! The status for people: the answer first, then what it rests on, at 80 columns.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use dyad_core::state::{State, Urgency};
use dyad_status::document::{Etcd, FenceDevice, Node, Status, Unit};

use crate::wrap::wrap;
use dyad_status::words::{bytes, duration, moment};

/// The width of the report: it is read in tickets and on phones as often as on a screen.
const WIDTH: usize = 80;
/// Where the text behind a label begins.
const INDENT: usize = 10;

/// The whole report.
pub fn text(status: &Status) -> String {
    let mut text = String::new();
    headline(status, &mut text);
    if let Some(next) = &status.next {
        row("next step", next, &mut text);
    }
    let because = &status.because;
    rows("also", status.risks.iter().filter(|risk| !because.contains(*risk)), &mut text);
    rows("not known", status.unknown.iter(), &mut text);
    text.push('\n');
    rows("nodes", status.nodes.iter().map(|each| node(status, each)), &mut text);
    rows("etcd", status.nodes.iter().map(|node| etcd(&node.name, &node.etcd)), &mut text);
    rows("links", status.links.iter().map(link), &mut text);
    rows("power", status.fencing.devices.iter().map(device), &mut text);
    row("fencing", &fencing(status), &mut text);
    row("drill", &drill(status), &mut text);
    rows("units", status.units.iter().map(|each| unit(status, each)), &mut text);
    row("incident", &incident(status), &mut text);
    let _ = writeln!(
        text,
        "\npair {}, seen from {} at {} UTC in {} ms",
        status.pair,
        status.seen_by,
        moment(status.time_ms),
        status.took_ms
    );
    text
}

fn headline(status: &Status, text: &mut String) {
    let colour = match status.state.urgency() {
        Urgency::Fine => AnsiColor::Green,
        Urgency::Care => AnsiColor::Yellow,
        Urgency::Act => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let word = status.state.word();
    let mut rest = String::new();
    let link = match status.state {
        State::Maintenance => Some("of"),
        State::Alone | State::Stopped | State::FailingOver => Some("on"),
        // The sentence names whom it is about.
        _ => None,
    };
    if let (Some(link), Some(on)) = (link, &status.on) {
        let _ = write!(rest, "{link} {on} ");
    }
    if let Some(since_ms) = status.since_ms {
        let lasted = duration(status.time_ms.saturating_sub(since_ms));
        let _ = write!(rest, "for {lasted} (since {} UTC) ", moment(since_ms));
    }
    let _ = write!(rest, "- {}", status.because);
    // The word is counted, its colour is not.
    let line = wrap(&format!("{} {rest}", word.replace(' ', "\u{a0}")), WIDTH, 0);
    let line = line.replace('\u{a0}', " ");
    let _ = writeln!(text, "{style}{word}{style:#}{}", &line[word.len()..]);
}

fn rows<T: AsRef<str>>(label: &str, lines: impl Iterator<Item = T>, text: &mut String) {
    for (position, line) in lines.enumerate() {
        row(if position == 0 { label } else { "" }, line.as_ref(), text);
    }
}

fn row(label: &str, line: &str, text: &mut String) {
    let _ = writeln!(text, "{label:<INDENT$}{}", wrap(line, WIDTH, INDENT));
}

fn node(status: &Status, node: &Node) -> String {
    let here = if node.name == status.seen_by { " (here)" } else { "" };
    let cluster = match node.in_cluster {
        Some(true) => "in the cluster",
        Some(false) => "NOT in the cluster",
        None => "cluster: not known",
    };
    let pacemaker = node.pacemaker.as_deref().unwrap_or("not known");
    let disk = match node.etcd.disk_writable {
        Some(false) => ", DISK FULL or read-only",
        _ => "",
    };
    format!("{}{here}: {cluster}, Pacemaker {pacemaker}{disk}", node.name)
}

fn etcd(name: &str, etcd: &Etcd) -> String {
    let role = match etcd.role.as_deref() {
        Some("noLeader") => "no leader",
        Some(role) => role,
        None => "not known",
    };
    let mut line = format!("{name}: {role}");
    if let Some(percent) = etcd.caught_up_percent {
        let _ = write!(line, " ({percent} % copied)");
    }
    if let Some(behind) = etcd.behind_entries.filter(|behind| *behind > 0) {
        let _ = write!(line, ", {behind} behind");
    }
    if let Some(class) = &etcd.dataset {
        let _ = write!(line, ", data: {class}");
    }
    if let Some(eligible) = etcd.eligible.filter(|_| etcd.dataset.as_deref() == Some("pair")) {
        line.push_str(if eligible { ", may go on alone" } else { ", may not go on alone" });
    }
    if let (Some(size), Some(used)) = (etcd.db_size_bytes, etcd.db_in_use_bytes) {
        let _ = write!(line, ", {} ({} used)", bytes(size), bytes(used));
    }
    for alarm in &etcd.alarms {
        let _ = write!(line, ", ALARM: {}", alarm.trim_start_matches("etcd raised an alarm: "));
    }
    line
}

fn link(link: &dyad_status::document::Link) -> String {
    let state = match link.connected {
        Some(true) => "connected",
        Some(false) => "DOWN",
        None => "not known",
    };
    format!("{}: {} to {}: {state}", link.number, link.own, link.peer)
}

fn device(device: &FenceDevice) -> String {
    let every = duration(device.test_interval_ms);
    let since =
        device.test_since_ms.map_or(String::new(), |ms| format!(" since {} UTC", moment(ms)));
    match (device.works, &device.tested_by) {
        (Some(true), Some(by)) => {
            format!("{}: BMC answers {by}, every {every}{since}", device.node)
        }
        (Some(_), _) => format!("{}: BMC FAILS THE TEST{since}", device.node),
        (None, _) => format!("{}: BMC not tested now", device.node),
    }
}

fn fencing(status: &Status) -> String {
    let fencing = &status.fencing;
    let on = match fencing.enabled {
        Some(true) => "on",
        Some(false) => "OFF",
        None => return "not known".to_owned(),
    };
    let last = fencing.last.as_ref().map_or("; never used as far as is known".to_owned(), |last| {
        let when = last.when();
        format!("; last used {when}: {} of {}: {}", last.action, last.node, last.outcome)
    });
    format!("{on}{last}")
}

/// The last one that was typed here: the other node keeps its own.
fn drill(status: &Status) -> String {
    let Some(drill) = &status.fencing.last_drill else {
        return format!("none on {} yet", status.seen_by);
    };
    let mut line = format!("{} UTC, {}", moment(drill.time_ms), drill.node);
    match &drill.failure {
        Some(why) => {
            let _ = write!(line, ": FAILED: {why}");
        }
        None => line.push_str(" passed"),
    }
    let known = [
        ("fenced after", drill.fenced_after_ms),
        ("no write for", drill.longest_write_gap_ms),
        ("protected after", drill.protected_after_ms),
    ];
    for (what, ms) in known {
        if let Some(ms) = ms {
            let _ = write!(line, ", {what} {}", duration(ms));
        }
    }
    line
}

fn unit(status: &Status, unit: &Unit) -> String {
    let word = |runs: Option<bool>| match runs {
        Some(true) => "runs",
        Some(false) => "DOES NOT RUN",
        None => "not known",
    };
    let name = |position: usize| status.nodes.get(position).map_or("", |node| node.name.as_str());
    if unit.runs_here == unit.runs_on_peer {
        return format!("{}: {} on both nodes", unit.name, word(unit.runs_here));
    }
    let (here, there) = (word(unit.runs_here), word(unit.runs_on_peer));
    format!("{}: {here} on {}, {there} on {}", unit.name, name(0), name(1))
}

fn incident(status: &Status) -> String {
    let Some(incident) = &status.incident else { return "none known".to_owned() };
    let lasted = duration(incident.duration_ms);
    let over = if incident.end_ms.is_some() { "for" } else { "not over, so far" };
    format!("{} UTC, {over} {lasted}: {}", moment(incident.start_ms), incident.what)
}
