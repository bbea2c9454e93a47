//! The directory beside `pair.yaml` that holds what is made once and kept: Corosync's key, the pair's
//! authority, the certificates it issued. Same input, same output: without it every rendering would differ.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, failed};

/// No secret is larger.
const BYTES_MAX: u64 = 64 * 1024;
/// Corosync's key, in bytes: what `corosync-keygen` makes.
const AUTHKEY_BYTES: usize = 256;

/// What Corosync's key is kept as.
const AUTHKEY: &str = "corosync-authkey";

/// The secrets directory of this description: `pair.yaml` has `pair-secrets` beside it.
pub fn secrets_path(pair_file: &Path) -> PathBuf {
    let stem = pair_file.file_stem().unwrap_or_default().to_string_lossy();
    pair_file.with_file_name(format!("{stem}-secrets"))
}

/// The secrets directory.
#[derive(Debug, Clone)]
pub struct SecretsDir {
    path: PathBuf,
}

impl SecretsDir {
    /// Opens the directory, and makes it if there is none.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(failed("create", path))?;
        let secrets = Self { path: path.to_owned() };
        refuse_open_to_others(path, &std::fs::metadata(path).map_err(failed("read", path))?)?;
        Ok(secrets)
    }

    /// The content of this file, if it is there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join(name);
        let file = match std::fs::File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed("read", &path))?,
        };
        refuse_open_to_others(&path, &file.metadata().map_err(failed("read", &path))?)?;
        let mut content = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut content).map_err(failed("read", &path))?;
        Ok(Some(content))
    }

    /// The content of this file; made and kept if there is none. Of two renderings at the same time one
    /// makes it, and both use it.
    pub(crate) fn read_or_make(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        if let Some(content) = self.read(name)? {
            return Ok(content);
        }
        let made = make()?;
        match self.temporary(name, &made)?.persist_noclobber(self.path.join(name)) {
            Ok(_) => Ok(made),
            Err(lost) if lost.error.kind() == std::io::ErrorKind::AlreadyExists => {
                Ok(self.read(name)?.unwrap_or(made))
            }
            Err(lost) => Err(failed("write", &self.path.join(name))(lost.error)),
        }
    }

    /// Puts this content in the place of what was there.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.path.join(name);
        let file = self.temporary(name, content)?;
        file.persist(&path).map(drop).map_err(|lost| failed("write", &path)(lost.error))
    }

    /// Removes this file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn temporary(&self, name: &str, content: &[u8]) -> Result<NamedTempFile, Error> {
        let path = self.path.join(name);
        // A temporary file is made with mode 0600.
        let mut file = NamedTempFile::new_in(&self.path).map_err(failed("write", &path))?;
        file.write_all(content).map_err(failed("write", &path))?;
        file.as_file().sync_all().map_err(failed("write", &path))?;
        Ok(file)
    }

    /// Makes a new key for Corosync in the place of the old one.
    pub(crate) fn renew_authkey(&self) -> Result<(), Error> {
        self.replace(AUTHKEY, &random_key()?)
    }

    /// Corosync's key.
    pub(crate) fn authkey(&self) -> Result<Vec<u8>, Error> {
        let key = self.read_or_make(AUTHKEY, random_key)?;
        if key.len() < 128 {
            let why = format!("it has {} bytes; Corosync needs 128 or more", key.len());
            return Err(Error::Secret { path: self.path.join(AUTHKEY), why });
        }
        Ok(key)
    }
}

fn random_key() -> Result<Vec<u8>, Error> {
    let path = Path::new("/dev/urandom");
    let mut key = vec![0; AUTHKEY_BYTES];
    let mut source = std::fs::File::open(path).map_err(failed("open", path))?;
    source.read_exact(&mut key).map_err(failed("read", path))?;
    Ok(key)
}

/// A secret that others can read is none.
fn refuse_open_to_others(path: &Path, found: &std::fs::Metadata) -> Result<(), Error> {
    let mode = found.permissions().mode() & 0o7777;
    let others = mode & 0o077;
    if others == 0 {
        return Ok(());
    }
    let why = format!("its mode is {mode:04o}, so others can read it");
    Err(Error::Secret { path: path.to_owned(), why })
}
