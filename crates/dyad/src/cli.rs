//! The one definition of the command line. Help, manual pages and completions come from it.

mod day_two;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use day_two::{
    ArchiveCommand, ConfirmArguments, DrillArguments, GatherArguments, MaintenanceArguments,
    MaintenanceCommand, ReplaceArguments, ResolveArguments, RotateAuthkey, RotateCertificates,
    RotateCommand, ServeArguments, StatusArguments,
};

use crate::output::Format;

/// Two servers, one dependable control plane
///
/// Dyad decides which copy of the data may be served, by whom, and on what proof, when one of two servers
/// is lost. It runs on unmodified Corosync, Pacemaker, etcd and systemd.
#[derive(Debug, Parser)]
#[command(name = "dyad", version, propagate_version = true, max_term_width = 80)]
pub struct Cli {
    /// How data is printed: for people, or as one versioned JSON document
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        hide_possible_values = false
    )]
    pub output: Format,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a first pair.yaml
    ///
    /// Writes a commented starter, or converts an OpenShift install-config with two control-plane replicas.
    /// Never overwrites a file. Passwords go to files of their own (mode 0600) beside it.
    Init(InitArguments),
    /// Say what is wrong or weak before it matters
    ///
    /// Checks the file, the timing arithmetic, the credentials and both BMCs; on one of the two nodes also
    /// that machine: BMC identity, links, ports, versions, disk. Changes nothing, never switches power. The
    /// exit code is 3 if there are errors.
    Check(CheckArguments),
    /// Write everything that the two nodes need
    ///
    /// Corosync and Pacemaker configuration, units, certificates, BMC credentials. The same input gives the
    /// same output: keys and certificates are made once and kept in the secrets directory.
    Render(RenderArguments),
    /// Make this machine one node of a pair
    ///
    /// Runs on each of the two nodes by itself, in no order, and needs nothing but the node's own bundle: a
    /// directory, one below /etc/dyad/nodes that bears the machine's name, or a bundle that was unpacked at
    /// the root. Every step has a limit and can be done again; on a running pair nothing changes. Success
    /// means proven: both nodes vote, fencing answers, a write went through this node. What it came to is
    /// kept in /var/lib/dyad/setup.json.
    Setup(SetupArguments),
    /// Two real nodes on this machine, with faults on demand
    Lab(crate::lab::LabArgs),
    /// Look into etcd's data directories, or take over from a dead etcd member
    Etcd {
        /// What to do with etcd
        #[command(subcommand)]
        command: EtcdCommand,
    },
    /// Tell where the pair stands: can I lose a node now?
    ///
    /// The first line is the answer. Works on either node, without quorum, with etcd or Pacemaker down: every
    /// source is asked at the same time, and what did not answer is named. Changes nothing. The exit code is
    /// the state: 0 is protected, see `dyad exit-codes`.
    Status(StatusArguments),
    /// Say whether an upgrade or a change of configuration may start
    ///
    /// Exit 0 only if the pair is protected and everything about it is known: either node may go away. Else
    /// exit 3, with the reason. For scripts and pre-checks.
    Gate,
    /// Take a node out of service for planned work, and back
    Maintenance {
        /// What to do
        #[command(subcommand)]
        command: MaintenanceCommand,
    },
    /// Choose between two datasets that both went on alone
    ///
    /// Without `--keep` shows what both nodes hold. With it, typed on the node that gives way: this node's
    /// data are put aside whole, never deleted, and it joins the other one.
    Resolve(ResolveArguments),
    /// Datasets that were moved aside on this node
    Archive {
        /// What to do
        #[command(subcommand)]
        command: ArchiveCommand,
    },
    /// Test whether the nodes can be switched off when it matters
    ///
    /// Asks both BMCs and tells what they say; exit 3 if one does not answer. With `--really NODE` the other
    /// node is fenced, as if it had been lost, and what that took is measured: only on a protected pair.
    Drill(DrillArguments),
    /// Put new passwords, certificates and keys into use
    Rotate {
        /// What to do
        #[command(subcommand)]
        command: RotateCommand,
    },
    /// Prepare for another machine in the place of a node that is gone
    ///
    /// Typed on the node that serves alone. A machine with the old name, addresses and BMC needs nothing but its
    /// bundle; for a new name, address or BMC this node takes the new description into use first (`--bundle`),
    /// without an interruption. Refused (exit 4) while the old node is in the cluster. The new machine is then set up
    /// like any other, and gets its copy of the data.
    Replace(ReplaceArguments),
    /// Put everything into one file that somebody needs who has to find out what happened
    ///
    /// States, logs, configuration, versions, decisions with their facts; passwords and keys are removed. Works
    /// when half of it is broken: a step that fails or hangs is noted. Includes the other node's bundle if it
    /// is reached by SSH.
    Gather(GatherArguments),
    /// Change a running pair: apply a new description, on both nodes at once
    ///
    /// Run it on both nodes, each with its new bundle. Shows what differs from what is installed, and what
    /// each difference takes. Detection, fencing, BMCs and credentials change at once and without a restart;
    /// what cannot be changed on a running pair is refused. Nothing is installed before both nodes have the
    /// same new description, so that they never run with different time-outs.
    Apply(ApplyArguments),
    /// Take this machine out of its pair
    ///
    /// Leaves in good order, so that the other node goes on, stops and disables what runs, and removes what
    /// the set-up brought: configuration, credentials, certificates. The data stay, and so does the record
    /// that this machine held them. Refused if nobody would serve any more, unless that is meant.
    Uninstall(UninstallArguments),
    /// Serve the status page, metrics and the status document
    ///
    /// `/` is a page for people, `/metrics` is for Prometheus, `/status.json` is what `dyad status -o json`
    /// prints, `/healthz` tells whether this process sees anything, `/events` tells when there is something
    /// new. Read-only. Other machines may look only with TLS and a token.
    Serve(ServeArguments),
    /// Show the last decisions of this node, each with its rule and reason
    Explain {
        /// How many
        #[arg(long, short = 'n', default_value_t = 10, value_name = "N")]
        last: usize,
    },
    /// State that the other node is down, so that this one goes on alone
    ///
    /// For when no machine can prove it: the BMC is dead or out of reach, or the data here may be old. Shows
    /// what is known, and asks for the other node's name. Refused (exit 4) while that node is in the cluster,
    /// answers on any address, or its BMC says On. Who said so, when and why is written down. The other node
    /// is switched off first if its BMC can be reached.
    Confirm(ConfirmArguments),
    /// Decide on logged facts again: the decision, the rule and the reason
    ///
    /// Agents log the facts of every decision as one JSON document. This prints what follows from such a
    /// document, and does nothing.
    Decide {
        /// The document; `-` reads standard input
        facts: PathBuf,
    },
    /// Print the exit codes and what they mean
    ExitCodes,
    /// Print a shell completion script
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// What `dyad init` takes.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The file to write
    #[arg(default_value = "pair.yaml")]
    pub file: PathBuf,
    /// Convert this OpenShift install-config.yaml
    #[arg(long, value_name = "INSTALL_CONFIG")]
    pub from: Option<PathBuf>,
    /// Print the JSON Schema of pair.yaml instead, for editors
    #[arg(long, conflicts_with = "from")]
    pub schema: bool,
}

