//! The one thing that was decided, step by step in the order that `core` gives.
//!
//! Each step can be the last one before a crash: the next decision starts from what is then true.

use std::time::{Duration, Instant};

use dyad_cluster::pair::Node as PairNode;
use dyad_core::decision::{Action, Awaited};
use dyad_core::facts::{
    Confirmation, Eligibility, EligibleBy, EtcdState, Facts, LogPosition, Marks,
    Memory as PeerMemory, TakeOverMark, YieldMark,
};
use dyad_core::ids::{ClusterId, MemberId};
use dyad_core::worth::Worth;
use etcd_peer::client::{Client, Deadline, Members, Reason};

use crate::etcd::{Endpoints, environment, is_pair_of};
use crate::gather::{Disk, Gathered, words};
use crate::node::Node;
use crate::{
    aside, connections, corosync, create, follow, journal, pacemaker, power, record, vote,
};

/// An error of any of the parts.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One request to etcd.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// A change of the membership waits for a majority's disks.
const CHANGE_LIMIT: Duration = Duration::from_secs(8);
/// etcd calls a connection healthy after five seconds; members may have to find each other first.
const HEALTHY_LIMIT: Duration = Duration::from_secs(15);
/// The barrier's write: it must not hold the monitor (R9); the next one tries again.
const BARRIER_LIMIT: Duration = Duration::from_secs(3);
/// An operation spends no longer than this on what eases a stop for the other node: hand-over, removal. Counted from its
/// begin, waiting for the node included; what is left of Pacemaker's time-out is enough to stop etcd.
pub(crate) const COURTESY_LIMIT: Duration = Duration::from_secs(35);
/// Nor does it say anything more after this: two tools' limits fit behind it.
pub(crate) const WORDS_LIMIT: Duration = Duration::from_secs(75);
/// How strongly an offer asks to be promoted. Pacemaker compares; both nodes may be promoted.
const PROMOTION_SCORE: u32 = 100;

/// Does what was decided.
pub fn perform(node: &Node, gathered: &Gathered, action: &Action) -> Result<(), Failure> {
    let facts = &gathered.facts;
    match action {
        Action::Wait { what: Awaited::PeerConnection, .. } => {
            connections::renew(node, facts.etcd.leaderless_ms);
            node.publish(facts)
        }
        Action::Nothing
        | Action::Wait { .. }
        | Action::StayInert { .. }
        | Action::AskForRestart
        | Action::Refuse { .. } => node.publish(facts),
        Action::Offer => offer(node, facts),
        Action::StartPlain => start_plain(node, facts),
        Action::RecordComparison { with } => earn(node, facts, *with, EligibleBy::ComparedAtRest),
        Action::DropEligibility => {
            node.memory.drop_eligibility()?;
            let facts = Facts { eligibility: None, ..facts.clone() };
            node.publish(&facts)
        }
        Action::AnnounceTakeOver { dead } => announce(node, facts, *dead),
        Action::TakeOver { dead } => take_over(node, facts, *dead),
        Action::Yield => give_way(node, facts),
        Action::TakeBackYield => {
            node.memory.clear_yield()?;
            let mut facts = facts.clone();
            facts.marks.yielded = None;
            node.publish(&facts)
        }
        Action::AddPeerAsLearner => add_peer(node),
        Action::DropLearner { member } => {
            node.client.remove(*member, Deadline::after(CHANGE_LIMIT))?;
            Ok(())
        }
        Action::JoinAsLearner { member } => join(node, facts, *member),
        Action::PromoteLearner { member } => promote(node, facts, *member),
        Action::Barrier { with } => barrier(node, facts, *with),
        Action::HandOver { to } => {
            let limit = REQUEST_LIMIT.min(courtesy_left(node)?);
            node.client.move_leader(*to, Deadline::after(limit))?;
            Ok(())
        }
        Action::Leave => leave(node, facts),
        Action::Stop => stop(node, facts),
        Action::ForcePeerOff => power::force_peer_off(node, facts),
        Action::ReleaseWaitForAll => Ok(corosync::cancel_wait_for_all()?),
        Action::CreateDataset => begin(node, facts),
        Action::AcceptConfirmation { accept_loss } => confirm(node, facts, *accept_loss),
    }
}

