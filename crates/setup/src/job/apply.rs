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
use super::key::Search;
use super::live_cib::{live_resources, missing_value, patch_cib};
use super::steps::{Clock, Look, Work};
use super::{Trouble, cluster, failure, key, lock, tool};
use crate::check::{Here, bmc};
use crate::state::{FailureKind, SetupFailure, SetupState};

pub use super::key::AUTHKEY;

/// The attribute through which the two nodes tell each other how far they are.
const ATTRIBUTE: &str = "dyad-apply";
/// Where a new bundle waits until both nodes have theirs.
const NEXT: &str = "next";
/// What the other node says once it has the new description on its disk, or more.
const STAGED: [&str; 4] = ["staged", "installed", "keyed", "done"];
/// What it says once it has agreed and installed it, or more.
const INSTALLED: [&str; 3] = ["installed", "keyed", "done"];
/// How long the other node may take to begin.
const PEER_LIMIT: Duration = Duration::from_mins(10);
/// How long each of the other steps may take.
const STEP_LIMIT: Duration = Duration::from_mins(1);

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

/// Drops what waits: the node that it would have to be agreed on with is gone for good.
pub(super) fn abandon(place: &Place) -> Result<(), Trouble> {
    bundle::remove(&place.state.join(NEXT))?;
    key::forget(place)
}

/// Shows what differs, and applies it.
pub fn run(
    options: &ApplyOptions,
    here: &Here,
    place: &Place,
    say: &dyn Fn(&str),
) -> Result<Applied, SetupFailure> {
    let _lock = lock(place).map_err(|trouble| failure("start", trouble))?;
    let given = options.bundle.is_some();
    if given && !options.dry_run && is_agreed_on(here, place) {
        say("a change that both nodes have agreed on was cut off: it is brought to its end first");
        one(&ApplyOptions { bundle: None, ..options.clone() }, here, place, say)?;
    }
    one(options, here, place, say)
}

/// Whether what waits is agreed on: the other node may have it in use already, so that it cannot be dropped for another.
fn is_agreed_on(here: &Here, place: &Place) -> bool {
    let mut work = Work::new(here, place, Some(place.state.join(NEXT)), None);
    let read = bundle::read(&mut work, &mut Clock::new(STEP_LIMIT, &|_| ()));
    read.and_then(|_| description(&work)).is_ok_and(|waits| key::is_agreed(place, &waits))
}

fn one(
    options: &ApplyOptions,
    here: &Here,
    place: &Place,
    say: &dyn Fn(&str),
) -> Result<Applied, SetupFailure> {
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
        answer(here, place, Duration::ZERO, say);
        return Ok(applied);
    }
    let mut apply = Apply { work, say, next, peer_limit: options.peer_limit, resumed };
    apply.all(&applied.changes)?;
    applied.applied = true;
    Ok(applied)
}

