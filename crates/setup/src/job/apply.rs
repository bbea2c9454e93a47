//! `dyad apply`: a changed description, on a running pair.
//!
//! It runs on each node with the node's new bundle. Neither installs anything before both have the new
//! description on their disks and have said so to each other, and what both must have alike (Corosync's
//! time-outs, the CIB) is loaded at one moment on both, after both have installed it. A node that is cut off in
//! between finds what it has put on its disk at the next boot, and goes on: the two never stay apart.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_cluster::pair::Pair;
use dyad_node::gather::words;
use dyad_node::{Node, Place, pacemaker};
use serde::Serialize;

use super::bundle::{self, Source};
use super::difference::{Change, Effect, differences};
use super::steps::{Clock, Look, Work};
use super::{Trouble, cluster, failure, key, lock};
use crate::check::{Here, bmc};
use crate::state::{FailureKind, SetupFailure, SetupState};

pub use super::key::AUTHKEY;

/// The attribute through which the two nodes tell each other how far they are.
const ATTRIBUTE: &str = "dyad-apply";
/// Where a new bundle waits until both nodes have theirs.
const NEXT: &str = "next";
/// How long the other node may take to begin.
const PEER_LIMIT: Duration = Duration::from_mins(10);
/// How long each of the other steps may take.
const STEP_LIMIT: Duration = Duration::from_mins(1);
/// One call of a tool.
const TOOL_LIMIT: Duration = Duration::from_secs(20);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    /// The new bundle of this node; else the one below `/etc/dyad/nodes`, or one that waits to be applied.
    pub bundle: Option<PathBuf>,
    /// Only show what would change.
    pub dry_run: bool,
    /// How long the other node may take to be as far.
    pub peer_limit: Duration,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self { bundle: None, dry_run: false, peer_limit: PEER_LIMIT }
    }
}

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The node.
    pub node: String,
    /// What differs.
    pub changes: Vec<Change>,
    /// Whether it was applied, on both nodes.
    pub applied: bool,
}

/// Whether a bundle waits to be applied: a job that was cut off.
pub fn is_waiting(place: &Place) -> bool {
    place.state.join(NEXT).is_dir()
}

/// Shows what differs, and applies it.
pub fn run(
    options: &ApplyOptions,
    here: &Here,
    place: &Place,
    say: &dyn Fn(&str),
) -> Result<Applied, SetupFailure> {
    let _lock = lock(place).map_err(|trouble| failure("start", trouble))?;
    let next = place.state.join(NEXT);
    let resumed = is_waiting(place);
    let given = options.bundle.clone().or_else(|| resumed.then(|| next.clone()));
    let mut work = Work::new(here, place, given, None);
    let mut clock = Clock::new(STEP_LIMIT, say);
    bundle::read(&mut work, &mut clock).map_err(|trouble| failure("bundle", trouble))?;
    let changes = changes(&mut work).map_err(|trouble| failure("difference", trouble))?;
    for change in &changes {
        say(&told(change));
    }
    let mut applied = Applied { node: here.host_name.clone(), changes, applied: false };
    if options.dry_run {
        return Ok(applied);
    }
    if applied.changes.is_empty() && !resumed {
        say("nothing differs");
        return Ok(applied);
    }
    let mut apply = Apply { work, say, next, peer_limit: options.peer_limit, resumed };
    apply.all(&applied.changes)?;
    applied.applied = true;
    Ok(applied)
}

/// One difference, in a line.
fn told(change: &Change) -> String {
    let values = match (&change.from, &change.to) {
        (Some(from), Some(to)) => format!(": {from} -> {to}"),
        _ => String::new(),
    };
    format!("{}{values} ({})", change.what, change.effect.words())
}

/// What differs from what is installed: the description by its keys, everything else by its file.
fn changes(work: &mut Work<'_>) -> Result<Vec<Change>, Trouble> {
    let old = work.node()?.pair.clone();
    let source = work.source()?;
    let mut changes = differences(&old, &source.pair);
    let here = work.here;
    for path in source.changed_files(here) {
        let follows = ["/etc/dyad/pair.json", "/etc/dyad/cib.xml", "/etc/corosync/corosync.conf"];
        let name = path.display().to_string();
        // These follow from the description.
        if follows.contains(&name.as_str()) {
            continue;
        }
        // A node that does not trust what the other shows is parted from it.
        let parts = name == dyad_pair_file::pki::CA;
        let effect = if parts { Effect::Rotate } else { Effect::Live };
        changes.push(Change { what: name, from: None, to: None, effect });
    }
    Ok(changes)
}

