//! R2 and R2a: going on alone.

use super::Verdict;
use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Rule};
use crate::facts::Facts;
use crate::ids::{MemberId, RingId};
use crate::proof::{self, Proof};
use crate::standing::Standing;
use crate::statement::{EtcdWord, Statement};

/// Why a node may not go on alone now.
pub(crate) struct Missing {
    pub(crate) what: String,
    pub(crate) command: String,
    /// Proof is all that is missing: fencing will bring it.
    pub(crate) only_proof: bool,
}

fn missing<T>(what: impl Into<String>, command: impl Into<String>) -> Result<T, Missing> {
    Err(Missing { what: what.into(), command: command.into(), only_proof: false })
}

/// R2a, the second look: whether the facts of the first still hold if nothing but Corosync is asked again.
///
/// What can change the decision is the peer coming back, and that is a new membership of Corosync. If the peer
/// was there all the time its statements count, and there is no short cut. Where quorum was not asked for again, it is
/// what it was: in a cluster of two, nothing takes it away but a new membership.
pub(crate) fn still_holds(facts: &Facts, ring: &RingId, quorate: Option<bool>) -> bool {
    let quorate = quorate.unwrap_or(facts.pacemaker.quorate);
    !facts.peer.present && facts.ring == *ring && quorate
}

/// R2a: the mark and the statement first; then the facts are gathered again, and only then the vote is cast.
pub(crate) fn step(facts: &Facts, dead: MemberId, because: String) -> Verdict {
    let published = facts.published.as_ref().is_some_and(|own| own.class == Class::Alone);
    let announced = facts.is_burnt(dead) && published;
    if announced || broken!(facts, ActBeforeAnnouncing) {
        Verdict::new(Action::TakeOver { dead }, Rule::R2, because)
    } else {
        Verdict::new(Action::AnnounceTakeOver { dead }, Rule::R2a, because)
    }
}

/// R2: whether this node may go on without its peer, and as which member that one is gone.
pub(crate) fn permission(
    facts: &Facts,
    standing: &Standing,
) -> Result<(MemberId, String), Missing> {
    // (b) Learner, Left, Broken and None never take over.
    let voter = matches!(standing.class, Class::Pair | Class::Alone)
        || (standing.class == Class::Learner && broken!(facts, LearnerTakesOver));
    if !voter {
        return missing("a voter's dataset", commands::STATUS);
    }
    // The applied voters must be exactly {me, dead}.
    let Some(dead) = standing.other.filter(|_| !standing.third) else {
        return missing("exactly one other voter", commands::INSPECT);
    };
    let live_voters = facts.etcd.members.iter().filter(|member| !member.learner);
    if !facts.etcd.members.is_empty()
        && live_voters
            .clone()
            .any(|member| member.id != dead && Some(member.id) != facts.dataset.member_id)
    {
        return missing("exactly one other voter", commands::MEMBERS);
    }
    if !facts.disk_writable {
        return missing("a disk that takes writes", commands::DISK);
    }
    // Nobody can help an etcd to lead that hears nobody.
    if facts.etcd.silent_ms.is_some() {
        return missing("an etcd that answers", commands::STATUS);
    }
    if facts.pacemaker.maintenance || !facts.pacemaker.managed {
        return missing(
            "Pacemaker in charge (maintenance, or not managed)",
            commands::maintenance_end(&facts.node),
        );
    }
    let newest = standing.class == Class::Alone
        || standing.eligible
        || (standing.class == Class::Learner && broken!(facts, LearnerTakesOver));
    let peer = &facts.peer.name;
    // (a) proof, or the peer's own word.
    if let Some(proof) = proof::of_death(facts, Some(dead)) {
        return on_proof(facts, standing, dead, proof, newest);
    }
    match facts.heard() {
        Some(heard) if gone(facts, heard, dead) => {
            on_statement(facts, standing, dead, heard, newest)
        }
        _ => Err(Missing {
            what: format!("proof that {peer} is down"),
            command: commands::confirm(peer),
            only_proof: newest,
        }),
    }
}

fn on_proof(
    facts: &Facts,
    standing: &Standing,
    dead: MemberId,
    proof: Proof,
    newest: bool,
) -> Result<(MemberId, String), Missing> {
    let peer = &facts.peer.name;
    let words = proof.words();
    if newest || broken!(facts, ProofIsEnough) {
        let fit = if standing.eligible { "eligible in this boot" } else { "already alone" };
        return Ok((dead, format!("{peer} (member {dead}) is dead: {words}; this node is {fit}")));
    }
    // R5: only a person can let a copy go on that may be old, and only knowing so.
    if proof == (Proof::Person { accept_loss: true }) {
        return Ok((dead, format!("{words} and accepted what {peer} alone may hold")));
    }
    missing(
        format!("whether {peer} went on without this copy: no barrier was passed in this boot"),
        commands::confirm_with_loss(peer),
    )
}

/// Whether the peer says, its etcd stopped, that this member of it is gone for good.
fn gone(facts: &Facts, heard: &Statement, dead: MemberId) -> bool {
    let stopped = heard.etcd == EtcdWord::Stopped;
    let named = heard.member_id == Some(dead)
        || (heard.member_id.is_none() && heard.class != Class::Left)
        || broken!(facts, ProofNamesNoMember);
    let gone = match heard.class {
        Class::Left => {
            // `Left` only with a committed removal, or a yield mark (V7).
            heard.identity_is_gone() || broken!(facts, UncommittedLeaveCounts)
        }
        // It may be able to read its log later: not while it could still call itself eligible.
        Class::None | Class::Broken => !heard.eligible,
        Class::Pair | Class::Alone | Class::Learner => false,
    };
    stopped && named && gone
}

/// On a mere statement, not being eligible, the own log must be at least as new as the stated one (V7).
fn on_statement(
    facts: &Facts,
    standing: &Standing,
    dead: MemberId,
    heard: &Statement,
    newest: bool,
) -> Result<(MemberId, String), Missing> {
    let peer = &facts.peer.name;
    let how = match heard.class {
        Class::Left if heard.yielded => "has yielded",
        Class::Left => "has left, its removal is committed",
        Class::Broken => "cannot read its log",
        _ => "has no data",
    };
    if newest {
        return Ok((
            dead,
            format!("{peer} {how} (member {dead}), its etcd stopped; this node is fit"),
        ));
    }
    if heard.last.is_some() && broken!(facts, StatementIsEnough) {
        return Ok((dead, String::new()));
    }
    if heard.last.is_none() && broken!(facts, NoRecordNeeded) {
        return Ok((dead, String::new()));
    }
    match heard.last {
        Some(stated) if standing.last >= stated => Ok((
            dead,
            format!("{peer} {how} at {stated}; the own log ends at {}, not older", standing.last),
        )),
        Some(stated) => missing(
            format!(
                "{peer}'s newer entries: its log ends at {stated}, the own at {}",
                standing.last
            ),
            commands::confirm_with_loss(peer),
        ),
        None => missing(
            format!("how far {peer}'s log went: it {how} and left no record"),
            commands::confirm_with_loss(peer),
        ),
    }
}
