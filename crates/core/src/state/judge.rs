//! The judgement itself: from the best known to the worst, each case once.

use super::{Judgement, PeerEtcd, Sight, State};
use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Refusal};
use crate::facts::{EtcdState, Facts, Operation, Request, Role};
use crate::ids::NodeName;
use crate::standing::Standing;
use crate::statement::EtcdWord;
use crate::{Decision, decide};

pub(super) fn judge(sight: &Sight<'_>) -> Judgement {
    let judgement = by_facts(sight);
    let ended = judgement.state == State::Protected;
    if !sight.resolving || ended || judgement.give_way(sight.facts, true).is_err() {
        return judgement;
    }
    // It may have left this node out of service.
    let mut risks = vec![format!("dyad resolve was broken off on {}", sight.facts.node)];
    risks.extend_from_slice(&judgement.risks);
    judgement.risks(risks).next(commands::resolve_keep(&sight.facts.peer.name))
}

fn by_facts(sight: &Sight<'_>) -> Judgement {
    let facts = sight.facts;
    let decision = decide(&as_asked_now(sight));
    if is_diverged(facts, &decision) {
        let because = "both nodes wrote alone; both copies are kept until a person chooses";
        return said(State::Diverged, None, because).next(commands::RESOLVE);
    }
    if is_split(sight) {
        let because = format!(
            "{} runs and answers, but Corosync does not see it: check the links",
            facts.peer.name
        );
        return said(State::Split, None, because);
    }
    match facts.etcd.state {
        EtcdState::Leader | EtcdState::Follower => serving(sight, &decision),
        EtcdState::Learner => learner(sight),
        EtcdState::NoLeader | EtcdState::Starting => leaderless(sight, &decision),
        EtcdState::Stopped => at_rest(sight, &decision),
    }
}

/// The facts, with the question that would be asked of them now: without quorum nobody calls the agent, and
/// the boot decides.
fn as_asked_now(sight: &Sight<'_>) -> Facts {
    let facts = sight.facts;
    let waits = !facts.pacemaker.quorate && facts.etcd.state == EtcdState::Stopped;
    let operation = if waits && !facts.peer.present { Operation::Boot } else { Operation::Monitor };
    // What a started instance would do: a probe only looks.
    let role = if facts.role == Role::Stopped { Role::Unpromoted } else { facts.role };
    Facts { request: Request { operation, ..Request::default() }, role, ..facts.clone() }
}

fn said(state: State, on: Option<&NodeName>, because: impl Into<String>) -> Judgement {
    let (because, on) = (because.into(), on.cloned());
    Judgement { state, on, because, next: None, risks: Vec::new() }
}

impl Judgement {
    fn next(mut self, command: impl Into<String>) -> Self {
        self.next = Some(command.into());
        self
    }

    fn risks(mut self, risks: Vec<String>) -> Self {
        self.risks = risks;
        self
    }
}

/// R6: both claim to have everything. The one that serves goes on meanwhile, and decides nothing about it.
fn is_diverged(facts: &Facts, decision: &Decision) -> bool {
    let claims = |class: Class| class == Class::Alone;
    let both = claims(Standing::of(facts).class)
        && facts.heard().is_some_and(|heard| claims(heard.class) && !heard.yielded);
    both || matches!(decision.action, Action::Refuse { reason: Refusal::Diverged, .. })
}

/// Both run, and Corosync does not join them. An etcd that answers is no ghost: only a live node runs one.
fn is_split(sight: &Sight<'_>) -> bool {
    let answers = sight.peer_etcd != PeerEtcd::Silent || !sight.facts.peer.paths.is_empty();
    sight.corosync && !sight.facts.peer.present && answers
}

/// The peer is known to be away.
fn is_away(sight: &Sight<'_>) -> bool {
    sight.corosync && !sight.facts.peer.present
}

/// This node's etcd is a voter and has a leader.
fn serving(sight: &Sight<'_>, decision: &Decision) -> Judgement {
    let facts = sight.facts;
    let peer = &facts.peer.name;
    let peer_votes = facts.live_peer().is_some_and(|member| !member.learner);
    if !peer_votes {
        return serving_alone(sight, decision);
    }
    if is_away(sight) {
        return lost(sight, decision);
    }
    let risks = risks(sight);
    if !is_fit(facts) && sight.pacemaker && is_online(facts, peer) {
        let because = "both nodes vote; the proof that both hold everything is still to come";
        return said(State::CatchingUp, None, because).risks(risks);
    }
    let Some(first) = risks.first() else {
        return said(State::Protected, None, "either node may fail");
    };
    let leaves = sight.standby.contains(peer) || sight.standby.contains(&facts.node);
    let state = if leaves { State::Maintenance } else { State::AtRisk };
    let because = format!("both nodes hold the data, but {first}");
    let judgement = said(state, None, because).risks(risks);
    if sight.not_fenceable.is_empty() { judgement } else { judgement.next(commands::DRILL) }
}

