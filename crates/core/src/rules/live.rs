//! An etcd that runs.

use super::{Verdict, take_over, third_member};
use crate::dataset::Class;
use crate::decision::{Action, Awaited, Rule};
use crate::facts::{EtcdState, Facts, LiveMember, Role};
use crate::ids::MemberId;
use crate::standing::Standing;
use crate::statement::{EtcdWord, Place, Statement};

/// How many times longer than a deaf voter a learner waits before it starts again: it holds nobody up, and etcd
/// may be busy with what it received.
const LEARNER_PATIENCE: u64 = 4;

/// How long an etcd may answer nothing before that is more than slow (R9): no disk that works holds a write so long.
const SILENT_MS_MIN: u64 = 10_000;

/// What to do while the own etcd runs.
pub(crate) fn live(facts: &Facts, standing: &Standing) -> Verdict {
    if standing.yielded && facts.role != Role::Promoted {
        return Verdict::new(Action::Stop, Rule::R4, "this node has yielded");
    }
    if standing.yielded {
        return Verdict::nothing(Rule::R8, "this node has yielded: Pacemaker stops its etcd");
    }
    // R2: somebody may have voted in this member's name. Unless this node went on alone too: then two histories
    // have begun, and no node gives its own up by itself (R6).
    let own = facts.dataset.member_id;
    let burnt = facts
        .heard()
        .and_then(|heard| heard.listener)
        .is_some_and(|listed| listed.place == Place::Burnt && Some(listed.member) == own);
    let went_on = standing.class == Class::Alone && !broken!(facts, ServedHistoryYields);
    if burnt && !went_on {
        let because = format!("{} goes on without this member", facts.peer.name);
        return Verdict::new(Action::Yield, Rule::R2, because);
    }
    match facts.etcd.state {
        EtcdState::Stopped | EtcdState::Starting => {
            Verdict::wait(Awaited::OwnEtcd, Rule::R9, "etcd is starting")
        }
        EtcdState::Learner => learner(facts),
        EtcdState::NoLeader if catches_up(facts, standing) => starting_learner(facts),
        EtcdState::NoLeader => leaderless(facts, standing),
        EtcdState::Follower | EtcdState::Leader => led(facts, standing),
    }
}

/// A learner catches up, unless its voter has no place for it any more.
fn learner(facts: &Facts) -> Verdict {
    let serving = |heard: &&Statement| heard.etcd == EtcdWord::Serving;
    if let Some(heard) = facts.heard().filter(serving) {
        let own = facts.dataset.member_id;
        let listed = heard.listener.map(|listed| listed.member);
        if heard.class == Class::Alone && own.is_some() && listed != own {
            let because = format!("{} serves without this learner: join anew", facts.peer.name);
            return Verdict::new(Action::Stop, Rule::R4, because);
        }
    }
    Verdict::wait(Awaited::Learner, Rule::R4, "learner: catching up, then promoted by the voter")
}

/// Whether an etcd without a leader is a learner that has not got far enough to say so: it replays a log, or
/// receives a snapshot, in which it does not stand yet. Unless its voter already waits for its vote: then it is
/// deaf like any other (R8).
fn catches_up(facts: &Facts, standing: &Standing) -> bool {
    let awaited = facts.heard().is_some_and(|heard| awaited_as_voter(facts, heard));
    standing.class == Class::Learner && !awaited
}

/// Such a learner goes on as long as it gets on; for it `leaderless_ms` counts from its last progress.
fn starting_learner(facts: &Facts) -> Verdict {
    let patience_ms = facts.policy.leaderless_ms_max.saturating_mul(LEARNER_PATIENCE);
    if facts.etcd.leaderless_ms < patience_ms {
        return learner(facts);
    }
    let because =
        format!("learner: nothing received for {} ms; start again", facts.etcd.leaderless_ms);
    Verdict::new(Action::Stop, Rule::R4, because)
}

/// A voter that has a leader.
fn led(facts: &Facts, standing: &Standing) -> Verdict {
    if let Some(refused) = third_member(facts, standing) {
        return refused;
    }
    if facts.etcd.members.is_empty() {
        return Verdict::wait(Awaited::OwnEtcd, Rule::R9, "etcd has not told its membership yet");
    }
    match facts.live_peer() {
        Some(peer) if !peer.learner => both_vote(facts, standing, peer.id),
        learner => alone(facts, learner),
    }
}

