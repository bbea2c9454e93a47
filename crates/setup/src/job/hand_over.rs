//! The step `hand-over`: an etcd that already runs on this node is taken over with its data.
//!
//! The member keeps its identity: it gets the peer URLs of the pair while the old etcd still runs, that one is
//! stopped, its data directory is moved into place, and from there on the rules decide as on any other day. With
//! two members both nodes agree first, so that they are stopped at the same time. If anything fails before the
//! new etcd serves, the old one is brought back with its data.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dyad_core::dataset::{Class, Dataset};
use dyad_core::facts::{Request, Role};
use dyad_node::etcd::Endpoints;
use dyad_node::gather::words;
use dyad_node::{Node, agent, pacemaker, record};
use etcd_peer::client::{Client, Deadline};

use super::old_etcd::OldEtcd;
use super::steps::{Clock, Look, Work};
use super::{Trouble, bundle};
use crate::state::FailureKind;

/// The attribute through which two nodes agree on the moment.
const ATTRIBUTE: &str = "dyad-hand-over";
/// A node can stop its old etcd.
const READY: &str = "ready";
/// So can the other one, and the old etcd's owner has been told.
const TOLD: &str = "told";
/// How long clients may wait for the new etcd before the old one is brought back.
const SERVE_LIMIT: Duration = Duration::from_mins(1);
/// What is wrong with two data directories between which nothing can be moved.
const ONE_FILE_SYSTEM: &str = "both data directories must be on one file system";
/// One request to etcd.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// The etcd that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    /// What runs it.
    pub old: OldEtcd,
    /// Its data directory, the one with `member` in it.
    pub data_dir: PathBuf,
}

fn not_fit(why: impl Into<String>) -> Trouble {
    Trouble::new(FailureKind::NotFit, why)
}

/// Takes it over, if that was asked for and is not done yet.
pub(super) fn run(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let Some(old) = work.hand_over.clone() else {
        return Ok("no etcd is to be taken over".to_owned());
    };
    let mark = work.place.hand_over();
    let kept = mark.with_file_name("etcd-manifest.yaml");
    let node = work.node()?;
    say_that_it_comes(clock)?;
    let target = node.pair.etcd.data_dir.join("member");
    let source = old.data_dir.join("member");
    if is_same_place(&source, &target) {
        let place = old.data_dir.display();
        return Err(not_fit(format!("{place} is the pair's own data directory, too"))
            .hint("choose another etcd.dataDir in pair.yaml, on the same file system"));
    }
    if target.exists() {
        settle(&mark)?;
        owner_knows(&old.old, clock)?;
        return Ok("done before".to_owned());
    }
    let dataset = etcd_disk::read(&old.data_dir).map_err(|error| Trouble::failed(&error))?;
    let voters = check(&dataset, &old)?;
    old.old.check(&kept, &old.data_dir)?;
    check_one_file_system(&old.data_dir, &node.pair.etcd.data_dir)?;
    if old.old.is_active(&old.data_dir, clock) {
        let client = old_client(node, &dataset)?;
        rename_member(node, &client, &dataset)?;
        // Those of an earlier try: Pacemaker may have given etcd up. If that fails the wait tells.
        let _ = pacemaker::forget_failures(&node.own().name);
        await_agent(node, clock)?;
        old.old.keep(&kept)?;
        if voters == 2 {
            agree(node, &old.old, clock)?;
        } else {
            old.old.tell_owner()?;
        }
    }
    let begin = Instant::now();
    if let Err(trouble) = exchange(&old, &kept, &source, &target, clock) {
        bring_back(&old, &kept, &source, &target, clock);
        return Err(trouble);
    }
    let served = clock.within(SERVE_LIMIT).wait(|| {
        look(node);
        let status = node.client.status(Deadline::after(REQUEST_LIMIT));
        Ok(match status {
            Ok(status) if status.leader.is_some() => Look::Done(()),
            Ok(_) => Look::NotYet("the new etcd has no leader".to_owned()),
            Err(error) => Look::NotYet(words(&error)),
        })
    });
    if let Err(trouble) = served {
        // A pair's data cannot go back alone: the other node may serve with this one's vote any moment.
        // Nor while the new etcd may still run: two processes would write to one dataset.
        if voters == 1 && node.runner.stop().is_ok() {
            bring_back(&old, &kept, &source, &target, clock);
            withdraw(node);
        }
        return Err(trouble.hint("dyad explain shows why it does not serve"));
    }
    let waited = begin.elapsed();
    settle(&mark)?;
    owner_knows(&old.old, clock)?;
    let waited = waited.as_secs_f64();
    Ok(format!("{} is taken over with its data; clients waited {waited:.1} s", old.old))
}

