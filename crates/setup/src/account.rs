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

/// Writes a credentials file that only its owner can read. An existing file with another content is left
/// alone, and is an error; the same content is what an interrupted attempt left, and is fine.
pub fn write_account(path: &Path, username: &str, password: &Secret) -> Result<(), Error> {
    if let Some(directory) = path.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(failed("create", directory))?;
    }
    let content = text(username, password);
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match opened {
        Ok(mut file) => file.write_all(content.as_bytes()).map_err(failed("write", path)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let kept = Credentials::read(&resolve(Path::new(""), path));
            let is_same = kept.is_ok_and(|kept| text(&kept.username, &kept.password) == content);
            if is_same { Ok(()) } else { Err(failed("create", path)(error)) }
        }
        Err(error) => Err(failed("create", path)(error)),
    }
}
