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
    /// A static pod of OpenShift's etcd operator: it ends the pod when it is told that etcd is somebody else's.
    OpenShift(Access),
}

impl fmt::Display for OldEtcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(unit) => f.write_str(unit),
            Self::StaticPod(manifest) => write!(f, "the static pod of {}", manifest.display()),
            Self::OpenShift(access) => write!(f, "the etcd of the cluster at {}", access.url),
        }
    }
}

impl OldEtcd {
    /// Whether it is meant to run.
    pub(super) fn is_active(&self, data_dir: &Path, clock: &Clock<'_>) -> bool {
        match self {
            Self::OpenShift(_) => etcd_disk::read(data_dir).is_ok_and(|dataset| dataset.live),
            Self::Unit(unit) => machine::systemctl(&["is-active", "--quiet", unit], clock).is_ok(),
            Self::StaticPod(manifest) => manifest.exists(),
        }
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
            // It can only be told while etcd serves; both nodes say the same, once is enough.
            Self::OpenShift(_) if !self.is_active(data_dir, clock) => {}
            Self::OpenShift(access) => {
                access.set_managed_etcd_kind(ManagedEtcdKind::External).map_err(asked)?;
            }
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

    /// Whether it can be brought back once it is gone. OpenShift's operator is asked through an API server that
    /// needs the very etcd that has ended: there the pair goes on trying.
    pub(super) fn comes_back(&self) -> bool {
        !matches!(self, Self::OpenShift(_))
    }

    /// Runs it again, as it was. What fails here is told by the error that led to it.
    pub(super) fn start(&self, kept: &Path, clock: &Clock<'_>) {
        let _ = match self {
            Self::Unit(unit) => {
                machine::systemctl(&["enable", "--quiet", "--now", unit], clock).map(drop)
            }
            Self::StaticPod(manifest) => put_back(manifest, kept),
            Self::OpenShift(access) => {
                access.set_managed_etcd_kind(ManagedEtcdKind::Cluster).map(drop).map_err(asked)
            }
        };
    }

    /// Whether it is there at all, or was put away by an earlier run; and whether it may be taken.
    pub(super) fn check(&self, kept: &Path) -> Result<(), Trouble> {
        match self {
            Self::StaticPod(manifest) if !manifest.is_file() && !kept.is_file() => {
                let why = format!("there is no manifest {}", manifest.display());
                Err(Trouble::new(FailureKind::NotFit, why)
                    .hint("name the file in kubelet's staticPodPath"))
            }
            Self::OpenShift(access) => access.check_topology().map_err(asked),
            _ => Ok(()),
        }
    }
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
    fs::remove_file(manifest).map_err(bundle::io("remove", manifest))?;
    sync_above(manifest)
}

fn put_back(manifest: &Path, kept: &Path) -> Result<(), Trouble> {
    if manifest.exists() || !kept.exists() {
        return Ok(());
    }
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
        assert!(pod.check(&kept).unwrap_err().why.contains("etcd.yaml"));
        fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        fs::write(&manifest, "kind: Pod\n").unwrap();
        for _ in 0..2 {
            put_away(&manifest, &kept).unwrap();
            assert!(!manifest.exists() && kept.exists());
            pod.check(&kept).unwrap();
        }
        for _ in 0..2 {
            put_back(&manifest, &kept).unwrap();
            assert_eq!(fs::read_to_string(&manifest).unwrap(), "kind: Pod\n");
            assert!(!kept.exists());
        }
        assert_eq!(fs::read_dir(manifest.parent().unwrap()).unwrap().count(), 1);
    }
}
