//! A glance: the few cheap facts that show that nothing is due on a healthy voter.
//!
//! A monitor comes every few seconds for years, and nearly always finds a pair that serves. Two voters have a
//! leader only while both take part: then whatever the cluster around them says, `decide` has nothing to do.
//! Anything else, and anything in doubt, is looked at in full.

use crate::dataset::Class;
use crate::facts::{Eligibility, Etcd, EtcdState, Marks, Role};
use crate::ids::{BootId, RunId};
use crate::statement::{EtcdWord, Statement};

/// What a glance sees.
#[derive(Debug, Clone)]
pub struct Glance<'a> {
    /// This boot.
    pub boot: &'a BootId,
    /// This run of the cluster stack.
    pub run: Option<&'a RunId>,
    /// What Pacemaker holds the local instance for.
    pub role: Role,
    /// The local etcd.
    pub etcd: &'a Etcd,
    /// The record of eligibility.
    pub eligibility: Option<&'a Eligibility>,
    /// The durable marks.
    pub marks: &'a Marks,
    /// What this node has published.
    pub published: Option<&'a Statement>,
    /// The disk takes writes.
    pub disk_writable: bool,
}

impl Glance<'_> {
    /// Whether this is a voter of a whole pair, with a leader, that has said so: nothing is due.
    pub fn is_settled(&self) -> bool {
        let (Some(record), Some(said)) = (self.eligibility, self.published) else { return false };
        let led = matches!(self.etcd.state, EtcdState::Leader | EtcdState::Follower);
        let unmarked = self.marks.take_over.is_none() && self.marks.yielded.is_none();
        let earned_now = record.boot == *self.boot && record.run.as_ref() == self.run;
        let fit = earned_now && self.role == Role::Promoted && self.disk_writable;
        led && unmarked && fit && self.is_pair(record) && says_so(said, record)
    }

    /// The live members are the two voters that the record is about.
    fn is_pair(&self, record: &Eligibility) -> bool {
        let [one, two] = self.etcd.members.as_slice() else { return false };
        let ids = [one.id, two.id];
        let voters = !one.learner && !two.learner && one.node.is_some() && two.node.is_some();
        voters && ids.contains(&record.member) && ids.contains(&record.with) && one.id != two.id
    }
}

fn says_so(said: &Statement, record: &Eligibility) -> bool {
    said.boot == record.boot
        && said.member_id == Some(record.member)
        && said.class == Class::Pair
        && said.etcd == EtcdWord::Serving
        && said.eligible
        && said.disk_writable
        && !said.leaving
        && !said.yielded
}