/// The dataset's own ids. Decisions that need them are not made without.
fn own_ids(facts: &Facts) -> Result<(ClusterId, MemberId), Failure> {
    match (facts.dataset.cluster_id, facts.dataset.member_id) {
        (Some(cluster), Some(member)) => Ok((cluster, member)),
        _ => Err("the dataset has no cluster id or member id".into()),
    }
}

fn offer(node: &Node, facts: &Facts) -> Result<(), Failure> {
    node.publish(facts)?;
    set_score(node, Some(PROMOTION_SCORE))
}

/// Says how much this node wants to be promoted.
fn set_score(node: &Node, score: Option<u32>) -> Result<(), Failure> {
    // Written only when it changes: a CIB update at the wrong moment costs Pacemaker a second.
    if node.memory.promotion_score() != score {
        pacemaker::set_promotion_score(score)?;
        node.memory.set_promotion_score(score)?;
    }
    Ok(())
}

/// Says what comes next before it is done: the peer must not see an etcd that was never announced.
fn publish_as(node: &Node, facts: &Facts, state: EtcdState) -> Result<(), Failure> {
    let mut facts = facts.clone();
    facts.etcd.state = state;
    node.publish(&facts)
}

fn start_plain(node: &Node, facts: &Facts) -> Result<(), Failure> {
    publish_as(node, facts, EtcdState::Starting)?;
    start_on_own_data(node)
}

/// Starts etcd on the data as it is; it knows its members itself.
fn start_on_own_data(node: &Node) -> Result<(), Failure> {
    let endpoints = Endpoints::new(&node.pair);
    let own = (node.own().name.to_string(), endpoints.peer(node.own()));
    write_environment(node, &[own])?;
    Ok(node.runner.start()?)
}

fn write_environment(node: &Node, members: &[(String, Vec<String>)]) -> Result<(), Failure> {
    record::create_directory(&node.place.runtime)?;
    let path = node.place.etcd_environment();
    std::fs::write(&path, environment(&node.pair, node.own(), members))
        .map_err(|source| record::Error::Io { step: "write", path, source })?;
    Ok(())
}

fn earn(node: &Node, facts: &Facts, with: MemberId, by: EligibleBy) -> Result<(), Failure> {
    let (_, member) = own_ids(facts)?;
    // Without its run a record would count in any: nothing is earned then, and nothing is said of it.
    let run = Some(facts.run.clone().ok_or("systemd does not name this run of Pacemaker")?);
    let record = Eligibility { boot: node.boot.clone(), run, member, with, by };
    Ok(node.memory.set_eligibility(&record)?)
}

fn announce(node: &Node, facts: &Facts, dead: MemberId) -> Result<(), Failure> {
    let (cluster, member) = own_ids(facts)?;
    if facts.etcd.state != EtcdState::Stopped {
        drop(node.exchange_prepared(vote::prepare(node, cluster, member, dead)));
    }
    let mut mark = mark_of(facts, cluster, member);
    if !mark.without.contains(&dead) {
        mark.without.push(dead);
    }
    if mark.promoting == Some(dead) {
        mark.promoting = None;
    }
    node.memory.mark_take_over(&mark)?;
    let mut facts = facts.clone();
    facts.marks.take_over = Some(mark);
    node.publish(&facts)
}

/// The mark that stands, if it is about this dataset, else a new one.
fn mark_of(facts: &Facts, cluster: ClusterId, member: MemberId) -> TakeOverMark {
    let standing = facts.marks.take_over.clone();
    standing
        .filter(|mark| mark.cluster == cluster && mark.member == member)
        .unwrap_or(TakeOverMark { cluster, member, without: Vec::new(), promoting: None })
}

