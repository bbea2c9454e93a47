//! The bundle: what `dyad render` made for this node, read and put in place.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use dyad_cluster::pair::Pair;
use dyad_core::ids::NodeName;
use dyad_node::certificates::{self, NewFile};

use super::steps::{Clock, Work};
use super::{Trouble, hand_over, machine};
use crate::check::Here;
use crate::output::replace;
use crate::state::FailureKind;

/// Where the bundles of both nodes may lie, each under its node's name.
pub(crate) const NODES: &str = "/etc/dyad/nodes";
/// The description as the agents read it.
const PAIR: &str = "/etc/dyad/pair.json";
/// The CIB that a new pair starts with.
pub(super) const CIB: &str = "/etc/dyad/cib.xml";
/// What makes a machine a node of this very cluster. Installed last, when everything else is known to be right.
const COROSYNC: &str = "/etc/corosync";
/// What every bundle has.
const NEEDED: [&str; 4] = [PAIR, CIB, "/etc/corosync/corosync.conf", "/etc/corosync/authkey"];
/// A bundle's files go to these places and nowhere else.
const PLACES: [&str; 3] = ["/etc/corosync/", "/etc/dyad/", "/etc/systemd/system/"];
/// Certificates and their keys: one without the other is worth nothing.
const CERTIFICATES: &str = "/etc/dyad/pki";
/// Where units are installed, and where a package has its own.
const UNITS: &str = "/etc/systemd/system";
const PACKAGED_UNITS: &str = "/usr/lib/systemd/system";
/// No bundle is larger.
const FILES_MAX: usize = 200;
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What was read.
pub(super) struct Source {
    /// The description.
    pub(super) pair: Pair,
    /// The directory it was read from; none if it was unpacked at the root.
    root: Option<PathBuf>,
    cib: Vec<u8>,
    /// The files that are to be put in place; none if the bundle was unpacked at the root.
    files: BTreeMap<PathBuf, Vec<u8>>,
    fingerprint: u64,
}

impl Source {
    /// Which description this is.
    pub(super) fn fingerprint(&self) -> String {
        format!("{:016x}", self.fingerprint)
    }

    /// Where it was read from.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The rendered CIB.
    pub(super) fn cib(&self) -> &[u8] {
        &self.cib
    }

    /// What the bundle has for this path.
    pub(super) fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(Path::new(path)).map(Vec::as_slice)
    }

    /// A fingerprint of these contents together.
    pub(super) fn hash_of(contents: &[&[u8]]) -> String {
        format!("{:016x}", contents.iter().fold(HASH_START, |start, content| hash(start, content)))
    }

    /// Files that are not installed as the bundle has them; units of a package are the package's.
    pub(super) fn changed_files(&self, here: &Here) -> Vec<PathBuf> {
        let differs = |(path, content): &(&PathBuf, &Vec<u8>)| {
            !is_packaged(here, path) && fs::read(here.path(path)).ok().as_ref() != Some(*content)
        };
        self.files.iter().filter(differs).map(|(path, _)| path.clone()).collect()
    }

    /// Puts the whole bundle into a directory that only root can read, whole or not at all.
    pub(super) fn copy_to(&self, directory: &Path) -> Result<(), Trouble> {
        let making = directory.with_extension("new");
        if making.exists() {
            fs::remove_dir_all(&making).map_err(io("remove", &making))?;
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&making)
            .map_err(io("create", &making))?;
        let there = Here { host_name: String::new(), root: making.clone() };
        for (path, content) in &self.files {
            put(&there, path, content)?;
        }
        remove(directory)?;
        fs::rename(&making, directory).map_err(io("rename", &making))?;
        sync_above(directory)
    }
}

/// Takes a bundle away, whole: a power cut must not leave half of one.
pub(super) fn remove(directory: &Path) -> Result<(), Trouble> {
    let old = directory.with_extension("old");
    if old.exists() {
        fs::remove_dir_all(&old).map_err(io("remove", &old))?;
    }
    if !directory.exists() {
        return Ok(());
    }
    fs::rename(directory, &old).map_err(io("rename", directory))?;
    sync_above(directory)?;
    fs::remove_dir_all(&old).map_err(io("remove", &old))
}

/// Makes the entry of a file or directory durable.
pub(super) fn sync_above(path: &Path) -> Result<(), Trouble> {
    let above = path.parent().unwrap_or(Path::new("/"));
    dyad_node::record::sync_directory(above).map_err(|error| Trouble::failed(&error))
}

