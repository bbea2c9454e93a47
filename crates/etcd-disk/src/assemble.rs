//! From the parts of a directory to the facts about it.

use std::collections::BTreeSet;

use dyad_core::dataset::{
    Class, Dataset, Member, Membership, OwnRemoval, Prefix, Raft, worst_class,
};
use dyad_core::ids::{Index, MemberId};

use crate::db::Db;
use crate::fault::{Result, damage};
use crate::roster::Roster;
use crate::snap::Snapshot;
use crate::wal::replay::Log;

/// What was read.
pub(crate) struct Parts<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) log: &'a Log,
    pub(crate) db: &'a Db,
    pub(crate) problems: Vec<String>,
}

/// The membership along the log.
struct Course {
    /// At the commit mark, then after each change behind it.
    prefixes: Vec<Prefix>,
    /// As of the last entry.
    end: Roster,
    /// At the database's consistent index, then after each change behind it.
    since_applied: Vec<Membership>,
    own_removal: Option<Index>,
}

/// Puts the facts together and judges them.
pub(crate) fn assemble(parts: Parts<'_>) -> Result<Dataset> {
    let Parts { snapshot, log, db, mut problems } = parts;
    let Some(identity) = log.identity else {
        return Err(damage("member/wal", "the log names no member"));
    };
    let own = identity.member;
    let course = follow(snapshot, log, db, own);
    let class = worst_class(own, course.prefixes.iter().map(|prefix| &prefix.membership));
    let members = members(&course.end, db);
    let own_removal = own_removal(own, snapshot, log, db, &course);
    let words = Words { own, class, members: &members, course: &course, log, own_removal };
    let reason = words.reason();
    problems.extend(db.problems.iter().cloned());
    problems.extend(words.tail_problem());
    problems.extend(members_problem(db, &course.since_applied));
    let voters = course.end.membership.voters().count();
    if voters > 2 {
        problems.push(format!("the cluster has {voters} voters; Dyad runs pairs of two"));
    }
    let removed: BTreeSet<_> =
        course.end.membership.removed().chain(db.removed.iter().copied()).collect();
    Ok(Dataset {
        class,
        reason,
        live: false,
        cluster_id: Some(identity.cluster),
        member_id: Some(own),
        raft: Raft {
            term: log.state.term,
            vote: log.state.vote,
            commit: log.state.commit,
            last_index: log.last.index,
            last_term: log.last.term,
        },
        consistent_index: db.consistent_index,
        revision: db.revision,
        members,
        removed: removed.into_iter().collect(),
        db_size_bytes: db.size_bytes,
        problems,
        prefixes: course.prefixes,
        own_removal,
    })
}

fn follow(snapshot: &Snapshot, log: &Log, db: &Db, own: MemberId) -> Course {
    let mut roster = Roster::at_snapshot(snapshot);
    let mut course = Course {
        prefixes: Vec::new(),
        end: Roster::default(),
        since_applied: Vec::new(),
        own_removal: None,
    };
    let commit = log.state.commit;
    for change in &log.changes {
        if change.index > commit && course.prefixes.is_empty() {
            course.prefixes.push(Prefix { index: commit, membership: roster.membership.clone() });
        }
        if change.index > db.consistent_index && course.since_applied.is_empty() {
            course.since_applied.push(roster.membership.clone());
        }
        if !roster.apply(change) {
            continue;
        }
        let membership = roster.membership.clone();
        if change.index > db.consistent_index {
            course.since_applied.push(membership.clone());
        }
        if membership.is_removed(own) && course.own_removal.is_none() {
            course.own_removal = Some(change.index);
        }
        if change.index > commit {
            course.prefixes.push(Prefix { index: change.index, membership });
        }
    }
    if course.prefixes.is_empty() {
        course.prefixes.push(Prefix { index: commit, membership: roster.membership.clone() });
    }
    if course.since_applied.is_empty() {
        course.since_applied.push(roster.membership.clone());
    }
    course.end = roster;
    course
}

/// V7: only a committed removal may be stated to the peer. What the database has applied was committed,
/// also where the commit mark on disk is older.
fn own_removal(
    own: MemberId,
    snapshot: &Snapshot,
    log: &Log,
    db: &Db,
    course: &Course,
) -> Option<OwnRemoval> {
    if snapshot.membership.is_removed(own) || db.removed.contains(&own) {
        return Some(OwnRemoval::Committed);
    }
    let known_committed = log.state.commit.max(db.consistent_index);
    course.own_removal.map(|index| {
        if index <= known_committed { OwnRemoval::Committed } else { OwnRemoval::Uncommitted }
    })
}

