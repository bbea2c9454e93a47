//! R7: leave cleanly.

use super::{Verdict, live};
use crate::dataset::Class;
use crate::decision::{Action, Rule};
use crate::facts::{EtcdState, Facts, Operation, Request};
use crate::ids::NodeName;
use crate::standing::Standing;
use crate::statement::EtcdWord;

/// A stop or a demotion.
pub(crate) fn stop(facts: &Facts, standing: &Standing) -> Verdict {
    if !facts.etcd_runs() {
        return yields_at_rest(facts, standing)
            .unwrap_or_else(|| Verdict::nothing(Rule::R7, "etcd is at rest"));
    }
    let led = matches!(facts.etcd.state, EtcdState::Leader | EtcdState::Follower);
    if !led {
        return plain("no leader: nothing can be removed");
    }
    // Only a stop without a start of the same instance in the same transition is a leave.
    if !is_planned(facts) && !broken!(facts, EveryStopLeaves) {
        return plain("a recovery, not a leave: the member stays");
    }
    // If both stop, neither leaves: the next boot is R1.
    if ends(&facts.request, &facts.peer.name) && !broken!(facts, BothLeave) {
        return plain("both nodes stop: neither leaves");
    }
    let peer = match facts.live_peer() {
        Some(peer) if !peer.learner => peer.id,
        // The last voter never removes itself.
        _ if broken!(facts, LastVoterLeaves) => return Verdict::new(Action::Leave, Rule::R7, ""),
        _ => return plain("the last voter never leaves"),
    };
    let fit = facts.heard().is_some_and(|heard| {
        heard.member_id == Some(peer)
            && heard.class == Class::Pair
            && heard.etcd == EtcdWord::Serving
            && heard.eligible
            && heard.disk_writable
    });
    if (!fit || standing.yielded || facts.is_marked()) && !broken!(facts, LeaveToAnyone) {
        return plain("the other node is not known to be fit to go on alone: the member stays");
    }
    if facts.etcd.state == EtcdState::Leader && !broken!(facts, LeaveWhileLeading) {
        let because = format!("{} goes on; it leads before this member goes", facts.peer.name);
        return Verdict::new(Action::HandOver { to: peer }, Rule::R7, because);
    }
    let because = format!("{} is eligible and leads: it goes on without a gap", facts.peer.name);
    Verdict::new(Action::Leave, Rule::R7, because)
}

/// R8, at rest and for good: Pacemaker has tried often enough to start this etcd, or it was stopped for good while there
/// was no leader. It will not vote again soon, and the other one waits for its vote.
fn yields_at_rest(facts: &Facts, standing: &Standing) -> Option<Verdict> {
    let name = &facts.peer.name;
    let due = facts.request.operation == Operation::Stop
        && is_planned(facts)
        && !ends(&facts.request, name)
        && facts.heard().is_some_and(|heard| live::lets_go_on(facts, standing, heard))
        && !broken!(facts, StoppedForGoodHoldsOn);
    let because = || format!("this etcd stays off, and {name} is fit to go on");
    due.then(|| Verdict::new(Action::Yield, Rule::R8, because()))
}

/// What a stop comes to if its last decision has not brought etcd to rest, or could not be done: what is done for the other
/// node is a courtesy, and a stop that fails for want of it would end in fencing.
pub(crate) fn without_courtesy(facts: &Facts, last: &Action, failed: bool) -> Option<Verdict> {
    let stops = matches!(facts.request.operation, Operation::Stop | Operation::Demote);
    let rests = match last {
        // These stop etcd whatever becomes of the rest; if they fail it still runs.
        Action::Stop | Action::Leave => true,
        Action::HandOver { .. } => false,
        _ => !failed,
    };
    (stops && !rests).then(|| plain("what was due before could not be done: a plain stop"))
}

fn plain(because: &str) -> Verdict {
    Verdict::new(Action::Stop, Rule::R7, because)
}

/// Whether this is a stop, or a demotion on the way to one, after which the instance stays off.
pub(crate) fn is_planned(facts: &Facts) -> bool {
    let stops = matches!(facts.request.operation, Operation::Stop | Operation::Demote);
    stops && ends(&facts.request, &facts.node)
}

/// Whether the transition stops the instance on this node and does not start it again. Whole names (R10).
fn ends(request: &Request, node: &NodeName) -> bool {
    request.stop.contains(node) && !request.start.contains(node)
}
