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
    /// Since when the regular test of each resource ends as it does: the resource, the node that tests it, and the time in
    /// milliseconds since 1970. Pacemaker keeps when a result changed, not when it was seen last.
    pub(crate) tests: Vec<(String, NodeName, u64)>,
}

/// Reads what the pair is told to do.
pub(crate) fn told() -> Result<Told, String> {
    let xml = output(&mut command("cibadmin", ["--query"]), "", LIMIT)
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
    let standby = standby.map(NodeName::from).collect();
    Ok(Told { startup_fencing, standby, tests: parse_tests(&document) })
}

/// The regular tests in the status section, `<lrm_rsc_op operation="monitor" interval="60000" last-rc-change="...">`.
fn parse_tests(document: &Document<'_>) -> Vec<(String, NodeName, u64)> {
    let regular = |operation: &roxmltree::Node<'_, '_>| {
        operation.has_tag_name("lrm_rsc_op")
            && operation.attribute("operation") == Some("monitor")
            && operation.attribute("interval").is_some_and(|interval| interval != "0")
    };
    let test = |operation: roxmltree::Node<'_, '_>| {
        let above = |tag: &str| operation.ancestors().find(|element| element.has_tag_name(tag));
        let seconds: u64 = operation.attribute("last-rc-change")?.parse().ok()?;
        let resource = above("lrm_resource")?.attribute("id")?.to_owned();
        let node = NodeName::from(above("node_state")?.attribute("uname")?);
        Some((resource, node, seconds.saturating_mul(1_000)))
    };
    document.descendants().filter(regular).filter_map(test).collect()
}

/// What Corosync tells of its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    /// The longer of the mean time between the last hundred tokens and the time since the last one.
    pub(crate) silence_ms: u64,
    /// How often it was lost since Corosync started here.
    pub(crate) lost: u64,
}

/// Asks Corosync for its token. It keeps no longest time between two; what it logs is a gap above three quarters of the
/// time-out.
pub(crate) fn token() -> Result<Token, String> {
    let arguments = ["-m", "stats", "stats.srp."];
    let text = output(&mut command("corosync-cmapctl", arguments), "", LIMIT)
        .map_err(|error| error.to_string())?;
    parse_token(&text).ok_or_else(|| "corosync-cmapctl has no numbers of the token".to_owned())
}

/// Lines like `stats.srp.mtt_rx_token (u32) = 180`.
fn parse_token(text: &str) -> Option<Token> {
    let value = |key: &str| -> Option<u64> {
        let mut lines = text.lines().filter_map(|line| line.split_once(" = "));
        let (_, value) =
            lines.find(|(name, _)| name.split(' ').next() == Some(&format!("stats.srp.{key}")))?;
        value.trim().parse().ok()
    };
    let (mean_ms, since_ms) = (value("mtt_rx_token")?, value("time_since_token_last_received")?);
    Some(Token { silence_ms: mean_ms.max(since_ms), lost: value("operational_token_lost")? })
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
        assert!(told.startup_fencing);
        assert_eq!((told.standby, told.tests), (vec!["node-b".into()], Vec::new()));
        assert_eq!(parse_told(&xml.replace("\"on\"", "\"off\"")).unwrap().standby, []);
        assert!(parse_told("").is_err());
    }

    /// Of a device's tests the regular one counts, on the node that does it; a start or a first look is none.
    #[test]
    fn the_tests_of_devices_are_read() {
        let operation = |name: &str, operation: &str, interval: &str, time: &str| {
            format!(
                r#"<lrm_rsc_op id="{name}" operation="{operation}" interval="{interval}" last-rc-change="{time}"/>"#
            )
        };
        let xml = format!(
            r#"<cib><status><node_state uname="node-a"><lrm><lrm_resources><lrm_resource id="fence-node-b">{}{}</lrm_resource>
            </lrm_resources></lrm></node_state><node_state uname="node-b"><lrm><lrm_resources>
            <lrm_resource id="fence-node-b">{}</lrm_resource></lrm_resources></lrm></node_state></status></cib>"#,
            operation("a", "start", "0", "1794849020"),
            operation("b", "monitor", "60000", "1794849021"),
            operation("c", "monitor", "0", "1794849000"),
        );
        let document = Document::parse(&xml).unwrap();
        let wanted = ("fence-node-b".to_owned(), NodeName::from("node-a"), 1_794_849_021_000);
        assert_eq!(parse_tests(&document), [wanted]);
    }

    /// The token's silence is the longer of its mean round and the time since it was here; what does not tell both is no
    /// answer.
    #[test]
    fn the_token_is_read() {
        let text = "stats.srp.mtt_rx_token (u32) = 180\nstats.srp.operational_token_lost (u64) = 2\n\
            stats.srp.time_since_token_last_received (u64) = 47\nstats.srp.token_hold_cancel_rx (u64) = 59\n";
        assert_eq!(parse_token(text), Some(Token { silence_ms: 180, lost: 2 }));
        let late = text.replace("= 47", "= 640");
        assert_eq!(parse_token(&late).unwrap().silence_ms, 640);
        assert_eq!(parse_token("stats.srp.mtt_rx_token (u32) = 180"), None);
        assert_eq!(parse_token("Failed to initialize the cmap API. Error CS_ERR_LIBRARY"), None);
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
