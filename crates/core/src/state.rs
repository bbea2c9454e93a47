//! Where the pair stands, in one word and one sentence: "can I lose a node now?".
//!
//! The same facts that decisions rest on give the answer, so that what people are told and what the nodes do
//! cannot drift apart. Whoever asks (the command line, the status page, a gate for upgrades, an alert) asks here.

mod judge;
mod planned;

pub use planned::{GiveWay, NotNow};
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::ids::NodeName;

/// Where the pair stands. In the order of how little has to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Either node may fail: the other goes on with everything.
    Protected,
    /// The data are on both nodes, but a failure may not be survived without a person.
    AtRisk,
    /// One node serves; the other is on its way to be a full replica.
    CatchingUp,
    /// One node serves; there is no other copy to go on with.
    Alone,
    /// A person took a node out of service.
    Maintenance,
    /// A node was lost; the other is about to go on.
    FailingOver,
    /// The nodes start, and find each other.
    Starting,
    /// There are no data yet.
    SettingUp,
    /// Nothing was told to run here.
    Stopped,
    /// Both nodes run and do not see each other.
    Split,
    /// Nobody serves, and only a person or the other node can change that.
    Blocked,
    /// Both nodes wrote alone: a person has to choose.
    Diverged,
    /// Too little could be known.
    Unknown,
}

/// How urgent a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Urgency {
    /// All is well.
    Fine,
    /// Clients are served; the next failure matters.
    Care,
    /// Clients are not served, or somebody has to act.
    Act,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 13] = [
        Self::Protected,
        Self::AtRisk,
        Self::CatchingUp,
        Self::Alone,
        Self::Maintenance,
        Self::FailingOver,
        Self::Starting,
        Self::SettingUp,
        Self::Stopped,
        Self::Split,
        Self::Blocked,
        Self::Diverged,
        Self::Unknown,
    ];

    /// The word that people are told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Protected => "PROTECTED",
            Self::AtRisk => "AT RISK",
            Self::CatchingUp => "CATCHING UP",
            Self::Alone => "ALONE",
            Self::Maintenance => "MAINTENANCE",
            Self::FailingOver => "FAILING OVER",
            Self::Starting => "STARTING",
            Self::SettingUp => "SETTING UP",
            Self::Stopped => "STOPPED",
            Self::Split => "SPLIT",
            Self::Blocked => "BLOCKED",
            Self::Diverged => "DIVERGED",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// What a script is told: the exit code of `dyad status`. 0 is "protected" and nothing else; 1 to 9 are the
    /// codes of commands that could not answer.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Protected => 0,
            Self::AtRisk => 10,
            Self::CatchingUp => 11,
            Self::Alone => 12,
            Self::Maintenance => 13,
            Self::FailingOver => 14,
            Self::Starting => 15,
            Self::SettingUp => 16,
            Self::Stopped => 17,
            Self::Split => 18,
            Self::Blocked => 19,
            Self::Diverged => 20,
            Self::Unknown => 21,
        }
    }

    /// How urgent it is.
    pub fn urgency(self) -> Urgency {
        match self {
            Self::Protected => Urgency::Fine,
            Self::AtRisk
            | Self::CatchingUp
            | Self::Alone
            | Self::Maintenance
            | Self::FailingOver
            | Self::Starting
            | Self::SettingUp => Urgency::Care,
            Self::Stopped | Self::Split | Self::Blocked | Self::Diverged | Self::Unknown => {
                Urgency::Act
            }
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// What one node sees of the pair. What a source did not tell is not known: it is never taken for good news.
#[derive(Debug, Clone)]
pub struct Sight<'a> {
    /// What decisions rest on.
    pub facts: &'a Facts,
    /// Corosync on this node answered.
    pub corosync: bool,
    /// Pacemaker on this node answered.
    pub pacemaker: bool,
    /// The peer's etcd, asked over the network.
    pub peer_etcd: PeerEtcd,
    /// Nodes that a person took out of service.
    pub standby: Vec<NodeName>,
    /// Nodes that cannot be switched off now, each with the reason.
    pub not_fenceable: Vec<(NodeName, String)>,
    /// The last attempt to fence the peer, which is not clean yet, failed.
    pub fencing_failed: bool,
    /// How far the learner has come, in percent.
    pub learner_percent: Option<u64>,
    /// What etcd itself complains of: an alarm, a full database.
    pub alarms: Vec<String>,
    /// Pacemaker is about to start on this node.
    pub booting: bool,
    /// A person began to give this node's dataset up for the other's, and that has not ended.
    pub resolving: bool,
}

/// What the peer's etcd says when it is asked over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PeerEtcd {
    /// It was not asked, or gave no answer.
    #[default]
    Silent,
    /// It answers, without a leader.
    Leaderless,
    /// It serves, with this many voters.
    Serves {
        /// How many vote.
        voters: usize,
    },
    /// It listens only.
    Learner,
}

impl<'a> Sight<'a> {
    /// What can be told from facts alone, as they are written down with each decision.
    pub fn of(facts: &'a Facts) -> Self {
        Self {
            facts,
            corosync: true,
            pacemaker: !facts.pacemaker.nodes.is_empty(),
            peer_etcd: PeerEtcd::Silent,
            standby: Vec::new(),
            not_fenceable: Vec::new(),
            fencing_failed: false,
            learner_percent: None,
            alarms: Vec::new(),
            booting: false,
            resolving: false,
        }
    }

    /// Where the pair stands.
    pub fn judge(&self) -> Judgement {
        judge::judge(self)
    }
}

/// Where the pair stands, and what follows for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// The word.
    pub state: State,
    /// The node that it is about: the one that serves alone, or is in maintenance.
    pub on: Option<NodeName>,
    /// The sentence.
    pub because: String,
    /// What to type, if anything has to be done.
    pub next: Option<String>,
    /// What would go wrong at the next failure, or has gone wrong without harm.
    pub risks: Vec<String>,
}
