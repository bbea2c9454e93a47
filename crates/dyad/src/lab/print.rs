//! How `dyad lab` shows things.

use std::fmt::Write as _;

use dyad_lab::Lab;
use dyad_lab::place::Place;
use dyad_lab::protocol::{LabStatus, NodeStatus};
use dyad_lab::timeline::Timeline;
use dyad_lab::timeline::journal::Message;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Format, print_data, print_json};

/// One sentence on what was done.
pub(super) fn done(text: &str, format: Format) -> anyhow::Result<Exit> {
    #[derive(Serialize)]
    struct Body<'a> {
        done: &'a str,
    }
    match format {
        Format::Text => print_data(&format!("{text}\n"))?,
        Format::Json => print_json("LabDone", Body { done: text })?,
    }
    Ok(Exit::Ok)
}

/// Every lab of this machine.
pub(super) fn list(places: &[Place], format: Format) -> anyhow::Result<Exit> {
    #[derive(Serialize)]
    struct Body<'a> {
        labs: Vec<&'a str>,
    }
    let labs: Vec<_> = places.iter().map(|place| place.name.as_str()).collect();
    match format {
        Format::Text => print_data(&labs.iter().map(|lab| format!("{lab}\n")).collect::<String>())?,
        Format::Json => print_json("LabList", Body { labs })?,
    }
    Ok(Exit::Ok)
}

/// A node's power.
pub(super) fn power(node: &NodeStatus, format: Format) -> anyhow::Result<Exit> {
    match format {
        Format::Text => {
            let state = if node.on { "on" } else { "off" };
            print_data(&format!("{} is {state}\n", node.name))?;
        }
        Format::Json => print_json("LabNode", node)?,
    }
    Ok(Exit::Ok)
}

/// The lab at a glance.
pub(super) fn status(lab: &Lab, status: &LabStatus, format: Format) -> anyhow::Result<Exit> {
    if format == Format::Json {
        print_json("Lab", status)?;
        return Ok(Exit::Ok);
    }
    let mut text = format!(
        "lab {}, Debian {}: {}\n\n",
        status.name,
        status.release.name(),
        health(lab, status)
    );
    let _ = writeln!(text, "{:<16} {:<8} {:<18} {:<18} BMC", "NODE", "POWER", "LINK 1", "LINK 2");
    for node in &status.nodes {
        let power = match (node.on, node.frozen) {
            (false, _) => "off",
            (true, true) => "frozen",
            (true, false) => "on",
        };
        let [link1, link2] = node.links;
        let (link1, link2) = (link1.to_string(), link2.to_string());
        let _ = writeln!(text, "{:<16} {power:<8} {link1:<18} {link2:<18} {}", node.name, node.bmc);
    }
    let of_nodes = status
        .nodes
        .iter()
        .flat_map(|node| node.faults.iter().map(move |fault| format!("{}: {fault}", node.name)));
    let faults: Vec<_> = status.network_faults.iter().cloned().chain(of_nodes).collect();
    if !faults.is_empty() {
        text.push_str("\nBROKEN\n");
        for fault in faults {
            let _ = writeln!(text, "  {fault}");
        }
    }
    print_data(&text)?;
    Ok(Exit::Ok)
}

/// Whether the pair is complete, as the first node sees it that answers.
fn health(lab: &Lab, status: &LabStatus) -> String {
    let running = status.nodes.iter().find(|node| node.on && !node.frozen);
    match running {
        None => "no node runs".into(),
        Some(node) => match lab.missing_of_pair(&node.name) {
            None => "the pair is complete".into(),
            Some(missing) => format!("not complete, {missing}"),
        },
    }
}

/// Messages of both nodes' journals, with the time of day in UTC.
pub(super) fn logs(messages: &[Message], format: Format) -> anyhow::Result<Exit> {
    #[derive(Serialize)]
    struct Body<'a> {
        messages: &'a [Message],
    }
    if format == Format::Json {
        print_json("LabLogs", Body { messages })?;
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for message in messages {
        let seconds = message.time_us / 1_000_000 % 86_400;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let micros = message.time_us % 1_000_000;
        let pid = message.pid.as_ref().map(|pid| format!("[{pid}]")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{hours:02}:{minutes:02}:{seconds:02}.{micros:06} {} {}{pid}: {}",
            message.node,
            message.program,
            message.text.trim_start()
        );
    }
    print_data(&text)?;
    Ok(Exit::Ok)
}

/// What happened, in order.
pub(super) fn timeline(timeline: &Timeline, format: Format) -> anyhow::Result<Exit> {
    match format {
        Format::Text => print_data(&timeline.table())?,
        Format::Json => print_json("LabTimeline", timeline)?,
    }
    Ok(Exit::Ok)
}