struct Apply<'a> {
    work: Work<'a>,
    say: &'a dyn Fn(&str),
    next: PathBuf,
    peer_limit: Duration,
    /// It was cut off before: what is installed may be the new description already.
    resumed: bool,
}

impl Apply<'_> {
    fn all(&mut self, changes: &[Change]) -> Result<(), SetupFailure> {
        let refused: Vec<_> = changes.iter().filter(|change| change.effect.is_refused()).collect();
        if let Some(first) = refused.first() {
            let why = format!("{}: {}", first.what, first.effect.words());
            let trouble = Trouble::new(FailureKind::Refused, why).hint(
                "take it out of the new description; dyad apply --dry-run shows all differences",
            );
            return Err(failure("difference", trouble));
        }
        let description = description(&self.work).map_err(|trouble| failure("stage", trouble))?;
        if self.resumed && key::is_agreed(self.work.place, &description) {
            self.step("key", STEP_LIMIT, |this, _| this.go_forward())?;
        }
        self.step("bmc", STEP_LIMIT, |this, _| this.ask_bmcs())?;
        self.step("stage", STEP_LIMIT, |this, clock| this.stage(clock, &description))?;
        let agreed = self.step("agree", self.peer_limit, |this, clock| {
            this.await_peer(clock, &["staged", "installed", "keyed"], &description)
        });
        if let Err(failure) = agreed {
            self.withdraw(&description, failure)?;
        }
        key::agree(self.work.place, &description).map_err(|trouble| failure("agree", trouble))?;
        self.step("install", STEP_LIMIT, |this, clock| this.install(clock, &description))?;
        self.step("installed", self.peer_limit, |this, clock| {
            this.await_peer(clock, &["installed", "keyed"], &description)
        })?;
        self.step("key", self.peer_limit, |this, clock| this.key(clock, &description))?;
        self.step("load", STEP_LIMIT, Self::load)?;
        self.step("done", STEP_LIMIT, |this, _| this.done())
    }

    fn step(
        &mut self,
        name: &'static str,
        limit: Duration,
        run: impl FnOnce(&mut Self, &mut Clock<'_>) -> Result<String, Trouble>,
    ) -> Result<(), SetupFailure> {
        let say = self.say;
        let progress = |text: &str| say(&format!("{name}: {text}"));
        let mut clock = Clock::new(limit, &progress);
        let detail = run(self, &mut clock).map_err(|trouble| failure(name, trouble))?;
        progress(&detail);
        Ok(())
    }

    /// The other node did not come: takes the word back, unless it came at that very moment. It installs only
    /// after it has said that it is ready and has then seen this node's word, so one more look decides.
    fn withdraw(&mut self, description: &str, failure: SetupFailure) -> Result<(), SetupFailure> {
        if self.resumed {
            return Err(failure);
        }
        let mut clock = Clock::new(STEP_LIMIT, self.say);
        let failed = |trouble| super::failure("agree", trouble);
        say_so("withdrawn", description, &mut clock).map_err(failed)?;
        let mut last_look = Clock::new(Duration::ZERO, self.say);
        let stages = ["staged", "installed", "keyed"];
        if self.await_peer(&mut last_look, &stages, description).is_ok() {
            return say_so("staged", description, &mut clock).map_err(failed);
        }
        let _ = fs::remove_dir_all(&self.next);
        Err(failure)
    }

    /// Both BMCs as the new description has them, with the new credentials.
    fn ask_bmcs(&self) -> Result<String, Trouble> {
        let root =
            self.work.source()?.root().map_or_else(|| self.work.here.root.clone(), Path::to_owned);
        let there = Here { root, host_name: self.work.here.host_name.clone() };
        let pair = self.work.pair()?;
        let mut targets = Vec::new();
        for node in &pair.nodes {
            // Credentials that are kept on the nodes are not in the bundle.
            let found =
                bmc::installed(node, &there).or_else(|_| bmc::installed(node, self.work.here));
            targets.push(found.map_err(|why| Trouble::new(FailureKind::NotFit, why))?);
        }
        let findings = bmc::ask_all(&targets, Some(&self.work.here.host_name), self.work.here);
        super::machine::judge(&findings)?;
        Ok("both BMCs answer".to_owned())
    }

    fn stage(&mut self, clock: &mut Clock<'_>, description: &str) -> Result<String, Trouble> {
        if self.work.source()?.root() != Some(self.next.as_path()) {
            self.work.source()?.copy_to(&self.next)?;
        }
        say_so("staged", description, clock)?;
        Ok("the new description is on this node's disk".to_owned())
    }

    fn await_peer(
        &mut self,
        clock: &mut Clock<'_>,
        stages: &[&str],
        description: &str,
    ) -> Result<String, Trouble> {
        let peer = self.work.node()?.peer().name.clone();
        let waited = clock.wait(|| {
            let said = match pacemaker::published(ATTRIBUTE) {
                Ok(said) => said,
                Err(error) => return Ok(Look::NotYet(words(&error))),
            };
            let word = said.into_iter().find(|(node, _)| *node == peer).map(|(_, text)| text);
            let word = word.unwrap_or_default();
            Ok(match word.split_once(' ') {
                Some((stage, theirs)) if theirs == description && stages.contains(&stage) => {
                    Look::Done(())
                }
                Some((_, theirs)) if theirs != description => {
                    Look::NotYet(format!("{peer} has another description"))
                }
                _ => Look::NotYet(format!("{peer} has not the same description yet")),
            })
        });
        let hint = format!("run `dyad apply` with the bundle of the same rendering on {peer} too");
        waited.map_err(|trouble| trouble.hint(hint))?;
        Ok(format!("{peer} is as far"))
    }

    fn install(&mut self, clock: &mut Clock<'_>, description: &str) -> Result<String, Trouble> {
        // What the CIB's change is computed from must outlive this node.
        let before = self.work.place.state.join("cib-applied.xml");
        if !before.exists() {
            let old = self.work.here.path(Path::new(bundle::CIB));
            fs::copy(&old, &before).map_err(bundle::io("copy", &old))?;
        }
        let count = bundle::install_all(&mut self.work, clock)?;
        cluster::events(&self.work, clock)?;
        // What the next boot compares with.
        let kept = self.work.here.path(&Path::new(bundle::NODES).join(&self.work.here.host_name));
        if kept.is_dir() && self.work.source()?.root() != Some(kept.as_path()) {
            self.work.source()?.copy_to(&kept)?;
        }
        say_so("installed", description, clock)?;
        Ok(format!("{count} files written"))
    }

    /// Both put the key in place before Corosync takes it. A peer that is gone takes it when it is back.
    fn key(&mut self, clock: &mut Clock<'_>, description: &str) -> Result<String, Trouble> {
        key::put(&self.work)?;
        say_so("keyed", description, clock)?;
        let peer = self.work.node()?.peer().name.clone();
        clock.wait(|| {
            if !key::sees_peer()? {
                return Ok(Look::Done(format!("{peer} is gone: it takes the key when it is back")));
            }
            let said = pacemaker::published(ATTRIBUTE).unwrap_or_default();
            let ready = said
                .iter()
                .any(|(name, text)| *name == peer && *text == format!("keyed {description}"));
            Ok(if ready {
                Look::Done(format!("{peer} has it in place too"))
            } else {
                Look::NotYet(format!("{peer} has not put it in place yet"))
            })
        })
    }

    /// This node was cut off behind the agreement: it goes on with the new key, alone if it has to.
    fn go_forward(&mut self) -> Result<String, Trouble> {
        if key::differs(&self.work)? {
            key::put(&self.work)?;
        }
        if key::sees_peer()? {
            return Ok("the other node is seen".to_owned());
        }
        tool("corosync-cfgtool", &["-R"], "")?;
        Ok("Corosync has the key that both agreed on".to_owned())
    }

    /// At one moment on both nodes; asked for by one of them, which is the same for both.
    fn load(&mut self, clock: &mut Clock<'_>) -> Result<String, Trouble> {
        let before = self.work.place.state.join("cib-applied.xml");
        let new = self.work.here.path(Path::new(bundle::CIB));
        let token_ms = self.work.pair()?.detection.token_ms();
        let node = self.work.node()?;
        // Behind the agreement there is only forward, also for a node whose peer was lost.
        if is_first(node) || !key::sees_peer()? {
            tool("corosync-cfgtool", &["-R"], "")?;
            let patched = patch_cib(&before, &new);
            // A job that was cut off behind this point has done it already.
            if !self.resumed {
                patched?;
            }
        }
        let wanted = fs::read_to_string(&new).map_err(bundle::io("read", &new))?;
        clock.wait(|| {
            let running = tool("corosync-cmapctl", &["-g", "runtime.config.totem.token"], "")?;
            if !running.trim_end().ends_with(&format!("= {token_ms}")) {
                return Ok(Look::NotYet(format!("Corosync still runs with {}", running.trim())));
            }
            let live = tool("cibadmin", &["--query", "--scope", "resources"], "")?;
            Ok(match missing_value(&wanted, &live) {
                Some(id) => Look::NotYet(format!("Pacemaker does not have the new {id} yet")),
                None => Look::Done(()),
            })
        })?;
        Ok(format!("Corosync and Pacemaker have it, token {token_ms} ms"))
    }

    fn done(&mut self) -> Result<String, Trouble> {
        let path = SetupState::path(&self.work.place.state);
        let state: Option<SetupState> = dyad_node::record::read(&path).ok().flatten();
        if let Some(mut state) = state {
            state.description = self.work.description();
            dyad_node::record::write_durable(&path, &state)
                .map_err(|error| Trouble::failed(&error))?;
        }
        let _ = fs::remove_file(self.work.place.state.join("cib-applied.xml"));
        key::forget(self.work.place);
        fs::remove_dir_all(&self.next).map_err(bundle::io("remove", &self.next))?;
        Ok("applied on this node".to_owned())
    }
}

