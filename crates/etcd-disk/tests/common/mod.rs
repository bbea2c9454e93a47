//! What several test files need: copies of data directories, and proof that nothing was written.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyad_core::ids::Revision;
use etcd_fixture::Release;

/// How much of a segment's preallocated zeros a copy keeps.
const ZEROS_KEPT: usize = 4096;

/// Copies a data directory. Segments lose most of the 64 MB that etcd allocates in advance.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().extension().is_some_and(|extension| extension == "wal") {
            fs::write(&target, without_zeros(&entry.path())).unwrap();
        } else if entry.path().extension().is_none_or(|extension| extension != "tmp") {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A segment's bytes with a few of the zeros behind them. Holes are not read.
pub(crate) fn without_zeros(path: &Path) -> Vec<u8> {
    let mut file = fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    let mut block = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut block).unwrap();
        bytes.extend_from_slice(&block[..read]);
        if read == 0 || block[..read].iter().all(|byte| *byte == 0) {
            break;
        }
    }
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let length = (used.next_multiple_of(8) + ZEROS_KEPT).min(bytes.len());
    bytes.truncate(length);
    bytes
}

/// Overwrites bytes of a file in place.
pub(crate) fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Everything about a tree that a write would change.
pub(crate) fn fingerprint(dir: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let content =
            if metadata.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let facts = (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), content);
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        }
        found.insert(path, facts);
    }
    found
}

/// The files of `member/<part>` with this extension, in the order of their names.
pub(crate) fn files(dir: &Path, part: &str, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir.join("member").join(part))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    found.sort();
    found
}

/// What `snapshot status` of etcd's own tool says of a database file.
pub(crate) fn revision_by_etcd(release: Release, db: &Path) -> Revision {
    let tool = match release {
        Release::Bookworm => "etcdctl",
        Release::Trixie => "etcdutl",
    };
    let output = Command::new(release.binary(tool).unwrap())
        .env("ETCDCTL_API", "3")
        .args(["snapshot", "status", "--write-out=json"])
        .arg(db)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    Revision(answer["revision"].as_u64().unwrap())
}
