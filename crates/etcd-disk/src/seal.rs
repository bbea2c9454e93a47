//! Sealing: raising the commit mark to the last entry, for the last resort.
//!
//! `etcd --force-new-cluster` throws away every entry behind the commit mark (R3). Sealed before, the
//! directory keeps its tail. Exactly one hard-state record is appended. The order of the steps is such that
//! a kill or a power loss at any instant leaves a directory that etcd opens:
//!
//! 1. Whatever a torn write left behind the last whole record is cut off, as etcd itself would.
//! 2. The record is written behind a length that is still zero: to etcd the log ends before it. Synced.
//! 3. The length, eight aligned bytes within one sector, makes it part of the log. Synced.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use dyad_core::dataset::Class;
use dyad_core::ids::Index;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;

use crate::fault::Error;
use crate::live::whole_file;
use crate::proto;
use crate::reading::{Reading, read_locked, read_with_log};
use crate::wal::frames::{FRAME_HEAD_BYTES, encode};
use crate::wal::replay::{HardState, Log};

/// The record type of a hard state.
const STATE: u64 = 3;
const ZERO_BLOCK_BYTES: usize = 64 << 10;

/// What sealing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// The commit mark was raised.
    Raised {
        /// The commit mark before.
        from: Index,
        /// The commit mark now: the last entry.
        to: Index,
    },
    /// The commit mark was at the last entry already; nothing was written.
    Already {
        /// The last entry.
        at: Index,
    },
}

/// Why a directory was not sealed. Nothing was written, unless it is `Write` or `NotThere`.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The directory could not be judged.
    #[error(transparent)]
    Read(#[from] Error),
    /// Only a voter's data may be sealed.
    #[error("the dataset is of class {class}, not pair or alone: {reason}")]
    Class {
        /// Its class.
        class: Class,
        /// Why.
        reason: String,
    },
    /// An etcd runs on the directory.
    #[error("an etcd runs on it")]
    Running,
    /// The files may not be written.
    #[error("no permission to write {}", path.display())]
    Denied {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Writing failed. The directory can still be opened, with its old commit mark or the new one.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The record was written, but reading the directory again does not show it.
    #[error("the record was written, but the directory now reads as: {0}")]
    NotThere(String),
}

/// Raises the commit mark of the data directory `dir` to its last entry.
///
/// Refuses unless the class is `Pair` or `Alone` and no etcd runs; holds etcd's own locks meanwhile, so that
/// an etcd that starts waits or fails. Doing it twice changes nothing.
pub fn seal(dir: &Path) -> Result<Sealed, SealError> {
    let first = read_with_log(dir)?;
    let (log, segments) = check(&first)?;
    if log.state.commit == log.last.index {
        return Ok(Sealed::Already { at: log.last.index });
    }
    let path = &segments[log.end.segment].place.path;
    let file = open_for_writing(path)?;
    let _db = lock(dir, path, &file)?;
    // Only now nobody else can write. What was read before may be old.
    let now = read_locked(dir)?;
    let (log, segments) = check(&now)?;
    let last = &segments[log.end.segment].place.path;
    if last != path || !is_same(path, &file) {
        return Err(SealError::Running);
    }
    let plan = Plan::new(log);
    plan.write(&file).map_err(|source| SealError::Write { path: path.clone(), source })?;
    let after = read_locked(dir)?;
    if after.dataset.raft.commit != plan.commit || after.dataset.raft.last_index != plan.commit {
        return Err(SealError::NotThere(after.dataset.reason));
    }
    Ok(Sealed::Raised { from: log.state.commit, to: plan.commit })
}

fn check(reading: &Reading) -> Result<(&Log, &[crate::wal::Segment]), SealError> {
    let dataset = &reading.dataset;
    if dataset.live {
        return Err(SealError::Running);
    }
    match (&reading.log, dataset.class) {
        (Some((log, segments)), Class::Pair | Class::Alone) => Ok((log, segments)),
        (_, class) => Err(SealError::Class { class, reason: dataset.reason.clone() }),
    }
}

fn open_for_writing(path: &Path) -> Result<File, SealError> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    OpenOptions::new().read(true).write(true).custom_flags(flags.bits()).open(path).map_err(
        |source| {
            let path = path.to_owned();
            if source.kind() == io::ErrorKind::PermissionDenied {
                SealError::Denied { path, source }
            } else {
                SealError::Write { path, source }
            }
        },
    )
}

/// Takes etcd's own locks: `flock` on the database, for which a starting etcd waits, and an
/// open-file-description lock on the last segment. They end with the files.
fn lock(dir: &Path, path: &Path, segment: &File) -> Result<File, SealError> {
    let db_path = dir.join("member/snap/db");
    let failed = |path: &Path, source| SealError::Write { path: path.to_owned(), source };
    let db = File::open(&db_path).map_err(|source| failed(&db_path, source))?;
    match db.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(SealError::Running),
        Err(std::fs::TryLockError::Error(source)) => return Err(failed(&db_path, source)),
    }
    match fcntl(segment, FcntlArg::F_OFD_SETLK(&whole_file(libc::F_WRLCK))) {
        Ok(_) => Ok(db),
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => Err(SealError::Running),
        Err(errno) => Err(failed(path, errno.into())),
    }
}

fn is_same(path: &Path, file: &File) -> bool {
    let (Ok(by_path), Ok(open)) = (std::fs::symlink_metadata(path), file.metadata()) else {
        return false;
    };
    by_path.ino() == open.ino() && by_path.dev() == open.dev()
}

/// The one record, and where it goes.
pub(crate) struct Plan {
    pub(crate) offset: u64,
    pub(crate) frame: Vec<u8>,
    commit: Index,
}

impl Plan {
    pub(crate) fn new(log: &Log) -> Self {
        let state = sealed_state(log);
        let mut data = Vec::new();
        proto::put_number(&mut data, 1, state.term.0);
        proto::put_number(&mut data, 2, state.vote.map_or(0, |id| id.0));
        proto::put_number(&mut data, 3, state.commit.0);
        let frame = encode(STATE, log.end.crc, &data);
        Self { offset: log.end.offset, frame, commit: state.commit }
    }

    fn write(&self, file: &File) -> io::Result<()> {
        self.clear_rest(file)?;
        let (head, body) = self.frame.split_at(FRAME_HEAD_BYTES as usize);
        file.write_all_at(body, self.offset + FRAME_HEAD_BYTES)?;
        file.sync_all()?;
        file.write_all_at(head, self.offset)?;
        file.sync_all()
    }

    /// Leaves nothing but zeros behind the last whole record, and the file as long as it was.
    fn clear_rest(&self, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if only_zeros(file, self.offset, length)? {
            return Ok(());
        }
        file.set_len(self.offset)?;
        file.sync_all()?;
        file.set_len(length)
    }
}

/// A hard state may be older than the last entry: it is written behind the entries it comes with. Its vote
/// counts only in its own term.
fn sealed_state(log: &Log) -> HardState {
    let commit = log.last.index;
    if log.last.term > log.state.term {
        HardState { term: log.last.term, vote: None, commit }
    } else {
        HardState { commit, ..log.state }
    }
}

fn only_zeros(file: &File, mut offset: u64, end: u64) -> io::Result<bool> {
    let mut block = vec![0; ZERO_BLOCK_BYTES];
    while offset < end {
        let read = file.read_at(&mut block, offset)?;
        if read == 0 {
            break;
        }
        if block[..read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        offset += read as u64;
    }
    Ok(true)
}
