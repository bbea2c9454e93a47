//! Facts: everything a decision rests on, gathered with a limit on each source.
//!
//! What cannot be read is never guessed in the direction of acting: an unknown peer counts as present, an
//! unknown cluster as one without quorum or fencing, an unreadable dataset as broken.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use dyad_cluster::pair::{Node as PairNode, Pair};
use dyad_cluster::state::ClusterState;
use dyad_core::dataset::{Class, Dataset};
use dyad_core::facts::{
    ApiVersion, Eligibility, EtcdState, Facts, Kind, NodeState, Pacemaker, Peer, Policy, Request,
    Role,
};
use dyad_core::glance::Glance;
use dyad_core::ids::{BootId, NodeName, RingId, RunId};
use dyad_core::statement::Statement;
use etcd_peer::client::Client;

use crate::corosync::{self, Membership};
use crate::etcd::{self, Live};
use crate::memory::Memory;
use crate::place::BesideData;
use crate::runner::Runner;
use crate::{boot, pacemaker, traces};

/// A disk that does not answer within this time is stuck; the monitor answers all the same (R9).
const DISK_LIMIT: Duration = Duration::from_secs(5);
/// Connections that have gone silent are made anew first, on both nodes: that takes two monitors and a dial.
const LEADERLESS_MS_MIN: u64 = 15_000;
/// Below this much room etcd would soon stop: the disk does not count as one that takes writes.
const FREE_BYTES_MIN: u64 = 64 << 20;
/// The membership of a moment in which Corosync did not tell it.
pub(crate) const UNKNOWN_RING: &str = "unknown";

/// Where facts come from on one node.
pub struct Sources<'a> {
    /// The pair.
    pub pair: &'a Pair,
    /// This node.
    pub own: &'a PairNode,
    /// The other one.
    pub peer: &'a PairNode,
    /// Its records.
    pub memory: &'a Memory,
    /// What runs etcd.
    pub runner: &'a dyn Runner,
    /// The local etcd.
    pub client: &'a Client,
    /// This boot.
    pub boot: &'a BootId,
}

/// Facts, and what is worth telling beside them.
#[derive(Debug, Clone)]
pub struct Gathered {
    /// What the decision rests on.
    pub facts: Facts,
    /// The local etcd's own words.
    pub live: Live,
    /// What could not be read, and why.
    pub troubles: Vec<String>,
}

/// What the cluster around the node says: the slow part, from tools.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Corosync's membership.
    pub membership: Option<Membership>,
    /// Pacemaker's state.
    pub cluster: Option<ClusterState>,
    /// Nodes that were never seen are fenced.
    pub startup_fencing: bool,
    /// What the peer has published.
    pub peer_statement: Option<Statement>,
    /// What could not be read, and why.
    pub troubles: Vec<String>,
}

/// What the data's disk says.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The dataset on it.
    pub dataset: Dataset,
    /// Whether it takes writes and has room.
    pub writable: bool,
    /// Whether its file system takes no writes at all.
    pub read_only: bool,
    /// What tells of earlier data, where there are none now (R12).
    pub traces: Vec<String>,
    /// Of a learner: how much it has got, as a number that changes whenever it gets more; else 0.
    pub received: u64,
}

impl Disk {
    /// Reads it. A disk that is stuck holds the caller.
    pub fn read(data_dir: &Path, beside: &BesideData, began: &Path) -> Self {
        let dataset = read_dataset(data_dir);
        // Data that are there need no traces to be noticed.
        let traces = match dataset.class {
            Class::None => traces::find(data_dir, beside, began),
            _ => Vec::new(),
        };
        let received = match dataset.class {
            Class::Learner => received(data_dir, &dataset),
            _ => 0,
        };
        let read_only = is_read_only(data_dir);
        let writable = !read_only && takes_writes(beside.directory());
        Self { dataset, writable, read_only, traces, received }
    }
}

