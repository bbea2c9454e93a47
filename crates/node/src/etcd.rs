//! The local etcd: where it is reached, how it is started, what it says.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use dyad_cluster::pair::{CertificateFiles, Node, Pair};
use dyad_core::facts::{Etcd, EtcdState, LiveMember};
use dyad_core::ids::MemberId;
use etcd_peer::client::{Client, Deadline, Error, Members, Status};
use etcd_peer::{Identity, Tls};

use crate::runner::{self, Runner};

/// A local etcd that is well answers within milliseconds. One that is busy must not hold the monitor (R9).
const LOOK_LIMIT: Duration = Duration::from_millis(1_500);
/// The peer's etcd is asked for a learner's progress only; it may be away.
const PEER_LIMIT: Duration = Duration::from_millis(500);
/// A link that works takes a connection at once.
const LINK_LIMIT: Duration = Duration::from_millis(300);
/// etcd itself promotes a learner that holds nine tenths of the leader's log.
const CAUGHT_UP_PERCENT: u64 = 90;

/// Where one node's etcd is reached.
pub struct Endpoints<'a> {
    pair: &'a Pair,
}

impl<'a> Endpoints<'a> {
    /// The endpoints of this pair.
    pub fn new(pair: &'a Pair) -> Self {
        Self { pair }
    }

    fn scheme(&self) -> &'static str {
        if self.pair.etcd.tls.is_some() { "https" } else { "http" }
    }

    /// Where a node's clients connect, by its first link.
    pub fn client(&self, node: &Node) -> String {
        let address = node.addresses.first().copied().unwrap_or(IpAddr::from([127, 0, 0, 1]));
        format!("{}://{}", self.scheme(), SocketAddr::new(address, self.pair.etcd.client_port))
    }

    /// A client of a node's etcd, by the first link that takes a connection; by the first one if none does,
    /// so that the error is its own.
    pub fn reachable(&self, node: &Node) -> Result<Client, Error> {
        let port = self.pair.etcd.client_port;
        let sockets = node.addresses.iter().map(|address| SocketAddr::new(*address, port));
        let mut answering =
            sockets.filter(|socket| TcpStream::connect_timeout(socket, LINK_LIMIT).is_ok());
        let url = match answering.next() {
            Some(socket) => format!("{}://{socket}", self.scheme()),
            None => self.client(node),
        };
        Client::new(&url, self.client_tls().as_ref())
    }

    /// Where a node's peer connects: one URL for each link.
    pub fn peer(&self, node: &Node) -> Vec<String> {
        let url = |address: &IpAddr| {
            format!("{}://{}", self.scheme(), SocketAddr::new(*address, self.pair.etcd.peer_port))
        };
        node.addresses.iter().map(url).collect()
    }

    /// The certificates towards the client port.
    pub fn client_tls(&self) -> Option<Tls> {
        self.pair.etcd.tls.as_ref().map(|tls| files(&tls.client))
    }

    /// The certificates towards the peer port.
    pub fn peer_tls(&self) -> Option<Tls> {
        self.pair.etcd.tls.as_ref().map(|tls| files(&tls.peer))
    }
}

fn files(files: &CertificateFiles) -> Tls {
    let identity =
        Identity { certificate_file: files.cert_file.clone(), key_file: files.key_file.clone() };
    Tls { ca_file: files.ca_file.clone(), identity: Some(identity) }
}

/// The arguments of etcd, as an environment file for its runner.
///
/// `members` are the members of the cluster that is joined; a dataset that exists already knows its own, and
/// etcd then ignores them.
pub fn environment(pair: &Pair, own: &Node, members: &[(String, Vec<String>)]) -> String {
    let endpoints = Endpoints::new(pair);
    let etcd = &pair.etcd;
    let listen = |port: u16| {
        // Every address: a link whose address is missing at boot must not keep etcd from starting.
        let six = pair.nodes.iter().flat_map(|node| &node.addresses).any(IpAddr::is_ipv6);
        format!("{}://{}:{port}", endpoints.scheme(), if six { "[::]" } else { "0.0.0.0" })
    };
    let cluster: Vec<_> = members
        .iter()
        .flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}")))
        .collect();
    let mut values = vec![
        ("ETCD_NAME", own.name.to_string()),
        ("ETCD_DATA_DIR", etcd.data_dir.display().to_string()),
        ("ETCD_LISTEN_PEER_URLS", listen(etcd.peer_port)),
        ("ETCD_LISTEN_CLIENT_URLS", listen(etcd.client_port)),
        ("ETCD_INITIAL_ADVERTISE_PEER_URLS", endpoints.peer(own).join(",")),
        ("ETCD_ADVERTISE_CLIENT_URLS", endpoints.client(own)),
        ("ETCD_INITIAL_CLUSTER", cluster.join(",")),
        ("ETCD_INITIAL_CLUSTER_STATE", "existing".to_owned()),
        ("ETCD_HEARTBEAT_INTERVAL", etcd.heartbeat_ms.to_string()),
        ("ETCD_ELECTION_TIMEOUT", etcd.election_ms.to_string()),
        ("ETCD_STRICT_RECONFIG_CHECK", "true".to_owned()),
        // A node that comes back begins with nothing. The longer the log that it is given, the longer the pair
        // has no spare: a snapshot is copied at the speed of the link, a log is replayed entry by entry.
        ("ETCD_SNAPSHOT_COUNT", SNAPSHOT_COUNT.to_string()),
        ("ETCD_LOGGER", "zap".to_owned()),
    ];
    if let Some(tls) = &etcd.tls {
        let path = |path: &std::path::Path| path.display().to_string();
        values.extend([
            ("ETCD_PEER_TRUSTED_CA_FILE", path(&tls.peer.ca_file)),
            ("ETCD_PEER_CERT_FILE", path(&tls.peer.cert_file)),
            ("ETCD_PEER_KEY_FILE", path(&tls.peer.key_file)),
            ("ETCD_PEER_CLIENT_CERT_AUTH", "true".to_owned()),
            ("ETCD_TRUSTED_CA_FILE", path(&tls.client.ca_file)),
            ("ETCD_CERT_FILE", path(&tls.client.cert_file)),
            ("ETCD_KEY_FILE", path(&tls.client.key_file)),
            ("ETCD_CLIENT_CERT_AUTH", "true".to_owned()),
        ]);
    }
    values.push(("DYAD_ETCD_ARGS", etcd.extra_args.join(" ")));
    values.into_iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key}={value}");
        text
    })
}

