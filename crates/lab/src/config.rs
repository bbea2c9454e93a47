//! What a lab is made of: its name, its image, its two nodes and their timing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The Debian release that the nodes run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// Debian 13: Pacemaker 3.0, Corosync 3.1.9, etcd 3.5.
    #[default]
    Trixie,
    /// Debian 12: Pacemaker 2.1, Corosync 3.1.7, etcd 3.4.
    Bookworm,
}

impl Release {
    /// Debian's name of the release.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trixie => "trixie",
            Self::Bookworm => "bookworm",
        }
    }
}

/// Which fence agent switches the power.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FenceAgent {
    /// The distribution's `fence_redfish`.
    #[default]
    Distribution,
    /// `fence_dyad_redfish`: this file on the host is put into the nodes.
    Dyad(PathBuf),
}

/// What the nodes run on top of Corosync and Pacemaker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stack {
    /// Fencing and one small service: as little as real fencing needs.
    #[default]
    Minimal,
    /// A pair, rendered from a `pair.yaml`.
    Pair(PairStack),
    /// What Dyad is compared with: etcd with `fence_redfish` and another agent, encrypted.
    Rival(Rival),
}

impl Stack {
    /// Whether etcd's traffic is encrypted, with certificates both ways.
    pub fn tls(&self) -> bool {
        match self {
            Self::Minimal => false,
            Self::Pair(stack) => stack.tls,
            Self::Rival(_) => true,
        }
    }
}

/// Other ways to keep etcd going on two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rival {
    /// A plain agent that restarts etcd with `--force-new-cluster` when Pacemaker tells that the peer is fenced.
    ForceNewCluster,
    /// The agent `podman-etcd` of the newest resource-agents that Debian has.
    PodmanEtcd,
}

/// A pair as Dyad makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairStack {
    /// Dyad's package (`.deb`) on this machine, which is installed in the nodes: `scripts/package` makes it.
    pub package: PathBuf,
    /// Whether etcd's traffic is encrypted, with certificates both ways.
    pub tls: bool,
    /// The nodes have their bundles at hand, and nothing is set up before somebody runs `dyad setup`.
    #[serde(default)]
    pub by_hand: bool,
    /// Whether etcd runs in a container, of an image made from the node's own etcd.
    #[serde(default)]
    pub podman: bool,
}

/// A cluster link. A cut is always between the two nodes' ports of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// The first cluster link; etcd's traffic runs here too.
    Link1,
    /// The second cluster link.
    Link2,
}

impl Link {
    /// Both links.
    pub const ALL: [Self; 2] = [Self::Link1, Self::Link2];

    /// Its name, which is also the interface's name in each node.
    pub fn name(self) -> &'static str {
        match self {
            Self::Link1 => "link1",
            Self::Link2 => "link2",
        }
    }
}

/// One node of the pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeConfig {
    /// Its host name, which is also its name in Corosync and Pacemaker.
    pub name: String,
    /// Its address on the first cluster link.
    pub link1: IpAddr,
    /// Its address on the second cluster link.
    pub link2: IpAddr,
}

impl NodeConfig {
    /// Its address on a link.
    pub fn address(&self, link: Link) -> IpAddr {
        match link {
            Link::Link1 => self.link1,
            Link::Link2 => self.link2,
        }
    }
}

/// Everything that is asked of a lab before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabConfig {
    /// The lab's name. Labs with different names can run side by side.
    pub name: String,
    /// What the nodes run.
    pub release: Release,
    /// The pair.
    pub nodes: [NodeConfig; 2],
    /// Corosync's token time-out.
    pub token_ms: u32,
    /// How long Pacemaker waits for a coordinator before it elects one. Its own default is 20 s, which
    /// only makes a lab slow to start.
    pub dc_deadtime_s: u32,
    /// The delay before the first node is fenced: that node wins a split.
    pub fence_delay_s: u32,
    /// Who switches the power.
    pub fence_agent: FenceAgent,
    /// What runs on the nodes.
    #[serde(default)]
    pub stack: Stack,
    /// Whether services that stand for the container runtime and kubelet are part of the pair.
    #[serde(default = "yes")]
    pub units_before: bool,
    /// Whether etcd runs on both nodes as a plain pair under systemd.
    pub etcd: bool,
    /// The size of the file system under `/var/lib/etcd`.
    pub etcd_disk_mib: u32,
}

fn yes() -> bool {
    true
}

impl LabConfig {
    /// The name of a lab that was not given one.
    pub const DEFAULT_NAME: &str = "dyad";

    /// A lab of this name with everything else as a person would want it.
    pub fn named(name: &str) -> Self {
        let node = |name: &str, last| NodeConfig {
            name: name.into(),
            link1: Ipv4Addr::new(10, 77, 1, last).into(),
            link2: Ipv4Addr::new(10, 77, 2, last).into(),
        };
        Self {
            name: name.into(),
            release: Release::default(),
            nodes: [node("node-a", 1), node("node-b", 2)],
            token_ms: 1000,
            dc_deadtime_s: 4,
            fence_delay_s: 3,
            fence_agent: FenceAgent::default(),
            stack: Stack::default(),
            units_before: true,
            etcd: true,
            etcd_disk_mib: 512,
        }
    }

    /// The same with IPv6 addresses on both cluster links.
    #[must_use]
    pub fn ipv6(mut self) -> Self {
        for (node, last) in self.nodes.iter_mut().zip(1..) {
            node.link1 = Ipv6Addr::new(0xfd77, 0, 0, 1, 0, 0, 0, last).into();
            node.link2 = Ipv6Addr::new(0xfd77, 0, 0, 2, 0, 0, 0, last).into();
        }
        self
    }