impl Sources<'_> {
    /// Gathers everything.
    pub fn gather(&self, request: Request, role: Role) -> Gathered {
        // The tools take tens of milliseconds each, most of it waiting: side by side.
        let (surroundings, disk, live) = thread::scope(|scope| {
            let disk = scope.spawn(|| self.disk());
            let live = scope.spawn(|| etcd::look(self.pair, self.own, self.runner, self.client));
            let surroundings = self.surroundings();
            (
                surroundings,
                disk.join().unwrap_or_else(|_| no_disk("reading it failed")),
                live.join(),
            )
        });
        let live = live.unwrap_or(Err(crate::runner::Error::Lost));
        let gathered = self.combine(request, role, surroundings, disk, live);
        #[cfg(feature = "broken-variants")]
        let gathered = crate::broken::stale(self.memory, gathered);
        gathered
    }

    /// Whether a healthy voter has nothing to do, by what is cheap to look at.
    pub fn glance(&self, role: Role) -> bool {
        let published = self.memory.published();
        let Ok(live) = etcd::look(self.pair, self.own, self.runner, self.client) else {
            return false;
        };
        let Ok(marks) = self.memory.marks() else { return false };
        let run = boot::run_id();
        let eligibility = self.eligibility(run.as_ref());
        Glance {
            boot: self.boot,
            run: run.as_ref(),
            role,
            etcd: &live.etcd,
            eligibility: eligibility.as_ref(),
            marks: &marks,
            published: published.as_ref(),
            disk_writable: takes_writes(self.memory.beside().directory()),
        }
        .is_settled()
    }

    /// The look after an announcement (R2a), if `core` says that asking Corosync is enough; else nothing, and
    /// everything is gathered anew.
    pub fn look_again(&self, before: &Gathered) -> Option<Gathered> {
        if !self.membership_holds(&before.facts) {
            return None;
        }
        let mut again = before.clone();
        again.facts.marks = self.memory.marks().ok()?;
        again.facts.published = self.memory.published();
        again.facts.eligibility = self.eligibility(again.facts.run.as_ref());
        Some(again)
    }

    /// Whether the membership of these facts still stands, by its number, else by the tool.
    fn membership_holds(&self, facts: &Facts) -> bool {
        let own = self.id_of(self.own);
        if own.is_some_and(|own| corosync::is_unchanged(&facts.ring, own)) {
            return facts.still_hold(&facts.ring, None);
        }
        corosync::membership()
            .is_ok_and(|seen| facts.still_hold(&seen.ring.as_str().into(), Some(seen.quorate)))
    }

    /// Whether etcd hangs. One that was just started takes connections, too, and answers nothing before there is a leader:
    /// it is silent only if it has answered before.
    fn is_silent(&self, live: &Live) -> bool {
        let run = boot::run_of(crate::node::ETCD_UNIT);
        if let (Some(run), Some(_)) = (&run, &live.status) {
            self.memory.set_answered(run);
        }
        live.etcd.silent_ms.is_some() && run.is_some_and(|run| self.memory.has_answered(&run))
    }

    /// The record of eligibility, if it can be told in which run of the stack this is.
    fn eligibility(&self, run: Option<&RunId>) -> Option<Eligibility> {
        run.and_then(|_| self.memory.eligibility())
    }

    /// Corosync's number for a node: its place in the pair.
    fn id_of(&self, node: &PairNode) -> Option<u32> {
        let position = self.pair.nodes.iter().position(|known| known.name == node.name)?;
        u32::try_from(position + 1).ok()
    }

    /// Facts from what each source said.
    pub fn combine(
        &self,
        request: Request,
        role: Role,
        surroundings: Surroundings,
        disk: Disk,
        live: Result<Live, crate::runner::Error>,
    ) -> Gathered {
        let mut troubles = surroundings.troubles.clone();
        // A process that cannot be seen is taken for one that runs: nothing is started twice.
        let mut live = live.unwrap_or_else(|error| {
            troubles.push(words(&error));
            Live::only(EtcdState::Starting)
        });
        let uptime_ms = boot::uptime_ms().unwrap_or_default();
        let leaderless = matches!(live.etcd.state, EtcdState::NoLeader);
        let marks = self.memory.marks();
        let Disk { mut dataset, writable: disk_writable, read_only, traces, received } = disk;
        if read_only && live.etcd.state == EtcdState::Stopped && dataset.class != Class::None {
            // No etcd runs on it, and no mark can be written: what is on it is as good as lost until it is mended.
            dataset = Dataset::empty(Class::Broken, "the file system of the data is read-only");
        }
        live.etcd.leaderless_ms =
            self.memory.duration("leaderless", received, leaderless, uptime_ms);
        let silent = self.is_silent(&live);
        let silent_ms = self.memory.duration("silent", 0, silent, uptime_ms);
        live.etcd.silent_ms = silent.then_some(silent_ms);
        if let Err(error) = &marks {
            // A mark that is there and cannot be read may forbid everything: nothing may start.
            troubles.push(words(error));
            dataset = Dataset::empty(Class::Broken, words(error));
        }
        let run = boot::run_id();
        let ring = surroundings.membership.as_ref().map_or(UNKNOWN_RING, |seen| seen.ring.as_str());
        let facts = Facts {
            api_version: ApiVersion::V1,
            kind: Kind::Facts,
            node: self.own.name.clone(),
            boot: self.boot.clone(),
            run: run.clone(),
            ring: RingId::from(ring),
            request,
            role,
            dataset,
            disk_writable,
            marks: marks.unwrap_or_default(),
            traces,
            eligibility: self.eligibility(run.as_ref()),
            etcd: live.etcd.clone(),
            published: self.memory.published(),
            peer: self.peer_facts(&surroundings, uptime_ms),
            pacemaker: self.pacemaker_facts(&surroundings),
            policy: self.policy(),
            #[cfg(feature = "broken-variants")]
            broken: crate::broken::rule(),
        };
        Gathered { facts, live, troubles }
    }

    fn surroundings(&self) -> Surroundings {
        let mut troubles = Vec::new();
        let (membership, cluster, startup, statements) = thread::scope(|scope| {
            let membership = scope.spawn(corosync::membership);
            let startup = scope.spawn(pacemaker::has_startup_fencing);
            let statements = scope.spawn(pacemaker::statements);
            let cluster = pacemaker::state();
            (membership.join(), cluster, startup.join(), statements.join())
        });
        let membership = membership.map_or_else(|_| None, |answer| known(answer, &mut troubles));
        let startup = startup.map_or_else(|_| None, |answer| known(answer, &mut troubles));
        let statements = statements.map_or_else(|_| None, |answer| known(answer, &mut troubles));
        let cluster = known(cluster, &mut troubles);
        if let Some(cluster) = &cluster {
            self.check_promotion_score(cluster);
        }
        if let Some(statements) = &statements {
            self.check_published(statements);
        }
        let peer_statement = statements
            .unwrap_or_default()
            .into_iter()
            .find(|(node, _)| *node == self.peer.name)
            .and_then(|(_, text)| known(serde_json::from_str::<Statement>(&text), &mut troubles));
        Surroundings {
            membership,
            cluster,
            startup_fencing: startup.unwrap_or(false),
            peer_statement,
            troubles,
        }
    }

    /// What was published counts only as long as Pacemaker still knows it: its daemon may have been restarted.
    fn check_published(&self, statements: &[(NodeName, String)]) {
        let Some(remembered) = self.memory.published() else { return };
        let own = statements.iter().find(|(node, _)| *node == self.own.name);
        let standing = own.and_then(|(_, text)| serde_json::from_str::<Statement>(text).ok());
        if standing != Some(remembered) {
            self.memory.forget_published();
        }
    }

    /// The same holds for the promotion score: Pacemaker forgets it when it is stopped.
    fn check_promotion_score(&self, cluster: &ClusterState) {
        let own = cluster.promotion_scores.iter().find(|(node, _)| *node == self.own.name);
        let score = own.and_then(|(_, score)| score.parse().ok());
        let remembered = self.memory.promotion_score();
        if remembered.is_some() && score.is_none() && !self.memory.only_looks() {
            // A node that joined with a newer CIB has put its own in the place of ours. Pacemaker's daemon
            // still knows the score, and would not write the same one again by itself: nobody would be
            // promoted.
            let _ = pacemaker::write_attributes_again();
        }
        if remembered != score {
            let _ = self.memory.set_promotion_score(score);
        }
    }

    fn disk(&self) -> Disk {
        let data_dir = self.pair.etcd.data_dir.clone();
        let beside = self.memory.beside().clone();
        let began = self.memory.began_file().to_owned();
        // A thread that may stay behind: a disk that is stuck for good holds it, not us.
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let _ = sender.send(Disk::read(&data_dir, &beside, &began));
        });
        receiver
            .recv_timeout(DISK_LIMIT)
            .unwrap_or_else(|_| no_disk(&format!("the disk did not answer within {DISK_LIMIT:?}")))
    }

    fn peer_facts(&self, surroundings: &Surroundings, uptime_ms: u64) -> Peer {
        let id = self.id_of(self.peer);
        // Without Corosync's word the peer counts as present: no proof of death can stand then.
        let present = match (&surroundings.membership, id) {
            (Some(membership), Some(id)) => membership.nodes.contains(&id),
            _ => true,
        };
        Peer {
            name: self.peer.name.clone(),
            present,
            absent_ms: self.memory.duration("peer-absent", 0, !present, uptime_ms),
            paths: Vec::new(),
            statement: surroundings.peer_statement.clone(),
            statement_age_ms: 0,
            memory: self.memory.peer(),
            power: self.memory.power(),
            confirmation: self.memory.confirmation(),
        }
    }

    fn pacemaker_facts(&self, surroundings: &Surroundings) -> Pacemaker {
        let quorate = surroundings.membership.as_ref().is_some_and(|seen| seen.quorate);
        let Some(cluster) = &surroundings.cluster else {
            return Pacemaker {
                quorate: false,
                fencing_enabled: false,
                startup_fencing: false,
                maintenance: false,
                managed: false,
                nodes: Vec::new(),
                peer_was_fenced: false,
            };
        };
        let own = |name: &NodeName| *name == self.own.name;
        let managed = cluster
            .resources
            .iter()
            .filter(|resource| resource.id == dyad_cluster::cib::ETCD)
            .all(|resource| resource.managed);
        Pacemaker {
            // Both layers must agree: Pacemaker's word alone may be a moment old.
            quorate: quorate && cluster.quorate,
            fencing_enabled: cluster.fencing_enabled,
            startup_fencing: surroundings.startup_fencing,
            maintenance: cluster.maintenance
                || cluster.nodes.iter().any(|node| own(&node.name) && node.maintenance),
            managed,
            nodes: cluster
                .nodes
                .iter()
                .map(|node| NodeState {
                    name: node.name.clone(),
                    online: node.online,
                    unclean: node.unclean,
                })
                .collect(),
            peer_was_fenced: false,
        }
    }

    fn policy(&self) -> Policy {
        let timing = self.pair.timing();
        Policy {
            survivor: Some(self.pair.nodes[self.pair.preferred()].name.clone()),
            leaderless_ms_max: (10 * self.pair.etcd.election_ms).max(LEADERLESS_MS_MIN),
            lone_boot_delay_ms: timing
                .nodes
                .iter()
                .map(|node| node.fence_delay_ms)
                .max()
                .unwrap_or(0)
                + 60_000,
        }
    }
}