/// Both may go on without the other: each passed the barrier in its present boot, with the other's member.
fn is_fit(facts: &Facts) -> bool {
    let with = facts.live_peer().map(|member| member.id);
    let own = facts
        .eligibility
        .as_ref()
        .is_some_and(|record| record.boot == facts.boot && Some(record.with) == with);
    own && facts.heard().is_some_and(|heard| heard.eligible && heard.etcd == EtcdWord::Serving)
}

fn is_online(facts: &Facts, node: &NodeName) -> bool {
    facts.pacemaker.nodes.iter().any(|state| state.name == *node && state.online)
}

/// This node is the only voter, with a leader: itself.
fn serving_alone(sight: &Sight<'_>, decision: &Decision) -> Judgement {
    let facts = sight.facts;
    let (own, peer) = (&facts.node, &facts.peer.name);
    let mut risks = risks_of_one(sight);
    if sight.standby.contains(peer) {
        let because = format!("{own} serves alone; do not reboot it");
        return said(State::Maintenance, Some(peer), because)
            .next(commands::maintenance_end(peer))
            .risks(risks);
    }
    let joins = facts.live_peer().is_some_and(|member| member.started)
        || (facts.peer.present && sight.corosync && decision.action.next_is_soon());
    if joins && !is_away(sight) {
        let progress = match sight.learner_percent {
            Some(percent) => format!("{peer} copies the data ({percent} %)"),
            None => format!("{peer} is about to join"),
        };
        let because = format!("{progress}; do not reboot {own}");
        return said(State::CatchingUp, Some(own), because).risks(risks);
    }
    if !is_away(sight) && sight.corosync {
        risks.push(format!("{peer} is in the cluster, but its etcd does not join"));
    }
    said(State::Alone, Some(own), "do not reboot it").risks(risks)
}

fn learner(sight: &Sight<'_>) -> Judgement {
    let facts = sight.facts;
    let (own, peer) = (&facts.node, &facts.peer.name);
    let because = format!("{own} copies the data from {peer}; do not reboot {peer}");
    said(State::CatchingUp, Some(peer), because)
}

/// This node's etcd runs and has no leader.
fn leaderless(sight: &Sight<'_>, decision: &Decision) -> Judgement {
    if is_away(sight) {
        return lost(sight, decision);
    }
    if let Some(blocked) = stuck(decision) {
        return blocked;
    }
    if !sight.pacemaker && sight.booting {
        return said(
            State::Starting,
            None,
            "etcd has no leader yet, and Pacemaker is about to start",
        );
    }
    if !sight.pacemaker {
        return said(State::Blocked, None, "etcd has no leader and Pacemaker does not answer")
            .next(PACEMAKER_START);
    }
    let because = match sight.facts.etcd.leaderless_ms / 1_000 {
        0 => "etcd has no leader yet".to_owned(),
        seconds => format!("etcd has had no leader for {seconds} s"),
    };
    said(State::Starting, None, because)
}

/// The peer is gone, and its vote is missing.
fn lost(sight: &Sight<'_>, decision: &Decision) -> Judgement {
    let facts = sight.facts;
    let peer = &facts.peer.name;
    if sight.fencing_failed {
        let because = format!(
            "{peer} is lost and cannot be switched off; it is tried again. Only if you know that it is off:"
        );
        return said(State::Blocked, None, because).next(commands::confirm(peer));
    }
    if let Some(blocked) = stuck(decision) {
        return blocked;
    }
    let unclean = facts.pacemaker.nodes.iter().any(|node| node.name == *peer && node.unclean);
    let because = if unclean {
        format!("{peer} is lost and is being switched off")
    } else {
        format!("{peer} is lost; {} is about to go on alone", facts.node)
    };
    said(State::FailingOver, Some(&facts.node), because)
}

