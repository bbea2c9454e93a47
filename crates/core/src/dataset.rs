//! What a node's copy of the data holds, and the class that follows from it.

use std::collections::{BTreeMap, BTreeSet};
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

/// The raft membership as of one position in the log: who is in it, who only listens, and who is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "MembershipLists", into = "MembershipLists")]
pub struct Membership {
    /// Each member with its learner flag.
    members: BTreeMap<MemberId, bool>,
    /// The members that were removed up to here. An id that is neither here nor a member was not added yet.
    removed: BTreeSet<MemberId>,
}

/// [`Membership`] as it is written: three lists of ids.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct MembershipLists {
    voters: Vec<MemberId>,
    learners: Vec<MemberId>,
    removed: Vec<MemberId>,
}

impl From<MembershipLists> for Membership {
    fn from(lists: MembershipLists) -> Self {
        Self::new(lists.voters, lists.learners).with_removed(lists.removed)
    }
}

impl From<Membership> for MembershipLists {
    fn from(membership: Membership) -> Self {
        Self {
            voters: membership.voters().collect(),
            learners: membership.learners().collect(),
            removed: membership.removed().collect(),
        }
    }
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
        Self { members, removed: BTreeSet::new() }
    }

    /// The same, with the ids that were removed before.
    #[must_use]
    pub fn with_removed(mut self, removed: impl IntoIterator<Item = MemberId>) -> Self {
        self.removed.extend(removed);
        self
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
                self.removed.insert(id);
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

    /// All learners, in the order of their ids.
    pub fn learners(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.iter().filter(|(_, learner)| **learner).map(|(id, _)| *id)
    }

    /// Whether this id was removed for good.
    pub fn is_removed(&self, id: MemberId) -> bool {
        self.removed.contains(&id)
    }

    /// All ids that were removed for good, in their order.
    pub fn removed(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.removed.iter().copied()
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
    pub fn class_of(&self, own: MemberId) -> Class {
        match self.is_voter(own) {
            Some(true) if self.voters().count() == 1 => Class::Alone,
            Some(true) => Class::Pair,
            None if self.is_removed(own) => Class::Left,
            // A member that joined and has not yet received its own addition: it was never a voter.
            Some(false) | None => Class::Learner,
        }
    }
}

/// The class by the worst-prefix rule (R2, V5).
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
    #[serde(with = "vote", default)]
    pub vote: Option<MemberId>,
    /// The commit mark on disk. It may be older than what was committed.
    pub commit: Index,
    /// The last entry of the log.
    pub last_index: Index,
    /// Its term.
    pub last_term: Term,
}

/// `vote` is always written: `"0"` says that this member voted for nobody, as etcd writes it.
mod vote {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::ids::MemberId;

    #[expect(clippy::ref_option, reason = "serde asks for this signature")]
    pub(super) fn serialize<S: Serializer>(
        vote: &Option<MemberId>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        vote.unwrap_or(MemberId(0)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<MemberId>, D::Error> {
        Ok(Some(MemberId::deserialize(deserializer)?).filter(|id| *id != MemberId(0)))
    }
}

/// The membership from one position of the log on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prefix {
    /// The last entry that is part of this prefix.
    pub index: Index,
    /// The membership as of that entry.
    #[serde(flatten)]
    pub membership: Membership,
}

/// How sure the removal of the dataset's own member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OwnRemoval {
    /// It is committed: this member is gone for good, and the rest of the cluster knows it.
    Committed,
    /// It is in the log, but nothing on this disk says that it was committed.
    Uncommitted,
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
    /// The cluster it belongs to; unknown (`null`) without a readable log.
    pub cluster_id: Option<ClusterId>,
    /// Whose copy it is; unknown (`null`) without a readable log.
    pub member_id: Option<MemberId>,
    /// The raft state.
    pub raft: Raft,
    /// The last entry that the key space has applied.
    pub consistent_index: Index,
    /// The last change of the key space that the database file holds, as of the consistent index.
    pub revision: Revision,
    /// The members as of the **last entry** of the log: every change that anybody was told of is in it.
    /// It may be ahead of what was committed; what decisions rest on is in `prefixes`.
    pub members: Vec<Member>,
    /// The members that were removed, as of the last entry.
    pub removed: Vec<MemberId>,
    /// The size of the database file.
    pub db_size_bytes: u64,
    /// What does not fit together, in words.
    pub problems: Vec<String>,
    /// The membership at the commit mark, then after each change of it behind the mark. The class is the
    /// worst over these. Empty if the log cannot be read.
    #[serde(default)]
    pub prefixes: Vec<Prefix>,
    /// Whether the own removal is in the log, and how sure it is (V7).
    #[serde(default)]
    pub own_removal: Option<OwnRemoval>,
}

