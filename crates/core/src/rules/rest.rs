//! An etcd at rest.

use super::{Verdict, live, table, take_over, third_member};
use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Awaited, Refusal, Rule};
use crate::facts::Facts;
use crate::proof;
use crate::standing::Standing;
use crate::statement::Statement;

/// What to do while the own etcd is at rest.
pub(crate) fn rest(facts: &Facts, standing: &Standing) -> Verdict {
    if matches!(standing.class, Class::None | Class::Broken) && facts.eligibility.is_some() {
        let because = "the own log cannot be read: nothing earned with it counts any more";
        return Verdict::new(Action::DropEligibility, Rule::R2, because);
    }
    if let Some(refused) = third_member(facts, standing) {
        return refused;
    }
    match facts.heard() {
        Some(heard) => {
            let otherwise = || table::cell(facts, standing, heard);
            let unfit = || cannot_vote(facts, standing, heard);
            doubtful(facts, standing, heard).or_else(unfit).unwrap_or_else(otherwise)
        }
        None if facts.peer.present => silent(facts, standing),
        None => absent(facts, standing),
    }
}

/// R11: what makes the two datasets unfit to be compared at all.
fn doubtful(facts: &Facts, standing: &Standing, heard: &Statement) -> Option<Verdict> {
    let name = &facts.peer.name;
    let dataset = &facts.dataset;
    if let (Some(own), Some(theirs)) = (dataset.cluster_id, heard.cluster_id)
        && own != theirs
        && standing.class != Class::None
        && heard.class != Class::None
        && !broken!(facts, ForeignClusterIsTaken)
    {
        let because =
            format!("the own dataset is of cluster {own}, that of {name} of cluster {theirs}");
        let command = commands::INSPECT_AND_RESOLVE;
        return Some(Verdict::refuse(Refusal::ForeignCluster, command, Rule::R11, because));
    }
    let rolled_back = |who: String, remembered, found| {
        let because = format!("{who} disk ends at {found}, but {remembered} was seen of it");
        Verdict::refuse(Refusal::RolledBack, commands::ARCHIVE, Rule::R11, because)
    };
    if broken!(facts, RollbackIsTaken) {
        return None;
    }
    if let Some(memory) = heard.remembers
        && Some(memory.member) == dataset.member_id
        && memory.last > standing.last
        && !matches!(standing.class, Class::None | Class::Broken)
    {
        return Some(rolled_back("the own".to_owned(), memory.last, standing.last));
    }
    if let (Some(memory), Some(stated)) = (facts.peer.memory, heard.last)
        && Some(memory.member) == heard.member_id
        && memory.last > stated
        && standing.class == Class::Pair
    {
        return Some(rolled_back(format!("{name}'s"), memory.last, stated));
    }
    None
}

/// R8, at rest: an etcd on a disk that takes no writes ends as soon as it has begun. While the peer's runs
/// without a leader and could go on, this node yields at once; started again and again it would only hold the
/// other up.
fn cannot_vote(facts: &Facts, standing: &Standing, heard: &Statement) -> Option<Verdict> {
    let due = !facts.disk_writable && live::lets_go_on(facts, standing, heard);
    let because = || {
        let name = &facts.peer.name;
        format!("the own disk is full or read-only, and {name} is fit to go on")
    };
    due.then(|| Verdict::new(Action::Yield, Rule::R8, because()))
}

/// The peer is there but has said nothing that answers this boot.
fn silent(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    // R1: in the boot in which this node was a voter with its peer, nobody can have gone on without it.
    if earned_in_this_boot(facts, standing) {
        return Verdict::new(
            Action::StartPlain,
            Rule::R1,
            "etcd has stopped in the boot it was fit in",
        );
    }
    let because = format!("{name} is there and has not yet answered this boot");
    Verdict::wait(Awaited::Statement, Rule::R2a, because)
}

/// A voter that earned eligibility in this boot, or then went on alone.
fn earned_in_this_boot(facts: &Facts, standing: &Standing) -> bool {
    let record = facts.eligibility.as_ref().is_some_and(|record| {
        record.boot == facts.boot && Some(record.member) == facts.dataset.member_id
    });
    standing.eligible || (record && standing.class == Class::Alone && !standing.by_mark)
}

/// The peer is not there.
fn absent(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    match standing.class {
        Class::Alone if !standing.by_mark => {
            if let Some(proof) = proof::of_death(facts, None) {
                let because = format!("the only voter; {name} is dead: {}", proof.words());
                return Verdict::new(Action::StartPlain, Rule::R5, because);
            }
            without_proof(facts, format!("the only voter, but nothing proves that {name} is down"))
        }
        class
            if matches!(class, Class::Alone | Class::Pair)
                || (class == Class::Learner && broken!(facts, LearnerTakesOver)) =>
        {
            match take_over::permission(facts, standing) {
                Ok((dead, because)) => take_over::step(facts, dead, because),
                Err(_) if standing.eligible || broken!(facts, PairBootsAlone) => {
                    let because =
                        format!("etcd has stopped; {name} is not there, and may be fenced");
                    Verdict::new(Action::StartPlain, Rule::R1, because)
                }
                Err(missing) if missing.only_proof => without_proof(facts, missing.what),
                Err(missing) => {
                    let because = format!("{name} is not there, and may hold newer writes");
                    Verdict::inert(missing.what, missing.command, Rule::R5, because)
                }
            }
        }
        class => {
            let because = format!("a {class} dataset cannot go on without {name}");
            Verdict::inert(format!("{name} in the cluster"), commands::STATUS, Rule::R11, because)
        }
    }
}

fn without_proof(facts: &Facts, because: String) -> Verdict {
    if facts.pacemaker.quorate && facts.pacemaker.fencing_enabled {
        return Verdict::wait(Awaited::Fencing, Rule::R2, because);
    }
    let missing = format!("proof that {} is down", facts.peer.name);
    Verdict::inert(missing, commands::confirm(&facts.peer.name), Rule::R5, because)
}