    /// The position of a node by its exact name.
    pub fn position(&self, node: &str) -> Result<usize> {
        self.nodes.iter().position(|each| each.name == node).ok_or_else(|| Error::NoSuchNode {
            node: node.into(),
            known: self.nodes.iter().map(|each| each.name.clone()).collect(),
        })
    }

    /// Checks what a person may have got wrong.
    pub fn validate(&self) -> Result<()> {
        check_name("the lab's name", &self.name, 32)?;
        for node in &self.nodes {
            check_name("a node's name", &node.name, 32)?;
        }
        let [first, second] = &self.nodes;
        if first.name == second.name {
            return Err(Error::Config(format!("both nodes are named {}", first.name)));
        }
        for link in Link::ALL {
            check_pair(link.name(), first.address(link), second.address(link))?;
        }
        if network_of(first.link1) == network_of(first.link2) {
            return Err(Error::Config(format!(
                "link1 and link2 are the same network: {} and {}",
                first.link1, first.link2
            )));
        }
        let limits = [
            ("the token time-out in ms", self.token_ms, 200, 60_000),
            ("dc-deadtime in s", self.dc_deadtime_s, 1, 120),
            ("the fencing delay in s", self.fence_delay_s, 0, 60),
            ("the size of etcd's disk in MiB", self.etcd_disk_mib, 256, 65_536),
        ];
        for (what, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(Error::Config(format!(
                    "{what} must be between {least} and {most}, not {value}"
                )));
            }
        }
        Ok(())
    }
}

/// The networks that the lab keeps for itself: power management, and clients of the pair.
pub mod reserved {
    use std::net::Ipv4Addr;

    /// What lies on the lab's own networks, by the node's position.
    pub fn bmc(position: usize) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 250, 101 + position as u8)
    }
    /// A node's own address on the BMC network.
    pub fn node_on_bmc_network(position: usize) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 250, 1 + position as u8)
    }
    /// A node's address for clients.
    pub fn node_for_clients(position: usize) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 251, 1 + position as u8)
    }
    /// Where clients of the pair run.
    pub const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 168, 251, 254);
}

/// The length of the network part: one size fits a lab.
pub(crate) fn prefix_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

fn network_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets()[..3].to_vec(),
        IpAddr::V6(address) => address.octets()[..8].to_vec(),
    }
}

fn check_pair(link: &str, first: IpAddr, second: IpAddr) -> Result<()> {
    let wrong = |why: &str| Err(Error::Config(format!("{link}: {first} and {second} {why}")));
    if first == second {
        return wrong("are the same address");
    }
    if first.is_ipv4() != second.is_ipv4() {
        return wrong("are not of one family");
    }
    if network_of(first) != network_of(second) {
        return wrong("are not in one network (/24 or /64)");
    }
    for address in [first, second] {
        if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
            return wrong("are not both ordinary addresses");
        }
    }
    let own = [reserved::CLIENT, reserved::bmc(0)].map(|address| network_of(address.into()));
    if own.contains(&network_of(first)) {
        return wrong("lie in a network that the lab keeps for itself");
    }
    Ok(())
}

/// Names become host names, directories and cgroups: letters, digits and inner dashes only.
fn check_name(what: &str, name: &str, longest: usize) -> Result<()> {
    let fine = !name.is_empty()
        && name.len() <= longest
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if fine {
        return Ok(());
    }
    Err(Error::Config(format!(
        "{what} must be 1 to {longest} lower-case letters, digits and inner dashes, not {name:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut LabConfig)) -> String {
        let mut config = LabConfig::named("test");
        change(&mut config);
        config.validate().map_or_else(|error| error.to_string(), |()| "fine".into())
    }

    /// The default, an IPv6 pair and the pair with look-alike names and addresses are accepted.
    #[test]
    fn good_pairs_are_accepted() {
        assert_eq!(with(|_| ()), "fine");
        assert_eq!(with(|config| *config = config.clone().ipv6()), "fine");
        let look_alike = with(|config| {
            for (node, (name, last)) in config.nodes.iter_mut().zip([("node1", 1), ("node10", 10)])
            {
                node.name = name.into();
                node.link1 = Ipv4Addr::new(10, 0, 0, last).into();
            }
        });
        assert_eq!(look_alike, "fine");
    }

    /// Every mistake gets a message that names what is wrong.
    #[test]
    fn mistakes_are_named() {
        let cases = [
            (with(|c| c.name = "Up".into()), "the lab's name must be"),
            (with(|c| c.name = "../etc".into()), "the lab's name must be"),
            (with(|c| c.nodes[1].name = "node-a".into()), "both nodes are named node-a"),
            (with(|c| c.nodes[1].link1 = c.nodes[0].link1), "are the same address"),
            (with(|c| c.nodes[1].link1 = "10.78.1.2".parse().unwrap()), "are not in one network"),
            (with(|c| c.nodes[1].link1 = "fd00::1".parse().unwrap()), "are not of one family"),
            (
                with(|c| {
                    c.nodes[0].link2 = "10.77.1.3".parse().unwrap();
                    c.nodes[1].link2 = "10.77.1.4".parse().unwrap();
                }),
                "link1 and link2 are the same network",
            ),
            (with(|c| c.token_ms = 1), "the token time-out in ms must be between"),
        ];
        for (message, wanted) in cases {
            assert!(message.contains(wanted), "{message:?} should contain {wanted:?}");
        }
    }

    /// A node is found by its exact name only.
    #[test]
    fn a_node_is_found_by_its_exact_name() {
        let mut config = LabConfig::named("test");
        config.nodes[0].name = "node1".into();
        config.nodes[1].name = "node10".into();
        assert_eq!(config.position("node10").unwrap(), 1);
        assert_eq!(
            config.position("node").unwrap_err().to_string(),
            "there is no node named node in this lab; it has node1 and node10"
        );
    }
}
