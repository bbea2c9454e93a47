//! Pacemaker's CIB, rendered from the description of a pair.
//!
//! What each setting is for stands beside it; `docs/reference/cib.md` shows the result. The schema is one
//! that both supported series know (2.1 and 3.0).

use crate::pair::{BmcTls, Node, Pair, VirtualIp};
use crate::xml::Element;

/// The newest schema that Pacemaker 2.1.5 knows; 3.0 reads it too.
const SCHEMA: &str = "pacemaker-3.9";
/// The promotable clone of the data.
pub const ETCD_CLONE: &str = "etcd-clone";
/// The data on one node.
pub const ETCD: &str = "etcd";

/// How often a promoted etcd is looked at. A lost notification costs at most this.
const MONITOR_PROMOTED_MS: u64 = 5_000;
/// How often an unpromoted one is: it joins, catches up, waits. Must differ from the promoted interval.
const MONITOR_UNPROMOTED_MS: u64 = 3_000;
/// Every action of the agent ends in seconds (R9); these limits are for a machine in trouble.
const ACTION_TIMEOUT_S: u64 = 60;
/// A stop or a demotion waits for what is under way on the node, may hand over and leave, and gives etcd its time to end. A
/// time-out here is a fencing.
pub const STOP_TIMEOUT_S: u64 = 90;
/// What Pacemaker gives the fence agent beyond its own limit.
const AGENT_HEADROOM_S: u64 = 5;
/// A failed start or monitor is tried this often ...
const RETRIES: u32 = 5;
/// ... within this time; then the resource stays off and says so.
const RETRY_WINDOW_S: u64 = 300;
/// The same for etcd, whose peer can do nothing meanwhile: then it yields and the other goes on (R8), and from there on
/// a try holds nobody up.
const ETCD_RETRIES: u32 = 3;
/// See above.
const ETCD_RETRY_WINDOW_S: u64 = 120;
/// A fencing device that was given up is tried again after this time: a try is cheap, and until it works either node may
/// be one that nobody can switch off.
const FENCE_RETRY_WINDOW_S: u64 = 60;

/// What Pacemaker runs when a node comes, goes or is fenced.
const ALERT_AGENT: &str = "/usr/libexec/dyad/dyad-alert";
/// It writes one line and one small file; Pacemaker waits for nobody all the same.
const ALERT_TIMEOUT_S: u64 = 10;

/// The whole CIB as XML text.
pub fn render(pair: &Pair) -> String {
    let configuration = Element::new("configuration")
        .child(crm_config(pair))
        .child(nodes(pair))
        .child(resources(pair))
        .child(constraints(pair))
        .child(fencing_topology(pair))
        .child(resource_defaults())
        .child(alerts());
    Element::new("cib")
        .with("validate-with", SCHEMA)
        .with("admin_epoch", 1)
        .with("epoch", 0)
        .with("num_updates", 0)
        .child(configuration)
        .child(Element::new("status"))
        .render()
}

fn name_value(set: &str, name: &'static str, value: impl ToString) -> Element {
    Element::new("nvpair")
        .with("id", format!("{set}-{name}"))
        .with("name", name)
        .with("value", value)
}

