//! The types of `pair.yaml`. They are the one source of its schema, its reference page and its checks.
//!
//! What people write is not quite what the agents read: a file says where a password is kept on the machine
//! that renders, the agents only where it lies on their node. So these types stand apart from
//! [`dyad_cluster::pair::Pair`], which keeps YAML and schema libraries out of the agents, and
//! `convert` names every field of it: a key that is added there and forgotten here does not compile.

use std::path::PathBuf;

use dyad_cluster::pair;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::Password;

/// The longest time that any key takes: a day. Anything above is a typing error.
const DAY_MS: u64 = 86_400_000;

/// Two servers and what they do together.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "Pair")]
pub struct PairFile {
    /// The version of this format.
    pub api_version: ApiVersion,
    /// What the file describes.
    pub kind: Kind,
    /// The name of the pair: letters, digits, `-`, `_` and `.`, at most 63. Corosync's cluster name.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"))]
    pub name: String,
    /// Both nodes. Do not change their order later: it gives them their Corosync node ids.
    #[schemars(length(min = 2, max = 2))]
    pub nodes: Vec<Node>,
    /// The node that survives when the two cannot see each other but both are well; the first one if
    /// nothing is said. Its peer waits for the fencing delay before it switches it off.
    #[serde(default)]
    pub preferred_survivor: Option<String>,
    /// How fast a lost node is noticed.
    #[serde(default)]
    pub detection: Detection,
    /// How a lost node is switched off.
    #[serde(default)]
    pub fencing: Fencing,
    /// The data store.
    #[serde(default)]
    pub etcd: Etcd,
    /// systemd services that Pacemaker starts before etcd, in this order, for example the container runtime
    /// and kubelet.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub units_before: Vec<String>,
    /// systemd services that Pacemaker starts after etcd, in this order.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub units_after: Vec<String>,
    /// An address that is up on one node that holds the data, and moves with it.
    #[serde(default)]
    pub virtual_ip: Option<VirtualIp>,
    /// Where fencing and node events are posted to, as JSON. Each node reports what it sees itself.
    #[serde(default)]
    pub webhook: Option<Webhook>,
}

/// Where events are posted to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// A file with the line `url=https://...` and, if the receiver wants one, `authorization=...`, the whole value
    /// of that header; mode 0600. `dyad render` reads it and puts it on both nodes; a relative path starts beside
    /// pair.yaml.
    pub url_file: PathBuf,
    /// The authorities that the receiver's certificate must come from, as an absolute path on the nodes; the
    /// machine's own if nothing is said.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

/// The version of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first one.
    #[serde(rename = "dyad/v1")]
    V1,
}

/// What the file describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// A pair of nodes.
    Pair,
}

/// One of the two servers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Node {
    /// Its name, exactly as `uname -n` says on it.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")
    )]
    pub name: String,
    /// Its address on each link, IPv4 or IPv6, in the same order on both nodes. Two links on separate
    /// cables and switches are the rule; one is accepted with a warning.
    #[schemars(length(min = 1, max = 8))]
    pub addresses: Vec<String>,
    /// What switches it off and on.
    pub bmc: Bmc,
}

/// A node's baseboard management controller, spoken to over Redfish.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bmc {
    /// Where it is: `https://host` or `https://host:port`, an IPv6 address in brackets. No path.
    pub address: String,
    /// The id or UUID of the System that this node is. Needed if the BMC has more than one.
    #[serde(default)]
    pub system: Option<String>,
    /// How its certificate is checked: one of `caFile`, `pin` and `insecure`.
    #[serde(default)]
    pub tls: Option<BmcTls>,
    /// The account: one of `file`, `onNode`, or `username` with `password`.
    pub credentials: Credentials,
}

/// How a BMC's certificate is checked. Exactly one key.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BmcTls {
    /// By the authority in this PEM file. `dyad render` reads it; a relative path starts beside pair.yaml.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// By the SHA-256 fingerprint of the certificate itself, as `openssl x509 -fingerprint -sha256` prints
    /// it. Good for self-signed certificates.
    #[serde(default)]
    pub pin: Option<String>,
    /// Not at all, if `true`. Whoever is on the way can read the password and lie about the power.
    #[serde(default)]
    pub insecure: bool,
}

/// A BMC account. A password in this file is accepted with a warning.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Credentials {
    /// A file with the lines `username=...` and `password=...`, mode 0600. `dyad render` reads it and puts
    /// it on both nodes; a relative path starts beside pair.yaml.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Such a file that something else puts on both nodes; an absolute path there. `dyad render` leaves it
    /// alone.
    #[serde(default)]
    pub on_node: Option<PathBuf>,
    /// The user name, in the open.
    #[serde(default)]
    pub username: Option<String>,
    /// The password, in the open.
    #[serde(default)]
    pub password: Option<Password>,
}

/// How fast a lost node is noticed. Give a preset, or `tokenMs`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Detection {
    /// Ready-made settings; `normal` if nothing is said.
    pub preset: Option<Preset>,
    /// Corosync's token time-out in milliseconds: silence for this long, and the peer is lost.
    #[schemars(range(min = 1, max = DAY_MS))]
    pub token_ms: Option<u64>,
    /// Corosync's consensus time-out in milliseconds; 1.2 times the token if nothing is said.
    #[schemars(range(min = 1, max = DAY_MS))]
    pub consensus_ms: Option<u64>,
    /// After how many milliseconds one of several links counts as down; half the token if nothing is said.
    #[schemars(range(min = 1, max = DAY_MS))]
    pub link_timeout_ms: Option<u64>,
}

