//! The steps that the two nodes do together: each looks, and does what `core` says is its part.

use std::time::{Duration, Instant};

use dyad_core::dataset::Class;
use dyad_core::decision::Action;
use dyad_core::facts::{Operation, Request, Role};
use dyad_core::statement::EtcdWord;
use dyad_node::gather::words;
use dyad_node::memory::Began;
use dyad_node::node::Node;
use dyad_node::{corosync, pacemaker};
use etcd_peer::client::{Consistency, Deadline};

use super::steps::{Clock, Look, Work};
use super::{Trouble, hand_over};
use crate::state::FailureKind;

/// A refusal counts when it has stood for so long.
const REFUSAL_STANDS: Duration = Duration::from_secs(10);
/// One request to etcd.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// The step `peer`.
pub(super) fn peer(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let node = work.node()?;
    let peer = node.peer().name.clone();
    let waited = clock.wait(|| {
        let seen = match corosync::membership() {
            Ok(seen) => seen,
            Err(error) => return Ok(Look::NotYet(words(&error))),
        };
        // Node ids are the positions in the description, counted from 1.
        let both = [1, 2].iter().all(|id| seen.nodes.contains(id));
        Ok(match (both, seen.quorate) {
            (true, true) => Look::Done(()),
            (true, false) => Look::NotYet("Corosync has no quorum yet".to_owned()),
            (false, _) => Look::NotYet(format!("{peer} is not in the cluster")),
        })
    });
    let hint = format!(
        "run `dyad setup` on {peer} too; if it runs, are the links up and both bundles of one rendering? \
         corosync-cfgtool -n"
    );
    waited.map_err(|trouble| trouble.hint(hint))?;
    Ok(format!("{peer} is there"))
}

/// The step `data`: the rule R12 decides who begins, and whether anybody does.
pub(super) fn data(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let node = work.node()?;
    let request = Request { operation: Operation::Begin, ..Request::default() };
    let mut created = false;
    let mut refused: Option<Instant> = None;
    clock.wait(|| {
        let lock = match node.lock() {
            Ok(lock) => lock,
            Err(error) => return Ok(Look::NotYet(words(&error))),
        };
        let outcome = node.operate(&request, Role::Unpromoted);
        drop(lock);
        let decision = &outcome.decision;
        if let Some(failure) = &outcome.failure {
            // Pacemaker may only just have started; a dataset that could not be made is another matter.
            if decision.action == Action::CreateDataset {
                return Err(Trouble::new(FailureKind::Failed, failure.clone())
                    .hint("journalctl -b -t etcd shows what etcd says"));
            }
            return Ok(Look::NotYet(failure.clone()));
        }
        Ok(match &decision.action {
            Action::Nothing if created => Look::Done("this node has begun the data".to_owned()),
            Action::Nothing => Look::Done(decision.because.clone()),
            Action::CreateDataset => {
                created = true;
                Look::NotYet("the new dataset is to be seen".to_owned())
            }
            Action::StayInert { command, .. } | Action::Refuse { command, .. } => {
                // What the other node last said may be about to change: it looks again every few seconds.
                if hand_over::peer_brings_data(node)
                    || refused.get_or_insert_with(Instant::now).elapsed() < REFUSAL_STANDS
                {
                    return Ok(Look::NotYet(decision.because.clone()));
                }
                return Err(Trouble::new(FailureKind::Refused, decision.because.clone())
                    .hint(command.clone()));
            }
            _ => Look::NotYet(decision.because.clone()),
        })
    })
}

