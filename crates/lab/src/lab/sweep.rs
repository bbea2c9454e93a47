//! Ending a lab whatever state it is in, also when its supervisor was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cgroup::Cgroup;
use crate::disk;
use crate::error::{Error, Result};
use crate::image::remove_tree;
use crate::place::Place;
use crate::progress::{Silent, wait_until};

/// How long the kernel may take to let go of namespaces, mounts and loop devices.
const RELEASE_LIMIT: Duration = Duration::from_secs(30);

/// Ends every process of the lab, removes its cgroup and its directory, and checks that nothing is left.
pub(super) fn sweep(place: &Place) -> Result<()> {
    let cgroup = Cgroup::root()?.child(&place.cgroup());
    // The supervisor ends the nodes itself if it can; it needs a moment for that.
    let _ = wait_until("the supervisor", Duration::from_secs(10), &Silent, || {
        supervisor_runs(place, &cgroup).then(|| "its end".into())
    });
    thaw(&cgroup);
    cgroup.kill()?;
    cgroup.remove()?;
    remove_tree(&place.directory)?;
    let mut left = Vec::new();
    let waited = wait_until("the lab's end", RELEASE_LIMIT, &Silent, || {
        left = crate::residue(place).unwrap_or_else(|error| vec![error.to_string()]);
        left.first().cloned()
    });
    waited.map_err(|_| Error::Residue { lab: place.name.clone(), residue: left })
}

/// Whether the supervisor that was told to end is still at it. One that is gone, or hangs in another
/// cgroup under a reused number, is not.
fn supervisor_runs(place: &Place, cgroup: &Cgroup) -> bool {
    let pid = fs::read_to_string(place.pid_file()).ok().and_then(|text| text.trim().parse().ok());
    pid.is_some_and(|pid: u32| cgroup.child("supervisor").pids().contains(&pid))
        && place.socket().exists()
        && std::os::unix::net::UnixStream::connect(place.socket()).is_ok()
}

/// A process that waits for a frozen file system cannot be killed. If the supervisor died while it held a
/// node's disk, the disk is still frozen: find it through any process of that node.
fn thaw(cgroup: &Cgroup) {
    let roots = cgroup.pids().into_iter().map(|pid| PathBuf::from(format!("/proc/{pid}/root")));
    let disks = roots.map(|root| root.join("var/lib/etcd")).filter(|path| is_node_disk(path));
    for disk in disks {
        disk::set_frozen(&disk, false);
    }
}

/// Only ever a loop-mounted disk of a node, never a directory of the machine.
fn is_node_disk(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(own), Ok(parent)) = (fs::metadata(path), fs::metadata(path.join(".."))) else {
        return false;
    };
    own.dev() != parent.dev() && fs::metadata("/").is_ok_and(|root| root.dev() != own.dev())
}
