//! From answers to one document: the facts are made as the agent makes them, `core` judges, the rest is told.

use std::path::Path;
use std::time::{Duration, Instant};

use dyad_cluster::cib::{fence_id, unit_id};
use dyad_cluster::pair::Node as PairNode;
use dyad_cluster::state::{ClusterState, ResourceState};
use dyad_core::facts::{EtcdState, Request, Role};
use dyad_core::ids::NodeName;
use dyad_core::state::{Judgement, PeerEtcd, Sight, State};
use dyad_core::statement::Statement;
use dyad_node::gather::{Gathered, Surroundings, no_disk};
use dyad_node::{Node, agent, journal, runner};
use etcd_peer::client::{Alarm, AlarmKind};

use crate::document::{
    Detection, Etcd, FenceDevice, Fencing, Link, Node as NodeView, Setup, Status, Unit,
};
use crate::incidents::last_incident;
use crate::look::{Answers, Past, PeerWord, Seen, unit_names};
use crate::{certificates, events, history, setup};

/// What Pacemaker takes around an attempt to fence.
const FENCING_HEADROOM_MS: u64 = 5_000;

/// Makes facts of the answers, judges them, and tells everything.
pub(crate) fn tell(node: &Node, answers: Answers, start: Instant) -> Seen {
    let gathered = gather(node, &answers);
    let setup = setup::unfinished(&node.place.state);
    let judgement = in_set_up(judge(node, &answers, &gathered), setup.as_ref());
    let judgement = in_change(judgement, node);
    let mut status = document(node, &answers, &gathered, &judgement, start.elapsed());
    status.setup = setup;
    Seen { gathered, judgement, status }
}

/// Before the pair has ever served, where its set-up stands says more than what is missing of a pair.
fn in_set_up(judgement: Judgement, setup: Option<&Setup>) -> Judgement {
    let early = matches!(
        judgement.state,
        State::SettingUp | State::Starting | State::Stopped | State::Blocked | State::Unknown
    );
    match setup {
        Some(setup) if early => Judgement {
            state: if setup.failed { State::Blocked } else { State::SettingUp },
            on: None,
            because: setup::words(setup),
            next: setup.hint.clone(),
            risks: judgement.risks,
        },
        _ => judgement,
    }
}

/// A change of the description, or of Corosync's key, that was begun on this node and not ended.
fn in_change(mut judgement: Judgement, node: &Node) -> Judgement {
    let peer = &node.peer().name;
    if let Some(words) = setup::waiting(&node.place.state, Path::new(setup::AUTHKEY), &peer.0) {
        judgement.risks.push(words);
        judgement.next = judgement.next.or_else(|| Some(dyad_core::commands::APPLY.to_owned()));
    }
    judgement
}

fn gather(node: &Node, answers: &Answers) -> Gathered {
    let surroundings = Surroundings {
        membership: answers.membership.clone().ok(),
        cluster: answers.cluster.clone().ok(),
        startup_fencing: answers.told.as_ref().is_ok_and(|told| told.startup_fencing),
        peer_statement: statement(answers, &node.peer().name),
        troubles: Vec::new(),
    };
    let memory = node.memory.only_looking();
    let role = agent::role_now(node).unwrap_or(Role::Stopped);
    let disk = answers.disk.clone().unwrap_or_else(|why| no_disk(&why));
    let live = answers.live.clone().map_err(|_| runner::Error::Lost);
    node.sources_with(&memory).combine(Request::default(), role, surroundings, disk, live)
}

/// What a node has published.
fn statement(answers: &Answers, node: &NodeName) -> Option<Statement> {
    let statements = answers.statements.as_ref().ok()?;
    let (_, text) = statements.iter().find(|(from, _)| from == node)?;
    serde_json::from_str(text).ok()
}

fn judge(node: &Node, answers: &Answers, gathered: &Gathered) -> Judgement {
    let peer = &node.peer().name;
    let cluster = answers.cluster.as_ref().ok();
    let standby = answers.told.as_ref().map(|told| told.standby.clone()).unwrap_or_default();
    let last_try = answers.fenced.as_ref().ok().and_then(|events| {
        events.iter().find(|event| event.node == peer.0 && event.outcome != "pending")
    });
    let unclean = cluster.is_some_and(|c| c.node(peer).is_some_and(|state| state.unclean));
    let sight = Sight {
        facts: &gathered.facts,
        corosync: answers.membership.is_ok(),
        pacemaker: answers.cluster.is_ok(),
        peer_etcd: peer_etcd(answers.peer.as_ref().ok()),
        standby,
        not_fenceable: cluster.map(|cluster| not_fenceable(node, cluster)).unwrap_or_default(),
        fencing_failed: unclean
            && (last_try.is_some_and(|event| event.outcome == "failed")
                || gathered.facts.peer.absent_ms > fencing_limit_ms(node)),
        learner_percent: gathered.live.learner_percent,
        alarms: answers.alarms.iter().flatten().map(alarm_words).collect(),
        booting: answers.booting == Ok(true),
        resolving: node.place.resolving().exists(),
    };
    let judgement = sight.judge();
    // With nobody to ask there is nothing to conclude.
    let blind = answers.live.is_err() && answers.cluster.is_err() && answers.membership.is_err();
    if blind {
        let because =
            "neither Corosync nor Pacemaker nor etcd can be asked on this node".to_owned();
        return Judgement { state: State::Unknown, on: None, because, next: None, ..judgement };
    }
    judgement
}