/// The value, or its absence with the reason written down.
fn known<T, E: std::error::Error>(answer: Result<T, E>, troubles: &mut Vec<String>) -> Option<T> {
    match answer {
        Ok(value) => Some(value),
        Err(error) => {
            troubles.push(words(&error));
            None
        }
    }
}

/// An error with its chain, in one line.
pub fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// What is known of a disk that cannot be read.
pub fn no_disk(reason: &str) -> Disk {
    let dataset = Dataset::empty(Class::Broken, reason);
    Disk { dataset, writable: false, read_only: false, traces: Vec::new(), received: 0 }
}

/// Entries arrive in the log, a snapshot as a file that grows.
fn received(data_dir: &Path, dataset: &Dataset) -> u64 {
    let files = std::fs::read_dir(data_dir.join("member/snap")).into_iter().flatten().flatten();
    let bytes = files.filter_map(|file| file.metadata().ok()).map(|file| file.len());
    bytes.sum::<u64>().wrapping_add(dataset.raft.last_index.0)
}

/// The dataset in a directory; one that cannot be read is broken.
pub fn read_dataset(data_dir: &Path) -> Dataset {
    match etcd_disk::read(data_dir) {
        Ok(dataset) => dataset,
        Err(error) => Dataset::empty(Class::Broken, words(&error)),
    }
}

