//! The etcd that ran before: stopped for certain, and brought back.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_node::gather::words;
use dyad_node::record;
use dyad_openshift::{Access, ManagedEtcdKind};

use super::steps::{Clock, Look};
use super::{Trouble, bundle, machine};
use crate::state::FailureKind;

/// How long it may take to end: kubelet gives a container half a minute, and looks every twenty seconds.
const END_LIMIT: Duration = Duration::from_mins(2);

/// What runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldEtcd {
    /// A systemd unit.
    Unit(String),
    /// A static pod of kubelet, by its manifest: kubelet ends the pod when the file is gone.
    StaticPod(PathBuf),
    /// A static pod of OpenShift's etcd operator, which puts a manifest back unless it is told that etcd is
    /// somebody else's.
    OpenShift {
        /// The API server through which it is told.
        access: Access,
        /// The pod's manifest on this node.
        manifest: PathBuf,
    },
}

impl fmt::Display for OldEtcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(unit) => f.write_str(unit),
            Self::StaticPod(manifest) => write!(f, "the static pod of {}", manifest.display()),
            Self::OpenShift { access, .. } => {
                write!(f, "the etcd of the cluster at {}", access.url)
            }
        }
    }
}

impl OldEtcd {
    /// Whether it is meant to run.
    pub(super) fn is_active(&self, data_dir: &Path, clock: &Clock<'_>) -> bool {
        match self {
            Self::OpenShift { .. } => etcd_disk::read(data_dir).is_ok_and(|dataset| dataset.live),
            Self::Unit(unit) => machine::systemctl(&["is-active", "--quiet", unit], clock).is_ok(),
            Self::StaticPod(manifest) => manifest.exists(),
        }
    }

    /// Whether somebody else must be told before it is stopped.
    pub(super) fn has_owner(&self) -> bool {
        matches!(self, Self::OpenShift { .. })
    }

    /// Keeps what an owner that was told may take away by itself. That it is kept is also how a run after this one
    /// knows that this one came so far.
    pub(super) fn keep(&self, kept: &Path) -> Result<(), Trouble> {
        match self {
            Self::OpenShift { manifest, .. } if !kept.exists() => copy(manifest, kept),
            _ => Ok(()),
        }
    }

    /// Tells its owner that it is somebody else's from now on. The owner is reached through the etcd in question:
    /// it is told while that serves, or when the new one does.
    pub(super) fn tell_owner(&self) -> Result<(), Trouble> {
        let Self::OpenShift { access, .. } = self else { return Ok(()) };
        access.set_managed_etcd_kind(ManagedEtcdKind::External).map(drop).map_err(asked)
    }

    /// Stops it, over reboots too, and waits until nobody holds its data any more. `kept` is where a manifest
    /// is kept meanwhile.
    pub(super) fn stop(
        &self,
        kept: &Path,
        data_dir: &Path,
        clock: &Clock<'_>,
    ) -> Result<(), Trouble> {
        match self {
            Self::Unit(unit) => {
                machine::systemctl(&["disable", "--quiet", "--now", unit], clock)?;
            }
            Self::StaticPod(manifest) => put_away(manifest, kept)?,
            // The operator ends its pods one after the other and needs etcd for it: the second of two would never
            // end. It has been told, so it does not put this manifest back.
            Self::OpenShift { manifest, .. } if manifest.exists() => remove(manifest)?,
            Self::OpenShift { .. } => {}
        }
        clock.within(END_LIMIT).wait(|| {
            let dataset = etcd_disk::read(data_dir).map_err(|error| Trouble::failed(&error))?;
            Ok(if dataset.live {
                Look::NotYet(format!("{self} still holds {}", data_dir.display()))
            } else {
                Look::Done(())
            })
        })
    }

    /// Runs it again, as it was. What fails here is told by the error that led to it.
    pub(super) fn start(&self, kept: &Path, clock: &Clock<'_>) {
        let _ = match self {
            Self::Unit(unit) => {
                machine::systemctl(&["enable", "--quiet", "--now", unit], clock).map(drop)
            }
            Self::StaticPod(manifest) => put_back(manifest, kept),
            Self::OpenShift { access, manifest } => {
                put_back(manifest, kept).and_then(|()| take_back(access, clock))
            }
        };
    }

