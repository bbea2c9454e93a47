//! What can go wrong in a lab: each error names the step and the object, and advises where it can.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something in the lab did not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller is not root.
    #[error("the lab needs root: it makes namespaces, mounts and cgroups")]
    NotRoot,
    /// Programs that the lab runs are not installed.
    #[error("programs are missing on this machine: {}", .0.join(", "))]
    MissingPrograms(Vec<String>),
    /// The kernel or the machine lacks something that the lab needs.
    #[error("this machine cannot run a lab: {0}")]
    Machine(String),
    /// The configuration is wrong; nothing was tried.
    #[error("{0}")]
    Config(String),
    /// A lab of that name is there already.
    #[error("a lab named {0} exists already")]
    Exists(String),
    /// There is no lab of that name.
    #[error("there is no lab named {0}")]
    NotFound(String),
    /// The lab has no such node.
    #[error("there is no node named {node} in this lab; it has {}", .known.join(" and "))]
    NoSuchNode {
        /// The name that was asked for.
        node: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The node is not running.
    #[error("node {0} is powered off")]
    NodeOff(String),
    /// A program that the lab runs failed.
    #[error(transparent)]
    Program(#[from] dyad_program::Error),
    /// Something inside a node failed.
    #[error("node {node}: {what} failed: {said}")]
    Node {
        /// Which node.
        node: String,
        /// What was tried.
        what: &'static str,
        /// What it said.
        said: String,
    },
    /// A time limit ran out.
    #[error("{what} took longer than {} s; still missing: {missing}", .limit.as_secs_f64())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What was not yet true at the end.
        missing: String,
    },
    /// The operating system refused something.
    #[error("{step} {}", .object.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// On what.
        object: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The supervisor of the lab answered with an error, or not at all.
    #[error("lab {lab}: {reason}")]
    Supervisor {
        /// The lab's name.
        lab: String,
        /// What it said.
        reason: String,
    },
    /// Something was left behind.
    #[error("lab {lab} left behind: {}", .residue.join("; "))]
    Residue {
        /// The lab's name.
        lab: String,
        /// What is still there.
        residue: Vec<String>,
    },
}

/// The result of something done in the lab.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotRoot => Some("run it with sudo".into()),
            Self::MissingPrograms(_) => Some(
                "on Debian: apt-get install systemd-container debootstrap nftables iproute2 \
                 util-linux e2fsprogs strace"
                    .into(),
            ),
            Self::Exists(name) => Some(format!("`dyad lab down --name {name}` ends it")),
            Self::NotFound(_) => Some("`dyad lab up` starts one; `dyad lab list` names all".into()),
            Self::NodeOff(node) => Some(format!("`dyad lab power {node} on`")),
            Self::Supervisor { lab, .. } => {
                Some(format!("`dyad lab down --name {lab}` cleans up in any case"))
            }
            _ => None,
        }
    }

    /// Wraps an I/O error with the step and the object.
    pub(crate) fn io(
        step: &'static str,
        object: impl AsRef<Path>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let object = object.as_ref().to_owned();
        move |source| Self::Io { step, object, source }
    }
}

/// `nix` gives bare error numbers; the rest of the lab speaks `std::io::Error`.
pub(crate) fn errno(error: nix::errno::Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(error as i32)
}

/// An error with its causes, once each.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