fn take_over(node: &Node, facts: &Facts, dead: MemberId) -> Result<(), Failure> {
    let (cluster, member) = own_ids(facts)?;
    if facts.etcd.state == EtcdState::Stopped {
        start_on_own_data(node)?;
    }
    #[cfg(feature = "broken-variants")]
    if crate::broken::is(crate::broken::Broken::ForceNewCluster) {
        return crate::broken::force_new_cluster(node);
    }
    vote::cast(node, cluster, member, dead)
}

fn give_way(node: &Node, facts: &Facts) -> Result<(), Failure> {
    let (cluster, member) = own_ids(facts)?;
    let mark = YieldMark { cluster, member };
    node.memory.mark_yield(&mark)?;
    node.memory.drop_eligibility()?;
    set_score(node, None)?;
    let mut facts = Facts { eligibility: None, ..facts.clone() };
    facts.marks.yielded = Some(mark);
    node.publish(&facts)
}

fn add_peer(node: &Node) -> Result<(), Failure> {
    let urls = Endpoints::new(&node.pair).peer(node.peer());
    let answer = node.client.add_learner(&urls, Deadline::after(CHANGE_LIMIT));
    // "It exists" is what was wanted; whatever else went wrong, the next look at the live membership tells.
    match answer {
        Err(error) if error.reason() != Some(Reason::PeerUrlsExist) => return Err(error.into()),
        _ => {}
    }
    let live = node.look(dyad_core::facts::Request::default(), dyad_core::facts::Role::Promoted);
    node.publish(&live.facts)
}

fn join(node: &Node, facts: &Facts, member: MemberId) -> Result<(), Failure> {
    // The peer's live membership tells whether it still wants this node, and under which URLs.
    let members = peer_members(node)?;
    if members.get(member).is_none_or(|entry| !entry.learner) {
        return Err(format!("{} does not list {member} as a learner", node.peer().name).into());
    }
    node.runner.stop()?;
    let worth = Worth::of(&facts.dataset, &facts.marks, node.memory.passed());
    let data_dir = &node.pair.etcd.data_dir;
    #[cfg(feature = "broken-variants")]
    crate::broken::delete_before_join(data_dir)?;
    aside::move_aside(data_dir, node.memory.beside(), facts.dataset.member_id, worth)?;
    aside::drop_unfinished(data_dir, node.memory.beside())?;
    // The marks and the eligibility were about the dataset that is now aside.
    node.memory.clear_take_over()?;
    node.memory.clear_yield()?;
    node.memory.drop_eligibility()?;
    publish_as(node, &without_dataset(node, facts), EtcdState::Starting)?;
    let endpoints = Endpoints::new(&node.pair);
    let named = |node: &PairNode| (node.name.to_string(), endpoints.peer(node));
    write_environment(node, &[named(node.own()), named(node.peer())])?;
    Ok(node.runner.start()?)
}

/// The facts once the dataset is aside: nothing of it may be said any more, but that there was one (R12).
fn without_dataset(node: &Node, facts: &Facts) -> Facts {
    let memory = &node.memory;
    let disk = Disk::read(&node.pair.etcd.data_dir, memory.beside(), memory.began_file());
    Facts {
        dataset: disk.dataset,
        traces: disk.traces,
        marks: Marks::default(),
        eligibility: None,
        ..facts.clone()
    }
}

fn peer_members(node: &Node) -> Result<Members, Failure> {
    Ok(node.peer_client()?.members(Deadline::after(REQUEST_LIMIT))?)
}

