//! Small records on disk, each one JSON document, replaced whole.
//!
//! A durable record is on the disk when the call returns: the file and its directory entry are fsynced. A
//! power cut at any instant leaves the old record or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No record is larger.
const SIZE_MAX: u64 = 64 << 10;

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("cannot {step} {}", path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is there but is not a record.
    #[error("{} is not a valid record", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl Error {
    /// Whether there was no room.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

pub(crate) fn failed<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Io { step, path: path.to_owned(), source }
}

/// Reads a record; `None` if there is none.
///
/// A record that is there but cannot be read is an error: a mark that fails to be read must not look like a
/// mark that was never written.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed("open", path))?,
    };
    let mut text = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut text).map_err(failed("read", path))?;
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|source| Error::Malformed { path: path.to_owned(), source })
}

/// Writes a record and returns when it is on the disk.
pub fn write_durable<T: Serialize>(path: &Path, record: &T) -> Result<(), Error> {
    replace(path, record, true)
}

/// Writes a record that a reboot may lose.
pub fn write_volatile<T: Serialize>(path: &Path, record: &T) -> Result<(), Error> {
    replace(path, record, false)
}

/// Removes a record, if it is there, and returns when that is on the disk.
pub fn remove_durable(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed("remove", path))?,
    }
    sync_directory(parent(path))
}

/// Makes a directory entry durable.
pub fn sync_directory(path: &Path) -> Result<(), Error> {
    let directory = File::open(path).map_err(failed("open", path))?;
    directory.sync_all().map_err(failed("sync", path))
}

/// Creates a directory and its parents, and returns when they are on the disk.
pub fn create_directory(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let above = parent(path);
    create_directory(above)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other.map_err(failed("create", path))?,
    }
    sync_directory(above)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace<T: Serialize>(path: &Path, record: &T, durable: bool) -> Result<(), Error> {
    let directory = parent(path);
    create_directory(directory)?;
    let mut text = serde_json::to_vec_pretty(record)
        .map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    text.push(b'\n');
    let next = path.with_extension("next");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&next)
        .map_err(failed("create", &next))?;
    file.write_all(&text).map_err(failed("write", &next))?;
    if durable {
        file.sync_all().map_err(failed("sync", &next))?;
    }
    drop(file);
    fs::rename(&next, path).map_err(failed("replace", path))?;
    if durable {
        sync_directory(directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// What was written is read back, through directories that did not exist; a later record replaces it.
    #[test]
    fn records_are_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/record.json");
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), None);
        write_durable(&path, &vec![1, 2, 3]).unwrap();
        write_volatile(&path, &vec![4]).unwrap();
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), Some(vec![4]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        remove_durable(&path).unwrap();
        remove_durable(&path).unwrap();
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), None);
    }

    /// A half-written successor, as a power cut may leave it, does not hide the record.
    #[test]
    fn a_torn_successor_is_harmless() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_durable(&path, &1).unwrap();
        fs::write(path.with_extension("next"), b"{\"half").unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), Some(1));
        write_durable(&path, &2).unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), Some(2));
    }

    /// A damaged record is an error that names the file, never "there is none".
    #[test]
    fn a_damaged_record_is_not_an_absent_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        for text in ["", "{", "null garbage"] {
            fs::write(&path, text).unwrap();
            let error = read::<u32>(&path).unwrap_err();
            assert!(error.to_string().contains("record.json is not a valid record"), "{error}");
        }
    }
}
