//! The step `cluster`: Corosync and Pacemaker, with the configuration of this pair.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_cluster::cib::ETCD_CLONE;
use dyad_node::{corosync, pacemaker};
use nix::unistd::{Group, User};

use super::Trouble;
use super::bundle::{self, CIB};
use super::machine::systemctl;
use super::steps::{Clock, Look, Work};
use crate::output::replace;
use crate::state::FailureKind;

/// Where Pacemaker keeps its CIB.
pub(super) const CIB_DIRECTORY: &str = "/var/lib/pacemaker/cib";
/// Units that run from now on, at every boot.
const ENABLED: [&str; 5] = [
    "corosync.service",
    "pacemaker.service",
    "dyad-lone-boot.service",
    "dyad-setup.service",
    "dyad-webhook.path",
];
/// Where Pacemaker's user leaves events, and nobody else.
const SPOOL: &str = "/var/spool/dyad";
/// Corosync answers from memory.
const CMAP_LIMIT: Duration = Duration::from_secs(5);

/// A tool that works on a file.
const UPGRADE_LIMIT: Duration = Duration::from_secs(20);

/// What lies in Pacemaker's directory.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// This pair's CIB.
    Ours,
    /// None, or one that manages nothing.
    Nothing,
    /// Resources of somebody else.
    Others(Vec<String>),
}

/// Starts both, or leaves them running if they run with this pair's configuration.
pub(super) fn start(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let directory = work.here.path(Path::new(CIB_DIRECTORY));
    let found = look_at(&directory)?;
    if let Found::Others(resources) = &found {
        let why = format!("Pacemaker on this machine manages {}", resources.join(", "));
        return Err(Trouble::new(FailureKind::NotFit, why)
            .hint("a node belongs to one cluster: take it out of the other one first"));
    }
    let changed = bundle::install_corosync(work)?;
    // Data may be served here: whatever runs is left running.
    if !work.place.began().exists() {
        let other = |name: String| work.pair().is_ok_and(|pair| pair.name != name);
        let foreign = changed || cluster_name().is_some_and(other);
        if foreign || found == Found::Nothing {
            systemctl(&["stop", "pacemaker.service", "corosync.service"], clock)?;
        }
    }
    if found == Found::Nothing && !is_active("pacemaker.service", clock) {
        install_cib(work, &directory)?;
    }
    enable(clock)?;
    events(work, clock)?;
    let before = is_active("pacemaker.service", clock);
    // A boot before this one may have tried in vain, and too often.
    let _ = systemctl(&["reset-failed", "corosync.service", "pacemaker.service"], clock);
    systemctl(&["start", "corosync.service", "pacemaker.service"], clock)?;
    clock.wait(|| {
        Ok(match (corosync::membership(), pacemaker::state()) {
            (Err(error), _) => Look::NotYet(dyad_node::gather::words(&error)),
            (_, Err(error)) => Look::NotYet(dyad_node::gather::words(&error)),
            (Ok(_), Ok(_)) => Look::Done(()),
        })
    })?;
    Ok(if before { "they run".to_owned() } else { "started".to_owned() })
}

fn is_active(unit: &str, clock: &Clock<'_>) -> bool {
    systemctl(&["is-active", "--quiet", unit], clock).is_ok()
}

/// The name of the cluster that a running Corosync belongs to.
fn cluster_name() -> Option<String> {
    let mut command = dyad_program::command("corosync-cmapctl", ["-g", "totem.cluster_name"]);
    let text = dyad_program::output(&mut command, "", CMAP_LIMIT).ok()?;
    Some(text.rsplit_once(" = ")?.1.trim().to_owned())
}

fn look_at(directory: &Path) -> Result<Found, Trouble> {
    let path = directory.join("cib.xml");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        other => other.map_err(|error| {
            Trouble::new(FailureKind::Failed, format!("cannot read {}: {error}", path.display()))
        })?,
    };
    // What a power cut tore was never more than a first configuration.
    let Ok(document) = roxmltree::Document::parse(&text) else { return Ok(Found::Nothing) };
    let resources = document.descendants().find(|element| element.has_tag_name("resources"));
    let names: Vec<_> = resources
        .iter()
        .flat_map(|resources| resources.children().filter(roxmltree::Node::is_element))
        .filter_map(|resource| resource.attribute("id").map(str::to_owned))
        .collect();
    Ok(if names.iter().any(|name| name == ETCD_CLONE) {
        Found::Ours
    } else if names.is_empty() {
        Found::Nothing
    } else {
        Found::Others(names)
    })
}

/// Puts the pair's first CIB where a stopped Pacemaker finds it. Both nodes start with the same one.
fn install_cib(work: &Work<'_>, directory: &Path) -> Result<(), Trouble> {
    let source = work.here.path(Path::new(CIB));
    let failed = |path: &Path, error: &std::io::Error| {
        Trouble::new(FailureKind::Failed, format!("cannot use {}: {error}", path.display()))
    };
    let content = fs::read(&source).map_err(|error| failed(&source, &error))?;
    set_aside(directory, &work.place.state.join("cib-before"))
        .map_err(|error| failed(directory, &error))?;
    let content = in_newest_schema(work, content);
    let target = directory.join("cib.xml");
    replace(&target, 0o600, &content).map_err(|error| Trouble::failed(&error))?;
    give_to_pacemaker(&target)
}

