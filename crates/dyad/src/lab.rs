//! `dyad lab`: two real nodes on this machine, with faults on demand.

mod bench;
mod campaign;
mod clients;
mod print;
mod run;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use dyad_judge::cli::{FillArgs, JudgeArgs, LoadArgs};
use dyad_lab::LabConfig;
use dyad_lab::campaign::Kind;

pub use run::run;

/// Arguments of `dyad lab`
#[derive(Debug, Args)]
pub struct LabArgs {
    /// Which lab; labs with different names can run side by side
    #[arg(long, global = true, value_name = "NAME", default_value = LabConfig::DEFAULT_NAME)]
    pub name: String,

    /// What to do with it
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What to do with a lab
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Start two nodes and wait until the pair is complete
    ///
    /// The first start builds a disk image from Debian's packages, which takes a few minutes; it is kept
    /// in a cache. Needs root.
    Up(UpArgs),
    /// End a lab, whatever state it is in, and check that nothing is left of it
    Down,
    /// List all labs
    List,
    /// Show the nodes, their power and what is broken
    Status,
    /// Run a command in a node, or beside the pair with the name "client"
    ///
    /// "client" is this machine in the network where the pair's clients are: cuts of the cluster links do
    /// not reach it. The exit code is the command's.
    Exec {
        /// Which node, or "client"
        node: String,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// Switch a node's power, or tell it
    ///
    /// Off is a plug that is pulled: first nothing leaves the node any more, then it stops.
    Power {
        /// Which node
        node: String,
        /// What to do
        action: PowerArgument,
    },
    /// Cut cluster links; the nodes only hear silence
    Cut {
        /// Which link
        link: LinkArgument,
        /// Lose only what this node sends
        #[arg(long, value_name = "FROM")]
        one_way: Option<String>,
    },
    /// End every fault of network, disks, BMCs and hung nodes; power stays as it is
    Heal,
    /// Hang a node: every process stops, the power stays on
    Freeze {
        /// Which node
        node: String,
    },
    /// Let a hung node go on
    Thaw {
        /// Which node
        node: String,
    },
    /// Crash a node's etcd
    KillEtcd {
        /// Which node
        node: String,
    },
    /// Make a TCP port of a node unreachable for everybody
    BlockPort {
        /// Which node
        node: String,
        /// Which port
        port: u16,
    },
    /// Lose every packet of one established TCP connection, the busiest
    Stall {
        /// Which node
        node: String,
        /// A port at either end of the connection
        #[arg(long, default_value_t = 2380)]
        port: u16,
    },
    /// Make the disk under a node's etcd stall again and again
    SlowDisk {
        /// Which node
        node: String,
        /// How long each stall lasts
        #[arg(long, default_value_t = 500, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
        stall_ms: u64,
    },
    /// Make every fsync of a node's etcd slow
    SlowFsync {
        /// Which node
        node: String,
        /// How much longer each takes
        #[arg(long, default_value_t = 200, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=60_000))]
        delay_ms: u32,
    },
    /// Fill the disk under a node's etcd
    FullDisk {
        /// Which node
        node: String,
    },
    /// Shift a node's monotonic clock and uptime from its next boot on
    ///
    /// The wall clock is the machine's: the kernel has no namespace for it, so it cannot be shifted for
    /// one node.
    Clock {
        /// Which node
        node: String,
        /// Seconds ahead
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(i64).range(0..=1_000_000_000))]
        ahead: i64,
    },
    /// Make a node's BMC misbehave
    ///
    /// Faults: slow=MS (every answer), slow-power=MS (answers at once, acts later), hang, refuse,
    /// wrong-password, do-nothing (answers 200), server-error (500), malformed-json,
    /// stuck-powering-off, no-power-state. "none" heals it.
    Bmc {
        /// Whose BMC
        node: String,
        /// How
        fault: String,
    },
    /// Print the journals of both nodes, merged
    Logs {
        /// Only this node
        node: Option<String>,
        /// Go on printing what is added
        #[arg(short, long)]
        follow: bool,
        /// Only this unit, such as pacemaker
        #[arg(short, long)]
        unit: Option<String>,
    },
    /// Show what happened after the last fault, on both nodes and their BMCs, in milliseconds
    Timeline {
        /// Everything since the start of the lab
        #[arg(long)]
        all: bool,
        /// Write a picture to this file too
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Put load on etcd nodes and record every operation
    ///
    /// Clients write, compare-and-swap, insert, remove and read through every node, whatever fails, until
    /// the limit or an interrupt. Then each node is read once, for `dyad lab judge`. Any etcd will do; the
    /// nodes of a lab are reached from beside the pair: dyad lab exec client -- dyad lab load ...
    Load(Box<LoadArgs>),
    /// Fill an etcd with keys that nobody reads
    #[command(hide = true)]
    Fill(FillArgs),
    /// Measure how long things take, on a pair of its own
    ///
    /// Kills each node as leader and as follower, stops each in good order, with clients writing all the
    /// time; prints medians and spread. With --against, others are measured in the same run on the same nodes:
    /// leaders are killed and links are cut, both ways and one way, with everything encrypted. Use an optimised
    /// build on a quiet machine: make lab-bench, make lab-compare.
    Bench(BenchArgs),
    /// Random faults on a pair of its own, drawn from a seed, with clients writing and audits after every step
    ///
    /// After each step everything is repaired, and the pair has to be whole again by itself: one history,
    /// nothing acknowledged lost, no copy destroyed, no fencing loop, every decision the same when it is
    /// replayed. A campaign that fails (exit 3) tells its seed and keeps logs, decisions and histories.
    Campaign(CampaignArgs),
    /// Judge what clients saw: is it linearizable, and is anything acknowledged lost?
    ///
    /// Exit code 0 is good, 3 is bad and shown, 1 is undecided.
    Judge(JudgeArgs),
    /// The process behind a lab; started by `up`
    #[command(hide = true)]
    Supervise {
        /// Which lab
        lab: String,
    },
}

