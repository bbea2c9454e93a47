//! Files that go into use together, as a certificate and its key do: all of them or none, whenever the power goes.
//!
//! etcd does not start with the certificate of one pair and the key of another. So what is new lies whole on the disk
//! before the first file is replaced. From then on there is only forward: whoever opens this node next, an agent
//! before it starts etcd or a person with a command, finds a replacement that was cut off and brings it to its end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::place::Place;
use crate::record::{self, Error, failed};

/// What is new, whole, until it is in its place.
const READY: &str = "certificates";
/// Lists what is in it; written last.
const INDEX: &str = "index.json";
/// How long another process may take to do the same.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// One file that is to be in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where it belongs.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub content: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    mode: u32,
}

/// Puts all of them in their places. When it fails before it returns, the next [`finish`] goes on.
pub fn install(place: &Place, files: &[NewFile]) -> Result<(), Error> {
    // What was begun before counts as older.
    finish(place)?;
    if files.is_empty() {
        return Ok(());
    }
    stage(place, files)?;
    finish(place).map(drop)
}

/// Brings to its end what was begun, and tells whether there was something.
pub fn finish(place: &Place) -> Result<bool, Error> {
    let ready = place.state.join(READY);
    if !ready.exists() {
        return Ok(false);
    }
    let _lock = lock(place)?;
    let Some(entries) = record::read::<Vec<Entry>>(&ready.join(INDEX))? else {
        // Somebody else was faster.
        return Ok(false);
    };
    let mut next = Vec::new();
    for (number, entry) in entries.into_iter().enumerate() {
        let new = ready.join(number.to_string());
        let content = fs::read(&new).map_err(failed("read", &new))?;
        if !is_in_place(&entry, &content) {
            next.push((write_beside(&entry, &content)?, entry.path));
        }
    }
    // Between two of these renames a handshake fails, and is made again by whoever needs it.
    for (beside, path) in &next {
        fs::rename(beside, path).map_err(failed("replace", path))?;
    }
    for (_, path) in &next {
        record::sync_directory(parent(path))?;
    }
    remove(&ready)?;
    Ok(true)
}

/// Puts what is new onto the disk, whole or not at all, and nothing into its place yet.
fn stage(place: &Place, files: &[NewFile]) -> Result<(), Error> {
    let ready = place.state.join(READY);
    let making = ready.with_extension("new");
    if making.exists() {
        fs::remove_dir_all(&making).map_err(failed("remove", &making))?;
    }
    record::create_directory(&place.state)?;
    fs::DirBuilder::new().mode(0o700).create(&making).map_err(failed("create", &making))?;
    for (number, file) in files.iter().enumerate() {
        write(&making.join(number.to_string()), 0o600, &file.content)?;
    }
    let index: Vec<_> =
        files.iter().map(|file| Entry { path: file.path.clone(), mode: file.mode }).collect();
    record::write_durable(&making.join(INDEX), &index)?;
    fs::rename(&making, &ready).map_err(failed("rename", &making))?;
    record::sync_directory(&place.state)
}

/// One directory entry goes first: a half removed set must not look like one that waits.
fn remove(ready: &Path) -> Result<(), Error> {
    let old = ready.with_extension("old");
    if old.exists() {
        fs::remove_dir_all(&old).map_err(failed("remove", &old))?;
    }
    fs::rename(ready, &old).map_err(failed("rename", ready))?;
    record::sync_directory(parent(ready))?;
    fs::remove_dir_all(&old).map_err(failed("remove", &old))
}

fn is_in_place(entry: &Entry, content: &[u8]) -> bool {
    let mode = fs::metadata(&entry.path).map(|found| found.permissions().mode() & 0o7777);
    mode.is_ok_and(|mode| mode == entry.mode)
        && fs::read(&entry.path).is_ok_and(|found| found == content)
}

/// Writes a file beside its place, under its whole name: a certificate and its key differ in their ends only.
fn write_beside(entry: &Entry, content: &[u8]) -> Result<PathBuf, Error> {
    let mut beside = entry.path.clone().into_os_string();
    beside.push(".next");
    let beside = PathBuf::from(beside);
    record::create_directory(parent(&beside))?;
    write(&beside, entry.mode, content)?;
    Ok(beside)
}

