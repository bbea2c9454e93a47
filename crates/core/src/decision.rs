//! What is decided: one action, the rule that led to it, and why.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::dataset::Class;
use crate::ids::MemberId;

/// The answer to a set of facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The one thing to do.
    #[serde(flatten)]
    pub action: Action,
    /// What the operation reports to Pacemaker if the action succeeded.
    pub outcome: Outcome,
    /// The rule that led to it.
    pub rule: Rule,
    /// Why, in words.
    pub because: String,
}

/// The one thing to do. The steps of each are done in the order given; a step that fails ends the action, and
/// the next decision starts from what is then true.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "action", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// Nothing is due. Publish if the own statement has changed.
    Nothing,
    /// Publish, set the promotion score, and let Pacemaker promote: this node may run as a voter.
    Offer,
    /// Publish `running`, then start etcd on the data as it is, with the membership it has.
    StartPlain,
    /// Both logs were compared at rest. Write the eligibility record, then decide again.
    RecordComparison {
        /// The peer's member.
        with: MemberId,
    },
    /// The own log cannot be read, so what is known of it is out of date. Drop the eligibility record, publish,
    /// then decide again.
    DropEligibility,
    /// Fsync the take-over mark, publish (the class is now `Alone`), then decide again (R2a).
    AnnounceTakeOver {
        /// The member that is not needed any more.
        dead: MemberId,
    },
    /// Start etcd if it is stopped, then cast the stand-in vote until the dead member is removed.
    TakeOver {
        /// The member whose vote is cast, and which is removed.
        dead: MemberId,
    },
    /// Fsync the yield mark, drop the eligibility record, publish. The data stay. A running etcd is stopped by
    /// Pacemaker, which is told that the resource has failed.
    Yield,
    /// Remove the yield mark, publish (the class is again what the log says), then decide again.
    TakeBackYield,
    /// Tell Pacemaker that this etcd has failed: it stops and starts it. A stop that does not end is fenced (R8).
    AskForRestart,
    /// Add the peer's address as a learner, publish its new id. An error is no answer: the live membership is.
    AddPeerAsLearner,
    /// Remove a learner that has lost its log, so that it can be added anew.
    DropLearner {
        /// Which.
        member: MemberId,
    },
    /// Move the whole member directory aside and fsync, publish, then start etcd empty under the new id.
    JoinAsLearner {
        /// The id under which the peer has added this node.
        member: MemberId,
    },
    /// Fsync the take-over mark with this member as the one being promoted, then ask etcd to promote it.
    PromoteLearner {
        /// Which.
        member: MemberId,
    },
    /// Write through both voters (a fresh key, through the own etcd). On success: write the eligibility record,
    /// then remove the take-over mark, then publish. Old copies may be pruned now.
    Barrier {
        /// The peer's member.
        with: MemberId,
    },
    /// Move leadership to this member, then decide again.
    HandOver {
        /// The member that goes on.
        to: MemberId,
    },
    /// Remove the own member through raft, publish `Left` once it is known to be committed, stop etcd.
    Leave,
    /// Stop etcd, write down the log position, publish.
    Stop,
    /// Create the first dataset of the pair, with this node as its only voter: whole, or not at all (R12).
    CreateDataset,
    /// Nothing can be done yet. The operation ends at once all the same; the next one looks again (R9).
    Wait {
        /// What for.
        what: Awaited,
        /// How long that may take, in milliseconds from now; unknown (`null`) if it is not up to this node.
        until_ms: Option<u64>,
    },
    /// Force the peer's power off at its BMC and read it back (R5). Then decide again.
    ForcePeerOff,
    /// Release Corosync's `wait_for_all`: the peer is proven off (R5).
    ReleaseWaitForAll,
    /// Write the confirmation down, tell Pacemaker that the peer is down, release `wait_for_all`.
    AcceptConfirmation {
        /// The person accepted a loss that was named.
        accept_loss: bool,
    },
    /// Do nothing, and say which fact is missing and how it can be supplied (R11).
    StayInert {
        /// The fact.
        missing: String,
        /// The command.
        command: String,
    },
    /// Do nothing, whoever asks: going on would lose or fork data. A person has to act.
    Refuse {
        /// Why.
        reason: Refusal,
        /// The command with which a person can.
        command: String,
    },
}