/// How long it may take from the loss of the peer to its power being off. Pacemaker does not write down every
/// attempt that failed, so time has to tell.
fn fencing_limit_ms(node: &Node) -> u64 {
    let detection_ms = node.pair.detection.token_ms() + node.pair.detection.consensus_ms();
    let delay_ms = node.pair.fence_delay_ms(node.pair.preferred());
    detection_ms + delay_ms + node.pair.fencing.bmc_timeout_ms + FENCING_HEADROOM_MS
}

fn peer_etcd(word: Option<&PeerWord>) -> PeerEtcd {
    match word {
        None => PeerEtcd::Silent,
        Some(word) if word.status.learner => PeerEtcd::Learner,
        Some(word) if word.status.leader.is_none() => PeerEtcd::Leaderless,
        Some(word) => PeerEtcd::Serves { voters: word.voters },
    }
}

/// The device that switches a node.
fn device<'a>(cluster: &'a ClusterState, node: &PairNode) -> Option<&'a ResourceState> {
    let id = fence_id(node);
    cluster.resources.iter().find(|resource| resource.id == id)
}

fn works(device: Option<&ResourceState>) -> bool {
    device.is_some_and(|device| device.role == "Started" && !device.failed)
}

/// Whether both nodes run resources: with one, nobody tests that one's own device.
fn both_test(cluster: &ClusterState) -> bool {
    cluster.nodes.iter().filter(|state| state.online && !state.standby).count() == 2
}

/// Nodes whose device does not work. A node cannot test its own: with one node there is nothing to say of it.
fn not_fenceable(node: &Node, cluster: &ClusterState) -> Vec<(NodeName, String)> {
    if !both_test(cluster) {
        return Vec::new();
    }
    let both = [node.own(), node.peer()].into_iter();
    both.filter(|each| !works(device(cluster, each)))
        .map(|each| (each.name.clone(), "its BMC fails the test".to_owned()))
        .collect()
}

fn document(
    node: &Node,
    answers: &Answers,
    gathered: &Gathered,
    judgement: &Judgement,
    took: Duration,
) -> Status {
    let now_ms = journal::now_ms();
    let past = answers.past.clone().unwrap_or_default();
    let mut risks = judgement.risks.clone();
    let links = links(node, answers);
    let down = links.iter().filter(|link| link.connected == Some(false));
    if gathered.facts.peer.present {
        risks.extend(down.map(|link| format!("link {} is down", link.number)));
    }
    let certificates = certificates::read(&node.pair);
    risks.extend(certificates::risks(&certificates, now_ms));
    Status {
        pair: node.pair.name.clone(),
        seen_by: node.own().name.to_string(),
        time_ms: now_ms,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        state: judgement.state,
        urgency: judgement.state.urgency(),
        exit_code: judgement.state.exit_code(),
        on: judgement.on.as_ref().map(ToString::to_string),
        since_ms: history::since(&past.moments, judgement.state),
        because: judgement.because.clone(),
        next: judgement.next.clone(),
        risks,
        unknown: unknown(answers, gathered),
        nodes: nodes(node, answers, gathered),
        links,
        detection: detection(node, answers),
        fencing: fencing(node, answers, &past),
        units: units(node, answers),
        incident: last_incident(&past.moments, &past.events, judgement.state, now_ms),
        certificates,
        setup: None,
    }
}

/// What could not be known. That a peer which is away does not answer is no news; neither is a second question
/// to somebody who did not answer the first.
fn unknown(answers: &Answers, gathered: &Gathered) -> Vec<String> {
    let mut list: Vec<&String> = Vec::new();
    list.extend(answers.membership.as_ref().err());
    list.extend(answers.cluster.as_ref().err());
    list.extend(answers.live.as_ref().err());
    list.extend(answers.disk.as_ref().err());
    list.extend(answers.units.as_ref().err());
    if answers.membership.is_ok() {
        list.extend(answers.links.as_ref().err());
    }
    if answers.cluster.is_ok() {
        list.extend(answers.statements.as_ref().err());
        list.extend(answers.told.as_ref().err());
        list.extend(answers.fenced.as_ref().err());
    }
    if gathered.facts.live_peer_is_started() && gathered.facts.peer.present {
        list.extend(answers.peer.as_ref().err());
    }
    list.into_iter().cloned().collect()
}