/// What `dyad check` takes.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The description of the pair
    #[arg(default_value = "pair.yaml")]
    pub file: PathBuf,
    /// Do not speak to the BMCs or the name service
    #[arg(long)]
    pub offline: bool,
}

/// What `dyad setup` takes.
#[derive(Debug, Args)]
pub struct SetupArguments {
    /// The bundle of this node, as `dyad render` wrote it
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Set up both nodes of this pair.yaml from here, with your own `ssh` as root
    ///
    /// Renders, gives each node its bundle, and runs the set-up on both at the same time. The nodes must have the
    /// package, and `ssh NAME` must reach each by its name without asking.
    #[arg(long, value_name = "PAIR_YAML", conflicts_with_all = ["bundle", "once", "take_over_unit", "take_over_manifest", "take_over_openshift"])]
    pub over_ssh: Option<PathBuf>,
    /// An etcd that runs here already, as this systemd unit: take it over with its data
    ///
    /// One member, or two on two nodes; run it on each node that has one. It keeps its identity and
    /// everything in it; the old unit is stopped and disabled, and brought back if the new one does not
    /// serve. How long clients waited is shown.
    #[arg(long, value_name = "UNIT", requires = "take_over_data", conflicts_with = "once")]
    pub take_over_unit: Option<String>,
    /// The same for an etcd that kubelet runs as a static pod, by its manifest
    ///
    /// The manifest is moved away, and nothing else is done before the container is gone.
    #[arg(long, value_name = "FILE", requires = "take_over_data", conflicts_with_all = ["once", "take_over_unit"])]
    pub take_over_manifest: Option<PathBuf>,
    /// The same for the etcd of an OpenShift cluster of two nodes, by the URL of its API server
    ///
    /// Its etcd operator is told that etcd is external (`managedEtcdKind` in its `ConfigMap`), so that it does not put
    /// the static pod back; then the pod's manifest is moved away (`--take-over-manifest`, or
    /// /etc/kubernetes/manifests/etcd-pod.yaml). Only if the control plane is `DualReplica`.
    #[arg(long, value_name = "URL", requires_all = ["take_over_data", "openshift_token_file", "openshift_ca_file"], conflicts_with_all = ["once", "take_over_unit"])]
    pub take_over_openshift: Option<String>,
    /// A file with a token that may read the cluster's infrastructure and change that `ConfigMap`
    #[arg(long, value_name = "FILE", requires = "take_over_openshift")]
    pub openshift_token_file: Option<PathBuf>,
    /// The authority of the API server's certificate
    #[arg(long, value_name = "FILE", requires = "take_over_openshift")]
    pub openshift_ca_file: Option<PathBuf>,
    /// Its data directory, the one with `member` in it
    #[arg(long, value_name = "DIR")]
    pub take_over_data: Option<PathBuf>,
    /// Do nothing if this node was set up already, with the same description
    #[arg(long)]
    pub once: bool,
}