/// The step `voters`: both vote, both have passed the barrier in their present boot, both have said so.
pub(super) fn voters(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let node = work.node()?;
    clock
        .wait(|| {
            if !has_passed_barrier(node) {
                return Ok(Look::NotYet(own_progress(node)));
            }
            let lock = match node.lock() {
                Ok(lock) => lock,
                Err(error) => return Ok(Look::NotYet(words(&error))),
            };
            let facts = node.look(Request::default(), Role::Promoted).facts;
            drop(lock);
            let peer = &node.peer().name;
            let voters = facts.etcd.members.iter().filter(|member| !member.learner).count();
            if voters != 2 {
                return Ok(Look::NotYet(format!("{voters} of 2 nodes vote")));
            }
            let said = facts.peer.statement.as_ref();
            let fit = said.is_some_and(|said| {
                said.class == Class::Pair && said.eligible && said.etcd == EtcdWord::Serving
            });
            if !fit {
                return Ok(Look::NotYet(format!(
                    "{peer} has not yet said that it may go on alone"
                )));
            }
            if facts.published.is_none() {
                return Ok(Look::NotYet("this node's statement is not published".to_owned()));
            }
            if let (Some(cluster), Some(member)) =
                (facts.dataset.cluster_id, facts.dataset.member_id)
            {
                let began = Began { cluster, member };
                node.memory.set_began(&began).map_err(|error| Trouble::failed(&error))?;
            }
            Ok(Look::Done("both nodes vote, and either may be lost".to_owned()))
        })
        .map_err(|trouble| {
            trouble.hint("dyad explain shows the last decisions; crm_mon -1 the resources")
        })
}

fn has_passed_barrier(node: &Node) -> bool {
    let run = dyad_node::boot::run_id();
    let record = node.memory.eligibility();
    record.is_some_and(|record| record.boot == node.boot && record.run == run)
}

/// What this node last decided: the best word on what is still missing.
fn own_progress(node: &Node) -> String {
    let last = node.journal().last(1).pop();
    let because = last.as_ref().and_then(|entry| entry.decision["because"].as_str());
    because.map_or_else(|| "Pacemaker has not started etcd yet".to_owned(), str::to_owned)
}

/// The step `fencing`: Pacemaker has started both devices, which asks each BMC for its power state.
pub(super) fn fencing(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let node = work.node()?;
    let devices = [node.own(), node.peer()].map(|node| format!("fence-{}", node.name));
    clock
        .wait(|| {
            let state = match pacemaker::state() {
                Ok(state) => state,
                Err(error) => return Ok(Look::NotYet(words(&error))),
            };
            let missing = devices.iter().find(|id| {
                let started = |resource: &&dyad_cluster::state::ResourceState| {
                    resource.id == **id && resource.role == "Started" && !resource.failed
                };
                state.resources.iter().find(started).is_none_or(|found| found.nodes.is_empty())
            });
            Ok(match missing {
                None => Look::Done("both devices answer".to_owned()),
                Some(id) => Look::NotYet(format!("{id} is not started")),
            })
        })
        .map_err(|trouble| {
            trouble.hint("crm_mon -1 shows the failed action; dyad check asks the BMC itself")
        })
}

/// The step `write`.
pub(super) fn write(work: &mut Work<'_>, clock: &mut Clock<'_>) -> Result<String, Trouble> {
    let node = work.node()?;
    let key = format!("dyad/setup/{}", node.own().name);
    let value = node.boot.to_string();
    let begin = Instant::now();
    clock.wait(|| {
        let deadline = Deadline::after(REQUEST_LIMIT);
        if let Err(error) = node.client.put(key.as_bytes(), value.as_bytes(), deadline) {
            return Ok(Look::NotYet(words(&error)));
        }
        let peer = dyad_node::etcd::Endpoints::new(&node.pair).reachable(node.peer());
        let read =
            peer.and_then(|peer| peer.get(key.as_bytes(), Consistency::Linearizable, deadline));
        Ok(match read {
            Ok(Some(found)) if found.value == value.as_bytes() => Look::Done(()),
            Ok(_) => Look::NotYet("the other node does not have the write".to_owned()),
            Err(error) => Look::NotYet(words(&error)),
        })
    })?;
    Ok(format!(
        "written here and read from {} in {} ms",
        node.peer().name,
        begin.elapsed().as_millis()
    ))
}
