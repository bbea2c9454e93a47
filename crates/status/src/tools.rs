//! Answers of tools that only people need: links, the history of fencing, units.

use std::time::Duration;

use dyad_cluster::state::startup_fencing;
use dyad_core::ids::NodeName;
use dyad_node::gather::words;
use dyad_program::{command, output, run};
use roxmltree::Document;

use crate::document::FenceEvent;

/// A tool that takes longer is ended; the look itself does not wait so long.
const LIMIT: Duration = Duration::from_secs(3);

/// Which links to the other node are connected, by number.
pub(crate) fn links() -> Result<Vec<(u32, bool)>, String> {
    let text = output(&mut command("corosync-cfgtool", ["-n"]), "", LIMIT)
        .map_err(|error| error.to_string())?;
    Ok(parse_links(&text))
}

/// Lines of `corosync-cfgtool -n`: `LINK: 0 udp (10.77.1.1->10.77.1.2) enabled connected mtu: 1397`.
fn parse_links(text: &str) -> Vec<(u32, bool)> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("LINK:"));
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some((words.first()?.parse().ok()?, words.contains(&"connected")))
        })
        .collect()
}

/// What the pair is told to do, as far as `crm_mon` does not tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// Nodes that were never seen are fenced.
    pub(crate) startup_fencing: bool,
    /// Nodes that a person took out of service. `crm_mon` calls a node so that only stopped.
    pub(crate) standby: Vec<NodeName>,
}

/// Reads what the pair is told to do.
pub(crate) fn told() -> Result<Told, String> {
    let arguments = ["--query", "--scope", "configuration"];
    let xml = output(&mut command("cibadmin", arguments), "", LIMIT)
        .map_err(|error| error.to_string())?;
    parse_told(&xml)
}

fn parse_told(xml: &str) -> Result<Told, String> {
    let startup_fencing = startup_fencing(xml).map_err(|error| words(&error))?;
    let document = Document::parse(xml).map_err(|error| format!("cibadmin: not XML: {error}"))?;
    let stands_by = |node: &roxmltree::Node<'_, '_>| {
        node.descendants().any(|pair| {
            let on = pair.attribute("value").is_some_and(|value| ["on", "true"].contains(&value));
            pair.attribute("name") == Some("standby") && on
        })
    };
    let nodes = document.descendants().filter(|element| element.has_tag_name("node"));
    let standby = nodes.filter(stands_by).filter_map(|node| node.attribute("uname"));
    Ok(Told { startup_fencing, standby: standby.map(NodeName::from).collect() })
}

/// What was fenced, newest first, as Pacemaker remembers.
pub(crate) fn fencing_history() -> Result<Vec<FenceEvent>, String> {
    let arguments = ["--history", "*", "--output-as=xml"];
    let xml = output(&mut command("stonith_admin", arguments), "", LIMIT)
        .map_err(|error| error.to_string())?;
    parse_history(&xml)
}

fn parse_history(xml: &str) -> Result<Vec<FenceEvent>, String> {
    let document =
        Document::parse(xml).map_err(|error| format!("stonith_admin: not XML: {error}"))?;
    let events = document.descendants().filter(|element| element.has_tag_name("fence_event"));
    Ok(events
        .map(|event| {
            let word = |name: &str| event.attribute(name).unwrap_or_default().to_owned();
            FenceEvent {
                node: word("target"),
                action: word("action"),
                outcome: word("status"),
                completed: event.attribute("completed").map(str::to_owned),
            }
        })
        .collect())
}

/// Which of these units run here.
pub(crate) fn units(names: &[String]) -> Result<Vec<bool>, String> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut systemctl = command("systemctl", ["show", "--property=ActiveState", "--value"]);
    systemctl.args(names);
    let finished = run(&mut systemctl, "", LIMIT).map_err(|error| error.to_string())?;
    // One state for each unit, with an empty line between.
    let states: Vec<&str> = finished.stdout.lines().filter(|line| !line.is_empty()).collect();
    if states.len() != names.len() {
        return Err("systemctl did not tell the state of every unit".to_owned());
    }
    Ok(states.iter().map(|state| *state == "active").collect())
}