/// After so many entries etcd takes a snapshot and forgets all but the last 5,000: the default of etcd 3.6.
const SNAPSHOT_COUNT: u32 = 10_000;

/// What the local etcd says, beside what decisions rest on.
#[derive(Debug, Clone)]
pub struct Live {
    /// What decisions rest on.
    pub etcd: Etcd,
    /// Its own words.
    pub status: Option<Status>,
    /// How far a learner has caught up, in percent.
    pub learner_percent: Option<u64>,
}

impl Live {
    /// An etcd of which nothing but this is known.
    pub fn only(state: EtcdState) -> Self {
        let etcd = Etcd { state, leaderless_ms: 0, silent_ms: None, members: Vec::new() };
        Self { etcd, status: None, learner_percent: None }
    }
}

/// Looks at the local etcd. `leaderless_ms` is left at 0: how long it has lasted is known to the records.
pub fn look(
    pair: &Pair,
    own: &Node,
    runner: &dyn Runner,
    client: &Client,
) -> Result<Live, runner::Error> {
    if !runner.is_running()? {
        return Ok(Live::only(EtcdState::Stopped));
    }
    let deadline = Deadline::after(LOOK_LIMIT);
    let status = client.status(deadline);
    let members = client.members(deadline);
    let state = match &status {
        Ok(status) if status.learner => EtcdState::Learner,
        Ok(status) if status.leader == Some(status.member) => EtcdState::Leader,
        Ok(status) if status.leader.is_some() => EtcdState::Follower,
        Ok(_) => EtcdState::NoLeader,
        // Who cannot ask knows nothing: least of all that there is no leader.
        Err(Error::Setup { .. }) => EtcdState::Starting,
        // A started etcd opens its client port only when there is a leader; its peer port tells.
        Err(_) if peer_port_answers(pair, own) => EtcdState::NoLeader,
        Err(_) => EtcdState::Starting,
    };
    // The kernel takes connections for a process that hangs. (And for one that was just started: who knows its past tells
    // them apart.)
    let silent = status.as_ref().is_err_and(Error::is_silence);
    let status = status.ok();
    let (members, learner_percent) = match &members {
        Ok(members) => live_members(pair, own, members, status.as_ref()),
        Err(_) => (Vec::new(), None),
    };
    let etcd = Etcd { state, leaderless_ms: 0, silent_ms: silent.then_some(0), members };
    Ok(Live { etcd, status, learner_percent })
}

fn peer_port_answers(pair: &Pair, own: &Node) -> bool {
    own.addresses.iter().any(|address| {
        let socket = SocketAddr::new(*address, pair.etcd.peer_port);
        TcpStream::connect_timeout(&socket, PEER_LIMIT).is_ok()
    })
}

fn live_members(
    pair: &Pair,
    own: &Node,
    members: &Members,
    status: Option<&Status>,
) -> (Vec<LiveMember>, Option<u64>) {
    let endpoints = Endpoints::new(pair);
    let mut learner_percent = None;
    let list = members
        .members
        .iter()
        .map(|member| {
            // R10: a member is a node's if one of its URLs is exactly one of the node's.
            let node = pair
                .nodes
                .iter()
                .find(|node| endpoints.peer(node).iter().any(|url| member.peer_urls.contains(url)));
            let mut caught_up = false;
            if let (true, Some(node), Some(status)) = (member.learner, node, status)
                && node.name != own.name
                && let Ok(theirs) = ask_peer(pair, node)
                && theirs.member == member.id
            {
                let percent = theirs.raft_index.0.saturating_mul(100) / status.raft_index.0.max(1);
                learner_percent = Some(percent.min(100));
                caught_up = percent >= CAUGHT_UP_PERCENT;
            }
            LiveMember {
                id: member.id,
                node: node.map(|node| node.name.clone()),
                learner: member.learner,
                started: !member.name.is_empty(),
                caught_up,
            }
        })
        .collect();
    (list, learner_percent)
}

fn ask_peer(pair: &Pair, node: &Node) -> Result<Status, Error> {
    Endpoints::new(pair).reachable(node)?.status(Deadline::after(PEER_LIMIT))
}

/// Whether a live membership is exactly these two voters.
pub fn is_pair_of(members: &Members, one: MemberId, two: MemberId) -> bool {
    let mut voters: Vec<_> = members.voters().map(|member| member.id).collect();
    voters.sort_unstable();
    let mut wanted = [one, two];
    wanted.sort_unstable();
    voters == wanted && members.members.len() == 2
}
