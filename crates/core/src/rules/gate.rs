//! What Pacemaker's roles add: a voter is started by a promotion, and a crashed one by a recovery.

use super::Verdict;
use crate::dataset::Class;
use crate::decision::{Action, Rule};
use crate::facts::{EtcdState, Facts, Operation, Role};
use crate::standing::Standing;

/// Unpromoted is "read and published, or a learner"; promoted is "a voter". So what would make this node a
/// voter is offered to Pacemaker first, and done when it promotes.
pub(crate) fn voter_by_promotion(facts: &Facts, standing: &Standing, verdict: Verdict) -> Verdict {
    if facts.role == Role::Promoted || facts.request.operation == Operation::Promote {
        return verdict;
    }
    let starts_voter = match verdict.action {
        Action::StartPlain => standing.class != Class::Learner,
        Action::AnnounceTakeOver { .. } | Action::TakeOver { .. } => !facts.etcd_runs(),
        // A learner that has become a voter.
        Action::Nothing => matches!(facts.etcd.state, EtcdState::Follower | EtcdState::Leader),
        _ => false,
    };
    if starts_voter { Verdict { action: Action::Offer, ..verdict } } else { verdict }
}

/// R1: an etcd that crashed as a voter is reported as failed; Pacemaker then stops, starts and promotes it.
/// A monitor or a notification does not start it behind Pacemaker's back.
pub(crate) fn crash_is_recovered(facts: &Facts, verdict: Verdict) -> Verdict {
    let looks = matches!(facts.request.operation, Operation::Monitor | Operation::Notify(_));
    if looks && facts.role == Role::Promoted && !facts.etcd_runs() {
        return Verdict::nothing(Rule::R1, "etcd has stopped by itself: Pacemaker restarts it");
    }
    verdict
}

/// A probe asks what there is, of an instance that Pacemaker has not started: it looks, and says so. What it started, or
/// joined, would run where Pacemaker does not see it.
pub(crate) fn probe_only_looks(facts: &Facts, verdict: Verdict) -> Verdict {
    let looks = matches!(facts.request.operation, Operation::Monitor | Operation::Notify(_));
    let acts = !matches!(
        verdict.action,
        Action::Nothing | Action::Wait { .. } | Action::StayInert { .. } | Action::Refuse { .. }
    );
    if looks && acts && facts.role == Role::Stopped {
        return Verdict::nothing(Rule::R11, "Pacemaker has not started this instance: only looked");
    }
    verdict
}
