//! Which messages of Corosync, Pacemaker and the agents are steps worth telling.

use super::Phase;
use super::journal::Message;
use crate::config::{LabConfig, Link};

/// The step that a message tells of, if any.
pub(super) fn recognise(config: &LabConfig, message: &Message) -> Option<(Phase, String)> {
    let text = message.text.trim_start();
    match message.program.as_str() {
        "corosync" => corosync(config, text),
        "pacemaker-controld" => controld(text),
        "pacemaker-fenced" => fenced(text),
        "systemd" if text.starts_with("Startup finished in") => {
            Some((Phase::Booted, String::new()))
        }
        "dyad" => Some(match text.strip_prefix("take-over: ") {
            Some(step) => (Phase::TakeOver, step.to_owned()),
            None => (Phase::Decision, text.to_owned()),
        }),
        _ => None,
    }
}

fn corosync(config: &LabConfig, text: &str) -> Option<(Phase, String)> {
    if text.contains("A processor failed, forming new configuration") {
        return Some((Phase::TokenLost, "a node does not answer".into()));
    }
    if text.contains("A new membership (") {
        return Some((Phase::Membership, membership(config, text)));
    }
    if text.contains("Waiting for all cluster members") {
        return Some((Phase::Waiting, "until it has seen its peer".into()));
    }
    link(config, text)
}

/// `… was formed. Members joined: 1 left: 2`
fn membership(config: &LabConfig, text: &str) -> String {
    let changes = text.rsplit_once("Members").map_or("", |(_, changes)| changes);
    let mut words = Vec::new();
    let mut verb = "";
    for word in changes.split_whitespace() {
        match word.trim_end_matches(':') {
            "joined" => verb = "joined",
            "left" => verb = "left",
            id => words.extend(name_of(config, id).map(|name| format!("{name} {verb}"))),
        }
    }
    if words.is_empty() { "unchanged".into() } else { words.join(", ") }
}

/// `[KNET  ] link: host: 2 link: 0 is down`, `[KNET  ] rx: host: 2 link: 0 is up`
fn link(config: &LabConfig, text: &str) -> Option<(Phase, String)> {
    let (_, rest) = text.split_once(": host: ")?;
    let (host, rest) = rest.split_once(" link: ")?;
    let (number, state) = rest.split_once(" is ")?;
    let link = Link::ALL.get(number.parse::<usize>().ok()?)?;
    let state = state.split_whitespace().next()?;
    Some((Phase::Link, format!("{} to {} {state}", link.name(), name_of(config, host)?)))
}

fn name_of<'a>(config: &'a LabConfig, id: &str) -> Option<&'a str> {
    let number: usize = id.parse().ok()?;
    config.nodes.get(number.checked_sub(1)?).map(|node| node.name.as_str())
}

fn controld(text: &str) -> Option<(Phase, String)> {
    if let Some((_, rest)) = text.split_once("Requesting fencing (") {
        let (action, rest) = rest.split_once(')')?;
        let target = rest.split_whitespace().last()?;
        return Some((Phase::FencingRequested, format!("{action} of {target}")));
    }
    let (_, rest) = text.split_once("Result of ")?;
    let (operation, rest) = rest.split_once(" operation for ")?;
    let (resource, rest) = rest.split_once(" on ")?;
    let good = rest.to_lowercase().contains(": ok");
    match operation {
        "start" | "promote" if good => Some((Phase::Started, resource.into())),
        "stop" | "demote" if good => Some((Phase::Stopped, resource.into())),
        "notify" => Some((Phase::Notify, resource.into())),
        _ => None,
    }
}

fn fenced(text: &str) -> Option<(Phase, String)> {
    if let Some((_, rest)) = text.split_once("Delaying '") {
        let target = rest.split_once(" targeting ")?.1.split_whitespace().next()?;
        let time = rest.split_once(" for ")?.1.split_whitespace().next()?;
        return Some((Phase::FencingDelayed, format!("{target}, {time}")));
    }
    let (_, rest) = text.split_once("Operation '")?;
    let (action, rest) = rest.split_once("' targeting ")?;
    let (target, rest) = rest.split_once(" by ")?;
    let by = rest.split_whitespace().next()?;
    let outcome = rest.rsplit_once(": ")?.1;
    if outcome.starts_with("OK") {
        return Some((Phase::FencingDone, format!("{target} is off, by {by}")));
    }
    Some((Phase::FencingFailed, format!("{action} of {target}: {outcome}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(program: &str, text: &str) -> String {
        let mut config = LabConfig::named("test");
        config.nodes[0].name = "node1".into();
        config.nodes[1].name = "node10".into();
        let message = Message {
            time_us: 0,
            node: "node1".into(),
            program: program.into(),
            unit: None,
            pid: None,
            text: text.into(),
        };
        recognise(&config, &message)
            .map_or_else(|| "-".into(), |(phase, text)| format!("{}: {text}", phase.name()))
    }

    /// Messages as Corosync 3.1 and Pacemaker 2.1 and 3.0 write them.
    #[test]
    fn messages_of_both_series_are_recognised() {
        let cases = [
            (
                "corosync",
                "  [TOTEM ] A processor failed, forming new configuration: token timed out (1000ms), waiting 1200ms for consensus.",
                "token lost: a node does not answer",
            ),
            (
                "corosync",
                "  [TOTEM ] A new membership (1.c) was formed. Members joined: 2",
                "membership: node10 joined",
            ),
            (
                "corosync",
                "  [TOTEM ] A new membership (1.c) was formed. Members joined: 1 left: 2",
                "membership: node1 joined, node10 left",
            ),
            (
                "corosync",
                "  [TOTEM ] A new membership (1.c) was formed. Members",
                "membership: unchanged",
            ),
            ("corosync", "  [KNET  ] link: host: 2 link: 0 is down", "link: link1 to node10 down"),
            ("corosync", "  [KNET  ] rx: host: 2 link: 1 is up", "link: link2 to node10 up"),
            ("corosync", "  [KNET  ] host: host: 2 (active) best link: 0 (pri: 1)", "-"),
            ("corosync", "  [MAIN  ] Completed service synchronization", "-"),
            (
                "pacemaker-controld",
                " notice: Requesting fencing (reboot) targeting node node10",
                "fencing asked: reboot of node10",
            ),
            (
                "pacemaker-controld",
                " notice: Requesting fencing (reboot) of node node10",
                "fencing asked: reboot of node10",
            ),
            (
                "pacemaker-fenced",
                " notice: Operation 'reboot' targeting node10 by node1 for pacemaker-controld.87@node1: OK (complete)",
                "fencing done: node10 is off, by node1",
            ),
            (
                "pacemaker-fenced",
                " error: Operation 'reboot' targeting node10 by node1 for pacemaker-controld.87@node1: Timed out (no reply)",
                "fencing FAILED: reboot of node10: Timed out (no reply)",
            ),
            (
                "pacemaker-fenced",
                " notice: Delaying 'reboot' action targeting node1 using fence-node1 for 3s (timeout=60s, base=3s, max=3s)",
                "fencing delayed: node1, 3s",
            ),
            (
                "pacemaker-controld",
                " notice: Result of start operation for service on node1: OK",
                "started: service",
            ),
            (
                "pacemaker-controld",
                " notice: Result of start operation for service on node1: ok",
                "started: service",
            ),
            (
                "pacemaker-controld",
                " notice: Result of monitor operation for service on node1: OK",
                "-",
            ),
        ];
        for (program, text, wanted) in cases {
            assert_eq!(step(program, text), wanted, "{text}");
        }
    }
}