/// Arguments of `dyad lab up`
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The Debian release of the nodes
    #[arg(long, value_enum, default_value_t)]
    pub release: ReleaseArgument,
    /// A node and its addresses on the two links; twice, or not at all
    #[arg(long = "node", value_name = "NAME[=LINK1[,LINK2]]", value_parser = parse_node)]
    pub nodes: Vec<NodeArgument>,
    /// Use IPv6 addresses on the cluster links
    #[arg(long)]
    pub ipv6: bool,
    /// Corosync's token time-out in milliseconds
    #[arg(long, value_name = "MS")]
    pub token_ms: Option<u32>,
    /// The size of each node's disk for etcd
    #[arg(long, value_name = "MIB")]
    pub disk_mib: Option<u32>,
    /// Encrypt etcd's traffic, with certificates both ways
    #[arg(long, conflicts_with = "minimal")]
    pub tls: bool,
    /// Run etcd in a container, of an image made from the nodes' own etcd
    #[arg(long, conflicts_with = "minimal")]
    pub podman: bool,
    /// Dyad's package, which is installed in the nodes [default: the one beside this program]
    #[arg(long, value_name = "DEB", conflicts_with = "minimal")]
    pub package: Option<PathBuf>,
    /// Leave the nodes blank, each with its bundle in /root/bundles, for you to run `dyad setup --bundle`
    #[arg(long, conflicts_with = "minimal")]
    pub by_hand: bool,
    /// Only fencing, one small service and a plain etcd, instead of a pair as Dyad makes it
    #[arg(long)]
    pub minimal: bool,
    /// What Dyad is compared with, instead of a pair as Dyad makes it
    #[arg(long, value_enum, value_name = "RIVAL", conflicts_with_all = ["minimal", "tls", "podman", "package", "by_hand"])]
    pub rival: Option<RivalArgument>,
    /// Seconds by which the fencing of the first node is delayed: it wins a split
    #[arg(long, value_name = "S", requires = "minimal")]
    pub fence_delay: Option<u32>,
    /// Who switches the power: the distribution's `fence_redfish`, or `fence_dyad_redfish` from beside this
    /// program [default: dyad if it is there]
    #[arg(long, value_enum, requires = "minimal")]
    pub fence_agent: Option<FenceAgentArgument>,
    /// Do not run etcd
    #[arg(long, requires = "minimal")]
    pub no_etcd: bool,
}

