//! What a decision rests on: everything that is known at one moment, in one document.
//!
//! A driver gathers [`Facts`], logs them as JSON, asks [`crate::decide()`], does the one thing it is told and
//! publishes the outcome. The same document replays the decision: `dyad decide FACTS.json`.

use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::ids::{BootId, ClusterId, Index, MemberId, NodeName, RingId, RunId, Term};
use crate::statement::Statement;

/// The version of the document. Another one is refused by the reader, with its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApiVersion {
    /// The only one there is.
    #[default]
    #[serde(rename = "dyad/v1")]
    V1,
}

/// The kind of the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Facts of one node at one moment.
    #[default]
    Facts,
}

/// Everything that is known when a decision is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// Version of the document.
    pub api_version: ApiVersion,
    /// Kind of the document.
    pub kind: Kind,
    /// The node that asks.
    pub node: NodeName,
    /// Its present boot.
    pub boot: BootId,
    /// The present run of the cluster stack in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The Corosync membership of this moment. It changes whenever a node comes or goes.
    pub ring: RingId,
    /// What is asked for, and by whom.
    pub request: Request,
    /// What Pacemaker holds the local instance for.
    pub role: Role,
    /// The own copy of the data.
    pub dataset: Dataset,
    /// Whether the data directory's disk takes writes and has room.
    pub disk_writable: bool,
    /// The durable marks beside the data.
    #[serde(default)]
    pub marks: Marks,
    /// What tells that this node has held data before, in words: copies moved aside, records, somebody
    /// else's data. A node with any of them never begins a pair (R12).
    #[serde(default)]
    pub traces: Vec<String>,
    /// The record that this node may go on alone; kept where a reboot loses it.
    #[serde(default)]
    pub eligibility: Option<Eligibility>,
    /// The local etcd process.
    pub etcd: Etcd,
    /// What this node has published last in this boot.
    #[serde(default)]
    pub published: Option<Statement>,
    /// The other node.
    pub peer: Peer,
    /// What Pacemaker knows and is told to do.
    pub pacemaker: Pacemaker,
    /// What the pair file asks for.
    pub policy: Policy,
    /// A deliberately broken rule, for checking the checker. Never read from a document.
    #[cfg(feature = "broken-variants")]
    #[serde(skip)]
    pub broken: Option<crate::broken::Broken>,
}

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// Nodes on which the same transition starts an instance.
    #[serde(default)]
    pub start: Vec<NodeName>,
    /// Nodes on which the same transition stops an instance.
    #[serde(default)]
    pub stop: Vec<NodeName>,
    /// Nodes on which the same transition promotes an instance.
    #[serde(default)]
    pub promote: Vec<NodeName>,
    /// Nodes on which the same transition demotes an instance.
    #[serde(default)]
    pub demote: Vec<NodeName>,
    /// Pacemaker asks again and again: it means the instance to stay as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recurring: bool,
}

/// The operations that decisions are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Pacemaker: begin to take part, as unpromoted.
    Start,
    /// Pacemaker: end taking part.
    Stop,
    /// Pacemaker: become a voter.
    Promote,
    /// Pacemaker: end being a voter.
    Demote,
    /// Pacemaker, or the agent itself: look, and do what is due.
    #[default]
    Monitor,
    /// Pacemaker: something is about to happen, or has happened.
    Notify(Notification),
    /// Pacemaker: check the configuration.
    Validate,
    /// The lone-boot unit: no quorum since the boot (R5).
    Boot,
    /// A person states that the peer is down.
    #[serde(rename_all = "camelCase")]
    Confirm {
        /// The person was told what may be lost and accepts it.
        accept_loss: bool,
        /// The person was told that the peer answers or has power, and knows better.
        #[serde(default)]
        despite_signs: bool,
    },
    /// A person gives this node's dataset up, after two have diverged (R6).
    GiveUp,
    /// The set-up: two nodes that never held data become a pair (R12).
    Begin,
}

/// A notification of Pacemaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Notification {
    /// Before or after.
    pub when: When,
    /// What.
    pub of: NotifiedOperation,
}

/// Whether a notification comes before or after what it tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Before, or independently of it: proves nothing.
    Pre,
    /// After it, and after fencing if fencing was due.
    Post,
}

/// What a notification tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NotifiedOperation {
    /// A start.
    Start,
    /// A stop.
    Stop,
    /// A promotion.
    Promote,
    /// A demotion.
    Demote,
}

/// What Pacemaker holds the local instance for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Not taking part.
    #[default]
    Stopped,
    /// The dataset is read and published, or a learner catches up.
    Unpromoted,
    /// A voter.
    Promoted,
}

/// The durable marks beside the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Marks {
    /// Turns `Pair` into `Alone`.
    #[serde(default)]
    pub take_over: Option<TakeOverMark>,
    /// Turns anything into `Left`.
    #[serde(default, rename = "yield")]
    pub yielded: Option<YieldMark>,
}

/// "I have everything; I go on without these." Written before the first vote (R2a), and before a learner is
/// promoted (R4); cleared by the barrier and by nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TakeOverMark {
    /// The cluster it is about.
    pub cluster: ClusterId,
    /// The member that wrote it.
    pub member: MemberId,
    /// The members that are not needed: each is one incarnation of the peer. Once a stand-in has voted for
    /// one, that identity is burnt: it must never start again.
    pub without: Vec<MemberId>,
    /// The member that is being promoted: not burnt, but not needed before the barrier either.
    #[serde(default)]
    pub promoting: Option<MemberId>,
}

/// "This incarnation of mine will never start again."
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct YieldMark {
    /// The cluster it is about.
    pub cluster: ClusterId,
    /// The member that is given up.
    pub member: MemberId,
}

