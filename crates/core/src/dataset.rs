//! What a node's copy of the data holds, and the class that follows from it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{ClusterId, Index, MemberId, Revision, Term};

/// What a dataset allows its owner to do. See the table in `ARCHITECTURE.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Class {
    /// There is no data directory.
    None,
    /// I am a voter and so is my peer.
    Pair,
    /// I am the only voter: the peer is absent, or only a learner.
    Alone,
    /// I was still catching up.
    Learner,
    /// My own removal is in my log, or I yielded.
    Left,
    /// Unreadable, torn beyond etcd's own repair, or checksums fail.
    Broken,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Pair => "pair",
            Self::Alone => "alone",
            Self::Learner => "learner",
            Self::Left => "left",
            Self::Broken => "broken",
        })
    }
}

/// The raft membership as of one position in the log: who is in it, and who only listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Each member with its learner flag.
    members: BTreeMap<MemberId, bool>,
}

/// One committed or uncommitted change of the membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipChange {
    /// A new voter, or the promotion of a learner.
    AddVoter(MemberId),
    /// A new learner.
    AddLearner(MemberId),
    /// A removal, for good.
    Remove(MemberId),
    /// A change of addresses: who votes stays as it was.
    Update(MemberId),
}

impl Membership {
    /// A membership of these voters and learners, as a snapshot's `ConfState` states it.
    pub fn new(
        voters: impl IntoIterator<Item = MemberId>,
        learners: impl IntoIterator<Item = MemberId>,
    ) -> Self {
        let mut members: BTreeMap<_, _> = learners.into_iter().map(|id| (id, true)).collect();
        members.extend(voters.into_iter().map(|id| (id, false)));
        Self { members }
    }

    /// The membership after one more change.
    pub fn apply(&mut self, change: MembershipChange) {
        match change {
            MembershipChange::AddVoter(id) => {
                self.members.insert(id, false);
            }
            MembershipChange::AddLearner(id) => {
                self.members.insert(id, true);
            }
            MembershipChange::Remove(id) => {
                self.members.remove(&id);
            }
            MembershipChange::Update(_) => {}
        }
    }

    /// Whether this member votes; `None` if it is not a member.
    pub fn is_voter(&self, id: MemberId) -> Option<bool> {
        self.members.get(&id).map(|learner| !learner)
    }

    /// All voters, in the order of their ids.
    pub fn voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.iter().filter(|(_, learner)| !**learner).map(|(id, _)| *id)
    }

    /// All members with their learner flag, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (MemberId, bool)> + '_ {
        self.members.iter().map(|(id, learner)| (*id, *learner))
    }

    /// Whether nobody is in it, as in a log that has not received its first entry.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The class if exactly this membership were in force.
    fn class_of(&self, own: MemberId) -> Class {
        match self.is_voter(own) {
            Some(false) => Class::Learner,
            Some(true) if self.voters().count() == 1 => Class::Alone,
            Some(true) => Class::Pair,
            // A member that joined and has received nothing yet has an empty log. It was never a voter.
            None if self.is_empty() => Class::Learner,
            None => Class::Left,
        }
    }
}

/// The class by the worst-prefix rule (DESIGN of R2, V5 of its review).
///
/// The commit mark on disk may be old, and a change in the tail may or may not be committed. So the class is
/// the worst over every prefix of the log from the commit mark to the last entry; worst first: `Left`,
/// `Learner`, `Pair`, `Alone`. `prefixes` holds the membership at the commit mark and after each change
/// behind it. Without any prefix there is nothing to rely on: `Broken`.
pub fn worst_class<'a>(own: MemberId, prefixes: impl IntoIterator<Item = &'a Membership>) -> Class {
    let badness = |class: &Class| match class {
        Class::Broken | Class::None => 4,
        Class::Left => 3,
        Class::Learner => 2,
        Class::Pair => 1,
        Class::Alone => 0,
    };
    prefixes
        .into_iter()
        .map(|membership| membership.class_of(own))
        .max_by_key(badness)
        .unwrap_or(Class::Broken)
}