/// What `dyad uninstall` takes.
#[derive(Debug, Args)]
pub struct UninstallArguments {
    /// Do not ask: this machine, named here, is to be no node any more
    #[arg(long, value_name = "NAME")]
    pub yes_uninstall: Option<String>,
    /// The other node does not vote, and nobody is to serve any more
    #[arg(long)]
    pub although_nobody_serves: bool,
}

/// What `dyad apply` takes.
#[derive(Debug, Args)]
pub struct ApplyArguments {
    /// The new bundle of this node, as `dyad render` wrote it
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Only show what differs
    #[arg(long)]
    pub dry_run: bool,
    /// How long to wait for the other node
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub wait: u64,
}

/// What `dyad render` takes.
#[derive(Debug, Args)]
pub struct RenderArguments {
    /// The description of the pair
    #[arg(default_value = "pair.yaml")]
    pub file: PathBuf,
    /// The directory to write to
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// In which form
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub format: RenderFormat,
    /// Only this node
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Where keys and certificates are kept; beside the file if nothing is said
    #[arg(long, value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// Make something anew first, for `dyad rotate` on the nodes
    #[arg(long, value_enum, value_name = "WHAT")]
    pub renew: Option<Renew>,
}

/// What `dyad render --renew` makes anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Renew {
    /// etcd's certificates, by the same authority
    Certificates,
    /// A new authority beside the old one: both are trusted, the old one signs
    TrustNewAuthority,
    /// The new authority signs; both are trusted
    UseNewAuthority,
    /// The old authority is trusted no more
    DropOldAuthority,
    /// Corosync's key
    Authkey,
}