fn give_to_pacemaker(path: &Path) -> Result<(), Trouble> {
    let (user, group) = (User::from_name("hacluster"), Group::from_name("haclient"));
    let (Ok(Some(user)), Ok(Some(group))) = (user, group) else {
        let why = "there is no user hacluster or no group haclient on this machine";
        return Err(Trouble::new(FailureKind::NotFit, why).hint("install the package pacemaker"));
    };
    chown(path, Some(user.uid.as_raw()), Some(group.gid.as_raw())).map_err(|error| {
        Trouble::new(FailureKind::Failed, format!("cannot use {}: {error}", path.display()))
    })
}

/// The place where the alert agent, which runs as Pacemaker's user, leaves events, and what looks after it. Events wait
/// only where the pair names a receiver.
pub(super) fn events(work: &Work<'_>, clock: &Clock<'_>) -> Result<(), Trouble> {
    let spool = work.here.path(Path::new(SPOOL));
    let waiting = spool.join("waiting");
    let mut wanted = vec![spool];
    if work.pair()?.webhook.is_some() {
        wanted.push(waiting);
    } else if waiting.exists() {
        fs::remove_dir_all(&waiting).map_err(bundle::io("remove", &waiting))?;
    }
    for directory in wanted {
        fs::create_dir_all(&directory).map_err(bundle::io("create", &directory))?;
        let closed = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        closed.map_err(bundle::io("close", &directory))?;
        give_to_pacemaker(&directory)?;
    }
    systemctl(&["enable", "--quiet", "--now", "dyad-webhook.path"], clock).map(drop)
}

/// The CIB in the newest schema that this Pacemaker knows. It is rendered in one that every supported version
/// reads; but what is older is brought up to date by every tool and every daemon each time it is read, which
/// makes a look at the cluster twice as long. Pacemaker may refuse: then it stays as it is.
fn in_newest_schema(work: &Work<'_>, content: Vec<u8>) -> Vec<u8> {
    let draft = work.place.state.join("cib-draft.xml");
    let upgrade = || -> Option<Vec<u8>> {
        replace(&draft, 0o600, &content).ok()?;
        let mut command = dyad_program::command("cibadmin", ["--upgrade", "--force"]);
        command.env("CIB_file", &draft);
        dyad_program::output(&mut command, "", UPGRADE_LIMIT).ok()?;
        fs::read(&draft).ok()
    };
    let upgraded = upgrade();
    let _ = fs::remove_file(&draft);
    upgraded.unwrap_or(content)
}

/// What Pacemaker wrote about a cluster without resources is kept, out of its way.
pub(super) fn set_aside(directory: &Path, to: &Path) -> std::io::Result<()> {
    let left: Vec<PathBuf> =
        fs::read_dir(directory)?.filter_map(Result::ok).map(|e| e.path()).collect();
    if left.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    for path in left.iter().filter(|path| path.is_file()) {
        let name = path.file_name().unwrap_or_default();
        fs::copy(path, to.join(name))?;
        fs::remove_file(path)?;
    }
    Ok(())
}

fn enable(clock: &Clock<'_>) -> Result<(), Trouble> {
    for unit in ENABLED {
        if systemctl(&["is-enabled", "--quiet", unit], clock).is_err() {
            systemctl(&["enable", "--quiet", unit], clock)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This pair's CIB is known, one without resources counts as none, and anybody else's is named.
    #[test]
    fn what_pacemaker_has_is_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(look_at(directory.path()).unwrap(), Found::Nothing);
        let with = |resources: &str| {
            let text = format!(
                "<cib><configuration><resources>{resources}</resources></configuration></cib>"
            );
            fs::write(directory.path().join("cib.xml"), text).unwrap();
            look_at(directory.path()).unwrap()
        };
        assert_eq!(with(""), Found::Nothing);
        assert_eq!(with(r#"<clone id="etcd-clone"/>"#), Found::Ours);
        let others = with(r#"<primitive id="web"/><primitive id="db"/>"#);
        assert_eq!(others, Found::Others(vec!["web".into(), "db".into()]));
        fs::write(directory.path().join("cib.xml"), "<cib><conf").unwrap();
        assert_eq!(look_at(directory.path()).unwrap(), Found::Nothing);
    }

    /// What was there is kept whole, and out of the way.
    #[test]
    fn what_was_there_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("cib"), directory.path().join("state/before"));
        fs::create_dir(&from).unwrap();
        set_aside(&from, &to).unwrap();
        assert!(!to.exists());
        fs::write(from.join("cib.xml"), "old").unwrap();
        set_aside(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("cib.xml")).unwrap(), "old");
        assert_eq!(fs::read_dir(&from).unwrap().count(), 0);
    }
}