    /// Whether it is there at all, or was put away by an earlier run; and whether it may be taken.
    pub(super) fn check(&self, kept: &Path, data_dir: &Path) -> Result<(), Trouble> {
        match self {
            Self::StaticPod(manifest) | Self::OpenShift { manifest, .. }
                if !manifest.is_file() && !kept.is_file() =>
            {
                let why = format!("there is no manifest {}", manifest.display());
                Err(Trouble::new(FailureKind::NotFit, why)
                    .hint("name the file in kubelet's staticPodPath"))
            }
            Self::OpenShift { access, .. } => check_cluster(access, kept, data_dir),
            _ => Ok(()),
        }
    }
}

/// The cluster says what it is while its etcd serves. Once an earlier run has put the manifest away it had said so.
fn check_cluster(access: &Access, kept: &Path, data_dir: &Path) -> Result<(), Trouble> {
    let runs = etcd_disk::read(data_dir).is_ok_and(|dataset| dataset.live);
    match (runs, kept.is_file()) {
        (true, _) => access.check_topology().map_err(asked),
        (false, true) => Ok(()),
        (false, false) => {
            let why = format!("no etcd runs on {}", data_dir.display());
            Err(Trouble::new(FailureKind::NotFit, why)
                .hint("the cluster can be asked only while its etcd serves: start that first"))
        }
    }
}

/// The owner has it again; it can be told as soon as its etcd serves.
fn take_back(access: &Access, clock: &Clock<'_>) -> Result<(), Trouble> {
    clock.within(END_LIMIT).wait(|| {
        Ok(match access.set_managed_etcd_kind(ManagedEtcdKind::Cluster) {
            Ok(_) => Look::Done(()),
            Err(error) => Look::NotYet(words(&error)),
        })
    })
}

fn asked(error: dyad_openshift::Error) -> Trouble {
    let kind = match &error {
        dyad_openshift::Error::Topology { .. } => FailureKind::Refused,
        _ => FailureKind::Failed,
    };
    Trouble::new(kind, words(&error)).hint("look at the URL, the token's rights and the authority")
}

/// Moves a manifest out of kubelet's sight; a power cut at any instant leaves it in one place at least.
fn put_away(manifest: &Path, kept: &Path) -> Result<(), Trouble> {
    if !manifest.exists() && kept.exists() {
        return Ok(());
    }
    copy(manifest, kept)?;
    remove(manifest)
}

fn remove(manifest: &Path) -> Result<(), Trouble> {
    fs::remove_file(manifest).map_err(bundle::io("remove", manifest))?;
    sync_above(manifest)
}

fn put_back(manifest: &Path, kept: &Path) -> Result<(), Trouble> {
    if !kept.exists() {
        return Ok(());
    }
    // Whatever lies there now was not this: an operator's that has been told, with no etcd in it.
    copy(kept, manifest)?;
    fs::remove_file(kept).map_err(bundle::io("remove", kept))
}

/// Copies a file whole: it may be on another file system. While it is made its name begins with a dot, at which
/// kubelet does not look.
fn copy(from: &Path, to: &Path) -> Result<(), Trouble> {
    let text = fs::read(from).map_err(bundle::io("read", from))?;
    let mode = fs::metadata(from).map_err(bundle::io("look at", from))?.permissions().mode();
    if let Some(above) = to.parent() {
        record::create_directory(above).map_err(|error| Trouble::failed(&error))?;
    }
    crate::output::replace(to, mode & 0o777, &text).map_err(|error| Trouble::failed(&error))?;
    sync_above(to)
}

fn sync_above(path: &Path) -> Result<(), Trouble> {
    let above = path.parent().unwrap_or(Path::new("/"));
    record::sync_directory(above).map_err(|error| Trouble::failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest goes away and comes back unchanged, however often either is asked for; one that is in neither
    /// place is an error that names it.
    #[test]
    fn a_manifest_goes_and_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = directory.path().join("manifests/etcd.yaml");
        let kept = directory.path().join("kept/etcd.yaml");
        let pod = OldEtcd::StaticPod(manifest.clone());
        assert!(pod.check(&kept, directory.path()).unwrap_err().why.contains("etcd.yaml"));
        fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        fs::write(&manifest, "kind: Pod\n").unwrap();
        for _ in 0..2 {
            put_away(&manifest, &kept).unwrap();
            assert!(!manifest.exists() && kept.exists());
            pod.check(&kept, directory.path()).unwrap();
        }
        for _ in 0..2 {
            put_back(&manifest, &kept).unwrap();
            assert_eq!(fs::read_to_string(&manifest).unwrap(), "kind: Pod\n");
            assert!(!kept.exists());
        }
        assert_eq!(fs::read_dir(manifest.parent().unwrap()).unwrap().count(), 1);
    }
}
