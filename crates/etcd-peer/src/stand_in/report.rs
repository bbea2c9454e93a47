//! What a stand-in tells: each step when it happens, and all of them at the end.

use std::fmt;
use std::time::Duration;

use dyad_core::ids::{Index, MemberId, Term};
use serde::Serialize;

/// What the survivor was when the stand-in came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It still led.
    Leader,
    /// It still took the dead member for its leader.
    Follower,
    /// It was campaigning.
    Candidate,
    /// It had no leader.
    Leaderless,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "the leader",
            Self::Follower => "a follower of the dead member",
            Self::Candidate => "campaigning",
            Self::Leaderless => "without a leader",
        })
    }
}

/// One step of a stand-in vote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "step")]
pub enum Step {
    /// Both streams of the peer port are open.
    Attached,
    /// The survivor's role and term are known.
    RoleKnown {
        /// What it was.
        role: Role,
        /// Its term.
        term: Term,
    },
    /// The survivor was told to campaign.
    ElectionForced {
        /// At which term it was told.
        term: Term,
    },
    /// The survivor leads.
    Leads {
        /// At which term.
        term: Term,
    },
    /// The first entry of its term is committed, and with it its whole log.
    Committed {
        /// How far.
        index: Index,
    },
    /// What clients had proposed to the dead leader was handed to the new one.
    HandedBack {
        /// How many proposals.
        proposals: usize,
    },
    /// The removal of the dead member was proposed.
    RemovalProposed,
    /// It is in the survivor's log.
    RemovalInLog {
        /// Where.
        index: Index,
    },
    /// The survivor refuses the dead member for good: it runs alone.
    Removed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached => f.write_str("attached to both streams of the survivor"),
            Self::RoleKnown { role, term } => write!(f, "the survivor is {role}, at term {term}"),
            Self::ElectionForced { term } => write!(f, "told it to campaign, at term {term}"),
            Self::Leads { term } => write!(f, "it leads at term {term}"),
            Self::Committed { index } => write!(f, "its log is committed up to {index}"),
            Self::HandedBack { proposals } => {
                write!(f, "handed back {proposals} proposals made to the dead leader")
            }
            Self::RemovalProposed => f.write_str("proposed to remove the dead member"),
            Self::RemovalInLog { index } => write!(f, "the removal is entry {index} of its log"),
            Self::Removed => f.write_str("the dead member is removed; the survivor runs alone"),
        }
    }
}

/// A step with its time since the stand-in began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimedStep {
    /// Milliseconds since the beginning.
    pub ms: f64,
    /// What happened.
    #[serde(flatten)]
    pub step: Step,
}

impl TimedStep {
    pub(super) fn new(at: Duration, step: Step) -> Self {
        // Tenths of a millisecond: what is finer is noise.
        Self { ms: (at.as_secs_f64() * 10_000.0).round() / 10.0, step }
    }
}

/// What a successful stand-in did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Who was helped.
    pub survivor: MemberId,
    /// Whose vote was cast.
    pub dead: MemberId,
    /// etcd's version on the survivor, as its peer port states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// Each step in the order in which it happened.
    pub steps: Vec<TimedStep>,
}