impl Action {
    /// Whether the driver gathers facts and decides again at once, in the same operation.
    pub fn decide_again(&self) -> bool {
        matches!(
            self,
            Self::RecordComparison { .. }
                | Self::DropEligibility
                | Self::AnnounceTakeOver { .. }
                | Self::TakeBackYield
                | Self::HandOver { .. }
                | Self::ForcePeerOff
        )
    }
}

impl Action {
    /// Whether the next step of the two nodes is near: it is worth looking again in a moment instead of at the
    /// next monitor.
    pub fn next_is_soon(&self) -> bool {
        match self {
            Self::Wait { what, .. } => !matches!(what, Awaited::Fencing | Awaited::PeerOrDelay),
            Self::StartPlain
            | Self::Yield
            | Self::AddPeerAsLearner
            | Self::DropLearner { .. }
            | Self::JoinAsLearner { .. }
            | Self::PromoteLearner { .. }
            | Self::Barrier { .. } => true,
            _ => false,
        }
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaited {
    /// A statement of the peer that answers the present boot.
    Statement,
    /// The peer, which has to start first.
    PeerToServe,
    /// The peer, which has to add this node as a learner.
    PeerToAdd,
    /// The peer, which has to yield.
    PeerToYield,
    /// The peer's etcd.
    PeerEtcd,
    /// The connection between both etcds: it is cut, so that they make it anew, by another link if need be.
    PeerConnection,
    /// The learner, which has to catch up.
    Learner,
    /// Fencing of the peer.
    Fencing,
    /// The own etcd.
    OwnEtcd,
    /// The cluster: the peer in it, quorum, fencing.
    Cluster,
    /// The peer itself, or the fencing delay.
    PeerOrDelay,
}

/// Why a node refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// Two datasets each went on alone (R6).
    Diverged,
    /// Neither node has a voter's dataset.
    NoVoter,
    /// Somebody votes who is neither node.
    ThirdMember,
    /// The two datasets belong to different clusters.
    ForeignCluster,
    /// The disk is older than what the peer remembers of it.
    RolledBack,
    /// The peer is not down.
    PeerIsUp,
    /// What is asked for would lose data, and nobody has accepted that.
    WouldLose,
    /// This dataset can never go on alone.
    NotAVoter,
    /// There is no data, but there was: a new beginning could be a second history.
    HadData,
}

/// What an operation reports to Pacemaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Done; as a monitor: running, unpromoted.
    Ok = 0,
    /// It did not work.
    Failed = 1,
    /// Not running.
    NotRunning = 7,
    /// A voter.
    Promoted = 8,
    /// A voter that has to be recovered: Pacemaker stops and starts it.
    FailedPromoted = 9,
    /// A voter that cannot serve for now, and must be left alone.
    DegradedPromoted = 191,
}

/// A rule of `docs/concepts/rules.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Plain restart first.
    R1,
    /// Take over only with proof and eligibility.
    R2,
    /// Announce, then act.
    R2a,
    /// Keep the tail.
    R3,
    /// Yield, then move aside, then join.
    R4,
    /// Boot alone only with proof of being newest.
    R5,
    /// Two `Alone` datasets have diverged.
    R6,
    /// Leave cleanly.
    R7,
    /// A healthy cluster with a deaf etcd.
    R8,
    /// Slow is not dead.
    R9,
    /// Exact names.
    R10,
    /// Fail safe, say why.
    R11,
    /// A pair begins once.
    R12,
    /// A cell of the cold-boot table.
    Cell {
        /// The row.
        own: Class,
        /// The column.
        peer: Class,
    },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cell { own, peer } => write!(f, "cold-boot {own}/{peer}"),
            Self::R2a => f.write_str("R2a"),
            rule => write!(f, "{rule:?}"),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
