//! R5 and R6: where Pacemaker calls no agent, or only a person can decide.

use super::Verdict;
use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Awaited, Refusal, Rule};
use crate::facts::{Facts, Power};
use crate::proof::{self, Proof};
use crate::standing::Standing;

/// R5: this node booted, sees nobody and has no quorum.
pub(crate) fn boot(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    if facts.peer.present || facts.pacemaker.quorate {
        return Verdict::nothing(Rule::R5, "there is quorum: Pacemaker decides");
    }
    let alone = standing.class == Class::Alone
        || (standing.class == Class::Pair && broken!(facts, PairBootsAlone));
    if !alone {
        return not_alone(facts, standing);
    }
    if !facts.pacemaker.fencing_enabled || facts.pacemaker.maintenance {
        let because = "no automatic boot alone without fencing, or in maintenance";
        return Verdict::inert(
            format!("proof that {name} is down"),
            commands::confirm(name),
            Rule::R5,
            because,
        );
    }
    // It obeys the fencing delay: two such nodes behind a cut must not kill each other (P5).
    let delay_ms = facts.policy.lone_boot_delay_ms;
    if facts.peer.absent_ms < delay_ms && !broken!(facts, NoLoneBootDelay) {
        let until_ms = Some(delay_ms - facts.peer.absent_ms);
        let action = Action::Wait { what: Awaited::PeerOrDelay, until_ms };
        return Verdict::new(
            action,
            Rule::R5,
            format!("the newest copy is here; {name} may still come"),
        );
    }
    if proof::of_death(facts, None) == Some(Proof::BmcOff) {
        let because = format!(
            "the only voter's copy is here, and {name}'s BMC was read Off after a forced Off"
        );
        return Verdict::new(Action::ReleaseWaitForAll, Rule::R5, because);
    }
    let because = format!("the only voter's copy is here; {name} has to be proven off");
    Verdict::new(Action::ForcePeerOff, Rule::R5, because)
}

fn not_alone(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    match standing.class {
        Class::Pair => {
            let because = format!(
                "{name} may have gone on alone after {}: everything it wrote then would be lost",
                standing.last
            );
            let missing = format!("{name}, or a person who knows that it never went on alone");
            Verdict::inert(missing, commands::confirm_with_loss(name), Rule::R5, because)
        }
        class => {
            let because = format!("a {class} dataset cannot go on without {name}");
            Verdict::inert(format!("{name} in the cluster"), commands::STATUS, Rule::R5, because)
        }
    }
}

/// What speaks against a person's word. Signs may be wrong (an address that somebody else has now, a BMC that
/// does not know that its machine has no power): a person who was told of them may know better.
pub(crate) fn sign_of_life(facts: &Facts) -> Option<Verdict> {
    let name = &facts.peer.name;
    if facts.peer.present {
        return None;
    }
    if let Some(path) = facts.peer.paths.first() {
        let because = format!("{name} answers on {path}");
        let command = commands::confirm_despite_signs(name);
        return Some(Verdict::refuse(Refusal::PeerIsUp, command, Rule::R5, because));
    }
    let says_on = facts
        .peer
        .power
        .as_ref()
        .is_some_and(|reading| reading.state == Power::On && reading.ring == facts.ring);
    if says_on {
        let because = format!("{name}'s BMC says that it is on");
        let command = commands::confirm_despite_signs(name);
        return Some(Verdict::refuse(Refusal::PeerIsUp, command, Rule::R5, because));
    }
    None
}

/// A person states that the peer is down.
pub(crate) fn confirm(facts: &Facts, standing: &Standing, accept_loss: bool) -> Verdict {
    let name = &facts.peer.name;
    if facts.peer.present {
        let because = format!("{name} is in the cluster now");
        return Verdict::refuse(Refusal::PeerIsUp, commands::STATUS, Rule::R5, because);
    }
    match standing.class {
        Class::Alone => {
            let because = format!(
                "the only voter's copy is here; if {name} runs all the same, two histories begin"
            );
            Verdict::new(Action::AcceptConfirmation { accept_loss }, Rule::R5, because)
        }
        Class::Pair if standing.eligible => {
            let because = format!(
                "this node was a voter with {name} in this boot; if {name} runs all the same, two histories begin"
            );
            Verdict::new(Action::AcceptConfirmation { accept_loss }, Rule::R5, because)
        }
        Class::Pair if accept_loss || broken!(facts, ConfirmNeedsNoAcceptance) => {
            let because = format!(
                "accepted: everything that {name} wrote alone after {} is lost",
                standing.last
            );
            Verdict::new(Action::AcceptConfirmation { accept_loss: true }, Rule::R5, because)
        }
        Class::Pair => {
            let because =
                format!("everything that {name} wrote alone after {} would be lost", standing.last);
            Verdict::refuse(
                Refusal::WouldLose,
                commands::confirm_with_loss(name),
                Rule::R5,
                because,
            )
        }
        class => {
            let because = format!("a {class} dataset can never go on alone");
            Verdict::refuse(Refusal::NotAVoter, commands::ARCHIVE, Rule::R2, because)
        }
    }
}

/// R6: a person gives this dataset up, so that the other goes on. It is archived when this node joins.
pub(crate) fn give_up(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    let diverged = standing.class == Class::Alone
        && facts.heard().is_some_and(|heard| heard.class == Class::Alone);
    if facts.etcd_runs() {
        let because = "this node's etcd runs: what it serves is not given up";
        return Verdict::refuse(
            Refusal::WouldLose,
            commands::maintenance_start(&facts.node),
            Rule::R6,
            because,
        );
    }
    if !diverged {
        let because = format!("this node and {name} have not diverged, as far as both say now");
        return Verdict::refuse(Refusal::WouldLose, commands::STATUS, Rule::R6, because);
    }
    let because = format!("a person chose {name}'s dataset; this one is kept aside");
    Verdict::new(Action::Yield, Rule::R6, because)
}
