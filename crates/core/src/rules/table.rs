//! The cold-boot table: both nodes visible, the own etcd at rest. Rows: me; columns: the peer.

use super::live::awaited_as_voter;
use super::{Verdict, take_over};
use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Awaited, Refusal, Rule};
use crate::facts::{Facts, LogPosition};
use crate::standing::Standing;
use crate::statement::{EtcdWord, Place, Statement};

/// The cell of the own class and the peer's.
pub(crate) fn cell(facts: &Facts, own: &Standing, heard: &Statement) -> Verdict {
    let rule = Rule::Cell { own: own.class, peer: heard.class };
    let name = &facts.peer.name;
    match (own.class, heard.class) {
        // Pair / Pair: both start; raft decides who is newer (R1).
        (Class::Pair, Class::Pair) => both_pair(facts, own, heard, rule),
        // Pair / Alone: the peer went on without me. Yield, then join (R4). Unless it waits for this very
        // member: it was promoting it when its etcd stopped, and nobody has voted in its name.
        (Class::Pair, Class::Alone) if awaited_as_voter(facts, heard) => Verdict::new(
            Action::StartPlain,
            rule,
            format!("{name} was promoting this member and waits for it"),
        ),
        (Class::Pair, Class::Alone) => {
            if broken!(facts, LargerCounterWins) && own.last > heard.last.unwrap_or_default() {
                return Verdict::new(Action::StartPlain, rule, "");
            }
            Verdict::new(Action::Yield, rule, format!("{name} went on alone: this copy is old"))
        }
        // Pair / Learner: both start.
        (Class::Pair, Class::Learner) => start(rule, "the peer may vote already: raft decides"),
        // Pair / Left: take over if eligible or my log is not older; the peer joins.
        (Class::Pair, Class::Left)
            if !heard.identity_is_gone() && !broken!(facts, UncommittedLeaveCounts) =>
        {
            start(rule, "the peer's removal may not be committed: both start")
        }
        (Class::Pair, Class::Left) => pair_and_left(facts, own, heard, rule),
        // Pair / None, Broken: the same, judged by the record the peer left; else stop and ask.
        (Class::Pair, Class::None | Class::Broken) => go_on_or_ask(facts, own, rule),

        // Alone / Alone: diverged (R6). No counter decides.
        (Class::Alone, Class::Alone) => {
            if broken!(facts, LargerCounterWins) {
                let wins = own.last >= heard.last.unwrap_or_default();
                let action = if wins { Action::StartPlain } else { Action::Yield };
                return Verdict::new(action, rule, "");
            }
            let because = format!("this node and {name} each went on alone: two histories");
            Verdict::refuse(Refusal::Diverged, commands::RESOLVE, Rule::R6, because)
        }
        // Alone / others: start; the peer yields or joins. By the mark alone there is still a vote to cast.
        (Class::Alone, Class::Pair | Class::Learner) => start(rule, "this node has everything"),
        (Class::Alone, Class::Left | Class::None | Class::Broken) if own.by_mark => {
            go_on_or_ask(facts, own, rule)
        }
        (Class::Alone, Class::Left | Class::None | Class::Broken) => {
            start(rule, "this node has everything")
        }

        // Learner / Pair: both start.
        (Class::Learner, Class::Pair) => start(rule, "the peer votes: go on as its learner"),
        // Learner / Alone: go on as learner, or join anew.
        (Class::Learner, Class::Alone) => learner_of_alone(facts, heard, rule),

        // Left / Pair: join; the own removal not committed: both start.
        (Class::Left, Class::Pair) if !own_identity_is_gone(facts, own) => {
            start(rule, "the own removal may not be committed: both start")
        }
        (Class::Left, Class::Pair) if may_take_back(facts, own, heard) => {
            let because = format!(
                "{name} is at rest, never went on, and its log is older: this node goes on"
            );
            Verdict::new(Action::TakeBackYield, rule, because)
        }
        // Left / Alone, the own removal not known to be committed: make it certain first (R4), for the peer
        // may need that word to go on.
        (Class::Left, Class::Alone) if !own_identity_is_gone(facts, own) => {
            Verdict::new(Action::Yield, rule, format!("{name} went on alone: this member is out"))
        }
        // Left, None, Broken / Pair, Alone: join.
        (Class::Left | Class::None | Class::Broken, Class::Pair | Class::Alone) => {
            join(facts, heard, rule)
        }

        // Left / Left: each yielded to the other, and neither has gone on. One takes its yield back.
        (Class::Left, Class::Left) if both_yielded(facts, own, heard) => {
            one_of_two(facts, heard, rule)
        }

        // None / None is an install.
        (Class::None, Class::None) => {
            let because = format!("neither this node nor {name} has data");
            Verdict::inert("a dataset", commands::SETUP, rule, because)
        }
        // Everything else: nobody has a voter's dataset.
        (
            Class::Learner | Class::Left | Class::None | Class::Broken,
            Class::Learner | Class::Left | Class::None | Class::Broken,
        ) => {
            let because =
                format!("own dataset {}, {name}'s {}: nobody can vote", own.class, heard.class);
            Verdict::refuse(Refusal::NoVoter, commands::RESOLVE, rule, because)
        }
    }
}

