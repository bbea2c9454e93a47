//! The one description of a pair that everything is rendered from.

use std::net::IpAddr;
use std::path::PathBuf;

use dyad_core::ids::NodeName;
use dyad_core::timing::{NodeTiming, PairTiming, Preset};
use serde::{Deserialize, Serialize};

/// Two nodes and what they do together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pair {
    /// The name of the pair; Corosync's cluster name.
    pub name: String,
    /// Both nodes, in an order that never changes: their position is their Corosync node id.
    pub nodes: [Node; 2],
    /// Which node survives a cut between them; the first one if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_survivor: Option<NodeName>,
    /// How fast a lost node is noticed.
    #[serde(default)]
    pub detection: Detection,
    /// How a lost node is switched off.
    #[serde(default)]
    pub fencing: Fencing,
    /// The data.
    #[serde(default)]
    pub etcd: Etcd,
    /// systemd units that start before etcd, in this order (the container runtime, kubelet).
    #[serde(default)]
    pub units_before: Vec<String>,
    /// systemd units that start after etcd, in this order.
    #[serde(default)]
    pub units_after: Vec<String>,
    /// An address that follows the voters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_ip: Option<VirtualIp>,
    /// Where fencing and node events are posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

/// Where events are posted to. The address itself may hold a secret: it is in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// The root-only file with the address, on each node.
    pub url_file: PathBuf,
    /// The authorities that the receiver's certificate must come from; the machine's own if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// One of the two servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// Its name, exactly as `uname -n` on it says.
    pub name: NodeName,
    /// Its address on each link, in the same order on both nodes.
    pub addresses: Vec<IpAddr>,
    /// What switches it off and on.
    pub bmc: Bmc,
}

/// A node's baseboard management controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bmc {
    /// Its Redfish address, `https://host[:port]`.
    pub address: String,
    /// The id or UUID of the System that this node is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// How its certificate is checked.
    pub tls: BmcTls,
    /// The root-only file with user name and password, on the node that fences.
    pub credentials_file: PathBuf,
}

/// How a BMC's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BmcTls {
    /// By the authority in this file.
    CaFile(PathBuf),
    /// By the SHA-256 fingerprint of its certificate.
    Pin(String),
    /// Not at all. Whoever is on the way can read the password and lie about the power.
    Insecure,
}

/// How fast a lost node is noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Detection {
    /// Direct cables, quiet machines: token 1000 ms.
    Fast,
    /// Corosync's own default: token 3000 ms.
    #[default]
    Normal,
    /// Shared or radio links, busy machines: token 10000 ms.
    Tolerant,
    /// Explicit.
    #[serde(rename_all = "camelCase")]
    Custom {
        /// Corosync's token time-out.
        token_ms: u64,
        /// Corosync's consensus time-out; 1.2 times the token if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consensus_ms: Option<u64>,
        /// When one link counts as down; half the token if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link_timeout_ms: Option<u64>,
    },
}

impl Detection {
    /// Corosync's token time-out.
    pub fn token_ms(self) -> u64 {
        match self {
            Self::Fast => Preset::Fast.token_ms(),
            Self::Normal => Preset::Normal.token_ms(),
            Self::Tolerant => Preset::Tolerant.token_ms(),
            Self::Custom { token_ms, .. } => token_ms,
        }
    }

    /// Corosync's consensus time-out.
    pub fn consensus_ms(self) -> u64 {
        match self {
            Self::Custom { consensus_ms: Some(consensus_ms), .. } => consensus_ms,
            _ => self.token_ms().saturating_mul(12) / 10,
        }
    }

    /// When one link counts as down.
    pub fn link_timeout_ms(self) -> u64 {
        match self {
            Self::Custom { link_timeout_ms: Some(link_timeout_ms), .. } => link_timeout_ms,
            _ => self.token_ms() / 2,
        }
    }
}

/// How a lost node is switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Fencing {
    /// How long the preferred survivor's peer waits before it fences it; computed if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The longest time the BMCs take from the request to an Off that was read back.
    pub bmc_off_ms: u64,
    /// The limit on one fencing attempt.
    pub bmc_timeout_ms: u64,
    /// How often each BMC is asked whether it still answers.
    pub monitor_interval_ms: u64,
}