/// Both nodes, this one first, with what only both together tell.
fn nodes(node: &Node, answers: &Answers, gathered: &Gathered) -> Vec<NodeView> {
    let mut own = own_view(node, answers, gathered);
    let mut peer = peer_view(node, answers, gathered);
    (own.etcd.behind_entries, peer.etcd.behind_entries) =
        behind(own.etcd.raft_index, peer.etcd.raft_index);
    let here = gathered.facts.dataset.member_id;
    let raised = answers.alarms.iter().flatten();
    let (theirs, ours): (Vec<_>, Vec<_>) =
        raised.partition(|alarm| here.is_some_and(|here| here != alarm.member));
    own.etcd.alarms = ours.into_iter().map(alarm_words).collect();
    peer.etcd.alarms = theirs.into_iter().map(alarm_words).collect();
    vec![own, peer]
}

/// How far each is behind the further one. Who cannot be compared is not known to be up to date.
fn behind(own: Option<u64>, peer: Option<u64>) -> (Option<u64>, Option<u64>) {
    let Some((own, peer)) = own.zip(peer) else { return (None, None) };
    (Some(peer.saturating_sub(own)), Some(own.saturating_sub(peer)))
}

fn alarm_words(alarm: &Alarm) -> String {
    let kind = match &alarm.kind {
        AlarmKind::NoSpace => "the database is full (NOSPACE)",
        AlarmKind::Corrupt => "the members' data differ (CORRUPT)",
        AlarmKind::Other(name) => name,
    };
    format!("etcd raised an alarm: {kind}")
}

fn detection(node: &Node, answers: &Answers) -> Option<Detection> {
    let token = answers.token.as_ref().ok()?;
    Some(Detection {
        token_timeout_ms: node.pair.detection.token_ms(),
        token_silence_ms: token.silence_ms,
        tokens_lost: token.lost,
    })
}

fn own_view(node: &Node, answers: &Answers, gathered: &Gathered) -> NodeView {
    let facts = &gathered.facts;
    let status = gathered.live.status.as_ref();
    let etcd = Etcd {
        role: answers.live.is_ok().then(|| role(facts.etcd.state)),
        dataset: answers.disk.is_ok().then(|| Statement::of(facts, None).class.to_string()),
        eligible: Some(Statement::of(facts, None).eligible),
        disk_writable: answers.disk.is_ok().then_some(facts.disk_writable),
        member: facts.dataset.member_id.map(|id| id.to_string()),
        ..sizes(status)
    };
    NodeView { etcd, ..cluster_view(node, answers, node.own()) }
}

fn peer_view(node: &Node, answers: &Answers, gathered: &Gathered) -> NodeView {
    let said = statement(answers, &node.peer().name).filter(|_| gathered.facts.peer.present);
    let word = answers.peer.as_ref().ok();
    let role = word.map(|word| {
        let leads = word.status.leader == Some(word.status.member);
        role(match word.status.leader {
            _ if word.status.learner => EtcdState::Learner,
            Some(_) if leads => EtcdState::Leader,
            Some(_) => EtcdState::Follower,
            None => EtcdState::NoLeader,
        })
    });
    let at_rest = said.as_ref().filter(|said| said.etcd == dyad_core::statement::EtcdWord::Stopped);
    let etcd = Etcd {
        role: role.or_else(|| at_rest.map(|_| "stopped".to_owned())),
        dataset: said.as_ref().map(|said| said.class.to_string()),
        eligible: said.as_ref().map(|said| said.eligible),
        disk_writable: said.as_ref().map(|said| said.disk_writable),
        member: said.as_ref().and_then(|said| said.member_id).map(|id| id.to_string()),
        caught_up_percent: gathered.live.learner_percent,
        ..sizes(word.map(|word| &word.status))
    };
    NodeView { etcd, ..cluster_view(node, answers, node.peer()) }
}

fn sizes(status: Option<&etcd_peer::client::Status>) -> Etcd {
    let Some(status) = status else { return Etcd::default() };
    Etcd {
        version: Some(status.version.clone()),
        db_size_bytes: Some(status.db_size_bytes),
        db_in_use_bytes: Some(status.db_size_in_use_bytes),
        raft_index: Some(status.raft_index.0),
        ..Etcd::default()
    }
}

fn role(state: EtcdState) -> String {
    match state {
        EtcdState::Stopped => "stopped",
        EtcdState::Starting => "starting",
        EtcdState::NoLeader => "noLeader",
        EtcdState::Follower => "follower",
        EtcdState::Leader => "leader",
        EtcdState::Learner => "learner",
    }
    .to_owned()
}

