//! Why something could not be rendered.

use std::path::{Path, PathBuf};

/// A step that failed, on which object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("cannot {step} {}", path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A credentials file cannot be used. Nothing of it is told.
    #[error("the BMC credentials of {node} cannot be used")]
    Credentials {
        /// The node.
        node: String,
        /// Why not.
        source: dyad_power::CredentialsError,
    },
    /// A secret is open to others, or is not what it should be.
    #[error("{} cannot be used: {why}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// Why not. Nothing of its content.
        why: String,
    },
    /// A certificate could not be made.
    #[error("cannot make the certificate of {subject}: {why}")]
    Certificate {
        /// Whose.
        subject: String,
        /// Why not.
        why: String,
    },
}

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Credentials { source, .. } => Some(format!(
                "write `username=...` and `password=...` into {0}, each on a line of its own, and chmod 600 {0}",
                source.path.display()
            )),
            Self::Secret { path, .. } => {
                Some(format!("chmod go= {}; if it is damaged, move it away", path.display()))
            }
            Self::Io { .. } | Self::Certificate { .. } => None,
        }
    }
}

/// Turns an error of the file system into one that says what was tried on what.
pub(crate) fn failed<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |source| Error::Io { step, path: path.to_owned(), source }
}
