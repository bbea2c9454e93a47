//! `dyad uninstall`: a machine that is no node any more.
//!
//! It leaves in good order (R7), and takes away what the set-up brought. The data stay where they are, and so does
//! the record that this machine held them: only a person deletes data.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_node::Place;
use serde::Serialize;

use super::steps::Clock;
use super::{Trouble, bundle, cluster, failure, lock, machine};
use crate::check::Here;
use crate::state::{SetupFailure, SetupState};

/// A planned stop moves leadership and removes the own member first.
const STOP_LIMIT: Duration = Duration::from_mins(3);
/// Everything else.
const STEP_LIMIT: Duration = Duration::from_mins(1);
/// What no longer runs, at any boot. In this order: Pacemaker ends before what it stands on.
const UNITS: [&str; 6] = [
    "dyad-setup.service",
    "dyad-lone-boot.service",
    "dyad-webhook.path",
    "pacemaker.service",
    "corosync.service",
    "dyad-webhook.service",
];
/// What the set-up brought.
const BROUGHT: [&str; 14] = [
    "/etc/corosync/corosync.conf",
    "/etc/corosync/authkey",
    "/etc/dyad",
    "/etc/systemd/system/dyad-setup.service",
    "/etc/systemd/system/dyad-lone-boot.service",
    "/etc/systemd/system/dyad-follow.service",
    "/etc/systemd/system/dyad-webhook.path",
    "/etc/systemd/system/dyad-webhook.service",
    "/var/spool/dyad",
    "/etc/systemd/system/dyad-etcd.service",
    "/etc/systemd/system/dyad-etcd.service.d/10-podman.conf",
    "/etc/systemd/system/dyad.slice",
    "/etc/systemd/system/corosync.service.d/10-dyad.conf",
    "/etc/systemd/system/pacemaker.service.d/10-dyad.conf",
];

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Uninstalled {
    /// What was taken away.
    pub removed: Vec<PathBuf>,
    /// What is left, for a person to keep or delete.
    pub kept: Vec<PathBuf>,
}

/// Takes this machine out of its pair. Done again it finds nothing to do.
pub fn run(
    data_dir: Option<&Path>,
    here: &Here,
    place: &Place,
    say: &dyn Fn(&str),
) -> Result<Uninstalled, SetupFailure> {
    machine::require_root(here).map_err(|trouble| failure("start", trouble))?;
    let _lock = lock(place).map_err(|trouble| failure("start", trouble))?;
    say("stop: leave the pair in good order, and stop");
    stop(say).map_err(|trouble| failure("stop", trouble))?;
    say("remove: configuration, credentials, certificates");
    let removed = remove(here, place).map_err(|trouble| failure("remove", trouble))?;
    let clock = Clock::new(STEP_LIMIT, say);
    machine::systemctl(&["daemon-reload"], &clock).map_err(|trouble| failure("remove", trouble))?;
    let mut kept = vec![place.began(), place.log.clone()];
    kept.extend(data_dir.map(Path::to_owned));
    kept.retain(|path| here.path(path).exists());
    Ok(Uninstalled { removed, kept })
}

fn stop(say: &dyn Fn(&str)) -> Result<(), Trouble> {
    let clock = Clock::new(STEP_LIMIT, say);
    machine::systemctl(&["disable", "--quiet", UNITS[0], UNITS[1], UNITS[2]], &clock)?;
    for unit in UNITS {
        // The stop of Pacemaker is the leave: it has its own time.
        let limit = if unit.starts_with("pacemaker") { STOP_LIMIT } else { STEP_LIMIT };
        let mut systemctl = dyad_program::command("systemctl", ["stop", unit]);
        let stopped = dyad_program::output(&mut systemctl, "", limit);
        stopped
            .map_err(|error| Trouble::failed(&error).hint("crm_mon -1 shows what does not stop"))?;
    }
    machine::systemctl(&["disable", "--quiet", UNITS[3], UNITS[4]], &clock).map(drop)
}

fn remove(here: &Here, place: &Place) -> Result<Vec<PathBuf>, Trouble> {
    let cib = here.path(Path::new(cluster::CIB_DIRECTORY));
    if cib.is_dir() {
        let before = place.state.join("cib-before");
        cluster::set_aside(&cib, &before).map_err(bundle::io("set aside", &cib))?;
    }
    let mut paths: Vec<PathBuf> = BROUGHT.iter().map(|path| here.path(Path::new(path))).collect();
    paths.push(SetupState::path(&place.state));
    paths.push(place.runtime.clone());
    let mut removed = Vec::new();
    for path in paths {
        let gone = match fs::symlink_metadata(&path) {
            Err(_) => continue,
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
        };
        gone.map_err(bundle::io("remove", &path))?;
        removed.push(path);
    }
    Ok(removed)
}