fn start(rule: Rule, because: &str) -> Verdict {
    Verdict::new(Action::StartPlain, rule, because)
}

/// R1, and eligibility by comparison at rest (V10d): both at rest and solidly pairs, my log not older.
fn both_pair(facts: &Facts, own: &Standing, heard: &Statement, rule: Rule) -> Verdict {
    let name = &facts.peer.name;
    if broken!(facts, ForceOnPlainCrash)
        && let Some(dead) = own.other
    {
        return Verdict::new(Action::TakeOver { dead }, rule, "");
    }
    let solid = (facts.dataset.solid_pair() && heard.solid_pair) || broken!(facts, LooseComparison);
    let at_rest = heard.etcd == EtcdWord::Stopped;
    let not_older = heard.last.is_some_and(|stated| own.last >= stated);
    if let Some(with) = own.other
        && (solid && at_rest && not_older)
        && heard.member_id == Some(with)
        && !own.eligible
    {
        let because =
            format!("both at rest and solidly a pair; the own log ({}) is not older", own.last);
        return Verdict::new(Action::RecordComparison { with }, rule, because);
    }
    Verdict::new(
        Action::StartPlain,
        rule,
        format!("this node and {name} vote: raft decides who is newer"),
    )
}

fn go_on_or_ask(facts: &Facts, own: &Standing, rule: Rule) -> Verdict {
    match take_over::permission(facts, own) {
        Ok((dead, because)) => take_over::step(facts, dead, because),
        Err(missing) => {
            let because = "the peer cannot vote any more, and may have held newer writes";
            Verdict::inert(missing.what, missing.command, rule, because)
        }
    }
}

/// A peer that is gone for good: go on, or let it take its yield back if it alone is newer.
fn pair_and_left(facts: &Facts, own: &Standing, heard: &Statement, rule: Rule) -> Verdict {
    let older = heard.last.is_some_and(|stated| own.last < stated);
    let comes_back = heard.yielded && heard.solid_pair && !heard.removal_committed;
    if older && comes_back && !own.eligible && facts.dataset.solid_pair() {
        let because = "the peer yielded, has the newer log, and takes its yield back";
        return Verdict::wait(Awaited::PeerToServe, rule, because);
    }
    go_on_or_ask(facts, own, rule)
}

fn own_identity_is_gone(facts: &Facts, own: &Standing) -> bool {
    use crate::dataset::OwnRemoval;
    own.yielded || facts.dataset.own_removal == Some(OwnRemoval::Committed)
}

