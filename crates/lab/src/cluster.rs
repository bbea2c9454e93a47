//! The configuration of Corosync and Pacemaker on the lab's nodes: as little as real fencing needs.

use std::fmt::Write as _;

use crate::config::{FenceAgent, LabConfig, Link, Stack, reserved};
use crate::rival;

/// The BMCs' user.
pub const BMC_USER: &str = "lab";
/// The BMCs' password: the lab has no secrets.
pub const BMC_PASSWORD: &str = "plug-and-play";
/// The BMCs' port.
pub const BMC_PORT: u16 = 443;
/// The System's id behind each BMC.
pub const BMC_SYSTEM: &str = "1";
/// The file with user and password of the BMCs on each node, for root only.
pub const BMC_CREDENTIALS: &str = "/etc/dyad/bmc.credentials";
/// The resource that runs on one node and moves to the survivor.
pub const SERVICE: &str = "service";

/// Everything is sent on both links. With one of them at a time Corosync loses the token with the link, because
/// it notices a dead link too late (docs/benchmarks/links.md).
const LINK_MODE: &str = "active";

/// `corosync.conf`: two encrypted knet links, and a quorum made for two.
pub fn corosync_conf(config: &LabConfig) -> String {
    let mut text = format!(
        "totem {{\n  version: 2\n  cluster_name: {}\n  transport: knet\n  crypto_cipher: aes256\n  \
         crypto_hash: sha256\n  token: {}\n  link_mode: {LINK_MODE}\n",
        config.name, config.token_ms
    );
    let (interval, timeout) = (config.token_ms / 4, config.token_ms / 2);
    for (number, port) in [(0, 5405), (1, 5406)] {
        let _ = write!(
            text,
            "  interface {{\n    linknumber: {number}\n    mcastport: {port}\n    \
             knet_ping_interval: {interval}\n    knet_ping_timeout: {timeout}\n  }}\n"
        );
    }
    text.push_str(
        "}\nquorum {\n  provider: corosync_votequorum\n  two_node: 1\n  wait_for_all: 1\n}\n\
         logging {\n  to_stderr: no\n  to_logfile: no\n  to_syslog: yes\n  timestamp: off\n}\n\
         nodelist {\n",
    );
    for (node, id) in config.nodes.iter().zip(1..) {
        let _ = writeln!(text, "  node {{\n    name: {}\n    nodeid: {id}", node.name);
        for (number, link) in Link::ALL.iter().enumerate() {
            let _ = writeln!(text, "    ring{number}_addr: {}", node.address(*link));
        }
        text.push_str("  }\n");
    }
    text.push_str("}\n");
    text
}

/// The first CIB: fencing with a device per node, the delay on one side only, and one small service.
/// The BMCs' certificates are pinned by these fingerprints.
pub fn cib(config: &LabConfig, pins: &[String; 2]) -> String {
    let mut text = format!(
        "<cib crm_feature_set=\"3.16.0\" validate-with=\"pacemaker-3.9\" epoch=\"1\" num_updates=\"0\" \
         admin_epoch=\"1\">\n<configuration>\n<crm_config>\n\
         <cluster_property_set id=\"options\">\n{}</cluster_property_set>\n</crm_config>\n<nodes>\n",
        properties(config)
    );
    for (node, id) in config.nodes.iter().zip(1..) {
        let _ = writeln!(text, "<node id=\"{id}\" uname=\"{}\"/>", node.name);
    }
    text.push_str("</nodes>\n<resources>\n");
    for (position, pin) in pins.iter().enumerate() {
        text.push_str(&fence_device(config, position, pin));
    }
    let _ = write!(
        text,
        "<primitive id=\"{SERVICE}\" class=\"ocf\" provider=\"pacemaker\" type=\"Dummy\">\n\
         <meta_attributes id=\"{SERVICE}-meta\"><nvpair id=\"{SERVICE}-stickiness\" \
         name=\"resource-stickiness\" value=\"100\"/></meta_attributes>\n\
         <operations><op id=\"{SERVICE}-monitor\" name=\"monitor\" interval=\"10s\" timeout=\"20s\"/>\
         </operations>\n</primitive>\n"
    );
    if let Stack::Rival(rival) = config.stack {
        text.push_str(&rival::clone_of_etcd(config, rival));
    }
    text.push_str("</resources>\n<constraints>\n");
    // A device never runs on the node that it switches off: that one's word would be worthless.
    for node in &config.nodes {
        let name = &node.name;
        let _ = writeln!(
            text,
            "<rsc_location id=\"fence-{name}-elsewhere\" rsc=\"fence-{name}\" node=\"{name}\" \
             score=\"-INFINITY\"/>"
        );
    }
    text.push_str("</constraints>\n</configuration>\n<status/>\n</cib>\n");
    text
}

fn properties(config: &LabConfig) -> String {
    let deadtime = format!("{}s", config.dc_deadtime_s);
    let properties = [
        ("cluster-name", config.name.as_str()),
        ("stonith-enabled", "true"),
        ("no-quorum-policy", "stop"),
        ("start-failure-is-fatal", "false"),
        // The load average of the machine is not the node's: without this a busy machine slows the pair.
        ("load-threshold", "1000%"),
        ("dc-deadtime", &deadtime),
    ];
    attributes("option", &properties)
}

