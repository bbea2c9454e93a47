//! The members, step by step along the log: as etcd applies each change, or refuses it.

use std::collections::BTreeMap;

use dyad_core::dataset::{Membership, MembershipChange};
use dyad_core::ids::MemberId;

use crate::db::DbMember;
use crate::snap::Snapshot;
use crate::wal::replay::{Change, ChangeKind};

/// etcd's limit, unless it is raised by a flag of later versions.
const LEARNERS_MAX: usize = 1;

/// Who is in the cluster at one position of the log, and what is known of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Roster {
    pub(crate) membership: Membership,
    pub(crate) details: BTreeMap<MemberId, DbMember>,
}

impl Roster {
    pub(crate) fn at_snapshot(snapshot: &Snapshot) -> Self {
        Self { membership: snapshot.membership.clone(), details: snapshot.details.clone() }
    }

    /// Applies one change if etcd would; says whether who votes, listens or is gone has changed.
    ///
    /// A configuration change in the log is not yet a change: etcd checks it when it applies it, on every
    /// member alike, and gives raft an empty one if it is not valid (a second learner, an address that is
    /// already taken). So the log alone would show members that never were.
    pub(crate) fn apply(&mut self, change: &Change) -> bool {
        if change.kind == ChangeKind::Name {
            self.rename(change);
            return false;
        }
        let Some(effect) = self.judge(change) else { return false };
        if let Some(context) = &change.context {
            let known = self.details.entry(change.id).or_default();
            known.id = change.id.0;
            if !context.peer_urls.is_empty() {
                known.peer_urls.clone_from(&context.peer_urls);
            }
            if !context.name.is_empty() {
                known.name.clone_from(&context.name);
            }
        }
        self.membership.apply(effect);
        !matches!(effect, MembershipChange::Update(_))
    }

    fn rename(&mut self, change: &Change) {
        if let (Some(known), Some(context)) = (self.details.get_mut(&change.id), &change.context) {
            known.name.clone_from(&context.name);
        }
    }

    fn judge(&self, change: &Change) -> Option<MembershipChange> {
        let id = change.id;
        if id.0 == 0 || self.membership.is_removed(id) {
            return None;
        }
        let voter = self.membership.is_voter(id);
        // Without a context that can be read it may be one.
        let promote = change.context.as_ref().is_none_or(|context| context.promote);
        match change.kind {
            // Whoever is promoted was a learner where the leader looked. That it is none here can only mean
            // that it was refused by the limit above and taken by an etcd with a higher one. Counting a
            // voter too many is safe, missing one is not.
            ChangeKind::AddVoter if promote => {
                (voter != Some(true)).then_some(MembershipChange::AddVoter(id))
            }
            ChangeKind::AddVoter | ChangeKind::AddLearner
                if voter.is_some() || self.address_taken(change) =>
            {
                None
            }
            ChangeKind::AddVoter => Some(MembershipChange::AddVoter(id)),
            ChangeKind::AddLearner => (self.membership.learners().count() < LEARNERS_MAX)
                .then_some(MembershipChange::AddLearner(id)),
            ChangeKind::Remove => voter.map(|_| MembershipChange::Remove(id)),
            ChangeKind::Update if voter.is_none() || self.address_taken(change) => None,
            ChangeKind::Update => Some(MembershipChange::Update(id)),
            ChangeKind::Name => None,
        }
    }

    fn address_taken(&self, change: &Change) -> bool {
        let Some(context) = &change.context else { return false };
        self.membership.iter().any(|(id, _)| {
            id != change.id
                && self.details.get(&id).is_some_and(|known| {
                    known.peer_urls.iter().any(|u| context.peer_urls.contains(u))
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyad_core::ids::Index;

    fn change(kind: ChangeKind, id: u64, url: &str, promote: bool) -> Change {
        let context = DbMember { id, peer_urls: vec![url.into()], promote, ..DbMember::default() };
        let context = (kind != ChangeKind::Remove).then_some(context);
        Change { index: Index(1), kind, id: MemberId(id), context }
    }

    /// What etcd refuses when it applies a change is refused here: else the log shows phantom voters.
    #[test]
    fn invalid_changes_have_no_effect() {
        use ChangeKind::{AddLearner, AddVoter, Remove, Update};
        let mut roster = Roster::default();
        let steps = [
            (change(AddVoter, 1, "a", false), true),
            (change(AddVoter, 1, "z", false), false), // exists
            (change(AddVoter, 2, "a", false), false), // the address is taken
            (change(AddLearner, 2, "b", false), true),
            (change(AddLearner, 3, "c", false), false), // one learner at most
            (change(AddVoter, 2, "b", true), true),     // promoted
            (change(AddVoter, 2, "b", true), false),    // already a voter
            (change(Update, 2, "d", false), false),     // changes no flags
            (change(Update, 2, "a", false), false),     // the address is taken
            (change(Remove, 9, "", false), false),      // unknown
            (change(Remove, 2, "", false), true),
            (change(AddVoter, 2, "e", false), false), // removed for good
            (change(AddVoter, 0, "f", false), false), // an empty change
        ];
        for (step, effect) in steps {
            assert_eq!(roster.apply(&step), effect, "{step:?}");
        }
        assert_eq!(roster.membership.voters().collect::<Vec<_>>(), [MemberId(1)]);
        assert_eq!(roster.membership.removed().collect::<Vec<_>>(), [MemberId(2)]);
        assert_eq!(roster.details[&MemberId(2)].peer_urls, ["d"]);
    }

    /// A promotion of somebody who is not known to listen still counts: a voter too many is safe.
    #[test]
    fn a_promotion_always_counts() {
        let mut roster = Roster::default();
        assert!(roster.apply(&change(ChangeKind::AddVoter, 5, "a", true)));
        assert_eq!(roster.membership.is_voter(MemberId(5)), Some(true));
        assert!(roster.apply(&change(ChangeKind::AddLearner, 6, "b", false)));
        let mut unreadable = change(ChangeKind::AddVoter, 6, "", true);
        unreadable.context = None;
        assert!(roster.apply(&unreadable));
        assert_eq!(roster.membership.is_voter(MemberId(6)), Some(true));
    }

    /// The context of a promotion as etcd writes it: without addresses, which stay as they were.
    #[test]
    fn a_promotion_as_etcd_writes_it() {
        let context = br#"{"id":2,"peerURLs":null,"isPromote":true}"#;
        let promotion = Change {
            index: Index(2),
            kind: ChangeKind::AddVoter,
            id: MemberId(2),
            context: serde_json::from_slice(context).unwrap(),
        };
        let mut roster = Roster::default();
        roster.apply(&change(ChangeKind::AddLearner, 2, "b", false));
        assert!(roster.apply(&promotion));
        assert_eq!(roster.details[&MemberId(2)].peer_urls, ["b"]);
    }
}