/// One of the two, the same for both: the order of the nodes never changes.
fn is_first(node: &Node) -> bool {
    node.pair.nodes[0].name == node.own().name
}

/// Tells the other node how far this one is. After a boot Pacemaker may not be there yet.
fn say_so(stage: &str, description: &str, clock: &mut Clock<'_>) -> Result<(), Trouble> {
    let text = format!("{stage} {description}");
    clock.wait(|| {
        Ok(match pacemaker::publish(ATTRIBUTE, &text) {
            Ok(()) => Look::Done(()),
            Err(error) => Look::NotYet(words(&error)),
        })
    })
}

pub(super) fn tool(program: &str, arguments: &[&str], input: &str) -> Result<String, Trouble> {
    let mut command = dyad_program::command(program, arguments);
    dyad_program::output(&mut command, input, TOOL_LIMIT).map_err(|error| Trouble::failed(&error))
}

/// Changes in the live CIB exactly what differs between the two renderings: what people and Pacemaker have added
/// stays.
pub(super) fn patch_cib(old: &Path, new: &Path) -> Result<(), Trouble> {
    let (old, new) = (old.display().to_string(), new.display().to_string());
    let arguments = ["--no-version", "--original", old.as_str(), "--new", new.as_str()];
    let mut diff = dyad_program::command("crm_diff", arguments);
    let found =
        dyad_program::run(&mut diff, "", TOOL_LIMIT).map_err(|error| Trouble::failed(&error))?;
    if found.stdout.trim().is_empty() {
        return Ok(());
    }
    tool("cibadmin", &["--patch", "--xml-pipe"], &found.stdout).map(drop)
}

