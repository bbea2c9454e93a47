//! Opening what lies in a data directory: regular files and directories, never through a link.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::fault::{Error, Fault, Result, damage, damage_at};

/// How many names a directory may hold. etcd keeps five segments and five snapshots.
const NAMES_MAX: usize = 10_000;

/// A data directory, or a part of it, and how it is called in messages.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// From the data directory on: `member/wal/...`.
    pub(crate) label: String,
}

impl Place {
    pub(crate) fn root(dir: &Path) -> Self {
        Self { path: dir.to_owned(), label: String::new() }
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        let label =
            if self.label.is_empty() { name.to_owned() } else { format!("{}/{name}", self.label) };
        Self { path: self.path.join(name), label }
    }

    fn name(&self) -> String {
        if self.label.is_empty() { self.path.display().to_string() } else { self.label.clone() }
    }

    /// What an I/O error at this place means.
    pub(crate) fn fault(&self, error: io::Error, offset: Option<u64>) -> Fault {
        let errno = error.raw_os_error().map(Errno::from_raw);
        let what = match errno {
            Some(Errno::ENOENT) => "it is missing".to_owned(),
            Some(Errno::ELOOP) => "it is a symbolic link".to_owned(),
            Some(Errno::ENOTDIR) => "it is not a directory".to_owned(),
            Some(Errno::EISDIR | Errno::ENXIO) => "it is not a regular file".to_owned(),
            Some(Errno::EIO | Errno::EUCLEAN) => format!("the disk cannot read it: {error}"),
            Some(Errno::EACCES | Errno::EPERM) => {
                return Fault::Error(Error::Denied { path: self.path.clone(), source: error });
            }
            _ => return Fault::Error(Error::Io { path: self.path.clone(), source: error }),
        };
        match offset {
            Some(offset) => damage_at(&self.name(), offset, what),
            None => damage(&self.name(), what),
        }
    }

    /// Whether there is a directory here; a link or a file in its place is damage.
    pub(crate) fn is_directory(&self) -> Result<bool> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if found.is_dir() => Ok(true),
            Ok(found) if found.is_symlink() => Err(damage(&self.name(), "it is a symbolic link")),
            Ok(_) => Err(damage(&self.name(), "it is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.fault(error, None)),
        }
    }

    /// The names in this directory, sorted. Names that are not text are none of etcd's.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        if !self.is_directory()? {
            return Err(damage(&self.name(), "it is missing"));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|error| self.fault(error, None))? {
            let entry = entry.map_err(|error| self.fault(error, None))?;
            if names.len() == NAMES_MAX {
                return Err(damage(&self.name(), format!("it holds more than {NAMES_MAX} files")));
            }
            names.extend(OsString::into_string(entry.file_name()).ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open(&self) -> Result<OpenFile> {
        // NONBLOCK: a pipe in the place of a file must not hang the reader. It changes nothing else.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits())
            .open(&self.path)
            .map_err(|error| self.fault(error, None))?;
        let found = file.metadata().map_err(|error| self.fault(error, None))?;
        if !found.is_file() {
            return Err(damage(&self.name(), "it is not a regular file"));
        }
        Ok(OpenFile { place: self.clone(), file, len: found.len(), inode: found.ino() })
    }
}

/// A regular file, open for reading, with the length it had then.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) place: Place,
    pub(crate) file: File,
    pub(crate) len: u64,
    pub(crate) inode: u64,
}

/// Bytes with a name that can be read at any place: a file, or memory in tests.
pub(crate) trait Source {
    fn label(&self) -> &str;
    fn len(&self) -> u64;
    /// Reads as much of `buffer` as there is; less only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Fills the buffer, or says that the file ends too early.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buffer, offset)? < buffer.len() {
            return Err(damage_at(
                self.label(),
                offset,
                "the file ends here, in the middle of a part",
            ));
        }
        Ok(())
    }
}

impl Source for OpenFile {
    fn label(&self) -> &str {
        &self.place.label
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match self.file.read_at(&mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.place.fault(error, Some(at))),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
impl Source for &[u8] {
    fn label(&self) -> &'static str {
        "memory"
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or(&[]);
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}