/// The forms of `dyad render`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// A directory per node, laid out like its root
    #[default]
    Dir,
    /// A tar archive per node, to be unpacked at its root
    Tar,
    /// An Ignition 3.4 file per node
    Ignition,
    /// One OpenShift MachineConfig for both nodes
    Machineconfig,
}

/// What to do with etcd
#[derive(Debug, Subcommand)]
pub enum EtcdCommand {
    /// Tell what a data directory holds, without starting etcd
    ///
    /// Reads the write-ahead log, the newest usable snapshot and the database file. Writes nothing, locks
    /// nothing, and does not disturb an etcd that runs on the directory.
    ///
    /// The class is what the data allow its owner to do: `pair` (this member is a voter and so is its peer),
    /// `alone` (it is the only voter), `learner`, `left` (it was removed), `none` (no data), `broken`. What is
    /// not known to be committed counts only where it makes the class worse. Members are shown as of the last
    /// entry of the log, the revision as of what the database has applied.
    ///
    /// Exits with 3 if the dataset is broken.
    Inspect {
        /// The data directory, the one with `member` in it
        dir: PathBuf,
    },
    /// Raise the commit mark of a data directory to its last entry: the last resort only
    ///
    /// `etcd --force-new-cluster` drops every entry behind the commit mark, acknowledged writes among them.
    /// Sealed before, the directory keeps them. One record is appended to the log and synced; doing it twice
    /// changes nothing. Refused (exit 4) unless the class is `pair` or `alone` and no etcd runs.
    Seal {
        /// The data directory, the one with `member` in it
        dir: PathBuf,
    },
    /// Let the survivor of two voters go on alone, without a restart
    ///
    /// When one of two etcd members is dead for certain, a vote is missing, not data. This casts that one
    /// vote at the survivor's own peer port, acknowledges what it then appends, and has the dead member
    /// removed. The survivor keeps running and keeps its whole log: nothing acknowledged is lost, as long as
    /// the survivor was a full member while both were running.
    ///
    /// Run it on the survivor's node, with its own peer certificate. Nobody checks the proof: it is kept in
    /// the output, so that it can be told later why this was done. From the first vote on the dead member
    /// must never start again with its old data.
    ///
    /// Refused (exit 4) if the dead member answers, if the survivor is a learner, if others vote too, or if
    /// the survivor's etcd is older than 3.4.21 or 3.5.5.
    TakeOver(Box<TakeOver>),
}

/// What a take-over needs to know
#[derive(Debug, Args)]
pub struct TakeOver {
    /// The survivor's client URL
    #[arg(long, value_name = "URL")]
    pub endpoint: String,
    /// The authority of the survivor's client port
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The certificate to show at the client port
    #[arg(long, value_name = "FILE", requires = "key", requires = "cacert")]
    pub cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The survivor's peer URL, if it is not the first that it advertises
    #[arg(long, value_name = "URL")]
    pub peer_endpoint: Option<String>,
    /// The authority of the survivor's peer port, if it is not that of the client port
    #[arg(long, value_name = "FILE")]
    pub peer_cacert: Option<PathBuf>,
    /// The survivor's own peer certificate, if it is not that of the client port
    #[arg(long, value_name = "FILE", requires = "peer_key", requires = "peer_cacert")]
    pub peer_cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "peer_cert")]
    pub peer_key: Option<PathBuf>,
    /// The survivor's data directory, read if its client port does not answer
    ///
    /// An etcd that was just started serves no client before it has a leader.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The dead member, by its name or id
    #[arg(long, value_name = "NAME|ID")]
    pub dead: String,
    /// How you know that it is down, and that it stays down
    #[arg(long, value_name = "TEXT")]
    pub proof: String,
    /// How long it may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub limit: u64,
    /// The file that keeps two take-overs on one node apart [default: one in /run/lock]
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
}
