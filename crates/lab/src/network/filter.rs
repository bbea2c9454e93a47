//! What is broken in the network, and the filter rules that break it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::{BRIDGES, port};
use crate::config::Link;

/// One direction of a cluster link that carries nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cut {
    /// Which link.
    pub link: Link,
    /// The position of the node whose frames are lost.
    pub from: usize,
}

/// One TCP connection, from the side of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Connection {
    /// The node's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// Everything that is broken in the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Nodes without power: nothing leaves them, not even the last packets of a killed process.
    pub dark: BTreeSet<usize>,
    /// Cut directions of links.
    pub cuts: BTreeSet<Cut>,
    /// Ports of nodes that cannot be reached and do not answer.
    pub blocked: BTreeSet<(usize, u16)>,
    /// Connections whose packets are lost.
    pub stalled: BTreeSet<Connection>,
}

impl Faults {
    /// Repairs everything but power.
    pub(crate) fn heal(&mut self) {
        *self = Self { dark: std::mem::take(&mut self.dark), ..Self::default() };
    }

    /// The rules, as one transaction: the whole table is replaced at once.
    pub(crate) fn ruleset(&self) -> String {
        let mut text = String::from("add table bridge lab\ndelete table bridge lab\n");
        text.push_str("table bridge lab {\n");
        let rules = self.rules();
        for hook in ["forward", "input", "output"] {
            let _ = writeln!(text, "  chain {hook} {{");
            let _ = writeln!(text, "    type filter hook {hook} priority 0; policy accept;");
            for rule in &rules {
                let _ = writeln!(text, "    {rule} drop");
            }
            text.push_str("  }\n");
        }
        text.push_str("}\n");
        text
    }

    fn rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        for node in &self.dark {
            let ports = ports(*node);
            rules.push(format!("iifname {ports}"));
            rules.push(format!("oifname {ports}"));
        }
        for cut in &self.cuts {
            let link = cut.link.name();
            let (from, to) = (port(cut.from, link), port(1 - cut.from, link));
            rules.push(format!("iifname \"{from}\" oifname \"{to}\""));
        }
        for (node, number) in &self.blocked {
            let ports = ports(*node);
            rules.push(format!("oifname {ports} tcp dport {number}"));
            rules.push(format!("iifname {ports} tcp sport {number}"));
        }
        for connection in &self.stalled {
            rules.push(one_way(connection.local, connection.remote));
            rules.push(one_way(connection.remote, connection.local));
        }
        rules
    }
}

/// All ports of a node, as a set of names.
fn ports(node: usize) -> String {
    let names: Vec<_> =
        BRIDGES.iter().map(|bridge| format!("\"{}\"", port(node, bridge))).collect();
    format!("{{ {} }}", names.join(", "))
}

fn one_way(from: SocketAddr, to: SocketAddr) -> String {
    let family = if matches!(from.ip(), IpAddr::V4(_)) { "ip" } else { "ip6" };
    let (from_port, to_port) = (from.port(), to.port());
    format!(
        "{family} saddr {} {family} daddr {} tcp sport {from_port} tcp dport {to_port}",
        from.ip(),
        to.ip()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Healing repairs every cut but gives no node its power back.
    #[test]
    fn healing_does_not_power_a_node_on() {
        let mut faults = Faults::default();
        faults.dark.insert(1);
        faults.cuts.insert(Cut { link: Link::Link1, from: 0 });
        faults.blocked.insert((0, 2380));
        faults.heal();
        assert_eq!(faults, Faults { dark: [1].into(), ..Faults::default() });
    }

    /// The rules of each fault, in words of nft.
    #[test]
    fn the_rules_of_each_fault() {
        let faults = Faults {
            dark: [1].into(),
            cuts: [Cut { link: Link::Link2, from: 0 }].into(),
            blocked: [(0, 2380)].into(),
            stalled: [Connection {
                local: "10.77.1.1:2380".parse().unwrap(),
                remote: "10.77.1.2:40000".parse().unwrap(),
            }]
            .into(),
        };
        insta::assert_snapshot!(faults.rules().join("\n"), @r#"
        iifname { "n2-link1", "n2-link2", "n2-bmc", "n2-client" }
        oifname { "n2-link1", "n2-link2", "n2-bmc", "n2-client" }
        iifname "n1-link2" oifname "n2-link2"
        oifname { "n1-link1", "n1-link2", "n1-bmc", "n1-client" } tcp dport 2380
        iifname { "n1-link1", "n1-link2", "n1-bmc", "n1-client" } tcp sport 2380
        ip saddr 10.77.1.1 ip daddr 10.77.1.2 tcp sport 2380 tcp dport 40000
        ip saddr 10.77.1.2 ip daddr 10.77.1.1 tcp sport 40000 tcp dport 2380
        "#);
    }
}