impl Dataset {
    /// A dataset that holds nothing that could be relied on.
    pub fn empty(class: Class, reason: impl Into<String>) -> Self {
        Self {
            class,
            reason: reason.into(),
            live: false,
            cluster_id: None,
            member_id: None,
            raft: Raft::default(),
            consistent_index: Index(0),
            revision: Revision(0),
            members: Vec::new(),
            removed: Vec::new(),
            db_size_bytes: 0,
            problems: Vec::new(),
            prefixes: Vec::new(),
            own_removal: None,
        }
    }

    /// The membership at the commit mark.
    pub fn at_commit_mark(&self) -> Option<&Membership> {
        self.prefixes.first().map(|prefix| &prefix.membership)
    }

    /// Whether the dataset is a pair whatever part of the tail was committed (V10d): only then may logs be
    /// compared at rest.
    pub fn solid_pair(&self) -> bool {
        let Some(own) = self.member_id else { return false };
        self.class == Class::Pair
            && !self.prefixes.is_empty()
            && self.prefixes.iter().all(|prefix| prefix.membership.class_of(own) == Class::Pair)
    }
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

    /// A joiner that has not yet received its own addition is a learner, not a leaver.
    #[test]
    fn who_was_not_added_yet_is_a_learner() {
        assert_eq!(worst_class(ME, [&Membership::default()]), Class::Learner);
        let before_me = Membership::new([PEER], []);
        assert_eq!(worst_class(ME, [&before_me]), Class::Learner);
        assert_eq!(worst_class(ME, [&before_me.with_removed([ME])]), Class::Left);
    }

    /// V10d: a pair that its tail may have ended is a pair, but not a solid one.
    #[test]
    fn a_solid_pair_is_one_at_every_prefix() {
        let prefix = |index, membership| Prefix { index: Index(index), membership };
        let pair = Membership::new([ME, PEER], []);
        let mut dataset = Dataset::empty(Class::Pair, "");
        dataset.member_id = Some(ME);
        assert!(!dataset.solid_pair(), "nothing is known of its membership");
        dataset.prefixes = vec![prefix(7, pair.clone())];
        assert!(dataset.solid_pair());
        dataset.prefixes.push(prefix(8, Membership::new([ME], [])));
        assert!(!dataset.solid_pair());
        assert_eq!(dataset.at_commit_mark(), Some(&pair));
    }

    /// What a peer publishes is read back unchanged, and a vote for nobody is written as `"0"`.
    #[test]
    fn a_dataset_survives_json() {
        let mut dataset = Dataset::empty(Class::Left, "removed");
        dataset.own_removal = Some(OwnRemoval::Committed);
        let membership = Membership::new([ME], [PEER]).with_removed([MemberId(3)]);
        dataset.prefixes = vec![Prefix { index: Index(9), membership }];
        let json = serde_json::to_value(&dataset).unwrap();
        assert_eq!(json["raft"]["vote"], "0");
        assert_eq!(json["prefixes"][0]["learners"][0], "2");
        assert_eq!(serde_json::from_value::<Dataset>(json).unwrap(), dataset);
    }

    /// Without any membership to look at there is nothing to rely on.
    #[test]
    fn no_prefix_is_broken() {
        assert_eq!(worst_class(ME, []), Class::Broken);
    }
}
