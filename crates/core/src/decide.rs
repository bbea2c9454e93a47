//! The single place of all safety decisions.

use crate::decision::{Action, Decision, Outcome, Rule};
use crate::facts::{EtcdState, Facts, Operation, Role};
use crate::rules::{self, Verdict};
use crate::standing::Standing;

/// Decides what the node of these facts does now.
///
/// Pure: the same facts give the same decision. It never panics; facts that are missing or contradict each
/// other give [`Action::StayInert`] with the reason.
pub fn decide(facts: &Facts) -> Decision {
    let standing = Standing::of(facts);
    // A stop is always possible: one that failed would end in fencing.
    let stops = matches!(facts.request.operation, Operation::Stop | Operation::Demote);
    let contradiction = rules::contradiction(facts, &standing).filter(|_| !stops);
    decision(facts, contradiction.unwrap_or_else(|| by_operation(facts, &standing)))
}

/// Decides what is left to do for an operation whose last decision is done, or `failed`: nothing but a plain stop, and that
/// only where etcd has to be at rest and may not be.
pub fn decide_at_last(facts: &Facts, last: &Decision, failed: bool) -> Option<Decision> {
    let verdict = rules::stop::without_courtesy(facts, &last.action, failed)?;
    Some(decision(facts, verdict))
}

fn decision(facts: &Facts, verdict: Verdict) -> Decision {
    let outcome = outcome(facts, &verdict.action);
    let Verdict { action, rule, because } = verdict;
    Decision { action, outcome, rule, because }
}

fn by_operation(facts: &Facts, standing: &Standing) -> Verdict {
    match facts.request.operation {
        Operation::Validate => {
            Verdict::new(Action::Nothing, Rule::R11, "the facts are complete and do not contradict")
        }
        Operation::Stop | Operation::Demote => rules::stop::stop(facts, standing),
        Operation::Boot => rules::lone::boot(facts, standing),
        Operation::Confirm { accept_loss, despite_signs } => {
            let signs = rules::lone::sign_of_life(facts).filter(|_| !despite_signs);
            signs.unwrap_or_else(|| rules::lone::confirm(facts, standing, accept_loss))
        }
        Operation::GiveUp => rules::lone::give_up(facts, standing),
        Operation::Begin => rules::begin::begin(facts, standing),
        // A notification may be lost, late or doubled, and proves nothing: every operation that may go on
        // decides from the state alone, in the same way (R9).
        Operation::Start | Operation::Promote | Operation::Monitor | Operation::Notify(_) => {
            let verdict = if facts.etcd_runs() {
                rules::live::live(facts, standing)
            } else {
                rules::rest::rest(facts, standing)
            };
            let verdict = rules::gate::voter_by_promotion(facts, standing, verdict);
            let verdict = rules::gate::crash_is_recovered(facts, verdict);
            rules::gate::probe_only_looks(facts, verdict)
        }
    }
}

/// What the operation reports to Pacemaker.
fn outcome(facts: &Facts, action: &Action) -> Outcome {
    let gives_up = matches!(action, Action::StayInert { .. } | Action::Refuse { .. });
    match facts.request.operation {
        // A node that stays inert takes part: it has published, and looks again at every monitor.
        Operation::Start
        | Operation::Stop
        | Operation::Demote
        | Operation::Notify(_)
        | Operation::Validate => Outcome::Ok,
        Operation::Promote => {
            let waits = gives_up || matches!(action, Action::Wait { .. });
            if waits && !facts.etcd_runs() { Outcome::Failed } else { Outcome::Ok }
        }
        Operation::Boot | Operation::Confirm { .. } | Operation::GiveUp | Operation::Begin => {
            if gives_up {
                Outcome::Failed
            } else {
                Outcome::Ok
            }
        }
        Operation::Monitor => monitored(facts, action),
    }
}

fn monitored(facts: &Facts, action: &Action) -> Outcome {
    match (facts.role, facts.etcd.state) {
        (Role::Stopped, EtcdState::Stopped) => Outcome::NotRunning,
        (Role::Promoted, EtcdState::Stopped) => Outcome::FailedPromoted,
        (Role::Unpromoted, _) | (Role::Stopped, EtcdState::Learner | EtcdState::Starting) => {
            Outcome::Ok
        }
        // The stop that follows is what lets the other side go on (R8).
        (Role::Promoted, _)
            if matches!(action, Action::Yield | Action::AskForRestart)
                || Standing::of(facts).yielded =>
        {
            Outcome::FailedPromoted
        }
        // Any other answer than "degraded" would make Pacemaker restart an etcd that only waits.
        (_, EtcdState::NoLeader | EtcdState::Starting | EtcdState::Learner) => {
            Outcome::DegradedPromoted
        }
        (Role::Stopped | Role::Promoted, _) => Outcome::Promoted,
    }
}