/// A yield can be taken back only where the peer could not go on with it: it is at rest, a solid pair with
/// this very member, not eligible, and its log is older than mine. All acknowledged writes are in both logs.
fn may_take_back(facts: &Facts, own: &Standing, heard: &Statement) -> bool {
    let mine =
        LogPosition { term: facts.dataset.raft.last_term, index: facts.dataset.raft.last_index };
    own.yielded
        && facts.dataset.solid_pair()
        && heard.solid_pair
        && heard.etcd == EtcdWord::Stopped
        && !heard.eligible
        && heard.last.is_some_and(|stated| stated < mine)
        && own.other == heard.member_id
}

/// Both gave up the same pair, solidly and at rest: nobody can have gone on with the other's yield.
fn both_yielded(facts: &Facts, own: &Standing, heard: &Statement) -> bool {
    own.yielded
        && heard.yielded
        && !heard.removal_committed
        && !facts.is_marked()
        && facts.dataset.solid_pair()
        && heard.solid_pair
        && heard.etcd == EtcdWord::Stopped
        && heard.last.is_some()
        && own.other == heard.member_id
}

/// Of two that yielded to each other the newer log goes on, between equals the one that comes first. All acknowledged
/// writes are in both.
fn one_of_two(facts: &Facts, heard: &Statement, rule: Rule) -> Verdict {
    let name = &facts.peer.name;
    let mine =
        LogPosition { term: facts.dataset.raft.last_term, index: facts.dataset.raft.last_index };
    let goes_on = match heard.last {
        Some(stated) if stated != mine => mine > stated,
        _ => facts.comes_first(),
    };
    if goes_on && !broken!(facts, BothYieldsStand) {
        let because = format!("{name} yielded too, and its log is not newer: this node goes on");
        return Verdict::new(Action::TakeBackYield, rule, because);
    }
    let because = format!("{name} yielded too, and takes its yield back");
    Verdict::wait(Awaited::PeerToServe, rule, because)
}

/// The voter serves alone, or will: go on as its learner if it still has this one, else join anew.
fn learner_of_alone(facts: &Facts, heard: &Statement, rule: Rule) -> Verdict {
    let own = facts.dataset.member_id;
    match heard.listener {
        Some(listed) if Some(listed.member) == own && listed.place != Place::Burnt => {
            start(rule, "the peer still has this learner")
        }
        Some(listed) if Some(listed.member) == own => {
            Verdict::new(Action::Yield, rule, "the peer goes on without this member")
        }
        _ => join(facts, heard, rule),
    }
}

/// R4: move aside and join only when the peer serves and has added this node; until then the data stay.
fn join(facts: &Facts, heard: &Statement, rule: Rule) -> Verdict {
    let name = &facts.peer.name;
    if !facts.disk_writable {
        return Verdict::inert(
            "a disk that takes writes",
            commands::DISK,
            Rule::R11,
            "the own disk is full or read-only",
        );
    }
    // A word that is older than the yield may still list the member that was given up: an id that has voted must
    // never start with an empty log.
    let added = heard.listener.filter(|listed| {
        listed.place == Place::Learner && Some(listed.member) != facts.dataset.member_id
    });
    match added {
        Some(listed) if heard.etcd == EtcdWord::Serving || broken!(facts, JoinBeforePeerServes) => {
            let because = format!("{name} serves and has added this node as {}", listed.member);
            Verdict::new(Action::JoinAsLearner { member: listed.member }, rule, because)
        }
        _ if broken!(facts, MoveAsideFirst) => {
            Verdict::new(Action::JoinAsLearner { member: crate::ids::MemberId(0) }, rule, "")
        }
        _ if heard.etcd == EtcdWord::Serving => Verdict::wait(
            Awaited::PeerToAdd,
            rule,
            format!("{name} serves and adds this node next"),
        ),
        _ => Verdict::wait(Awaited::PeerToServe, rule, format!("{name} has to serve first")),
    }
}
