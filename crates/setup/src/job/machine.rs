//! This machine and the BMCs: what can be known before anything is started.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_cluster::pair::Pair;
use nix::sys::statvfs::statvfs;

use super::Trouble;
use super::steps::{Clock, Work};
use crate::check::{Finding, Here, Status, bmc, network, probe, version};
use crate::state::FailureKind;

/// What Pacemaker runs, and where it looks for it.
const AGENTS: [&str; 3] = [
    "/usr/lib/ocf/resource.d/dyad/etcd",
    "/usr/sbin/fence_dyad_redfish",
    "/usr/libexec/dyad/dyad-alert",
];
/// A new etcd takes 128 MiB for its log alone.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// systemd does what it is asked, or says why not.
const SYSTEMCTL_LIMIT: Duration = Duration::from_mins(1);

/// Only root can install, start and give away files.
pub(super) fn require_root(here: &Here) -> Result<(), Trouble> {
    if here.root == Path::new("/") && !nix::unistd::geteuid().is_root() {
        return Err(Trouble::new(FailureKind::NotFit, "a node can only be set up by root")
            .hint("run it with sudo, or start dyad-setup.service"));
    }
    Ok(())
}

/// Runs `systemctl`.
pub(super) fn systemctl(arguments: &[&str], clock: &Clock<'_>) -> Result<String, Trouble> {
    let mut command = dyad_program::command("systemctl", arguments);
    let answer = dyad_program::output(&mut command, "", clock.left(SYSTEMCTL_LIMIT));
    answer.map_err(|error| Trouble::failed(&error).hint("journalctl -b shows what went wrong"))
}

/// The step `machine`.
pub(super) fn look(work: &mut Work<'_>, _: &mut Clock<'_>) -> Result<String, Trouble> {
    let pair = work.pair()?;
    let own = usize::from(pair.nodes[1].name.0 == work.here.host_name);
    let mut probes = version::probes(pair);
    probes.push(network::links(pair, own));
    let mut findings = probe::run_all(probes);
    findings.extend(missing_agents(work.here));
    findings.extend(little_room(pair, work.here));
    judge(&findings)?;
    let versions = findings.iter().filter(|finding| finding.id == "version");
    let told: Vec<_> = versions
        .map(|finding| {
            format!("{} {}", finding.subject, finding.message.trim_start_matches("version "))
        })
        .collect();
    Ok(told.join(", "))
}

fn missing_agents(here: &Here) -> Option<Finding> {
    let missing: Vec<_> =
        AGENTS.into_iter().filter(|path| !here.path(Path::new(path)).is_file()).collect();
    (!missing.is_empty()).then(|| {
        let message = format!("Dyad's agents are not installed: {}", missing.join(", "));
        Finding::error("agents", "agents", message).hint("install the package dyad")
    })
}

/// Room for the data, if there are none yet. What a running pair needs is another matter.
fn little_room(pair: &Pair, here: &Here) -> Option<Finding> {
    let data_dir = here.path(&pair.etcd.data_dir);
    if data_dir.join("member").exists() {
        return None;
    }
    let existing = data_dir.ancestors().find(|path| path.is_dir()).map(PathBuf::from)?;
    let found = match statvfs(&existing) {
        Ok(found) => found,
        Err(error) => {
            let message = format!("cannot look at {}: {error}", existing.display());
            return Some(Finding::error("disk-space", "disk", message));
        }
    };
    let free = found.blocks_available() * found.fragment_size();
    (free < FREE_BYTES_MIN).then(|| {
        let message = format!("only {} MiB free at {}", free >> 20, existing.display());
        let hint = format!("make room: {} MiB at least, 8 GiB are good", FREE_BYTES_MIN >> 20);
        Finding::error("disk-space", "disk", message).hint(hint)
    })
}

/// The step `bmc`: both are asked, with the credentials that fencing will use. Nothing is switched.
pub(super) fn bmcs(work: &mut Work<'_>, _: &mut Clock<'_>) -> Result<String, Trouble> {
    let pair = work.pair()?;
    let mut targets = Vec::new();
    for node in &pair.nodes {
        let target = bmc::installed(node, work.here).map_err(|why| {
            let why = format!("bmc {}: {why}", node.name);
            Trouble::new(FailureKind::NotFit, why).hint("correct it in pair.yaml and render again")
        })?;
        targets.push(target);
    }
    let findings = bmc::ask_all(&targets, Some(&work.here.host_name), work.here);
    judge(&findings)?;
    let told = findings.iter().filter(|finding| finding.id == "bmc");
    Ok(told
        .map(|finding| format!("{}: {}", finding.subject, finding.message))
        .collect::<Vec<_>>()
        .join("; "))
}

/// All errors at once, each with what to do.
pub(super) fn judge(findings: &[Finding]) -> Result<(), Trouble> {
    let errors: Vec<_> =
        findings.iter().filter(|finding| finding.status == Status::Error).collect();
    if errors.is_empty() {
        return Ok(());
    }
    let why = errors.iter().map(|finding| format!("{}: {}", finding.subject, finding.message));
    let mut hints: Vec<_> = errors.iter().filter_map(|finding| finding.hint.clone()).collect();
    hints.dedup();
    let why = why.collect::<Vec<_>>().join("; ");
    Err(Trouble { why, hint: Some(hints.join("; ")), kind: FailureKind::NotFit })
}