/// This node's etcd does not run.
fn at_rest(sight: &Sight<'_>, decision: &Decision) -> Judgement {
    let facts = sight.facts;
    let (own, peer) = (&facts.node, &facts.peer.name);
    let peer_serves = matches!(sight.peer_etcd, PeerEtcd::Serves { .. })
        || facts.heard().is_some_and(|heard| heard.etcd == EtcdWord::Serving);
    if sight.standby.contains(own) {
        let serves = if peer_serves { "serves alone; do not reboot it" } else { "does not serve" };
        return said(State::Maintenance, Some(own), format!("{peer} {serves}"))
            .next(commands::maintenance_end(own));
    }
    if !sight.pacemaker {
        return stopped(sight, peer_serves);
    }
    if peer_serves {
        let Some(stuck) = stuck(decision) else {
            let because = format!("{own} is about to join; do not reboot {peer}");
            return said(State::CatchingUp, Some(peer), because);
        };
        let risk = format!("{own} does not join: {}", stuck.because);
        return Judgement {
            next: stuck.next,
            ..said(State::Alone, Some(peer), "do not reboot it").risks(vec![risk])
        };
    }
    if facts.dataset.class == Class::None
        && facts.heard().is_none_or(|heard| heard.class == Class::None)
    {
        let because = "there are no data on this node, and none are known of on the other";
        return said(State::SettingUp, None, because).next(commands::SETUP);
    }
    if is_away(sight) && facts.pacemaker.quorate {
        return lost(sight, decision);
    }
    stuck(decision).unwrap_or_else(|| said(State::Starting, None, decision.because.clone()))
}

/// What starts a node that was stopped by hand.
const PACEMAKER_START: &str = "systemctl start pacemaker";

fn stopped(sight: &Sight<'_>, peer_serves: bool) -> Judgement {
    let facts = sight.facts;
    let (own, peer) = (&facts.node, &facts.peer.name);
    if sight.booting {
        // Nobody has to do anything: it comes by itself.
        let because = format!("{own} boots; Pacemaker is about to start");
        return if peer_serves {
            said(State::CatchingUp, Some(peer), format!("{because}; do not reboot {peer}"))
        } else {
            said(State::Starting, None, because)
        };
    }
    if peer_serves {
        let alone = said(State::Alone, Some(peer), "do not reboot it").next(PACEMAKER_START);
        let risks = vec![format!("Pacemaker does not answer on {own}: it does not join")];
        return Judgement { risks, ..alone };
    }
    let because = format!("Pacemaker does not answer on {own}, and {peer} does not serve");
    said(State::Stopped, Some(own), because).next(PACEMAKER_START)
}

/// A decision that waits for a person.
fn stuck(decision: &Decision) -> Option<Judgement> {
    match &decision.action {
        Action::StayInert { missing, command } => {
            let because = format!("waiting for {missing}: {}", decision.because);
            Some(said(State::Blocked, None, because).next(command))
        }
        Action::Refuse { command, .. } => {
            Some(said(State::Blocked, None, decision.because.clone()).next(command))
        }
        _ => None,
    }
}

/// What would keep the pair from surviving a failure, the worst first.
fn risks(sight: &Sight<'_>) -> Vec<String> {
    let facts = sight.facts;
    let (own, peer) = (&facts.node, &facts.peer.name);
    let pacemaker = &facts.pacemaker;
    let mut list = Vec::new();
    if !sight.corosync {
        list.push(format!("Corosync does not answer on {own}"));
    }
    if sight.pacemaker {
        let said = [
            (sight.corosync && !pacemaker.quorate, "Corosync has no quorum".to_owned()),
            (!is_online(facts, peer), format!("Pacemaker does not run on {peer}")),
            (!pacemaker.fencing_enabled, "fencing is switched off".to_owned()),
            (!pacemaker.startup_fencing, "start-up fencing is switched off".to_owned()),
            (pacemaker.maintenance, "Pacemaker is in maintenance mode".to_owned()),
            (!pacemaker.managed, "etcd is not managed by Pacemaker".to_owned()),
        ];
        list.extend(said.into_iter().filter_map(|(holds, words)| holds.then_some(words)));
    } else {
        list.push(format!("Pacemaker does not answer on {own}: nobody would take over"));
    }
    let standby = sight.standby.iter().map(|node| format!("{node} is told to leave"));
    list.extend(standby);
    for (node, why) in &sight.not_fenceable {
        list.push(format!("{node} could not be switched off: {why}"));
    }
    if facts.heard().is_some_and(|heard| !heard.disk_writable) {
        list.push(format!("{peer}'s disk is full or takes no writes"));
    }
    list.extend(risks_of_one(sight));
    list
}

/// What would keep this node from going on.
fn risks_of_one(sight: &Sight<'_>) -> Vec<String> {
    let facts = sight.facts;
    let mut list = Vec::new();
    if !facts.disk_writable {
        list.push(format!("{}'s disk is full or takes no writes", facts.node));
    }
    list.extend(sight.alarms.iter().cloned());
    list
}