/// Both vote: pass the barrier, once in each boot.
fn both_vote(facts: &Facts, standing: &Standing, peer: MemberId) -> Verdict {
    let name = &facts.peer.name;
    // A dead leader is believed in for an election time-out, and longer if it was heard while it died: proof of
    // death counts, not what etcd has not noticed yet. (R2: once the stand-in has acknowledged anything the
    // removal must be completed, too.)
    if let Ok((dead, because)) = take_over::permission(facts, standing) {
        return take_over::step(facts, dead, because);
    }
    if facts.is_burnt(peer) {
        let because = format!("{name} goes on no more as member {peer}, and has to yield it");
        return Verdict::wait(Awaited::PeerToYield, Rule::R2, because);
    }
    if standing.eligible && !facts.is_marked() {
        return Verdict::nothing(Rule::R4, "both vote, and the barrier is passed in this boot");
    }
    if broken!(facts, PromotedIsEligible) {
        return Verdict::new(Action::Barrier { with: peer }, Rule::R4, "");
    }
    // R4: the holder of the take-over mark goes first, for it has everything. The other may be eligible only
    // when the mark is gone: it has the holder's word that it is a pair again.
    let peer_runs = facts.heard().filter(|heard| {
        let runs = heard.etcd != EtcdWord::Stopped && heard.member_id == Some(peer);
        let unmarked = matches!(heard.class, Class::Pair | Class::Learner)
            || broken!(facts, BarrierBeforeMarkIsCleared);
        runs && unmarked
    });
    if peer_runs.is_some() {
        let because =
            format!("both vote; one write through both makes this node eligible with {peer}");
        return Verdict::new(Action::Barrier { with: peer }, Rule::R4, because);
    }
    let because = format!("both vote; the barrier needs {name}'s word that it runs as a pair");
    Verdict::wait(Awaited::Statement, Rule::R4, because)
}

/// The only voter serves: bring the peer back (R4).
fn alone(facts: &Facts, learner: Option<&LiveMember>) -> Verdict {
    let name = &facts.peer.name;
    let Some(heard) = facts.heard() else {
        return Verdict::nothing(Rule::R2, format!("running alone; {name} has not spoken"));
    };
    if heard.class == Class::Alone {
        let because =
            format!("running alone, and so did {name}: the two have diverged, {name} stays off");
        return Verdict::nothing(Rule::R6, because);
    }
    if facts.etcd.state != EtcdState::Leader {
        return Verdict::wait(Awaited::OwnEtcd, Rule::R9, "the only voter does not lead yet");
    }
    let stopped = heard.etcd == EtcdWord::Stopped;
    match learner {
        Some(learner) if !stopped => {
            if heard.member_id == Some(learner.id) && learner.caught_up {
                let because = format!("{name} has caught up as member {}", learner.id);
                return Verdict::new(
                    Action::PromoteLearner { member: learner.id },
                    Rule::R4,
                    because,
                );
            }
            Verdict::wait(Awaited::Learner, Rule::R4, format!("{name} is catching up"))
        }
        // It will never start again under this id.
        Some(learner) if facts.is_burnt(learner.id) => {
            let because = format!("{name} goes on no more as member {}", learner.id);
            Verdict::new(Action::DropLearner { member: learner.id }, Rule::R4, because)
        }
        Some(learner) if heard.yielded && heard.member_id == Some(learner.id) => {
            let because = format!("{name} has given up what it had as member {}", learner.id);
            Verdict::new(Action::DropLearner { member: learner.id }, Rule::R4, because)
        }
        // It cannot read what it had under this id: it will never start again as this one.
        Some(learner)
            if stopped && heard.class == Class::Broken && heard.member_id == Some(learner.id) =>
        {
            let because = format!("{name} cannot read what it had as member {}", learner.id);
            Verdict::new(Action::DropLearner { member: learner.id }, Rule::R4, because)
        }
        // It was started under this id and has lost its log: raft would wait for ever for what it once had.
        Some(learner) if learner.started && heard.member_id != Some(learner.id) => {
            let because = format!("{name} has lost what it had as member {}", learner.id);
            Verdict::new(Action::DropLearner { member: learner.id }, Rule::R4, because)
        }
        Some(_) => {
            Verdict::wait(Awaited::PeerEtcd, Rule::R4, format!("{name} is added; it starts next"))
        }
        None if !stopped => Verdict::wait(
            Awaited::PeerEtcd,
            Rule::R4,
            format!("{name} runs as nobody this etcd knows"),
        ),
        None if heard.leaving => Verdict::nothing(
            Rule::R7,
            format!("running alone; {name} has left and is being stopped"),
        ),
        None if heard.class == Class::Pair => {
            let because = format!("running alone; {name} still holds its pair dataset and yields");
            Verdict::wait(Awaited::PeerToYield, Rule::R4, because)
        }
        None => {
            let because =
                format!("running alone; {name} is at rest ({}) and can join", heard.class);
            Verdict::new(Action::AddPeerAsLearner, Rule::R4, because)
        }
    }
}