fn fence_device(config: &LabConfig, position: usize, pin: &str) -> String {
    let node = &config.nodes[position].name;
    let address = reserved::bmc(position).to_string();
    // The node whose own fencing waits wins a split.
    let delay_s = if position == 0 { config.fence_delay_s } else { 0 };
    let (delay, delay_ms) = (format!("{delay_s}s"), (delay_s * 1000).to_string());
    let (agent, mut parameters) = match &config.fence_agent {
        FenceAgent::Distribution => (
            "fence_redfish",
            vec![
                ("ip", address.as_str()),
                ("username", BMC_USER),
                ("password", BMC_PASSWORD),
                ("ssl_insecure", "1"),
                ("systems_uri", "/redfish/v1/Systems/1"),
                ("pcmk_delay_base", &delay),
            ],
        ),
        FenceAgent::Dyad(_) => (
            "fence_dyad_redfish",
            vec![
                ("ip", address.as_str()),
                ("credentials_file", BMC_CREDENTIALS),
                ("pin", pin),
                ("system", BMC_SYSTEM),
                ("node", node),
                // Unlike Pacemaker's own delay it ends as soon as the BMC says Off.
                ("split_delay_ms", &delay_ms),
            ],
        ),
    };
    parameters.retain(|(name, _)| delay_s > 0 || !name.contains("delay"));
    parameters.push(("pcmk_host_list", node));
    format!(
        "<primitive id=\"fence-{node}\" class=\"stonith\" type=\"{agent}\">\n\
         <instance_attributes id=\"fence-{node}-parameters\">\n{}</instance_attributes>\n\
         <operations><op id=\"fence-{node}-monitor\" name=\"monitor\" interval=\"60s\" \
         timeout=\"30s\"/></operations>\n</primitive>\n",
        attributes(&format!("fence-{node}"), &parameters)
    )
}

fn attributes(prefix: &str, pairs: &[(&str, &str)]) -> String {
    pairs
        .iter()
        .map(|(name, value)| {
            format!("<nvpair id=\"{prefix}-{name}\" name=\"{name}\" value=\"{value}\"/>\n")
        })
        .collect()
}

/// `/etc/default/etcd`: a plain pair of two voters on the first link, open to clients everywhere.
pub fn etcd_defaults(config: &LabConfig, position: usize) -> String {
    let host = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
    };
    let members: Vec<_> = config
        .nodes
        .iter()
        .map(|node| format!("{}=http://{}:2380", node.name, host(node.link1)))
        .collect();
    let node = &config.nodes[position];
    let own = host(node.link1);
    let client = reserved::node_for_clients(position);
    format!(
        "ETCD_NAME={}\nETCD_DATA_DIR=/var/lib/etcd/default\n\
         ETCD_LISTEN_PEER_URLS=http://{own}:2380\nETCD_INITIAL_ADVERTISE_PEER_URLS=http://{own}:2380\n\
         ETCD_LISTEN_CLIENT_URLS=http://{own}:2379,http://{client}:2379,http://127.0.0.1:2379\n\
         ETCD_ADVERTISE_CLIENT_URLS=http://{own}:2379\nETCD_INITIAL_CLUSTER={}\n\
         ETCD_INITIAL_CLUSTER_STATE=new\nETCD_INITIAL_CLUSTER_TOKEN={}\nETCD_ENABLE_V2=false\n",
        node.name,
        members.join(","),
        config.name,
    )
}

/// The file that [`BMC_CREDENTIALS`] names.
pub fn bmc_credentials() -> String {
    format!("username={BMC_USER}\npassword={BMC_PASSWORD}\n")
}

/// `/etc/hosts` of both nodes.
pub fn hosts(config: &LabConfig) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for node in &config.nodes {
        let _ = writeln!(text, "{} {}", node.link1, node.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delay that decides a split sits on one device only: the first node's, whoever switches.
    #[test]
    fn one_device_has_the_delay() {
        let mut config = LabConfig::named("test");
        for (agent, delay) in [
            (FenceAgent::Distribution, "fence-node-a-pcmk_delay_base"),
            (FenceAgent::Dyad("agent".into()), "fence-node-a-split_delay_ms"),
        ] {
            config.fence_agent = agent;
            let cib = cib(&config, &["one".into(), "two".into()]);
            let document = roxmltree::Document::parse(&cib).unwrap();
            let delayed: Vec<_> = document
                .descendants()
                .filter(|node| node.attribute("name").is_some_and(|name| name.contains("delay")))
                .filter_map(|node| node.attribute("id"))
                .collect();
            assert_eq!(delayed, [delay]);
        }
    }

    /// Two links with a port each, an address per node and link, brackets only where URLs need them.
    #[test]
    fn an_ipv6_pair_is_rendered() {
        let config = LabConfig::named("test").ipv6();
        let corosync = corosync_conf(&config);
        assert!(corosync.contains("ring0_addr: fd77:0:0:1::1"), "{corosync}");
        assert!(corosync.contains("mcastport: 5406"), "{corosync}");
        let etcd = etcd_defaults(&config, 1);
        assert!(etcd.contains("node-a=http://[fd77:0:0:1::1]:2380"), "{etcd}");
    }
}