fn attributes(
    kind: &'static str,
    id: String,
    values: impl IntoIterator<Item = (&'static str, String)>,
) -> Element {
    let values: Vec<_> =
        values.into_iter().map(|(name, value)| name_value(&id, name, value)).collect();
    Element::new(kind).with("id", id).children(values)
}

fn crm_config(pair: &Pair) -> Element {
    let delay_ms = pair.fence_delay_ms(pair.preferred());
    let timeout_s = pair.fencing_timeout_ms(delay_ms).div_ceil(1_000);
    let values = [
        // R2 rests on both: without fencing a lost node is "clean" at once, without start-up fencing a lone
        // node starts at once.
        ("stonith-enabled", "true".to_owned()),
        ("startup-fencing", "true".to_owned()),
        ("stonith-timeout", format!("{timeout_s}s")),
        ("stonith-action", "reboot".to_owned()),
        // Fencing that fails is tried again as long as it takes: there is no other proof.
        ("stonith-max-attempts", "100".to_owned()),
        ("no-quorum-policy", "stop".to_owned()),
        // R9: a failed start is retried within limits, not fatal at once.
        ("start-failure-is-fatal", "false".to_owned()),
        // Two nodes know each other: waiting 20 s for a coordinator to appear helps nobody.
        ("dc-deadtime", "5s".to_owned()),
        ("cluster-recheck-interval", "60s".to_owned()),
        // A lost node reaches Pacemaker as two events. If it asks for its CIB between them it finds an update
        // pending and sleeps a whole second before it asks again, in every other failure; this is long enough
        // for both.
        ("transition-delay", "20ms".to_owned()),
        // A survivor under load must not be throttled in the middle of a take-over.
        ("load-threshold", "1000%".to_owned()),
    ];
    Element::new("crm_config").child(attributes("cluster_property_set", "dyad".to_owned(), values))
}

fn nodes(pair: &Pair) -> Element {
    let node = |(position, node): (usize, &Node)| {
        Element::new("node").with("id", position + 1).with("uname", &node.name)
    };
    Element::new("nodes").children(pair.nodes.iter().enumerate().map(node))
}

fn resources(pair: &Pair) -> Element {
    let fences =
        pair.nodes.iter().enumerate().map(|(position, node)| fence_device(pair, position, node));
    let before = pair.units_before.iter().map(|unit| unit_clone(unit));
    let after = pair.units_after.iter().map(|unit| unit_clone(unit));
    Element::new("resources")
        .children(fences)
        .children(before)
        .child(etcd_clone())
        .children(after)
        .children(pair.virtual_ip.iter().map(virtual_ip))
}

/// The id of the device that switches a node.
pub fn fence_id(node: &Node) -> String {
    format!("fence-{}", node.name)
}

fn fence_device(pair: &Pair, position: usize, node: &Node) -> Element {
    let id = fence_id(node);
    let delay_ms = pair.fence_delay_ms(position);
    // Pacemaker's limit lies above the agent's own, so that it is the agent that says what went wrong.
    let timeout_s =
        pair.fencing.bmc_timeout_ms.saturating_add(delay_ms).div_ceil(1_000) + AGENT_HEADROOM_S;
    let mut values = vec![
        // The agent refuses an action for any other node (R10).
        ("node", node.name.to_string()),
        ("pcmk_host_list", node.name.to_string()),
        ("pcmk_host_check", "static-list".to_owned()),
        ("address", node.bmc.address.clone()),
        ("credentials_file", node.bmc.credentials_file.display().to_string()),
        ("timeout_ms", pair.fencing.bmc_timeout_ms.to_string()),
        ("pcmk_reboot_timeout", format!("{timeout_s}s")),
        ("pcmk_off_timeout", format!("{timeout_s}s")),
    ];
    values.extend(node.bmc.system.clone().map(|system| ("system", system)));
    values.push(match &node.bmc.tls {
        _ if node.bmc.address.starts_with("http://") => ("ssl", "0".to_owned()),
        BmcTls::CaFile(file) => ("ca_file", file.display().to_string()),
        BmcTls::Pin(pin) => ("pin", pin.clone()),
        BmcTls::Insecure => ("insecure", "1".to_owned()),
    });
    // The delay is the agent's own, not `pcmk_delay_base`: the agent skips it if the BMC already says Off.
    if delay_ms > 0 {
        values.push(("split_delay_ms", delay_ms.to_string()));
    }
    let interval_s = pair.fencing.monitor_interval_ms.div_ceil(1_000);
    let retry = [("failure-timeout", format!("{FENCE_RETRY_WINDOW_S}s"))];
    Element::new("primitive")
        .with("id", &id)
        .with("class", "stonith")
        .with("type", "fence_dyad_redfish")
        .child(attributes("meta_attributes", format!("{id}-meta"), retry))
        .child(attributes("instance_attributes", format!("{id}-attributes"), values))
        .child(operations([operation(&id, "monitor", &format!("{interval_s}s"), ACTION_TIMEOUT_S)]))
}

fn operations(list: impl IntoIterator<Item = Element>) -> Element {
    Element::new("operations").children(list)
}

fn operation(id: &str, name: &str, interval: &str, timeout_s: u64) -> Element {
    Element::new("op")
        .with("id", format!("{id}-{name}-{interval}"))
        .with("name", name)
        .with("interval", interval)
        .with("timeout", format!("{timeout_s}s"))
}

/// The id of the resource that runs a systemd unit.
pub fn unit_id(unit: &str) -> String {
    // An XML id takes no `@`; systemd instance names have one.
    unit.trim_end_matches(".service").replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-")
}

fn unit_clone(unit: &str) -> Element {
    let id = unit_id(unit);
    let primitive = Element::new("primitive")
        .with("id", &id)
        .with("class", "systemd")
        .with("type", unit.trim_end_matches(".service"))
        .child(operations([
            operation(&id, "start", "0s", 180),
            // A stop that fails leaves a node in an unknown state: fence it.
            operation(&id, "stop", "0s", 120).with("on-fail", "fence"),
            operation(&id, "monitor", "10s", ACTION_TIMEOUT_S),
        ]));
    Element::new("clone")
        .with("id", format!("{id}-clone"))
        .child(attributes(
            "meta_attributes",
            format!("{id}-clone-meta"),
            [("interleave", "true".to_owned())],
        ))
        .child(primitive)
}

fn etcd_clone() -> Element {
    let monitor = |role: &'static str, interval_ms: u64| {
        Element::new("op")
            .with("id", format!("{ETCD}-monitor-{}", role.to_lowercase()))
            .with("name", "monitor")
            .with("role", role)
            .with("interval", format!("{interval_ms}ms"))
            .with("timeout", format!("{ACTION_TIMEOUT_S}s"))
    };
    let primitive = Element::new("primitive")
        .with("id", ETCD)
        .with("class", "ocf")
        .with("provider", "dyad")
        .with("type", "etcd")
        .child(operations([
            operation(ETCD, "start", "0s", ACTION_TIMEOUT_S),
            operation(ETCD, "stop", "0s", STOP_TIMEOUT_S).with("on-fail", "fence"),
            operation(ETCD, "promote", "0s", ACTION_TIMEOUT_S),
            operation(ETCD, "demote", "0s", STOP_TIMEOUT_S),
            operation(ETCD, "notify", "0s", ACTION_TIMEOUT_S),
            monitor("Promoted", MONITOR_PROMOTED_MS),
            monitor("Unpromoted", MONITOR_UNPROMOTED_MS),
        ]));
    let meta = [
        ("promotable", "true".to_owned()),
        ("clone-max", "2".to_owned()),
        ("clone-node-max", "1".to_owned()),
        ("promoted-max", "2".to_owned()),
        ("promoted-node-max", "1".to_owned()),
        ("notify", "true".to_owned()),
        ("interleave", "true".to_owned()),
        ("migration-threshold", ETCD_RETRIES.to_string()),
        ("failure-timeout", format!("{ETCD_RETRY_WINDOW_S}s")),
    ];
    Element::new("clone")
        .with("id", ETCD_CLONE)
        .child(attributes("meta_attributes", format!("{ETCD_CLONE}-meta"), meta))
        .child(primitive)
}