fn promote(node: &Node, facts: &Facts, learner: MemberId) -> Result<(), Failure> {
    let (cluster, member) = own_ids(facts)?;
    let mut mark = mark_of(facts, cluster, member);
    mark.promoting = Some(learner);
    node.memory.mark_take_over(&mark)?;
    match node.client.promote(learner, Deadline::after(CHANGE_LIMIT)) {
        // A lost answer to an earlier call: it votes already.
        Err(error) if error.reason() == Some(Reason::NotLearner) => {}
        other => drop(other?),
    }
    Ok(())
}

fn barrier(node: &Node, facts: &Facts, with: MemberId) -> Result<(), Failure> {
    let (_, member) = own_ids(facts)?;
    let deadline = Deadline::after(BARRIER_LIMIT);
    // Both have applied the membership with both in it: whoever leads now needs both for a commit (V4).
    let theirs = node.peer_client()?.members(deadline)?;
    let ours = node.client.members(deadline)?;
    if !is_pair_of(&ours, member, with) || !is_pair_of(&theirs, member, with) {
        return Err("not both nodes have applied the membership with both of them yet".into());
    }
    // A write, not a read: its fsync carries the commit mark onto both disks (V9).
    let before = node.client.status(deadline)?;
    let key = format!("dyad/barrier/{member}");
    let value = format!("{} {}", node.boot, crate::boot::uptime_ms().unwrap_or_default());
    node.client.put(key.as_bytes(), value.as_bytes(), deadline)?;
    let after = node.client.status(deadline)?;
    earn(node, facts, with, EligibleBy::Barrier)?;
    // Before the mark goes: a copy of a member that has passed is never taken for a join that did not end.
    node.memory.set_passed(member)?;
    node.memory.clear_take_over()?;
    // What is committed through both in one and the same term is on the peer's disk for certain: a disk that
    // later ends before it was rolled back (R11).
    if before.term == after.term {
        let last = LogPosition { term: after.term, index: after.raft_index };
        node.memory.remember_peer(PeerMemory { member: with, last })?;
    }
    let keep = usize::try_from(node.pair.etcd.keep_copies).unwrap_or(usize::MAX);
    let pruned = aside::prune(&node.pair.etcd.data_dir, node.memory.beside(), keep);
    // Room for later. That there is too little now takes nothing from what was earned.
    for error in [pruned, node.memory.keep_ballast()].into_iter().filter_map(Result::err) {
        journal::warn(&format!("the barrier is passed, but: {}", words(&error)));
    }
    let mut facts = facts.clone();
    facts.marks.take_over = None;
    facts.eligibility = node.memory.eligibility();
    node.publish(&facts)
}

/// How long may still be spent on what eases a stop for the other node.
fn courtesy_left(node: &Node) -> Result<Duration, Failure> {
    let left = COURTESY_LIMIT.saturating_sub(node.opened.elapsed());
    if left.is_zero() { Err("no time is left for it".into()) } else { Ok(left) }
}

fn leave(node: &Node, facts: &Facts) -> Result<(), Failure> {
    // A leave that failed is a plain stop.
    if let Err(error) = remove_own(node, facts) {
        journal::warn(&format!("cannot leave, a plain stop instead: {}", words(&*error)));
    }
    stop(node, facts)
}