/// The first resource parameter of the rendered CIB that the live one does not have with the same value.
fn missing_value(wanted: &str, live: &str) -> Option<String> {
    let parse = |text| roxmltree::Document::parse(text).ok();
    let (Some(wanted), Some(live)) = (parse(wanted), parse(live)) else {
        return Some("CIB".to_owned());
    };
    let resources = wanted.descendants().find(|element| element.has_tag_name("resources"))?;
    let values = resources.descendants().filter(|element| element.has_tag_name("nvpair"));
    values
        .filter_map(|value| Some((value.attribute("id")?, value.attribute("value")?)))
        .find(|(id, value)| {
            let mut found =
                live.descendants().filter(|element| element.attribute("id") == Some(id));
            !found.any(|element| element.attribute("value") == Some(value))
        })
        .map(|(id, _)| id.to_owned())
}

/// What both nodes must have alike. Where certificates lie may differ from node to node, and cannot change anyway.
fn description(work: &Work<'_>) -> Result<String, Trouble> {
    let mut pair: Pair = work.pair()?.clone();
    pair.etcd.tls = None;
    let text = serde_json::to_vec(&pair).map_err(|error| Trouble::failed(&error))?;
    Ok(Source::hash_of(&[&text, work.source()?.cib(), key::fingerprint(work)?.as_bytes()]))
}
