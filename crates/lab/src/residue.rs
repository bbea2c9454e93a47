//! Looking for what a lab may have left behind.

use std::fs;
use std::path::Path;

use crate::cgroup::Cgroup;
use crate::error::Result;
use crate::place::Place;

/// Everything on this machine that still belongs to a lab, in words: its directory, its cgroup with the
/// processes in it, mounts in any mount namespace, loop devices, and processes that run in its directory.
pub fn residue(place: &Place) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if place.directory.exists() {
        found.push(format!("directory {}", place.directory.display()));
    }
    let cgroup = Cgroup::root()?.child(&place.cgroup());
    if cgroup.exists() {
        found.push(format!(
            "cgroup {} with processes {:?}",
            cgroup.path().display(),
            cgroup.pids()
        ));
    }
    found.extend(loops(&place.directory));
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        found.extend(traces_in(&process.path(), &place.directory));
    }
    Ok(found)
}

/// Loop devices whose file lies in a directory.
fn loops(directory: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backed = devices.filter_map(|device| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        below(Path::new(backing.trim()), directory)
            .then(|| format!("{} on {}", device.file_name().display(), backing.trim()))
    });
    backed.collect()
}

/// What one process still has to do with a directory: mounts in its namespace, or its own program.
fn traces_in(process: &Path, directory: &Path) -> Option<String> {
    let name = process.file_name()?.to_str()?;
    let pid: u32 = name.parse().ok()?;
    let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let count = mounted.filter(|target| below(Path::new(target), directory)).count();
    if count > 0 {
        return Some(format!("{count} mounts in the namespace of process {pid}"));
    }
    let root = fs::read_link(process.join("cwd")).unwrap_or_default();
    below(&root, directory).then(|| format!("process {pid} works in {}", root.display()))
}

fn below(path: &Path, directory: &Path) -> bool {
    path.starts_with(directory)
}