/// A run that was broken off may have stopped the old etcd without its owner's knowledge.
fn owner_knows(old: &OldEtcd, clock: &mut Clock<'_>) -> Result<(), Trouble> {
    clock.wait(|| {
        Ok(match old.tell_owner() {
            Ok(()) => Look::Done(()),
            Err(trouble) => Look::NotYet(trouble.why),
        })
    })
}

/// Before Pacemaker starts: a node whose data are still elsewhere must not look like one that never had any.
pub(super) fn mark(work: &Work<'_>) -> Result<(), Trouble> {
    let Some(old) = &work.hand_over else { return Ok(()) };
    let member = work.here.path(&work.pair()?.etcd.data_dir).join("member");
    if member.exists() {
        return Ok(());
    }
    record::write_durable(&work.place.hand_over(), &old.data_dir)
        .map_err(|error| Trouble::failed(&error))
}

/// The data are in place: they speak for themselves.
fn settle(mark: &Path) -> Result<(), Trouble> {
    record::remove_durable(mark).map_err(|error| Trouble::failed(&error))?;
    pacemaker::publish(ATTRIBUTE, "").map_err(|error| Trouble::failed(&error))
}

/// Tells the other node to wait for it.
fn say_that_it_comes(clock: &mut Clock<'_>) -> Result<(), Trouble> {
    clock.wait(|| {
        Ok(match pacemaker::publish(ATTRIBUTE, "coming") {
            Ok(()) => Look::Done(()),
            Err(error) => Look::NotYet(words(&error)),
        })
    })
}

/// Whether the other node is about to bring its data.
pub(super) fn peer_brings_data(node: &Node) -> bool {
    let said = pacemaker::published(ATTRIBUTE).unwrap_or_default();
    said.iter().any(|(from, text)| *from == node.peer().name && !text.is_empty())
}

/// How many members vote; one or two, or it is not ours to take.
fn check(dataset: &Dataset, old: &HandOver) -> Result<usize, Trouble> {
    let place = old.data_dir.display();
    let last = dataset.prefixes.last().map(|prefix| &prefix.membership);
    let voters = last.map_or(0, |last| last.voters().count());
    let all = voters + last.map_or(0, |last| last.learners().count());
    match dataset.class {
        Class::Alone | Class::Pair if all == voters && voters <= 2 => Ok(voters),
        Class::None => Err(not_fit(format!("{place} holds no dataset"))
            .hint("name etcd's data directory, the one with `member` in it")),
        _ if all > 2 => Err(not_fit(format!("{all} members are in {place}; a pair has two"))
            .hint("remove the others first: etcdctl member list; etcdctl member remove ID")),
        class => Err(not_fit(format!("the dataset in {place} is {class}: {}", dataset.reason))),
    }
}

/// The data are moved, not copied; that this cannot be done must not show only when the old etcd has ended.
fn check_one_file_system(from: &Path, to: &Path) -> Result<(), Trouble> {
    let device = |path: &Path| {
        let there = path.ancestors().find(|path| path.exists());
        there.and_then(|path| fs::metadata(path).ok()).map(|found| found.dev())
    };
    if device(from) == device(to) {
        return Ok(());
    }
    let why = format!("{} and {} are on two file systems", from.display(), to.display());
    Err(not_fit(why).hint(ONE_FILE_SYSTEM))
}