fn write(path: &Path, mode: u32, content: &[u8]) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", path)(error));
        }
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut file = options.open(path).map_err(failed("create", path))?;
    // Whatever the umask is.
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(failed("close", path))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed("write", path))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// One at a time: whoever comes late must not write what is old by then.
fn lock(place: &Place) -> Result<Flock<File>, Error> {
    record::create_directory(&place.runtime)?;
    let path = place.runtime.join("certificates.lock");
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let mut file = opened.map_err(failed("open", &path))?;
    let start = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((_, error)) if start.elapsed() > LOCK_LIMIT => {
                return Err(failed("lock", &path)(error.into()));
            }
            Err((again, _)) => file = again,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Site {
        directory: tempfile::TempDir,
        place: Place,
    }

    impl Site {
        /// A node with the old files in their places.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let below = |name: &str| directory.path().join(name);
            let place = Place {
                config: below("etc"),
                runtime: below("run"),
                log: below("log"),
                state: below("state"),
            };
            fs::create_dir_all(below("pki")).unwrap();
            let site = Self { directory, place };
            for file in site.files("old") {
                write(&file.path, file.mode, &file.content).unwrap();
            }
            site
        }

        fn files(&self, age: &str) -> Vec<NewFile> {
            [("ca.pem", 0o644), ("peer.pem", 0o644), ("peer.key", 0o600), ("server.pem", 0o644)]
                .map(|(name, mode)| NewFile {
                    path: self.directory.path().join("pki").join(name),
                    mode,
                    content: format!("{age} {name}").into_bytes(),
                })
                .to_vec()
        }

        /// Whether all of them are in their places, and nothing else is left anywhere.
        #[track_caller]
        fn assert_all(&self, age: &str) {
            for file in self.files(age) {
                assert_eq!(fs::read(&file.path).unwrap(), file.content, "{}", file.path.display());
                let mode = fs::metadata(&file.path).unwrap().permissions().mode() & 0o7777;
                assert_eq!(mode, file.mode, "{}", file.path.display());
            }
            let left = fs::read_dir(self.directory.path().join("pki")).unwrap().count();
            assert_eq!(left, self.files(age).len(), "something is left beside them");
            assert!(!self.place.state.join(READY).exists());
        }
    }

    /// Nothing waits: nothing is done. Then all are replaced, and so again.
    #[test]
    fn all_are_replaced() {
        let site = Site::new();
        assert!(!finish(&site.place).unwrap());
        site.assert_all("old");
        install(&site.place, &site.files("new")).unwrap();
        site.assert_all("new");
        install(&site.place, &site.files("newer")).unwrap();
        site.assert_all("newer");
    }

    /// A power cut before what is new is whole: the old ones stay in use, and the next attempt is not hindered.
    #[test]
    fn a_cut_before_all_is_there_changes_nothing() {
        let site = Site::new();
        let making = site.place.state.join(READY).with_extension("new");
        fs::create_dir_all(&making).unwrap();
        fs::write(making.join("0"), "half").unwrap();
        assert!(!finish(&site.place).unwrap());
        site.assert_all("old");
        install(&site.place, &site.files("new")).unwrap();
        site.assert_all("new");
    }

    /// A power cut before each of the renames, with the files beside their places or without: the next one who opens
    /// the node brings it to its end.
    #[test]
    fn a_cut_before_each_rename_goes_on() {
        for done in 0..=4 {
            for prepared in [false, true] {
                let site = Site::new();
                let new = site.files("new");
                stage(&site.place, &new).unwrap();
                for (number, file) in new.iter().enumerate() {
                    let entry = Entry { path: file.path.clone(), mode: file.mode };
                    if number < done {
                        let beside = write_beside(&entry, &file.content).unwrap();
                        fs::rename(beside, &file.path).unwrap();
                    } else if prepared {
                        write_beside(&entry, b"torn").unwrap();
                    }
                }
                assert!(finish(&site.place).unwrap(), "{done}");
                site.assert_all("new");
                assert!(!finish(&site.place).unwrap());
            }
        }
    }

    /// A power cut while what was needed is removed: nothing is done again, and nothing is in the way.
    #[test]
    fn a_cut_at_the_end_leaves_nothing() {
        let site = Site::new();
        stage(&site.place, &site.files("new")).unwrap();
        let old = site.place.state.join(READY).with_extension("old");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("0"), "left").unwrap();
        assert!(finish(&site.place).unwrap());
        site.assert_all("new");
        assert!(!old.exists());
    }

    /// A place that takes no writes is told with its path; nothing was replaced, and it goes on later.
    #[test]
    fn what_cannot_be_written_is_told() {
        let site = Site::new();
        let mut files = site.files("new");
        let blocked = site.directory.path().join("blocked");
        fs::write(&blocked, "a file").unwrap();
        files.push(NewFile { path: blocked.join("x.pem"), mode: 0o644, content: Vec::new() });
        let error = install(&site.place, &files).unwrap_err();
        assert!(error.to_string().contains("blocked"), "{error}");
        for file in site.files("old") {
            assert_eq!(fs::read(&file.path).unwrap(), file.content);
        }
        fs::remove_file(&blocked).unwrap();
        assert!(finish(&site.place).unwrap());
        for file in files {
            assert_eq!(fs::read(&file.path).unwrap(), file.content);
        }
    }
}
