//! The one definition of the command line. Help, manual pages and completions come from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Two real nodes on this machine, with faults on demand
    Lab(crate::lab::LabArgs),
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