/// Says which description this node has in use, so that the other one, if it was cut off on the way there, can end.
/// A courtesy: whoever waits for it says what to do.
pub fn answer(here: &Here, place: &Place, limit: Duration, say: &dyn Fn(&str)) {
    if is_waiting(place) {
        return;
    }
    let mut work = Work::new(here, place, None, None);
    let description = in_use(&mut work);
    let told = description.and_then(|text| say_so("done", &text, &mut Clock::new(limit, say)));
    if let Err(trouble) = told {
        say(&format!(
            "the other node was not told which description this one has: {}",
            trouble.why
        ));
    }
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
            // There is only forward: a BMC that does not answer today must not part the two.
            self.step("meet", self.peer_limit, Self::meet)?;
        } else {
            self.step("bmc", STEP_LIMIT, |this, _| this.ask_bmcs())?;
        }
        self.step("stage", STEP_LIMIT, |this, clock| this.stage(clock, &description))?;
        let agreed = self.step("agree", self.peer_limit, |this, clock| {
            this.await_peer(clock, &STAGED, &description)
        });
        if let Err(failure) = agreed {
            self.withdraw(&description, failure)?;
        }
        key::agree(&self.work, &description).map_err(|trouble| failure("agree", trouble))?;
        self.step("install", STEP_LIMIT, |this, clock| this.install(clock, &description))?;
        self.step("installed", self.peer_limit, |this, clock| {
            let search = this.search()?;
            this.await_or_seek(clock, &INSTALLED, &description, Some(search))
        })?;
        self.step("key", self.peer_limit, |this, clock| this.key(clock, &description))?;
        self.step("load", STEP_LIMIT, |this, clock| this.load(clock, &description))?;
        self.step("done", STEP_LIMIT, |this, clock| this.done(clock, &description))
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
        if self.await_peer(&mut last_look, &STAGED, description).is_ok() {
            return say_so("staged", description, &mut clock).map_err(failed);
        }
        let _ = bundle::remove(&self.next);
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
            // Whatever was agreed on before has ended.
            key::forget(self.work.place)?;
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
        self.await_or_seek(clock, stages, description, None)
    }

    /// Waits for the other node's word; behind the agreement it is also looked for under the other key.
    fn await_or_seek(
        &mut self,
        clock: &mut Clock<'_>,
        stages: &[&str],
        description: &str,
        mut search: Option<Search>,
    ) -> Result<String, Trouble> {
        let peer = self.work.node()?.peer().name.clone();
        let work = &self.work;
        let waited = clock.wait(|| {
            if let Some(search) = &mut search
                && let Some(missing) = search.look(work)?
            {
                return Ok(Look::NotYet(missing));
            }
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
                // What it has ended is no other wish.
                Some((stage, theirs)) if theirs != description && stage != "done" => {
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
            let words = ["keyed", "done"].map(|stage| format!("{stage} {description}"));
            let ready = said.iter().any(|(name, text)| *name == peer && words.contains(text));
            Ok(if ready {
                Look::Done(format!("{peer} has it in place too"))
            } else {
                Look::NotYet(format!("{peer} has not put it in place yet"))
            })
        })
    }

    fn search(&mut self) -> Result<Search, Trouble> {
        let first = is_first(self.work.node()?);
        Search::new(&self.work, first)
    }

    /// This node was cut off behind the agreement, and the other one may have either key by now.
    fn meet(&mut self, clock: &mut Clock<'_>) -> Result<String, Trouble> {
        let mut search = self.search()?;
        let work = &self.work;
        let met = clock.wait(|| Ok(search.look(work)?.map_or(Look::Done(()), Look::NotYet)));
        met.map_err(|trouble| {
            trouble.hint("it goes on at the next boot, or when this is run again; dyad status tells where the pair stands")
        })?;
        Ok("the other node is seen".to_owned())
    }

    /// At one moment on both nodes; asked for by one of them, which is the same for both.
    fn load(&mut self, clock: &mut Clock<'_>, description: &str) -> Result<String, Trouble> {
        let before = self.work.place.state.join("cib-applied.xml");
        let new = self.work.here.path(Path::new(bundle::CIB));
        let token_ms = self.work.pair()?.detection.token_ms();
        // Behind the agreement there is only forward, also for a node whose peer was lost.
        let (first, alone) = (is_first(self.work.node()?), !key::sees_peer()?);
        // A peer that has ended it does not ask again for one that was cut off.
        if first || alone || self.resumed {
            tool("corosync-cfgtool", &["-R"], "")?;
        }
        let wanted = fs::read_to_string(&new).map_err(bundle::io("read", &new))?;
        if first || alone {
            // A job that was cut off behind this point has done it already.
            let is_there = self.resumed && missing_value(&wanted, &live_resources()?).is_none();
            let patched = if is_there { Ok(()) } else { patch_cib(&before, &new) };
            if !self.resumed {
                patched?;
            }
        }
        await_loaded(clock, &wanted, token_ms)?;
        if !first && !self.resumed {
            self.changed_over(clock, description)?;
        }
        Ok(format!("Corosync and Pacemaker have it, token {token_ms} ms"))
    }

    /// Corosync does not tell which key it uses. That it has changed over is known from the node that asked for it; if
    /// that one is lost before it could, this one asks.
    fn changed_over(&mut self, clock: &mut Clock<'_>, description: &str) -> Result<(), Trouble> {
        let peer = self.work.node()?.peer().name.clone();
        let word = format!("done {description}");
        clock.wait(|| {
            if !key::sees_peer()? {
                return tool("corosync-cfgtool", &["-R"], "").map(|_| Look::Done(()));
            }
            let said = pacemaker::published(ATTRIBUTE).unwrap_or_default();
            Ok(if said.iter().any(|(name, text)| *name == peer && *text == word) {
                Look::Done(())
            } else {
                Look::NotYet(format!("{peer} has not had Corosync change over yet"))
            })
        })
    }

    fn done(&mut self, clock: &mut Clock<'_>, description: &str) -> Result<String, Trouble> {
        let path = SetupState::path(&self.work.place.state);
        let state: Option<SetupState> = dyad_node::record::read(&path).ok().flatten();
        if let Some(mut state) = state {
            state.description = self.work.description();
            dyad_node::record::write_durable(&path, &state)
                .map_err(|error| Trouble::failed(&error))?;
        }
        let _ = fs::remove_file(self.work.place.state.join("cib-applied.xml"));
        // In this order: what is agreed on must not look as if it only waited.
        bundle::remove(&self.next)?;
        key::forget(self.work.place)?;
        say_so("done", description, clock)?;
        Ok("applied on this node".to_owned())
    }
}

/// Waits until Corosync and Pacemaker on this node have the new values.
fn await_loaded(clock: &mut Clock<'_>, wanted: &str, token_ms: u64) -> Result<(), Trouble> {
    clock.wait(|| {
        let running = tool("corosync-cmapctl", &["-g", "runtime.config.totem.token"], "")?;
        if !running.trim_end().ends_with(&format!("= {token_ms}")) {
            return Ok(Look::NotYet(format!("Corosync still runs with {}", running.trim())));
        }
        Ok(match missing_value(wanted, &live_resources()?) {
            Some(id) => Look::NotYet(format!("Pacemaker does not have the new {id} yet")),
            None => Look::Done(()),
        })
    })
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

/// What both nodes must have alike, of the bundle that was read.
fn description(work: &Work<'_>) -> Result<String, Trouble> {
    let source = work.source()?;
    let key = source.file(AUTHKEY).map(<[u8]>::to_owned).or_else(|| key::in_place(work.here));
    described(work.pair()?, source.cib(), &key.unwrap_or_default())
}

/// The same, of what is in use on this node.
fn in_use(work: &mut Work<'_>) -> Result<String, Trouble> {
    let pair = work.node()?.pair.clone();
    let cib = work.here.path(Path::new(bundle::CIB));
    let cib = fs::read(&cib).map_err(bundle::io("read", &cib))?;
    described(&pair, &cib, &key::in_place(work.here).unwrap_or_default())
}

/// Where certificates lie may differ from node to node, and cannot change anyway.
fn described(pair: &Pair, cib: &[u8], key: &[u8]) -> Result<String, Trouble> {
    let mut pair = pair.clone();
    pair.etcd.tls = None;
    let text = serde_json::to_vec(&pair).map_err(|error| Trouble::failed(&error))?;
    Ok(Source::hash_of(&[&text, cib, key::fingerprint(key).as_bytes()]))
}