/// Whether Pacemaker is about to be started here: it starts, or the boot goes on and has not come to it.
pub(crate) fn is_booting() -> Result<bool, String> {
    let arguments = ["show", "--property=ActiveState,Job,UnitFileState", "pacemaker.service"];
    let unit =
        run(&mut command("systemctl", arguments), "", LIMIT).map_err(|error| error.to_string())?;
    let system = run(&mut command("systemctl", ["is-system-running"]), "", LIMIT)
        .map_err(|error| error.to_string())?;
    Ok(parse_booting(&unit.stdout, system.stdout.trim()))
}

fn parse_booting(unit: &str, system: &str) -> bool {
    let value = |key: &str| {
        unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default()
    };
    let queued = !["", "0"].contains(&value("Job"));
    let boots = ["initializing", "starting"].contains(&system);
    let comes = boots && value("UnitFileState") == "enabled";
    value("ActiveState") == "activating"
        || (value("ActiveState") == "inactive" && (queued || comes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that is enabled and not connected is down.
    #[test]
    fn links_are_read() {
        let text = "Local node ID 1, transport knet\nnodeid: 2 reachable\n   LINK: 0 udp (10.77.1.1->10.77.1.2) enabled connected mtu: 1397\n   LINK: 1 udp (10.77.2.1->10.77.2.2) enabled mtu: 469\n";
        assert_eq!(parse_links(text), [(0, true), (1, false)]);
        assert_eq!(parse_links("Could not initialize corosync"), []);
    }

    /// A node stands by if its own attribute says so, and only then.
    #[test]
    fn what_the_pair_is_told_is_read() {
        let xml = r#"<configuration><crm_config><cluster_property_set id="a">
            <nvpair id="x" name="startup-fencing" value="true"/></cluster_property_set></crm_config>
            <nodes><node id="1" uname="node-a"/><node id="2" uname="node-b"><instance_attributes id="n">
            <nvpair id="s" name="standby" value="on"/></instance_attributes></node></nodes>
            </configuration>"#;
        let told = parse_told(xml).unwrap();
        assert_eq!(told, Told { startup_fencing: true, standby: vec!["node-b".into()] });
        assert_eq!(parse_told(&xml.replace("\"on\"", "\"off\"")).unwrap().standby, []);
        assert!(parse_told("").is_err());
    }

    /// A unit that starts, waits for its turn, or belongs to a boot that goes on is about to run; one that was stopped
    /// is not.
    #[test]
    fn a_boot_is_told_from_a_stop() {
        let unit = |active: &str, job: &str, file: &str| {
            format!("Job={job}\nActiveState={active}\nUnitFileState={file}\n")
        };
        assert!(parse_booting(&unit("activating", "7", "enabled"), "starting"));
        assert!(parse_booting(&unit("inactive", "7", "disabled"), "running"));
        assert!(parse_booting(&unit("inactive", "0", "enabled"), "starting"));
        assert!(!parse_booting(&unit("inactive", "0", "enabled"), "running"));
        assert!(!parse_booting(&unit("inactive", "0", "disabled"), "starting"));
        assert!(!parse_booting(&unit("active", "0", "enabled"), "starting"));
        assert!(!parse_booting("", ""));
    }

    /// The newest act comes first; one that is not over has no time.
    #[test]
    fn the_history_is_read() {
        let xml = r#"<pacemaker-result><list name="fencing history" count="2">
            <fence_event action="reboot" target="node-b" status="pending"/>
            <fence_event action="off" target="node-a" status="success" completed="2026-11-16 05:06:37.657904Z"/>
            </list></pacemaker-result>"#;
        let events = parse_history(xml).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!((events[0].outcome.as_str(), events[0].completed.as_deref()), ("pending", None));
        assert_eq!((events[1].node.as_str(), events[1].action.as_str()), ("node-a", "off"));
        let times: Vec<_> = events.iter().map(FenceEvent::when).collect();
        assert_eq!(times, ["now", "2026-11-16 05:06:37 UTC"]);
        assert!(parse_history("no").is_err());
    }
}