impl Default for Fencing {
    fn default() -> Self {
        Self {
            delay_ms: None,
            bmc_off_ms: 5_000,
            bmc_timeout_ms: 20_000,
            monitor_interval_ms: 60_000,
        }
    }
}

/// The data store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Etcd {
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Where clients connect.
    pub client_port: u16,
    /// Where the peer connects.
    pub peer_port: u16,
    /// What runs it.
    pub runner: Runner,
    /// Certificates; plain HTTP without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<EtcdTls>,
    /// Its heartbeat interval.
    pub heartbeat_ms: u64,
    /// Its election time-out.
    pub election_ms: u64,
    /// More arguments, as etcd takes them.
    pub extra_args: Vec<String>,
    /// How many copies moved aside are kept.
    pub keep_copies: u32,
}

impl Default for Etcd {
    fn default() -> Self {
        Self {
            data_dir: "/var/lib/etcd".into(),
            client_port: 2379,
            peer_port: 2380,
            runner: Runner::Systemd,
            tls: None,
            heartbeat_ms: 100,
            election_ms: 1_000,
            extra_args: Vec::new(),
            keep_copies: 3,
        }
    }
}

/// The container that etcd runs in, if it does.
pub const CONTAINER: &str = "dyad-etcd";

/// What runs etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Runner {
    /// A systemd service.
    Systemd,
    /// A podman container of this image.
    #[serde(rename_all = "camelCase")]
    Podman {
        /// The image to run.
        image: String,
    },
}

/// etcd's certificates, as files on each node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdTls {
    /// Between the members, both ways.
    pub peer: CertificateFiles,
    /// For clients, both ways.
    pub client: CertificateFiles,
}

/// One certificate, its key, and the authority that the other side's must come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateFiles {
    /// The authority.
    pub ca_file: PathBuf,
    /// The certificate.
    pub cert_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
}

/// An address that is up where a voter runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VirtualIp {
    /// The address.
    pub address: IpAddr,
    /// Its prefix length.
    pub prefix: u8,
    /// The interface; found by the address if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

impl Pair {
    /// The position (0 or 1) of the node that survives a cut.
    pub fn preferred(&self) -> usize {
        let named = self.preferred_survivor.as_ref();
        usize::from(named.is_some_and(|name| *name == self.nodes[1].name))
    }

    /// A node and its peer, by the node's exact name (R10).
    pub fn node_and_peer(&self, name: &NodeName) -> Option<(&Node, &Node)> {
        let [first, second] = &self.nodes;
        if first.name == *name {
            Some((first, second))
        } else if second.name == *name {
            Some((second, first))
        } else {
            None
        }
    }

    /// How long the peer of this node (0 or 1) waits before it fences it.
    pub fn fence_delay_ms(&self, node: usize) -> u64 {
        if node != self.preferred() {
            return 0;
        }
        self.fencing.delay_ms.unwrap_or_else(|| self.timing_with_delay(0).delay_needed_ms(node) + 1)
    }

    /// The settings that have to do with time, as the arithmetic takes them.
    pub fn timing(&self) -> PairTiming {
        self.timing_with_delay(self.fence_delay_ms(self.preferred()))
    }

    fn timing_with_delay(&self, delay_ms: u64) -> PairTiming {
        let node = |position: usize| NodeTiming {
            name: self.nodes[position].name.clone(),
            token_ms: self.detection.token_ms(),
            consensus_ms: self.detection.consensus_ms(),
            fence_delay_ms: if position == self.preferred() { delay_ms } else { 0 },
            bmc_off_ms: self.fencing.bmc_off_ms,
            bmc_timeout_ms: self.fencing.bmc_timeout_ms,
        };
        let links = self.nodes.iter().map(|node| node.addresses.len()).min().unwrap_or_default();
        PairTiming {
            nodes: [node(0), node(1)],
            links: u8::try_from(links).unwrap_or(u8::MAX),
            link_timeout_ms: self.detection.link_timeout_ms(),
            wait_for_all: true,
            fencing_timeout_ms: self.fencing_timeout_ms(delay_ms),
            etcd_election_ms: self.etcd.election_ms,
        }
    }

    /// Pacemaker's limit on one fencing action: the delay and two attempts.
    pub(crate) fn fencing_timeout_ms(&self, delay_ms: u64) -> u64 {
        delay_ms.saturating_add(self.fencing.bmc_timeout_ms.saturating_mul(2))
    }
}
