//! What can be wrong, and what follows from it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a directory could not be judged. Damage is not among it: a damaged directory has class `Broken`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files may be in order, but this process must not read them.
    #[error("no permission to read {}", path.display())]
    Denied {
        /// What may not be read.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Reading failed for a reason that says nothing about the files, such as too many open files.
    #[error("cannot read {}", path.display())]
    Io {
        /// What was to be read.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// An etcd runs on the directory and no consistent view of it was got.
    #[error("{} is in use and changed during each of {tries} attempts to read it; the last one found: {last}", path.display())]
    Unsettled {
        /// The directory.
        path: PathBuf,
        /// How often it was tried.
        tries: u32,
        /// What did not fit together the last time.
        last: String,
    },
}

/// What is wrong with the files, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The file, from the data directory on.
    pub(crate) file: String,
    /// The byte at which it was found, if it is a matter of one place.
    pub(crate) offset: Option<u64>,
    /// What is wrong.
    pub(crate) what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at byte {offset}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Why a read ended early.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The files are damaged: class `Broken`.
    Damage(Damage),
    /// The files changed while they were read: try again.
    Changed(String),
    /// Nothing can be said about the files.
    Error(Error),
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// Damage at one place of a file.
pub(crate) fn damage_at(file: &str, offset: u64, what: impl Into<String>) -> Fault {
    Damage { file: file.to_owned(), offset: Some(offset), what: what.into() }.into()
}

/// Damage of a file or directory as a whole.
pub(crate) fn damage(file: &str, what: impl Into<String>) -> Fault {
    Damage { file: file.to_owned(), offset: None, what: what.into() }.into()
}
