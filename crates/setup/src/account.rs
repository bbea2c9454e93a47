//! BMC accounts: where they come from, and the files they go to.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use dyad_http::Secret;
use dyad_pair_file::file;
use dyad_power::Credentials;

use crate::error::{Error, failed};

/// The account of a node's BMC as this machine knows it; none if it is kept on the nodes only.
pub(crate) fn account(node: &file::Node, base: &Path) -> Result<Option<Credentials>, Error> {
    let credentials = &node.bmc.credentials;
    if let Some(path) = &credentials.file {
        let path = resolve(base, path);
        let read = Credentials::read(&path);
        return read
            .map(Some)
            .map_err(|source| Error::Credentials { node: node.name.clone(), source });
    }
    Ok(match (&credentials.username, &credentials.password) {
        (Some(username), Some(password)) => {
            Some(Credentials { username: username.clone(), password: password.0.clone() })
        }
        _ => None,
    })
}

/// A path of the file, seen from where the file is. Absolute, because what is read as a secret must not
/// depend on the working directory.
pub(crate) fn resolve(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// The text of a credentials file.
pub(crate) fn text(username: &str, password: &Secret) -> String {
    format!("username={username}\npassword={}\n", password.expose())
}

/// Writes a credentials file that only its owner can read. An existing file is left alone.
pub fn write_account(path: &Path, username: &str, password: &Secret) -> Result<(), Error> {
    if let Some(directory) = path.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(failed("create", directory))?;
    }
    write_private(path, text(username, password).as_bytes())
}

/// Creates a file that only its owner can read. An existing file is left alone, and is an error.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), Error> {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = opened.map_err(failed("create", path))?;
    file.write_all(content).map_err(failed("write", path))
}