fn virtual_ip(address: &VirtualIp) -> Element {
    let id = "virtual-ip";
    let mut values =
        vec![("ip", address.address.to_string()), ("cidr_netmask", address.prefix.to_string())];
    values.extend(address.interface.clone().map(|interface| ("nic", interface)));
    Element::new("primitive")
        .with("id", id)
        .with("class", "ocf")
        .with("provider", "heartbeat")
        .with("type", "IPaddr2")
        .child(attributes("instance_attributes", format!("{id}-attributes"), values))
        .child(operations([operation(id, "monitor", "10s", 20)]))
}

fn constraints(pair: &Pair) -> Element {
    let nowhere_near_itself = pair.nodes.iter().map(|node| {
        let id = fence_id(node);
        Element::new("rsc_location")
            .with("id", format!("{id}-not-on-itself"))
            .with("rsc", id)
            .with("node", &node.name)
            .with("score", "-INFINITY")
    });
    let mut chain: Vec<(String, &'static str)> = Vec::new();
    chain
        .extend(pair.units_before.iter().map(|unit| (format!("{}-clone", unit_id(unit)), "start")));
    chain.push((ETCD_CLONE.to_owned(), "start"));
    // Optional: a mandatory order would restart etcd whenever kubelet crashes, an outage when alone.
    let before = chain.windows(2).map(|two| order(&two[0].0, two[0].1, &two[1].0));
    let mut after_chain = vec![ETCD_CLONE.to_owned()];
    after_chain.extend(pair.units_after.iter().map(|unit| format!("{}-clone", unit_id(unit))));
    let after = after_chain.windows(2).enumerate().map(|(position, two)| {
        order(&two[0], if position == 0 { "promote" } else { "start" }, &two[1])
    });
    let mut all = Element::new("constraints")
        .children(nowhere_near_itself)
        .children(before.collect::<Vec<_>>())
        .children(after.collect::<Vec<_>>());
    if pair.virtual_ip.is_some() {
        all = all.child(
            Element::new("rsc_colocation")
                .with("id", "virtual-ip-with-voter")
                .with("rsc", "virtual-ip")
                .with("with-rsc", ETCD_CLONE)
                .with("with-rsc-role", "Promoted")
                .with("score", "INFINITY"),
        );
        all = all.child(
            Element::new("rsc_location")
                .with("id", "virtual-ip-prefers")
                .with("rsc", "virtual-ip")
                .with("node", &pair.nodes[pair.preferred()].name)
                .with("score", "10"),
        );
    }
    all
}

fn order(first: &str, first_action: &str, then: &str) -> Element {
    Element::new("rsc_order")
        .with("id", format!("{first}-then-{then}"))
        .with("first", first)
        .with("first-action", first_action)
        .with("then", then)
        .with("then-action", "start")
        .with("kind", "Optional")
}

fn fencing_topology(pair: &Pair) -> Element {
    let level = |node: &Node| {
        let id = fence_id(node);
        Element::new("fencing-level")
            .with("id", format!("{id}-level-1"))
            .with("target", &node.name)
            .with("index", 1)
            .with("devices", id)
    };
    Element::new("fencing-topology").children(pair.nodes.iter().map(level))
}

fn resource_defaults() -> Element {
    let values = [
        ("migration-threshold", RETRIES.to_string()),
        ("failure-timeout", format!("{RETRY_WINDOW_S}s")),
    ];
    Element::new("rsc_defaults").child(attributes(
        "meta_attributes",
        "resource-defaults".to_owned(),
        values,
    ))
}

/// Fencing and nodes only: what resources and attributes do is in the decision log, and every call is a process.
fn alerts() -> Element {
    let id = "dyad-alert";
    let select = Element::new("select")
        .child(Element::new("select_nodes"))
        .child(Element::new("select_fencing"));
    let timeout = [("timeout", format!("{ALERT_TIMEOUT_S}s"))];
    Element::new("alerts").child(
        Element::new("alert")
            .with("id", id)
            .with("path", ALERT_AGENT)
            .child(select)
            .child(attributes("meta_attributes", format!("{id}-meta"), timeout)),
    )
}