/// The record that a `Pair` node may go on alone. It is true of one run of the cluster stack in one boot, and of one pair
/// of members: whose stack was stopped in good order is clean and offline to the other one, which may have gone on alone
/// meanwhile, without any fencing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Eligibility {
    /// The boot in which it was earned.
    pub boot: BootId,
    /// The run of the cluster stack in which it was earned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The own member.
    pub member: MemberId,
    /// The peer's member.
    pub with: MemberId,
    /// How it was earned.
    pub by: EligibleBy,
}

/// How eligibility was earned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EligibleBy {
    /// A write went through both voters after both had applied the membership with both in it.
    Barrier,
    /// Both at rest, visible and solidly `Pair`, the own log at least as new.
    ComparedAtRest,
}

/// The local etcd process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Etcd {
    /// What it does.
    pub state: EtcdState,
    /// For how long it has had no leader, in milliseconds; 0 with a leader. Of a learner that is not far enough
    /// to know one: for how long it has received nothing.
    #[serde(default)]
    pub leaderless_ms: u64,
    /// For how long it has taken requests and answered none, in milliseconds: it hangs, or its disk does. `None` if it
    /// answers, or takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    /// The membership it has applied, as it says itself. Empty if it does not answer.
    #[serde(default)]
    pub members: Vec<LiveMember>,
}

/// What the local etcd does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EtcdState {
    /// There is no process.
    #[default]
    Stopped,
    /// There is a process; its peer port does not answer yet.
    Starting,
    /// It runs as a voter and has no leader.
    NoLeader,
    /// It follows a leader, as a voter.
    Follower,
    /// It leads.
    Leader,
    /// It listens.
    Learner,
}

/// One member of the applied membership of a live etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LiveMember {
    /// Its id.
    pub id: MemberId,
    /// The node whose peer address it has; unknown (`null`) if it is neither node's.
    #[serde(default)]
    pub node: Option<NodeName>,
    /// Whether it only listens.
    #[serde(default)]
    pub learner: bool,
    /// Whether it was ever started under this id.
    #[serde(default)]
    pub started: bool,
    /// Whether etcd would promote it now.
    #[serde(default)]
    pub caught_up: bool,
}

/// The other node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Peer {
    /// Its name.
    pub name: NodeName,
    /// Whether it is in the Corosync membership now.
    pub present: bool,
    /// For how long it has not been, in milliseconds, in this boot; 0 while present.
    #[serde(default)]
    pub absent_ms: u64,
    /// The addresses on which it answers, looked at when a person confirms that it is down.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What it has published last.
    #[serde(default)]
    pub statement: Option<Statement>,
    /// The age of that statement, for explanation.
    #[serde(default)]
    pub statement_age_ms: u64,
    /// The newest log position that was ever seen of it.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// What its BMC said.
    #[serde(default)]
    pub power: Option<PowerReading>,
    /// A person's word that it is down.
    #[serde(default)]
    pub confirmation: Option<Confirmation>,
}

/// The newest log position that a node ever saw of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Of which member.
    pub member: MemberId,
    /// Term and index of its last entry.
    #[serde(flatten)]
    pub last: LogPosition,
}

/// The last entry of a log. Newer is a larger term, then a larger index: raft's own order.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub struct LogPosition {
    /// Its term.
    pub term: Term,
    /// Its index.
    pub index: Index,
}

impl std::fmt::Display for LogPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "term {} index {}", self.term, self.index)
    }
}

/// What a BMC said of the peer's power.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerReading {
    /// What it said.
    pub state: Power,
    /// Whether a forced Off went before.
    pub after_forced_off: bool,
    /// The member that this is about.
    pub member: Option<MemberId>,
    /// The Corosync membership in which it was read. It says nothing in a later one.
    pub ring: RingId,
}

/// A power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Power {
    /// On.
    On,
    /// Off.
    Off,
    /// The BMC does not answer, or gives no sense.
    Unknown,
}

/// A person's word that the peer is down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confirmation {
    /// The own boot in which it was given.
    pub boot: BootId,
    /// The Corosync membership in which it was given. It says nothing in a later one.
    pub ring: RingId,
    /// The member that this is about.
    pub member: Option<MemberId>,
    /// The person was told what may be lost and accepted it.
    pub accept_loss: bool,
}

/// What Pacemaker knows and is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pacemaker {
    /// Whether the own partition has Corosync's quorum.
    pub quorate: bool,
    /// Whether fencing is enabled.
    pub fencing_enabled: bool,
    /// Whether nodes that were never seen are fenced.
    pub startup_fencing: bool,
    /// Maintenance mode.
    pub maintenance: bool,
    /// Whether the resource is managed.
    pub managed: bool,
    /// The nodes, as Pacemaker holds them now.
    #[serde(default)]
    pub nodes: Vec<NodeState>,
    /// Whether the history of fencing holds a success against the peer. For explanation only: it proves
    /// nothing about now.
    #[serde(default)]
    pub peer_was_fenced: bool,
}

/// One node, as Pacemaker holds it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeState {
    /// Its name.
    pub name: NodeName,
    /// Online.
    pub online: bool,
    /// Lost, and not yet fenced.
    pub unclean: bool,
}

/// What the pair file asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// The node that goes on when both could (R8). Without it, the one whose name sorts first.
    #[serde(default)]
    pub survivor: Option<NodeName>,
    /// How long etcd may be without a leader, both nodes visible, before one yields (R8).
    pub leaderless_ms_max: u64,
    /// How long a lone node waits for its peer before it forces it off (R5): the fencing delay included.
    pub lone_boot_delay_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { survivor: None, leaderless_ms_max: 10_000, lone_boot_delay_ms: 60_000 }
    }
}
