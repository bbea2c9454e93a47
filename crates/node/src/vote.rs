//! Casting the stand-in vote on this node.

use std::time::Duration;

use dyad_core::ids::{ClusterId, MemberId};
use etcd_peer::stand_in::{Connected, Limits, StandIn, Survivor};

use crate::act::Failure;
use crate::etcd::Endpoints;
use crate::journal;
use crate::node::Node;

/// It takes milliseconds; an etcd that was just started, or sits on a slow disk, takes longer. What is not
/// done by then is done by the next monitor: the identity is burnt, but the mark stands (R2a).
pub(crate) const LIMIT: Duration = Duration::from_secs(25);

/// A vote that is connected while the take-over is announced, and whose it would be. Nothing is said in it.
#[derive(Debug)]
pub(crate) struct Prepared {
    dead: MemberId,
    vote: Connected,
}

/// Connects to the local etcd, in the background. That it fails does not matter: it is done again when it must be.
pub(crate) fn prepare(
    node: &Node,
    cluster: ClusterId,
    survivor: MemberId,
    dead: MemberId,
) -> Option<Prepared> {
    let vote = connect(node, cluster, survivor, dead).ok()?;
    Some(Prepared { dead, vote })
}

/// Casts the dead member's vote until it is removed. Proof and eligibility were decided before.
pub(crate) fn cast(
    node: &Node,
    cluster: ClusterId,
    survivor: MemberId,
    dead: MemberId,
) -> Result<(), Failure> {
    let vote = match node.exchange_prepared(None) {
        Some(prepared) if prepared.dead == dead => prepared.vote,
        other => {
            // It has the lock.
            drop(other);
            connect(node, cluster, survivor, dead)?
        }
    };
    let report = vote
        .run(&mut |step| journal::tell(&format!("take-over: {:.1} ms: {}", step.ms, step.step)))?;
    let last = report.steps.last().map_or(0.0, |step| step.ms);
    journal::tell(&format!("take-over: done in {last:.1} ms; this node runs alone"));
    Ok(())
}

fn connect(
    node: &Node,
    cluster: ClusterId,
    survivor: MemberId,
    dead: MemberId,
) -> Result<Connected, Failure> {
    let endpoints = Endpoints::new(&node.pair);
    let peer_url =
        endpoints.peer(node.own()).into_iter().next().ok_or("this node has no address")?;
    let target = Survivor { cluster, survivor, dead, peer_url, tls: endpoints.peer_tls() };
    let lock = node.place.runtime.join("stand-in.lock");
    let vote = StandIn::new(target, lock, Limits { total: LIMIT }).client(node.own_client()?);
    Ok(vote.connect()?)
}