fn members(end: &Roster, db: &Db) -> Vec<Member> {
    let member = |(id, learner): (MemberId, bool)| {
        let in_db = db.members.iter().find(|member| member.id == id.0);
        let in_log = end.details.get(&id);
        let mut known = in_log.into_iter().chain(in_db);
        let name = known.clone().map(|known| &known.name).find(|name| !name.is_empty());
        let urls = known.find(|known| !known.peer_urls.is_empty()).map(|known| &known.peer_urls);
        Member {
            id,
            name: name.cloned().unwrap_or_default(),
            peer_urls: urls.cloned().unwrap_or_default(),
            learner,
        }
    };
    end.membership.iter().map(member).collect()
}

/// What bolt's `members` bucket says differently from the log. The log is right.
fn members_problem(db: &Db, since_applied: &[Membership]) -> Option<String> {
    let in_db: Vec<_> =
        db.members.iter().map(|member| (MemberId(member.id), member.learner)).collect();
    if since_applied.iter().any(|membership| membership.iter().eq(in_db.iter().copied())) {
        return None;
    }
    let membership = since_applied.first()?;
    let mut differences = Vec::new();
    for (id, learner) in &in_db {
        match membership.is_voter(*id) {
            Some(voter) if voter == *learner => {
                let (says, is) = if *learner { ("learner", "voter") } else { ("voter", "learner") };
                differences.push(format!("{id} is a {is}, not a {says}"));
            }
            Some(_) => {}
            None => differences.push(format!("{id} is no member")),
        }
    }
    for (id, _) in membership.iter().filter(|(id, _)| !in_db.iter().any(|(known, _)| known == id)) {
        differences.push(format!("{id} is a member"));
    }
    (!differences.is_empty()).then(|| {
        format!(
            "the members bucket of the database is wrong, by the log {} \
             (etcd before 3.5.20 does not record a promotion there; the log is used)",
            differences.join(", ")
        )
    })
}

/// What is said of a dataset.
struct Words<'a> {
    own: MemberId,
    class: Class,
    members: &'a [Member],
    course: &'a Course,
    log: &'a Log,
    own_removal: Option<OwnRemoval>,
}

impl Words<'_> {
    fn name(&self, id: MemberId) -> String {
        match self.members.iter().find(|member| member.id == id) {
            Some(member) if !member.name.is_empty() => format!("{} ({id})", member.name),
            _ => id.to_string(),
        }
    }

    fn names(&self, ids: impl Iterator<Item = MemberId>) -> String {
        let names: Vec<_> = ids.filter(|id| *id != self.own).map(|id| self.name(id)).collect();
        names.join(" and ")
    }

    /// Why it is of its class: by the first prefix that makes it so.
    fn reason(&self) -> String {
        let worst =
            self.course.prefixes.iter().find(|p| p.membership.class_of(self.own) == self.class);
        let Some(Prefix { index, membership }) = worst else { return String::new() };
        let own = self.name(self.own);
        match self.class {
            Class::Pair => {
                format!("{own} is a voter, and so is {}", self.names(membership.voters()))
            }
            Class::Alone => match self.names(membership.learners()) {
                learners if learners.is_empty() => format!("{own} is the only member"),
                learners => format!("{own} is the only voter; {learners} is a learner"),
            },
            Class::Learner if membership.is_voter(self.own).is_some() => {
                format!("{own} is a learner as of entry {index}")
            }
            Class::Learner => {
                format!("{own} has not yet received its own addition as of entry {index}")
            }
            Class::Left => match self.own_removal {
                Some(OwnRemoval::Committed) => format!("{own} was removed from the cluster"),
                _ => format!(
                    "{own} may have been removed: entry {index} removes it, uncommitted so far"
                ),
            },
            Class::None | Class::Broken => "the log holds no membership".into(),
        }
    }

    /// Changes behind the commit mark: they may or may not be in force.
    fn tail_problem(&self) -> Option<String> {
        let tail = self.course.prefixes.get(1..).filter(|tail| !tail.is_empty())?;
        let changes: Vec<_> = tail
            .iter()
            .zip(&self.course.prefixes)
            .map(|(after, before)| self.difference(after, before))
            .collect();
        Some(format!(
            "not known to be committed (the commit mark is {}): {}",
            self.log.state.commit,
            changes.join(", ")
        ))
    }

    fn difference(&self, after: &Prefix, before: &Prefix) -> String {
        let index = after.index;
        for (id, learner) in after.membership.iter() {
            match before.membership.is_voter(id) {
                Some(true) => {}
                Some(false) if learner => {}
                Some(false) => return format!("entry {index} promotes {}", self.name(id)),
                None if learner => {
                    return format!("entry {index} adds {} as a learner", self.name(id));
                }
                None => return format!("entry {index} adds {}", self.name(id)),
            }
        }
        let gone =
            before.membership.iter().find(|(id, _)| after.membership.is_voter(*id).is_none());
        match gone {
            Some((id, _)) => format!("entry {index} removes {}", self.name(id)),
            None => format!("entry {index} changes the membership"),
        }
    }
}