/// Whether the file system takes no writes at all: it was mounted so, or an error has made it so. Newer kernels tell the
/// latter only among the options of the file system.
fn is_read_only(data_dir: &Path) -> bool {
    let flags = nix::sys::statvfs::statvfs(data_dir).map(|stat| stat.flags());
    if flags.is_ok_and(|flags| flags.contains(nix::sys::statvfs::FsFlags::ST_RDONLY)) {
        return true;
    }
    let Ok(device) = std::fs::metadata(data_dir).map(|found| found.dev()) else { return false };
    let device = format!("{}:{}", nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    gave_up(&mounts, &device)
}

/// Whether the kernel says of the file system on this device that it takes no writes any more.
fn gave_up(mounts: &str, device: &str) -> bool {
    let of_device = |line: &&str| line.split(' ').nth(2) == Some(device);
    let options = |line: &str| {
        let options = line.rsplit(' ').next().unwrap_or_default();
        options.split(',').any(|option| matches!(option, "ro" | "emergency_ro" | "shutdown"))
    };
    mounts.lines().filter(of_device).any(options)
}

/// Whether the file system beside the data takes writes and has room. Nothing is synced: a look must be
/// cheap, and a disk that is only slow is not one that refuses (R9).
fn takes_writes(beside: &Path) -> bool {
    let existing: PathBuf = beside
        .ancestors()
        .find(|path| path.exists())
        .map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
    let free = nix::sys::statvfs::statvfs(&existing)
        .is_ok_and(|stat| stat.blocks_available() * stat.fragment_size() >= FREE_BYTES_MIN);
    free && nix::unistd::access(&existing, nix::unistd::AccessFlags::W_OK).is_ok()
}
