//! The one definition of the command line. Help, manual pages and completions come from it.

use clap::{Parser, Subcommand};

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