fn cluster_view(node: &Node, answers: &Answers, which: &PairNode) -> NodeView {
    let id = node.pair.nodes.iter().position(|each| each.name == which.name);
    let id = id.and_then(|position| u32::try_from(position + 1).ok());
    let seen = answers.membership.as_ref().ok();
    let in_cluster = seen.zip(id).map(|(seen, id)| seen.nodes.contains(&id));
    let pacemaker = answers.cluster.as_ref().ok().and_then(|cluster| {
        let state = cluster.node(&which.name)?;
        let words = [
            (state.unclean, "unclean"),
            (!state.online, "offline"),
            (state.pending, "pending"),
            (state.maintenance, "maintenance"),
            (state.standby, "standby"),
        ];
        let word = words.into_iter().find(|(holds, _)| *holds).map_or("online", |(_, word)| word);
        Some(word.to_owned())
    });
    NodeView { name: which.name.to_string(), in_cluster, pacemaker, etcd: Etcd::default() }
}

fn links(node: &Node, answers: &Answers) -> Vec<Link> {
    let own = node.own().addresses.iter();
    let both = own.zip(&node.peer().addresses).enumerate();
    both.map(|(position, (own, peer))| {
        let number = u32::try_from(position).unwrap_or(u32::MAX);
        let states = answers.links.as_ref().ok();
        // Without Corosync nothing is said of any link.
        let state = states.and_then(|states| states.iter().find(|(each, _)| *each == number));
        Link {
            number,
            own: own.to_string(),
            peer: peer.to_string(),
            connected: state.map(|(_, connected)| *connected),
        }
    })
    .collect()
}

fn fencing(node: &Node, answers: &Answers, past: &Past) -> Fencing {
    let cluster = answers.cluster.as_ref().ok();
    let test_interval_ms = node.pair.fencing.monitor_interval_ms;
    let devices = [node.own(), node.peer()].into_iter().map(|each| {
        let device = cluster.and_then(|cluster| device(cluster, each));
        FenceDevice {
            node: each.name.to_string(),
            tested_by: device.and_then(|d| d.nodes.first()).map(ToString::to_string),
            works: device
                .map(|device| works(Some(device)))
                .filter(|works| *works || cluster.is_some_and(both_test)),
            test_interval_ms,
            test_since_ms: device.and_then(|device| {
                let told = answers.told.as_ref().ok()?;
                let by = device.nodes.first()?;
                let mut tests = told.tests.iter();
                let (_, _, since) = tests.find(|(id, node, _)| *id == device.id && node == by)?;
                Some(*since)
            }),
        }
    });
    let enabled = cluster.zip(answers.told.as_ref().ok());
    Fencing {
        enabled: enabled.map(|(cluster, told)| cluster.fencing_enabled && told.startup_fencing),
        devices: devices.collect(),
        last: {
            let remembered = answers.fenced.as_ref().ok().and_then(|events| events.first());
            events::last_fencing(remembered.cloned(), &past.events)
        },
        last_drill: past.drill.clone(),
    }
}

fn units(node: &Node, answers: &Answers) -> Vec<Unit> {
    let cluster = answers.cluster.as_ref().ok();
    let runs_on_peer = |name: &str| {
        let id = unit_id(name);
        cluster.map(|cluster| {
            cluster.resources.iter().any(|resource| {
                resource.id == id
                    && resource.role == "Started"
                    && !resource.failed
                    && resource.nodes.contains(&node.peer().name)
            })
        })
    };
    let here = answers.units.as_ref().ok();
    let names = unit_names(node).into_iter().enumerate();
    names
        .map(|(position, name)| Unit {
            runs_here: here.and_then(|here| here.get(position).copied()),
            runs_on_peer: runs_on_peer(&name),
            name,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is compared with the further one, whichever leads; one alone is compared with nobody.
    #[test]
    fn both_lags_are_told() {
        assert_eq!(behind(Some(90), Some(100)), (Some(10), Some(0)));
        assert_eq!(behind(Some(100), Some(97)), (Some(0), Some(3)));
        assert_eq!(behind(Some(100), None), (None, None));
    }

    /// An alarm is told in words that say what is wrong, with etcd's own name for it.
    #[test]
    fn alarms_are_told_in_words() {
        let alarm = |kind| Alarm { member: dyad_core::ids::MemberId(1), kind };
        assert!(alarm_words(&alarm(AlarmKind::NoSpace)).ends_with("full (NOSPACE)"));
        assert!(alarm_words(&alarm(AlarmKind::Other("NEW".into()))).ends_with("alarm: NEW"));
    }
}