/// Asked of the peer, which leads: the own etcd stops by itself as soon as it applies the removal.
fn remove_own(node: &Node, facts: &Facts) -> Result<(), Failure> {
    let (_, member) = own_ids(facts)?;
    match remove_when_healthy(&node.peer_client()?, member, courtesy_left(node)?) {
        Err(error) if error.reason() != Some(Reason::MemberNotFound) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Removes a member. etcd refuses to change the membership for the first seconds of a connection between its
/// members; a stop that did not wait for them would leave the other node without a majority.
fn remove_when_healthy(
    client: &Client,
    member: MemberId,
    limit: Duration,
) -> Result<(), etcd_peer::client::Error> {
    let start = Instant::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        match client.remove(member, Deadline::after(CHANGE_LIMIT.min(left))) {
            Err(error)
                if error.reason() == Some(Reason::UnhealthyCluster)
                    && start.elapsed() < HEALTHY_LIMIT.min(limit) =>
            {
                std::thread::sleep(Duration::from_millis(200));
            }
            other => return other.map(drop),
        }
    }
}

/// A stop is done when etcd is at rest for certain. What could not be said beside it is logged: a stop that
/// failed would end in fencing, and silence keeps the peer from acting.
fn stop(node: &Node, facts: &Facts) -> Result<(), Failure> {
    let withdrawn = set_score(node, None);
    if facts.etcd.silent_ms.is_some() {
        // It would not hear that it is to end; and if its disk holds it, the sooner that is known the better.
        node.runner.kill()?;
    }
    node.runner.stop()?;
    let told = if node.opened.elapsed() < WORDS_LIMIT {
        state_rest(node, facts)
    } else {
        Err("no time is left to say so".into())
    };
    for error in [withdrawn, told].into_iter().filter_map(Result::err) {
        journal::warn(&format!("etcd is stopped, but: {}", words(&*error)));
    }
    Ok(())
}

/// Writes down and publishes what the disk holds now that nothing writes to it any more.
fn state_rest(node: &Node, facts: &Facts) -> Result<(), Failure> {
    let rest = node.look(facts.request.clone(), facts.role);
    let raft = rest.facts.dataset.raft;
    let last = LogPosition { term: raft.last_term, index: raft.last_index };
    let solid = rest.facts.dataset.solid_pair();
    // A disk that takes no writes is no reason to keep silent.
    let written = if solid { node.memory.set_stopped_at(last) } else { Ok(()) };
    node.publish(&rest.facts)?;
    Ok(written?)
}

fn begin(node: &Node, facts: &Facts) -> Result<(), Failure> {
    create::dataset(node)?;
    let made = node.look(facts.request.clone(), facts.role);
    node.publish(&made.facts)?;
    // The next steps follow at once: this node is promoted, then the other one joins.
    follow::start();
    Ok(())
}

fn confirm(node: &Node, facts: &Facts, accept_loss: bool) -> Result<(), Failure> {
    let word = Confirmation {
        boot: node.boot.clone(),
        ring: facts.ring.clone(),
        member: facts.other_voter(),
        accept_loss,
    };
    node.memory.set_confirmation(&word)?;
    pacemaker::confirm_down(&node.peer().name)?;
    corosync::cancel_wait_for_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use dyad_core::Statement;
    use dyad_core::dataset::{Class, Dataset};
    use dyad_core::facts::{Request, Role};

    use super::*;
    use crate::fixture::{Fixture, Word};

    /// R4, R12: who joins anew says nothing of the dataset that it has put aside, neither its member nor its marks nor what was
    /// earned with it; but it does not look like a node that never had one.
    #[test]
    fn a_node_that_joins_has_no_old_identity() {
        let node = Fixture::new().node(&Word::default());
        let (cluster, member) = (ClusterId(1), MemberId(7));
        let mut facts = node.look(Request::default(), Role::Unpromoted).facts;
        facts.dataset = Dataset::empty(Class::Pair, "a test");
        facts.dataset.cluster_id = Some(cluster);
        facts.dataset.member_id = Some(member);
        facts.marks.yielded = Some(YieldMark { cluster, member });
        facts.eligibility = Some(Eligibility {
            boot: node.boot.clone(),
            run: None,
            member,
            with: MemberId(8),
            by: EligibleBy::Barrier,
        });
        let beside = node.memory.beside();
        std::fs::create_dir_all(node.pair.etcd.data_dir.join("member/wal")).unwrap();
        aside::move_aside(&node.pair.etcd.data_dir, beside, Some(member), Worth::Whole).unwrap();
        let said = Statement::of(&without_dataset(&node, &facts), None);
        assert_eq!((said.class, said.member_id, said.cluster_id), (Class::None, None, None));
        assert!(!said.yielded && !said.eligible && !said.blank, "{said:?}");
    }
}
