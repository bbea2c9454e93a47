//! Whether an etcd runs on a directory, found out without disturbing it.
//!
//! A running etcd holds two kinds of locks: open-file-description locks on its WAL segments, and a `flock`
//! on the database file. Trying to take either, even shared and for a moment, could make an etcd that
//! starts at that moment fail. So nothing is ever locked for reading:
//!
//! - for the WAL the kernel is *asked* whether a lock would conflict (`F_OFD_GETLK` takes nothing, and sees
//!   locks across containers);
//! - for the database, where no such question exists, `/proc/locks` is read. It covers the moments of a
//!   start in which etcd has the database but not yet the log.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::fault::Result;
use crate::files::{OpenFile, Place};
use crate::wal;

/// Whether any of the segments or the database is locked by a process.
pub(crate) fn in_use(log: &Place, db: &Place) -> Result<bool> {
    // The last segment is always locked while etcd runs.
    let last = log.names()?.into_iter().rfind(|name| wal::is_segment(name));
    if let Some(last) = last {
        let place = log.join(&last);
        if is_locked(&place.open()?) || has_flock(&place) {
            return Ok(true);
        }
    }
    Ok(has_flock(db))
}

/// Whether a write lock is held on the file. Where the question is not supported (old network file
/// systems) the answer is left to `/proc/locks`.
fn is_locked(file: &OpenFile) -> bool {
    let mut lock = whole_file(libc::F_RDLCK);
    fcntl(&file.file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok()
        && i32::from(lock.l_type) != libc::F_UNLCK
}

/// A lock over a whole file, now and as it grows.
pub(crate) fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// Whether `/proc/locks` names the file. A directory on a file system whose device number differs there
/// (btrfs) is covered by the question about the WAL alone.
fn has_flock(place: &Place) -> bool {
    let (Ok(found), Ok(locks)) = (fs::metadata(&place.path), fs::read_to_string("/proc/locks"))
    else {
        return false;
    };
    let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", found.ino());
    locks.lines().any(|line| names_file(line, &wanted))
}

/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; a waiter has `->` behind the number.
fn names_file(line: &str, wanted: &str) -> bool {
    let mut words = line.split_whitespace().skip(1).skip_while(|word| *word == "->");
    let kind = words.next();
    let held = words.nth(1);
    let file = words.nth(1);
    matches!(kind, Some("FLOCK" | "OFDLCK" | "POSIX"))
        && held == Some("WRITE")
        && file == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `/proc/locks` as the kernel writes them.
    #[test]
    fn lines_of_proc_locks() {
        let wanted = "fe:00:5423280";
        assert!(names_file("1: FLOCK  ADVISORY  WRITE 23302 fe:00:5423280 0 EOF", wanted));
        assert!(names_file("2: OFDLCK ADVISORY  WRITE -1 fe:00:5423280 0 EOF", wanted));
        assert!(!names_file("1: FLOCK  ADVISORY  READ 23302 fe:00:5423280 0 EOF", wanted));
        assert!(!names_file("1: FLOCK  ADVISORY  WRITE 23302 fe:00:54232801 0 EOF", wanted));
        assert!(!names_file("1: LEASE  ACTIVE    WRITE 23302 fe:00:5423280 0 EOF", wanted));
        assert!(!names_file("", wanted));
    }
}