/// A client of the old etcd: by the pair's own address and certificates, or plainly by the loopback.
fn old_client(node: &Node, dataset: &Dataset) -> Result<Client, Trouble> {
    let endpoints = Endpoints::new(&node.pair);
    let port = node.pair.etcd.client_port;
    let tls = endpoints.client_tls();
    let candidates = [
        (endpoints.client(node.own()), tls.as_ref()),
        (format!("http://127.0.0.1:{port}"), None),
        (format!("https://127.0.0.1:{port}"), tls.as_ref()),
    ];
    let mut why = String::new();
    for (url, tls) in candidates {
        let answer = Client::new(&url, tls)
            .and_then(|client| client.status(Deadline::after(REQUEST_LIMIT)).map(|s| (client, s)));
        match answer {
            Ok((client, status)) if Some(status.member) == dataset.member_id => return Ok(client),
            Ok((_, status)) => {
                why = format!("{url} is member {}, not the dataset's", status.member);
            }
            Err(error) => why = words(&error),
        }
    }
    Err(not_fit(format!("the etcd that runs cannot be asked: {why}"))
        .hint("it must answer on the pair's client port, here or on 127.0.0.1"))
}

/// Gives the own member the peer URLs by which the pair knows this node.
fn rename_member(node: &Node, client: &Client, dataset: &Dataset) -> Result<(), Trouble> {
    let wanted = Endpoints::new(&node.pair).peer(node.own());
    let failed = |error: etcd_peer::client::Error| Trouble::failed(&error);
    let members = client.members(Deadline::after(REQUEST_LIMIT)).map_err(failed)?;
    let Some(own) = dataset.member_id.and_then(|id| members.get(id)) else {
        return Err(not_fit("the etcd that runs does not list its own member"));
    };
    if own.peer_urls != wanted {
        client.update(own.id, &wanted, Deadline::after(REQUEST_LIMIT)).map_err(failed)?;
    }
    Ok(())
}

/// Waits until Pacemaker has the resource agent running, so that clients wait for no more than a promotion.
fn await_agent(node: &Node, clock: &mut Clock<'_>) -> Result<(), Trouble> {
    clock
        .wait(|| {
            Ok(match agent::role_now(node) {
                Some(Role::Unpromoted | Role::Promoted) => Look::Done(()),
                _ => Look::NotYet("Pacemaker has not started the resource agent yet".to_owned()),
            })
        })
        .map_err(|trouble| trouble.hint("crm_mon -1 shows why; nothing was stopped here"))
}

/// Two voters are stopped together: each alone would leave the other without a majority for as long as it takes.
fn agree(node: &Node, old: &OldEtcd, clock: &mut Clock<'_>) -> Result<(), Trouble> {
    // One tells the owner, for both: a moment later etcd has ended, and with it the way to be told.
    let tells = node.own().name < node.peer().name;
    if !old.has_owner() || tells {
        await_word(node, READY, READY, clock)?;
    } else {
        await_word(node, READY, TOLD, clock)?;
    }
    if old.has_owner() && tells {
        old.tell_owner()?;
        pacemaker::publish(ATTRIBUTE, TOLD).map_err(|error| Trouble::failed(&error))?;
    }
    Ok(())
}

/// Says `own` until the other node says `other`.
fn await_word(node: &Node, own: &str, other: &str, clock: &mut Clock<'_>) -> Result<(), Trouble> {
    let peer = &node.peer().name;
    clock
        .wait(|| {
            if let Err(error) = pacemaker::publish(ATTRIBUTE, own) {
                return Ok(Look::NotYet(words(&error)));
            }
            let said = pacemaker::published(ATTRIBUTE).unwrap_or_default();
            Ok(if said.iter().any(|(from, text)| from == peer && text == other) {
                Look::Done(())
            } else {
                Look::NotYet(format!("{peer} is not ready to hand its etcd over"))
            })
        })
        .map_err(|trouble| {
            trouble.hint(format!("run the same on {peer}; nothing was stopped here"))
        })
}

/// Stops the old etcd and moves its data into place, whole.
fn exchange(
    old: &HandOver,
    kept: &Path,
    from: &Path,
    to: &Path,
    clock: &Clock<'_>,
) -> Result<(), Trouble> {
    old.old.stop(kept, &old.data_dir, clock)?;
    if let Some(above) = to.parent() {
        record::create_directory(above).map_err(|error| Trouble::failed(&error))?;
    }
    fs::rename(from, to).map_err(|error| bundle::io("move", from)(error).hint(ONE_FILE_SYSTEM))?;
    for directory in [to.parent(), from.parent()].into_iter().flatten() {
        record::sync_directory(directory).map_err(|error| Trouble::failed(&error))?;
    }
    Ok(())
}