/// One member, as people know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Its name; empty as long as the member has not started.
    pub name: String,
    /// Where its peers reach it.
    pub peer_urls: Vec<String>,
    /// Whether it only listens.
    pub learner: bool,
}

/// The raft part of a dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Raft {
    /// The term of the last hard state.
    pub term: Term,
    /// Whom this member voted for in that term.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<MemberId>,
    /// The commit mark on disk. It may be older than what was committed.
    pub commit: Index,
    /// The last entry of the log.
    pub last_index: Index,
    /// Its term.
    pub last_term: Term,
}

/// What a node's copy of the data holds, read from disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dataset {
    /// The class by the worst-prefix rule.
    pub class: Class,
    /// Why it is of this class, in words.
    pub reason: String,
    /// Whether an etcd runs on it.
    pub live: bool,
    /// The cluster it belongs to.
    pub cluster_id: Option<ClusterId>,
    /// Whose copy it is.
    pub member_id: Option<MemberId>,
    /// The raft state.
    pub raft: Raft,
    /// The last entry that the key space has applied.
    pub consistent_index: Index,
    /// The last change of the key space.
    pub revision: Revision,
    /// The members as of the last entry.
    pub members: Vec<Member>,
    /// The members that were removed for good.
    pub removed: Vec<MemberId>,
    /// The size of the database file.
    pub db_size_bytes: u64,
    /// What does not fit together, in words.
    pub problems: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: MemberId = MemberId(1);
    const PEER: MemberId = MemberId(2);

    fn class_after(start: &Membership, tail: &[MembershipChange]) -> Class {
        let mut prefixes = vec![start.clone()];
        for change in tail {
            let mut next = prefixes.last().unwrap().clone();
            next.apply(*change);
            prefixes.push(next);
        }
        worst_class(ME, &prefixes)
    }

    /// V5: what the tail does is believed only where it makes the class worse.
    #[test]
    fn the_tail_can_only_make_the_class_worse() {
        use MembershipChange::{AddLearner, AddVoter, Remove};
        let pair = Membership::new([ME, PEER], []);
        let alone = Membership::new([ME], []);
        let with_learner = Membership::new([ME], [PEER]);
        let learner = Membership::new([PEER], [ME]);
        let cases: &[(&Membership, &[MembershipChange], Class)] = &[
            (&pair, &[], Class::Pair),
            (&alone, &[], Class::Alone),
            (&with_learner, &[], Class::Alone),
            (&learner, &[], Class::Learner),
            // An uncommitted removal of the peer leaves the pair a pair.
            (&pair, &[Remove(PEER)], Class::Pair),
            // An uncommitted removal of myself makes me unfit at once.
            (&pair, &[Remove(ME)], Class::Left),
            // An uncommitted promotion of the peer: it may already vote.
            (&with_learner, &[AddVoter(PEER)], Class::Pair),
            // My own uncommitted promotion: I may not vote yet.
            (&learner, &[AddVoter(ME)], Class::Learner),
            (&alone, &[AddLearner(PEER)], Class::Alone),
            // Removed, and somebody (not me) added: still removed.
            (&pair, &[Remove(ME), AddLearner(MemberId(3))], Class::Left),
        ];
        for (start, tail, class) in cases {
            assert_eq!(class_after(start, tail), *class, "{start:?} then {tail:?}");
        }
    }

    /// A joiner that has received nothing yet is a learner, not a leaver.
    #[test]
    fn an_empty_log_is_a_learners() {
        assert_eq!(worst_class(ME, [&Membership::default()]), Class::Learner);
    }

    /// Without any membership to look at there is nothing to rely on.
    #[test]
    fn no_prefix_is_broken() {
        assert_eq!(worst_class(ME, []), Class::Broken);
    }
}