/// A voter without a leader.
fn leaderless(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    if let Some(refused) = third_member(facts, standing) {
        return refused;
    }
    if standing.other.is_none() {
        return Verdict::wait(Awaited::OwnEtcd, Rule::R1, "the only voter elects itself");
    }
    let missing = match take_over::permission(facts, standing) {
        Ok((dead, because)) => return take_over::step(facts, dead, because),
        Err(missing) => missing,
    };
    if !facts.peer.present {
        let because = format!("no leader and {name} is not there; missing: {}", missing.what);
        // R9: a time-out is not a proof. Fencing, or a person, brings it.
        return Verdict::wait(Awaited::Fencing, Rule::R9, because);
    }
    match (facts.heard(), facts.etcd.silent_ms) {
        (Some(heard), Some(silent_ms)) => silent(facts, heard, silent_ms),
        (Some(heard), None) => deaf(facts, standing, heard),
        (None, _) => {
            Verdict::wait(Awaited::Statement, Rule::R9, format!("no leader; {name} has not spoken"))
        }
    }
}

/// R8, an etcd that answers nothing: it hangs, or its disk does, and then the yield mark cannot be written either. A
/// restart helps the one; a stop that does not end proves the other by fencing, if there is somebody to go on.
fn silent(facts: &Facts, heard: &Statement, silent_ms: u64) -> Verdict {
    let name = &facts.peer.name;
    let goes_on =
        heard.etcd != EtcdWord::Stopped && (heard.class == Class::Alone || is_fit(facts, heard));
    let long = silent_ms >= SILENT_MS_MIN
        && facts.etcd.leaderless_ms >= facts.policy.leaderless_ms_max
        && !broken!(facts, SilentEtcdIsLeftAlone);
    if long && goes_on {
        let because = format!(
            "this etcd has answered nothing for {silent_ms} ms, and {name} is fit to go on"
        );
        return Verdict::new(Action::AskForRestart, Rule::R8, because);
    }
    let because = format!("this etcd has answered nothing for {silent_ms} ms: slow is not dead");
    Verdict::wait(Awaited::OwnEtcd, Rule::R9, because)
}

/// R8: both nodes are there and etcd has no leader. One yields; its confirmed stop lets the other go on.
fn deaf(facts: &Facts, standing: &Standing, heard: &Statement) -> Verdict {
    let name = &facts.peer.name;
    if heard.etcd == EtcdWord::Stopped {
        let because = format!("no leader; {name}'s etcd is at rest ({})", heard.class);
        return Verdict::wait(Awaited::PeerEtcd, Rule::R1, because);
    }
    let patience_ms = facts.policy.leaderless_ms_max;
    if facts.etcd.leaderless_ms < patience_ms {
        let until_ms = Some(patience_ms - facts.etcd.leaderless_ms);
        let action = Action::Wait { what: Awaited::PeerConnection, until_ms };
        return Verdict::new(action, Rule::R8, format!("no leader, though {name} is there"));
    }
    if standing.class == Class::Alone {
        let because = format!("no leader; {name} has to yield, for this node went on alone");
        return Verdict::wait(Awaited::PeerToYield, Rule::R8, because);
    }
    if yields(facts, standing, heard) {
        let because = format!(
            "no leader for {} ms though {name} is there and fit to go on",
            facts.etcd.leaderless_ms
        );
        return Verdict::new(Action::Yield, Rule::R8, because);
    }
    let because = format!("no leader for {} ms; {name} has to yield", facts.etcd.leaderless_ms);
    Verdict::wait(Awaited::PeerToYield, Rule::R8, because)
}

/// Which of two deaf nodes yields: never to one that could not go on.
fn yields(facts: &Facts, standing: &Standing, heard: &Statement) -> bool {
    if heard.class == Class::Alone {
        return true;
    }
    let own_fit = standing.eligible && facts.disk_writable;
    let own_first = facts.comes_first();
    is_fit_without(facts, heard) && !(own_fit && own_first) || broken!(facts, BothYield)
}

/// Whether a voter at rest that cannot or will not vote lets the other one go on, which runs and waits for it.
pub(super) fn lets_go_on(facts: &Facts, standing: &Standing, heard: &Statement) -> bool {
    standing.class == Class::Pair
        && heard.etcd != EtcdWord::Stopped
        && (heard.class == Class::Alone || is_fit_without(facts, heard))
}

/// Whether the other one could go on without this node.
fn is_fit_without(facts: &Facts, heard: &Statement) -> bool {
    // A change of the membership in the own tail: this log may be needed to tell what became of it.
    let sure = facts.dataset.solid_pair() || broken!(facts, YieldsInMidChange);
    is_fit(facts, heard) && sure
}

/// Whether the other one, by what it says, could go on alone.
fn is_fit(facts: &Facts, heard: &Statement) -> bool {
    heard.class == Class::Pair
        && heard.eligible
        && heard.disk_writable
        && !heard.leaving
        && (heard.etcd != EtcdWord::Silent || broken!(facts, YieldsToTheSilent))
}

/// Whether the peer counts this node's present member as a voter that it waits for.
pub(crate) fn awaited_as_voter(facts: &Facts, heard: &Statement) -> bool {
    heard.listener.is_some_and(|listed| {
        listed.place == Place::Voter && Some(listed.member) == facts.dataset.member_id
    })
}