/// The old etcd runs again, with its data; without them it stays off, for it would begin a new history. What fails
/// here is told by the error that led to it.
fn bring_back(old: &HandOver, kept: &Path, source: &Path, target: &Path, clock: &Clock<'_>) {
    if put_back(source, target) {
        old.old.start(kept, clock);
    }
}

/// Whether both are one and the same directory, by whatever names.
fn is_same_place(one: &Path, other: &Path) -> bool {
    one == other
        || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Moves the data back to where the old etcd looks for them; whether they are there.
fn put_back(source: &Path, target: &Path) -> bool {
    if target.exists() && !source.exists() && fs::rename(target, source).is_err() {
        return false;
    }
    for directory in [target.parent(), source.parent()].into_iter().flatten() {
        let _ = record::sync_directory(directory);
    }
    source.exists()
}

/// What the agent's monitor does, at once and not seconds later: say what is on the disk now, and do what follows.
fn look(node: &Node) {
    // An operation that holds the node looks itself.
    let Ok(_lock) = node.lock() else { return };
    // Only now: a stop that came first has withdrawn what this look would offer again.
    let role = agent::role_now(node).unwrap_or(Role::Stopped);
    if role != Role::Stopped {
        let _ = node.operate(&Request::default(), role);
    }
}

/// The data are gone from here again: nobody may ask this node to serve them.
fn withdraw(node: &Node) {
    let Ok(_lock) = node.lock() else { return };
    if pacemaker::set_promotion_score(None).is_ok() {
        let _ = node.memory.set_promotion_score(None);
    }
}

#[cfg(test)]
mod tests {
    use dyad_core::dataset::{Membership, Prefix};
    use dyad_core::ids::{Index, MemberId};

    use super::*;

    fn judged(class: Class, voters: &[u64], learners: &[u64]) -> Result<usize, String> {
        let ids = |list: &[u64]| list.iter().copied().map(MemberId).collect::<Vec<_>>();
        let mut dataset = Dataset::empty(class, "test");
        let membership = Membership::new(ids(voters), ids(learners));
        dataset.prefixes = vec![Prefix { index: Index(9), membership }];
        let unit = OldEtcd::Unit("etcd.service".into());
        let old = HandOver { old: unit, data_dir: "/var/lib/etcd/default".into() };
        check(&dataset, &old).map_err(|trouble| trouble.why)
    }

    /// The old etcd is started again only with its data in place: without them it would begin a new history.
    #[test]
    fn data_are_back_before_the_old_etcd() {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) =
            (directory.path().join("old/member"), directory.path().join("new/member"));
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        assert!(!put_back(&source, &target));
        fs::create_dir_all(target.join("wal")).unwrap();
        assert!(put_back(&source, &target));
        assert!(source.join("wal").exists() && !target.exists());
        // Never stopped, never moved.
        assert!(put_back(&source, &target));

        fs::rename(&source, &target).unwrap();
        fs::remove_dir(source.parent().unwrap()).unwrap();
        assert!(!put_back(&source, &target));
        assert!(target.exists());
    }

    /// Two file systems are found before anything is stopped, also where the target is not there yet.
    #[test]
    fn data_cannot_be_moved_between_file_systems() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path(), directory.path().join("not/yet"));
        assert!(check_one_file_system(from, &to).is_ok());
        let trouble = check_one_file_system(from, Path::new("/proc/self")).unwrap_err();
        assert!(trouble.why.contains("/proc/self"), "{}", trouble.why);
    }

    /// One or two voters are taken over; a third member, a learner or damage is refused by name.
    #[test]
    fn only_one_or_two_voters_are_taken_over() {
        assert_eq!(judged(Class::Alone, &[1], &[]), Ok(1));
        assert_eq!(judged(Class::Pair, &[1, 2], &[]), Ok(2));
        assert!(judged(Class::Pair, &[1, 2, 3], &[]).unwrap_err().contains("3 members"));
        assert!(judged(Class::Alone, &[1], &[2]).is_err());
        assert!(judged(Class::None, &[], &[]).unwrap_err().contains("no dataset"));
        assert!(judged(Class::Broken, &[1], &[]).unwrap_err().contains("broken"));
    }
}