/// Ready-made detection settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Preset {
    /// Direct cables, quiet machines: token 1000 ms.
    Fast,
    /// Corosync's own default: token 3000 ms.
    Normal,
    /// Shared or radio links, busy machines: token 10000 ms.
    Tolerant,
}

/// How a lost node is switched off.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Fencing {
    /// How many milliseconds the preferred survivor's peer waits before it switches it off. Computed if
    /// nothing is said, and then long enough; `dyad check` shows it.
    #[schemars(range(max = DAY_MS))]
    pub delay_ms: Option<u64>,
    /// The longest time in milliseconds that the BMCs take from the request to an Off that was read back.
    #[schemars(range(max = DAY_MS))]
    pub bmc_off_ms: u64,
    /// The limit on one fencing attempt, in milliseconds.
    #[schemars(range(min = 1, max = DAY_MS))]
    pub bmc_timeout_ms: u64,
    /// How often each BMC is asked whether it still answers, in milliseconds.
    #[schemars(range(min = 1_000, max = DAY_MS))]
    pub monitor_interval_ms: u64,
}

impl Default for Fencing {
    fn default() -> Self {
        let pair::Fencing { delay_ms, bmc_off_ms, bmc_timeout_ms, monitor_interval_ms } =
            pair::Fencing::default();
        Self { delay_ms, bmc_off_ms, bmc_timeout_ms, monitor_interval_ms }
    }
}

/// The data store.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Etcd {
    /// Its data directory on the nodes.
    pub data_dir: PathBuf,
    /// The port for clients.
    #[schemars(range(min = 1, max = 65_535))]
    pub client_port: u16,
    /// The port for the peer.
    #[schemars(range(min = 1, max = 65_535))]
    pub peer_port: u16,
    /// What runs it.
    pub runner: Runner,
    /// The container image, for the runner `podman`.
    pub image: Option<String>,
    /// Certificates.
    pub tls: EtcdTls,
    /// Its heartbeat interval in milliseconds.
    #[schemars(range(min = 1, max = 50_000))]
    pub heartbeat_ms: u64,
    /// Its election time-out in milliseconds; at least five heartbeats.
    #[schemars(range(min = 1, max = 50_000))]
    pub election_ms: u64,
    /// More arguments, as etcd takes them: `--quota-backend-bytes=8589934592`.
    #[schemars(length(max = 64))]
    pub extra_args: Vec<String>,
    /// How many old copies of the data are kept after a node has joined anew.
    #[schemars(range(min = 1, max = 100))]
    pub keep_copies: u32,
}

impl Default for Etcd {
    fn default() -> Self {
        let etcd = pair::Etcd::default();
        Self {
            data_dir: etcd.data_dir,
            client_port: etcd.client_port,
            peer_port: etcd.peer_port,
            runner: Runner::Systemd,
            image: None,
            tls: EtcdTls::default(),
            heartbeat_ms: etcd.heartbeat_ms,
            election_ms: etcd.election_ms,
            extra_args: etcd.extra_args,
            keep_copies: etcd.keep_copies,
        }
    }
}

/// What runs etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Runner {
    /// The distribution's etcd as a systemd service.
    Systemd,
    /// A podman container of `image`.
    Podman,
}

/// etcd's certificates.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EtcdTls {
    /// Where they come from.
    pub source: TlsSource,
    /// Between the two members, for `source: files`.
    pub peer: Option<CertificateFiles>,
    /// For clients, for `source: files`.
    pub client: Option<CertificateFiles>,
    /// More names and addresses by which clients know the nodes, for `source: generate`: a load balancer, an
    /// address outside of the links. The nodes' own and the virtual address need not be listed.
    pub server_names: Vec<String>,
}

impl Default for EtcdTls {
    fn default() -> Self {
        Self { source: TlsSource::Generate, peer: None, client: None, server_names: Vec::new() }
    }
}

/// Where etcd's certificates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TlsSource {
    /// `dyad render` makes an authority for this pair once, keeps it in the secrets directory, and issues
    /// them.
    Generate,
    /// They are on the nodes already, in the files named by `peer` and `client`.
    Files,
    /// None: plain HTTP. Whoever reaches the ports can read and change all data.
    Off,
}

/// One certificate, its key, and the authority that the other side's must come from, as absolute paths on
/// the nodes. `{node}` stands for the node's name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateFiles {
    /// The authority.
    pub ca_file: PathBuf,
    /// The certificate, for servers and clients alike.
    pub cert_file: PathBuf,
    /// Its key.
    pub key_file: PathBuf,
}

/// An address that is up where a voter runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VirtualIp {
    /// The address.
    pub address: String,
    /// Its prefix length.
    #[schemars(range(max = 128))]
    pub prefix: u8,
    /// The interface; found by the address if nothing is said.
    #[serde(default)]
    pub interface: Option<String>,
}