/// Every file of the bundle for `dyad apply`, Corosync's too, but for its key; how many were written.
pub(super) fn install_all(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<usize, Trouble> {
    let source = work.source()?;
    let mut changed = source.changed_files(work.here);
    changed.retain(|path| path != Path::new(super::key::AUTHKEY));
    let (together, single): (Vec<_>, Vec<_>) =
        changed.iter().partition(|path| path.starts_with(CERTIFICATES));
    let new = |path: &PathBuf| NewFile {
        path: work.here.path(path),
        mode: if is_secret(path) { 0o600 } else { 0o644 },
        content: source.files[path].clone(),
    };
    let together: Vec<_> = together.into_iter().map(new).collect();
    certificates::install(work.place, &together).map_err(|error| Trouble::failed(&error))?;
    for path in single {
        put(work.here, path, &source.files[path])?;
    }
    if changed.iter().any(|path| path.starts_with(UNITS)) {
        machine::systemctl(&["daemon-reload"], clock)?;
    }
    Ok(changed.len())
}

fn not_fit(why: impl Into<String>) -> Trouble {
    Trouble::new(FailureKind::NotFit, why)
}

pub(super) fn io<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> Trouble + 'a {
    move |error| {
        Trouble::new(FailureKind::Failed, format!("cannot {step} {}: {error}", path.display()))
    }
}

/// The step `bundle`: reads it, changes nothing.
pub(super) fn read(work: &mut Work<'_>, _: &mut Clock<'_>) -> Result<String, Trouble> {
    machine::require_root(work.here)?;
    let found = find(work.given.as_deref(), work.here);
    let files = match &found {
        Some(directory) => read_directory(directory)?,
        None => BTreeMap::new(),
    };
    let content = |path: &str| match files.get(Path::new(path)) {
        Some(content) => Ok(content.clone()),
        None if found.is_some() => {
            let where_ = found.as_deref().unwrap_or(Path::new("/")).display().to_string();
            Err(not_fit(format!("the bundle in {where_} has no {path}"))
                .hint("render it again: dyad render"))
        }
        None => read_file(&work.here.path(Path::new(path))),
    };
    let mut fingerprint = HASH_START;
    for path in NEEDED {
        let content = content(path)?;
        // Nothing secret leaves its file, not even as a fingerprint.
        if !is_secret(Path::new(path)) {
            fingerprint = hash(fingerprint, &content);
        }
    }
    let pair = parse(&content(PAIR)?, &work.here.host_name)?;
    let told = format!("{} of the pair {}", work.here.host_name, pair.name);
    let cib = content(CIB)?;
    work.source = Some(Source { pair, root: found.clone(), cib, files, fingerprint });
    Ok(match found {
        Some(directory) => format!("{told}, from {}", directory.display()),
        None => format!("{told}, already in place"),
    })
}

/// The directory that was given, or the one that bears this machine's name.
fn find(given: Option<&Path>, here: &Here) -> Option<PathBuf> {
    if let Some(given) = given {
        return Some(given.to_owned());
    }
    let named = here.path(&Path::new(NODES).join(&here.host_name));
    named.is_dir().then_some(named)
}

fn parse(content: &[u8], host_name: &str) -> Result<Pair, Trouble> {
    let pair: Pair = serde_json::from_slice(content).map_err(|error| {
        not_fit(format!("{PAIR} cannot be read: {error}"))
            .hint("was it rendered by another version? render it again")
    })?;
    // R10: the whole name.
    if pair.node_and_peer(&NodeName::from(host_name)).is_none() {
        let [first, second] = &pair.nodes;
        let (first, second) = (&first.name, &second.name);
        let why = format!("this machine is {host_name}, the pair is {first} and {second}");
        return Err(not_fit(why).hint("is this the other node's bundle? `hostname` must be exact"));
    }
    Ok(pair)
}

