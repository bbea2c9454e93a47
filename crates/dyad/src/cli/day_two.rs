//! What the commands of day two take: seeing, steering, planned work, asking for help.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What `dyad status` takes.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Look again and again, until interrupted
    #[arg(long, short)]
    pub watch: bool,
    /// How long to wait for a source that does not answer [default: 260, more on a busy machine]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub limit_ms: Option<u64>,
}

/// Planned work on one node
#[derive(Debug, Subcommand)]
pub enum MaintenanceCommand {
    /// Take a node out of service: it leaves in good order, the other serves alone
    ///
    /// Runs on either node. Afterwards the node may be rebooted or shut down (`systemctl reboot`, `systemctl
    /// poweroff`): that is no failure, and nobody fences it. It stays out of service until `dyad maintenance
    /// end`, over reboots too. Refused (exit 4) if the other node could not go on.
    Start(MaintenanceArguments),
    /// Take a node back into service: it rejoins by itself
    End(MaintenanceArguments),
}

/// What `dyad maintenance` takes.
#[derive(Debug, Args)]
pub struct MaintenanceArguments {
    /// Which node
    pub node: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How long to wait for the end of it
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub wait: u64,
}

/// What `dyad resolve` takes.
#[derive(Debug, Args)]
pub struct ResolveArguments {
    /// The node whose data are kept: the other one, seen from here
    #[arg(long, value_name = "NODE")]
    pub keep: Option<String>,
    /// Do not ask: the data of this node, named here, are put aside
    #[arg(long, value_name = "NODE", requires = "keep")]
    pub yes_give_up: Option<String>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How long to wait until this node has joined
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub wait: u64,
}

/// Datasets that were moved aside
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// List them, oldest first
    List,
    /// Put one back as this node's dataset
    ///
    /// Only on a node in maintenance, with etcd at rest. What is there now is put aside. When the maintenance
    /// ends, the rules decide as ever: a copy that both nodes went on without is not served by itself.
    Restore {
        /// Its number
        number: u64,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Delete some, for good
    ///
    /// Only on a protected pair: two newer copies serve then. One with a history of its own (diverged) is
    /// deleted only with `--diverged-too`.
    Prune {
        /// Their numbers
        #[arg(required = true)]
        numbers: Vec<u64>,
        /// Delete those with writes that exist nowhere else, too
        #[arg(long)]
        diverged_too: bool,
    },
}

/// What `dyad drill` takes.
#[derive(Debug, Args)]
pub struct DrillArguments {
    /// Fence this node now: the other one, seen from here
    #[arg(long, value_name = "NODE")]
    pub really: Option<String>,
    /// Do not ask for the name
    #[arg(long, requires = "really")]
    pub yes: bool,
    /// How long to wait until the pair is protected again
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wait: u64,
}

/// Put new secrets into use
#[derive(Debug, Subcommand)]
pub enum RotateCommand {
    /// A new user name or password of a node's BMC
    ///
    /// The new ones are tried at the BMC before the old ones are replaced; nothing is restarted. Set them at
    /// the BMC first, then run this on both nodes.
    Bmc {
        /// The node that the BMC belongs to
        node: String,
        /// A root-only file with the lines username=... and password=...
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
    /// New certificates of this node's etcd
    ///
    /// They are tried at the other node's running etcd before the old ones are replaced, and refused if it would not
    /// take them. etcd reads certificates anew at each handshake, so nothing is restarted. It reads the authorities
    /// that it trusts at its start only: if those change, this node leaves for maintenance and comes back. On one
    /// node after the other, never on both at once.
    #[command(name = "etcd-certs")]
    EtcdCerts(RotateCertificates),
    /// A new key of Corosync, which hides and signs what the two nodes tell each other
    ///
    /// Run it on both nodes, each with its bundle of the same `dyad render --renew authkey`. Neither does anything
    /// before both have the new key on their disks; then both put it in place, and Corosync changes over without
    /// losing a message. Nothing is restarted.
    Authkey(RotateAuthkey),
}

/// What `dyad rotate etcd-certs` takes.
#[derive(Debug, Args)]
pub struct RotateCertificates {
    /// A directory laid out like this node's root: its new bundle, or one with the files that the pair names
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How long to wait until this node has left, and has come back
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wait: u64,
}

/// What `dyad rotate authkey` takes.
#[derive(Debug, Args)]
pub struct RotateAuthkey {
    /// The new bundle of this node
    #[arg(long, value_name = "DIR")]
    pub from: PathBuf,
    /// How long to wait for the other node
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wait: u64,
}

/// What `dyad replace` takes.
#[derive(Debug, Args)]
pub struct ReplaceArguments {
    /// The node that is gone
    pub node: String,
    /// This node's bundle of a rendering in which the other one has its new name, addresses or BMC
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// What `dyad gather` takes.
#[derive(Debug, Args)]
pub struct GatherArguments {
    /// The file to write [default: dyad-NODE-TIME.tar.zst here]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How far back the system log goes
    #[arg(long, value_name = "N", default_value_t = 120)]
    pub minutes: u64,
    /// Leave the other node out
    #[arg(long)]
    pub only_here: bool,
    /// Write the bundle to standard output
    #[arg(long, conflicts_with = "out")]
    pub stdout: bool,
}

/// What `dyad serve` takes.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9470")]
    pub listen: std::net::SocketAddr,
    /// The certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A root-only file with the token that others have to show, as bearer token or as password
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How often to look at the pair
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub interval: u64,
}

/// What `dyad confirm` takes.
#[derive(Debug, Args)]
pub struct ConfirmArguments {
    /// Do not ask: the other node, named here, is down
    #[arg(long, value_name = "NAME")]
    pub yes_peer_is_down: Option<String>,
    /// Accept that what the other node alone has written is lost
    #[arg(long)]
    pub accept_possible_loss: bool,
    /// Go on although the other node answers on an address or its BMC says On
    #[arg(long)]
    pub although_it_seems_up: bool,
    /// Why you know, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// How long to wait until this node serves
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub wait: u64,
}
