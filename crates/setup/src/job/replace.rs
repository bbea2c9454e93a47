//! `dyad replace`: another machine takes the place of a node that is gone.
//!
//! Runs on the node that serves alone. The new machine may bear the old name, or its own: then the description changes
//! here first, while there is nobody to agree with. The rest is the new machine's own `dyad setup`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_core::ids::NodeName;
use dyad_node::Place;
use serde::Serialize;

use super::difference::{Change, differences};
use super::live_cib::patch_cib;
use super::steps::{Clock, Work};
use super::{Trouble, apply, bundle, cluster, failure, key, lock, machine, tool};
use crate::check::{Here, bmc};
use crate::state::{FailureKind, SetupFailure, SetupState};

/// How long all of it may take.
const LIMIT: Duration = Duration::from_mins(2);

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    /// The node that is gone.
    pub old: String,
    /// The one that takes its place; its name may be the same.
    pub new: String,
    /// What differs.
    pub changes: Vec<Change>,
}

/// Whether this change is about the node at this position, or follows from its name.
fn is_about(change: &Change, position: usize) -> bool {
    let node = format!("nodes.{position}");
    change.what == node
        || change.what.starts_with(&format!("{node}."))
        || change.what == "preferredSurvivor"
}

/// Takes the new description of the other node into use here. That it is gone, and that this node serves alone, is for
/// the caller to know.
pub fn run(
    given: &Path,
    here: &Here,
    place: &Place,
    say: &dyn Fn(&str),
) -> Result<Replaced, SetupFailure> {
    let failed = |trouble| failure("replace", trouble);
    let _lock = lock(place).map_err(failed)?;
    let mut work = Work::new(here, place, Some(given.to_owned()), None);
    let mut clock = Clock::new(LIMIT, say);
    bundle::read(&mut work, &mut clock).map_err(failed)?;
    replace(&mut work, &mut clock).map_err(failed)
}

fn replace(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<Replaced, Trouble> {
    let node = work.node()?;
    let (old_pair, own) = (node.pair.clone(), node.own().name.clone());
    let old = node.peer().name.clone();
    let new_pair = work.pair()?.clone();
    let (_, peer) = new_pair.node_and_peer(&own).ok_or_else(|| {
        Trouble::new(FailureKind::NotFit, format!("the new description has no {own}"))
    })?;
    let new = peer.name.clone();
    let position = usize::from(new_pair.nodes[0].name == own);
    let changes = differences(&old_pair, &new_pair);
    if let Some(other) = changes.iter().find(|change| !is_about(change, position)) {
        let why = format!("{} is not about {old}", other.what);
        return Err(Trouble::new(FailureKind::Refused, why)
            .hint("change only that node; dyad apply brings the rest when the pair is whole"));
    }
    ask_bmc(work, peer)?;
    let before = fs::read(work.here.path(Path::new(bundle::CIB)))
        .map_err(bundle::io("read", Path::new(bundle::CIB)))?;
    let kept = keep_before(work.place, &before)?;
    bundle::install_all(work, clock)?;
    cluster::events(work, clock)?;
    update_kept(work)?;
    // There is nobody to agree with any more; the new machine comes with the key of this rendering.
    key::put(work)?;
    apply::abandon(work.place)?;
    tool("corosync-cfgtool", &["-R"], "")?;
    patch_cib(&kept, &work.here.path(Path::new(bundle::CIB)))?;
    let _ = fs::remove_file(&kept);
    forget(&old, &new);
    done(work)?;
    Ok(Replaced { old: old.to_string(), new: new.to_string(), changes })
}

/// The new machine must be one that can be switched off: else this node could never go on without it.
fn ask_bmc(work: &Work<'_>, peer: &dyad_cluster::pair::Node) -> Result<(), Trouble> {
    let root = work.source()?.root().map_or_else(|| work.here.root.clone(), Path::to_owned);
    let there = Here { root, host_name: work.here.host_name.clone() };
    let target = bmc::installed(peer, &there)
        .or_else(|_| bmc::installed(peer, work.here))
        .map_err(|why| Trouble::new(FailureKind::NotFit, why))?;
    machine::judge(&bmc::ask_all(&[target], None, work.here))
}

/// What the CIB's change is computed from must outlive a power cut.
fn keep_before(place: &Place, cib: &[u8]) -> Result<PathBuf, Trouble> {
    let path = place.state.join("cib-applied.xml");
    if !path.exists() {
        crate::output::replace(&path, 0o600, cib).map_err(|error| Trouble::failed(&error))?;
    }
    Ok(path)
}

fn update_kept(work: &Work<'_>) -> Result<(), Trouble> {
    let kept = work.here.path(&Path::new(bundle::NODES).join(&work.here.host_name));
    if kept.is_dir() && work.source()?.root() != Some(kept.as_path()) {
        work.source()?.copy_to(&kept)?;
    }
    Ok(())
}

/// Pacemaker forgets a name that nobody bears any more. One that it does not know is forgotten already.
fn forget(old: &NodeName, new: &NodeName) {
    if old != new {
        let _ = tool("crm_node", &["--force", "--remove", &old.0], "");
    }
}

fn done(work: &Work<'_>) -> Result<(), Trouble> {
    let path = SetupState::path(&work.place.state);
    let state: Option<SetupState> = dyad_node::record::read(&path).ok().flatten();
    let Some(mut state) = state else { return Ok(()) };
    state.description = work.description();
    dyad_node::record::write_durable(&path, &state).map_err(|error| Trouble::failed(&error))
}
