//! Proof that the peer is dead: a state, not an event.

use crate::facts::{Facts, Power};
use crate::ids::MemberId;

/// What proves that the peer is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Pacemaker holds it as offline and clean now, with quorum and fencing.
    CleanOffline,
    /// Its BMC was read Off after a forced Off.
    BmcOff,
    /// A person confirmed it.
    Person {
        /// The person accepted a loss that was named.
        accept_loss: bool,
    },
}

impl Proof {
    /// The proof in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::CleanOffline => {
                "Pacemaker holds it as offline and clean, with quorum and fencing"
            }
            Self::BmcOff => "its BMC was read Off after a forced Off",
            Self::Person { .. } => "a person confirmed that it is down",
        }
    }
}

/// The proof that the peer is dead as this member, if there is one now.
pub(crate) fn of_death(facts: &Facts, member: Option<MemberId>) -> Option<Proof> {
    // It ends the moment the peer is seen in Corosync again (V1).
    if facts.peer.present && !broken!(facts, ProofOutlivesSight) {
        return None;
    }
    // A reading or a word is bound to the Corosync membership in which it was given, and to a member (V8).
    let same_member = |named: Option<MemberId>| {
        let any = broken!(facts, ProofNamesNoMember);
        any || member.is_none_or(|member| named == Some(member))
    };
    let power = facts.peer.power.as_ref();
    let confirmation = facts.peer.confirmation.as_ref().filter(|word| {
        word.boot == facts.boot
            && (word.ring == facts.ring || broken!(facts, ProofOutlivesSight))
            && same_member(word.member)
    });
    let confirmation = if broken!(facts, ConfirmIsIgnored) { None } else { confirmation };
    // A person who accepted a loss has said more than any machine can.
    if confirmation.is_some_and(|word| word.accept_loss) {
        return Some(Proof::Person { accept_loss: true });
    }
    if clean_offline(facts) {
        return Some(Proof::CleanOffline);
    }
    if broken!(facts, TimeOutIsProof) && facts.peer.absent_ms > 0 {
        return Some(Proof::CleanOffline);
    }
    if broken!(facts, FencingHistoryIsProof) && facts.pacemaker.peer_was_fenced {
        return Some(Proof::CleanOffline);
    }
    if broken!(facts, NotificationIsProof) && facts.request.stop.contains(&facts.peer.name) {
        return Some(Proof::CleanOffline);
    }
    if power.is_some_and(|reading| {
        reading.state == Power::Off
            && reading.after_forced_off
            && (reading.ring == facts.ring || broken!(facts, ProofOutlivesSight))
            && same_member(reading.member)
    }) {
        return Some(Proof::BmcOff);
    }
    confirmation.map(|_| Proof::Person { accept_loss: false })
}

/// Fencing is enabled, start-up fencing is on, the own partition has quorum, and Pacemaker holds the peer as
/// offline and clean now. Without fencing a lost node is "clean" at once, which proves nothing.
fn clean_offline(facts: &Facts) -> bool {
    let pacemaker = &facts.pacemaker;
    let fencing = pacemaker.fencing_enabled && pacemaker.startup_fencing;
    pacemaker.quorate
        && (fencing || broken!(facts, TakeOverWithoutFencing))
        && pacemaker
            .nodes
            .iter()
            // R10: the whole name.
            .find(|node| node.name == facts.peer.name)
            .is_some_and(|node| !node.online && !node.unclean)
}