fn read_file(path: &Path) -> Result<Vec<u8>, Trouble> {
    let size = fs::metadata(path).map(|found| found.len());
    match size {
        Ok(size) if size > FILE_BYTES_MAX => {
            Err(not_fit(format!("{} is too large for a file of a bundle", path.display())))
        }
        Ok(_) => fs::read(path).map_err(io("read", path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(not_fit(format!(
            "there is no {}",
            path.display()
        ))
        .hint(
            "unpack this node's bundle (dyad render --format tar) at /, or name it: --bundle DIR",
        )),
        Err(error) => Err(io("read", path)(error)),
    }
}

fn read_directory(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Trouble> {
    if !root.is_dir() {
        return Err(not_fit(format!("there is no directory {}", root.display()))
            .hint("--bundle takes what `dyad render` wrote for this node"));
    }
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(io("list", &directory))? {
            let entry = entry.map_err(io("list", &directory))?;
            let kind = entry.file_type().map_err(io("look at", &directory))?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                let below = path.strip_prefix(root).unwrap_or(&path);
                files.insert(Path::new("/").join(below), read_file(&path)?);
            }
            // Links are made by what installs the programs, and by enabling units.
            if files.len() > FILES_MAX {
                return Err(not_fit(format!("{} has more than {FILES_MAX} files", root.display())));
            }
        }
    }
    let stray = files.keys().find(|path| !PLACES.iter().any(|place| path.starts_with(place)));
    match stray {
        Some(path) => Err(not_fit(format!("a bundle has no business with {}", path.display()))),
        None => Ok(files),
    }
}

/// The step `files`: everything but Corosync's configuration.
pub(super) fn install(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    hand_over::mark(work)?;
    let began = work.place.began().exists();
    let source = work.source()?;
    let wanted: Vec<_> = source
        .files
        .iter()
        .filter(|(path, _)| !path.starts_with(COROSYNC) && !is_packaged(work.here, path))
        .collect();
    if began {
        refuse_changes(work.here, source, work.before.as_deref())?;
    }
    let mut changed = Vec::new();
    for (path, content) in wanted {
        if began && is_credentials(path) && work.here.path(path).exists() {
            continue;
        }
        if put(work.here, path, content)? {
            changed.push(path.clone());
        }
    }
    if changed.iter().any(|path| path.starts_with(UNITS)) {
        machine::systemctl(&["daemon-reload"], clock)?;
    }
    protect_secrets(work.here)?;
    Ok(match changed.len() {
        0 => "all as they should be".to_owned(),
        1 => "1 file written".to_owned(),
        count => format!("{count} files written"),
    })
}

/// Corosync's configuration, for the step `cluster`; whether anything changed.
pub(super) fn install_corosync(work: &Work<'_>) -> Result<bool, Trouble> {
    let mut changed = false;
    let files = work.source()?.files.iter().filter(|(path, _)| path.starts_with(COROSYNC));
    for (path, content) in files {
        changed |= put(work.here, path, content)?;
    }
    Ok(changed)
}

/// A pair that has begun is changed by `dyad apply`, on both nodes and in the right order, not by this.
fn refuse_changes(here: &Here, source: &Source, before: Option<&str>) -> Result<(), Trouble> {
    let differs = source.files.iter().find(|(path, content)| {
        // Credentials may have been rotated since the bundle was made: what is installed counts.
        let elsewhere = path.starts_with(UNITS) || is_credentials(path);
        !elsewhere && fs::read(here.path(path)).is_ok_and(|found| found != **content)
    });
    let why = match differs {
        Some((path, _)) => format!("{} differs from what this pair runs with", path.display()),
        None if before.is_some_and(|before| before != source.fingerprint()) => {
            "the description in place is not the one that this pair was set up with".to_owned()
        }
        None => return Ok(()),
    };
    Err(Trouble::new(FailureKind::Refused, why).hint("a running pair is changed with `dyad apply`"))
}

/// Whether a package has its own copy of a unit: that one counts, so that an update reaches it.
fn is_packaged(here: &Here, path: &Path) -> bool {
    path.strip_prefix(UNITS)
        .is_ok_and(|unit| here.path(&Path::new(PACKAGED_UNITS).join(unit)).is_file())
}

/// Whether nobody but root may read a file.
fn is_secret(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "authkey")
        || path.extension().is_some_and(|extension| extension == "key")
        || path == Path::new(dyad_pair_file::WEBHOOK)
        || is_credentials(path)
}

/// Whether a file is the account of a BMC.
fn is_credentials(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let here = path.parent() == Some(Path::new("/etc/dyad"));
    here && name.starts_with("bmc-") && !name.ends_with(".pem")
}

/// Writes a file if it is not there as it should be; whether it was written.
pub(super) fn put(here: &Here, path: &Path, content: &[u8]) -> Result<bool, Trouble> {
    let target = here.path(path);
    let mode = if is_secret(path) { 0o600 } else { 0o644 };
    let found = fs::read(&target).ok();
    let mode_found = fs::symlink_metadata(&target).map(|found| found.permissions().mode() & 0o7777);
    if found.as_deref() == Some(content) && mode_found.is_ok_and(|found| found == mode) {
        return Ok(false);
    }
    if let Some(directory) = target.parent() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(directory);
        made.map_err(io("create", directory))?;
    }
    replace(&target, mode, content).map_err(|error| {
        Trouble::failed(&error).hint("is the disk full or read-only? df; dmesg")
    })?;
    Ok(true)
}

/// Secrets that somebody unpacked with other permissions are closed.
fn protect_secrets(here: &Here) -> Result<(), Trouble> {
    for directory in ["/etc/dyad", "/etc/dyad/pki", COROSYNC] {
        let Ok(entries) = fs::read_dir(here.path(Path::new(directory))) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let path = Path::new(directory).join(entry.file_name());
            let Ok(found) = entry.metadata() else { continue };
            if found.is_file() && is_secret(&path) && found.permissions().mode() & 0o077 != 0 {
                let closed = fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600));
                closed.map_err(io("close", &path))?;
            }
        }
    }
    Ok(())
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: stays the same from one compiler to the next.
fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
pub(super) mod tests;