/// What `dyad lab bench` takes.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// How often everything is done
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub rounds: u32,
    /// Corosync's token time-out in milliseconds
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    pub token_ms: u32,
    /// Fill the database with this much first; several sizes, one after the other, with pairs of their own
    #[arg(long, default_value = "0", value_name = "MB", value_delimiter = ',')]
    pub database_mb: Vec<u32>,
    /// Measure these on the same nodes, too: `fence_redfish` with a plain agent that restarts etcd with
    /// `--force-new-cluster`; the agent `podman-etcd` of Debian's newest resource-agents
    #[arg(long, value_enum, value_name = "RIVAL", value_delimiter = ',')]
    pub against: Vec<RivalArgument>,
    /// Draw what was found, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Measure nothing: print, and draw, what an earlier run printed with `-o json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rounds", "token_ms", "database_mb", "against"])]
    pub from: Option<PathBuf>,
}

/// What Dyad is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RivalArgument {
    /// `fence_redfish`, and a plain agent that restarts etcd with `--force-new-cluster`
    ForceNewCluster,
    /// `fence_redfish`, and the agent `podman-etcd` of Debian's newest resource-agents
    PodmanEtcd,
}

/// What `dyad lab campaign` takes.
#[derive(Debug, Args)]
pub struct CampaignArgs {
    /// What everything is drawn from [default: a new one, which is told]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many faults
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub faults: u32,
    /// No step begins after this time
    #[arg(long, value_name = "M", default_value_t = 720, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub minutes: u64,
    /// The Debian release of the nodes
    #[arg(long, value_enum, default_value_t)]
    pub release: ReleaseArgument,
    /// Only these kinds of faults: power, both, cut, one-way, link, freeze, etcd, port, stall, slow-disk,
    /// full-disk, bmc, no-proof, stop, maintenance, rejoin, old-copy, sensible, careless
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub only: Vec<Kind>,
    /// How many clients
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub clients: u32,
    /// Requests a second of all clients together, at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,
    /// Print what would be done, and end
    #[arg(long)]
    pub plan: bool,
    /// Keep everything in this new directory, also if it passes [default: only if it fails]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Make the decisions in this directory again, and judge its histories: nothing else is done
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "keep"])]
    pub replay: Option<PathBuf>,
    /// Dyad's package, which is installed in the nodes [default: the one beside this program]
    #[arg(long, value_name = "DEB")]
    pub package: Option<PathBuf>,
    /// Break this rule on both nodes, to see that it is caught
    #[cfg(feature = "broken-variants")]
    #[arg(long, value_name = "RULE")]
    pub broken: Option<String>,
}

/// A node as it is given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeArgument {
    /// Its name.
    pub name: String,
    /// Its addresses, as many as were given.
    pub addresses: Vec<IpAddr>,
}

fn parse_node(text: &str) -> Result<NodeArgument, String> {
    let (name, addresses) = text.split_once('=').unwrap_or((text, ""));
    let addresses: Vec<IpAddr> = addresses
        .split(',')
        .filter(|address| !address.is_empty())
        .map(|address| address.parse().map_err(|_| format!("{address} is not an IP address")))
        .collect::<Result<_, _>>()?;
    if addresses.len() > 2 {
        return Err("a node has two links".into());
    }
    Ok(NodeArgument { name: name.into(), addresses })
}

/// A Debian release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReleaseArgument {
    /// Debian 13: Pacemaker 3.0, etcd 3.5
    #[default]
    Trixie,
    /// Debian 12: Pacemaker 2.1, etcd 3.4
    Bookworm,
}

/// A fence agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FenceAgentArgument {
    /// `fence_dyad_redfish`
    Dyad,
    /// `fence_redfish`
    Distribution,
}

/// What to do with a node's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PowerArgument {
    /// Boot it
    On,
    /// Pull the plug
    Off,
    /// Pull the plug and boot it again
    Cycle,
    /// Tell whether it has power
    Status,
}

/// A cluster link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkArgument {
    /// The first link, where etcd's traffic runs too
    Link1,
    /// The second link
    Link2,
    /// Both at once
    All,
}
