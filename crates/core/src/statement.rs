//! What a node says of itself: published as attributes, before the step it announces.

use serde::{Deserialize, Serialize};

use crate::dataset::{Class, OwnRemoval};
use crate::facts::{Etcd, EtcdState, Facts, LogPosition, Memory, Operation};
use crate::ids::{BootId, ClusterId, MemberId, NodeName};
use crate::standing::Standing;

/// What a node says of itself.
///
/// Read leniently: the peer may be of a newer version and say more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// Who says it.
    pub node: NodeName,
    /// In which boot.
    pub boot: BootId,
    /// The boot of the listener that the speaker knew of when it said so. A statement that does not answer
    /// the listener's present boot is not about the present.
    #[serde(default)]
    pub answers: Option<BootId>,
    /// The cluster of its dataset.
    #[serde(default)]
    pub cluster_id: Option<ClusterId>,
    /// The member of its dataset.
    #[serde(default)]
    pub member_id: Option<MemberId>,
    /// The class, its marks taken into account.
    pub class: Class,
    /// Whether it is a pair at every prefix of its log, its marks left aside; stated only at rest.
    #[serde(default)]
    pub solid_pair: bool,
    /// Whether its yield mark stands.
    #[serde(default)]
    pub yielded: bool,
    /// Whether its own removal is known to be committed.
    #[serde(default)]
    pub removal_committed: bool,
    /// The last entry of its log, stated only at rest. A node without a readable log states the one it wrote
    /// down at its last orderly stop as a voter of two; without such a record, nothing.
    #[serde(default)]
    pub last: Option<LogPosition>,
    /// What its etcd does.
    pub etcd: EtcdWord,
    /// Whether it is eligible to go on alone.
    #[serde(default)]
    pub eligible: bool,
    /// Whether a planned stop is under way: nobody yields to a node that goes.
    #[serde(default)]
    pub leaving: bool,
    /// Whether its disk takes writes.
    #[serde(default)]
    pub disk_writable: bool,
    /// Whether it has no data and nothing tells that it ever had any (R12). Who does not say so is not.
    #[serde(default)]
    pub blank: bool,
    /// What the listener is in its membership.
    #[serde(default)]
    pub listener: Option<Listed>,
    /// What it remembers of the listener's log.
    #[serde(default)]
    pub remembers: Option<Memory>,
}

/// What the listener is in the speaker's membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Under which id.
    pub member: MemberId,
    /// As what.
    pub place: Place,
}

/// A place in a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// It listens, or may start to.
    Learner,
    /// It votes, and is waited for.
    Voter,
    /// Somebody may have voted in its name: it must never start again.
    Burnt,
}

/// What an etcd does, as far as the other side needs to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EtcdWord {
    /// It does not run, and will not start before a new statement says so.
    #[default]
    Stopped,
    /// It runs, or is about to, and has no leader.
    Running,
    /// It runs and has a leader.
    Serving,
    /// It runs and answers nothing: it hangs, or its disk does.
    Silent,
}

impl From<&Etcd> for EtcdWord {
    fn from(etcd: &Etcd) -> Self {
        match etcd.state {
            _ if etcd.silent_ms.is_some() => Self::Silent,
            EtcdState::Stopped => Self::Stopped,
            EtcdState::Starting | EtcdState::NoLeader => Self::Running,
            EtcdState::Follower | EtcdState::Leader | EtcdState::Learner => Self::Serving,
        }
    }
}

impl Statement {
    /// What the node of these facts has to say now.
    ///
    /// `record` is the log position it wrote down at its last orderly stop; it is stated only by a node that
    /// has no readable log.
    pub fn of(facts: &Facts, record: Option<LogPosition>) -> Self {
        let standing = Standing::of(facts);
        let dataset = &facts.dataset;
        let readable = !matches!(standing.class, Class::None | Class::Broken);
        let last = LogPosition { term: dataset.raft.last_term, index: dataset.raft.last_index };
        Self {
            node: facts.node.clone(),
            boot: facts.boot.clone(),
            answers: facts.peer.statement.as_ref().map(|heard| heard.boot.clone()),
            cluster_id: dataset.cluster_id,
            member_id: dataset.member_id,
            class: standing.class,
            solid_pair: dataset.solid_pair() && facts.etcd.state == EtcdState::Stopped,
            yielded: standing.yielded,
            removal_committed: dataset.own_removal == Some(OwnRemoval::Committed),
            last: match facts.etcd.state {
                EtcdState::Stopped if readable => Some(last),
                EtcdState::Stopped => record,
                _ => None,
            },
            etcd: EtcdWord::from(&facts.etcd),
            // A node that cannot read its log may be able to later: its record counts until it is dropped.
            eligible: standing.eligible || (!readable && facts.eligibility.is_some()),
            leaving: is_leaving(facts),
            disk_writable: facts.disk_writable,
            blank: crate::rules::begin::is_blank(facts),
            listener: facts.listed_peer(&standing),
            remembers: facts.peer.memory,
        }
    }

    /// Whether its member identity is gone for good: the yield mark stands, or its removal is committed
    /// (V7). A removal that is only in the tail may never have happened.
    pub fn identity_is_gone(&self) -> bool {
        self.class == Class::Left && (self.yielded || self.removal_committed)
    }
}

/// Whether the node ends taking part: asked to stop now, or stopped so and not asked to start or stay since. (A stop
/// that is called off after the demotion brings no start: Pacemaker goes on monitoring.)
fn is_leaving(facts: &Facts) -> bool {
    let said = facts.published.as_ref().is_some_and(|last| last.leaving && last.boot == facts.boot);
    let stays = facts.request.operation == Operation::Monitor && facts.request.recurring;
    let stays_off = facts.etcd.state == EtcdState::Stopped
        && !stays
        && !matches!(facts.request.operation, Operation::Start | Operation::Promote);
    crate::rules::stop::is_planned(facts) || (said && stays_off)
}
