//! What is told: one document, for people, for machines, for the status page. Its schema comes from these types.

use dyad_core::state::{State, Urgency};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pair, as one node sees it at one moment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The name of the pair.
    pub pair: String,
    /// The node that looked.
    pub seen_by: String,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// How long the look took.
    pub took_ms: u64,
    /// Where the pair stands, in one word.
    #[schemars(with = "StateWord")]
    pub state: State,
    /// How urgent that is: `fine`, `care` (the next failure matters), `act` (somebody is needed).
    #[schemars(with = "UrgencyWord")]
    pub urgency: Urgency,
    /// The exit code of `dyad status`.
    pub exit_code: u8,
    /// The node that it is about: the one that serves alone, or is in maintenance.
    pub on: Option<String>,
    /// Since when, in milliseconds since 1970, as far as this node's decision log tells.
    pub since_ms: Option<u64>,
    /// The sentence for people.
    pub because: String,
    /// What to type, if anything has to be done.
    pub next: Option<String>,
    /// What would matter at the next failure.
    pub risks: Vec<String>,
    /// What could not be known, and why.
    pub unknown: Vec<String>,
    /// Both nodes; the one that looked comes first.
    pub nodes: Vec<Node>,
    /// The cluster links.
    pub links: Vec<Link>,
    /// How near the nodes come to being taken for lost; `null` if Corosync does not tell.
    #[serde(default)]
    pub detection: Option<Detection>,
    /// How a lost node is switched off.
    pub fencing: Fencing,
    /// The systemd units that the pair runs.
    pub units: Vec<Unit>,
    /// The last time that the pair was not protected.
    pub incident: Option<Incident>,
    /// The certificates of this node's etcd.
    #[serde(default)]
    pub certificates: Vec<Certificate>,
    /// How far the set-up of this node has come, while it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
}

/// One certificate of this node's etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// What it is for: `peer`, `server`, or one of the authorities, `peerCa` and `serverCa`.
    pub name: String,
    /// When it expires, in milliseconds since 1970; `null` if it cannot be read.
    pub not_after_ms: Option<u64>,
}

/// A set-up that is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// The step that runs, or failed.
    pub step: String,
    /// What it does or waits for, or why it failed.
    pub detail: String,
    /// It failed.
    pub failed: bool,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The words of [`State`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
enum StateWord {
    Protected,
    AtRisk,
    CatchingUp,
    Alone,
    Maintenance,
    FailingOver,
    Starting,
    SettingUp,
    Stopped,
    Split,
    Blocked,
    Diverged,
    Unknown,
}

/// The words of [`Urgency`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only its schema is used")]
enum UrgencyWord {
    Fine,
    Care,
    Act,
}

/// One node.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: String,
    /// It is in Corosync's membership; `null` if that is not known.
    pub in_cluster: Option<bool>,
    /// What Pacemaker holds it for: `online`, `offline`, `unclean`, `standby`, `maintenance`, `pending`.
    pub pacemaker: Option<String>,
    /// Its etcd.
    pub etcd: Etcd,
}

/// One node's etcd and its data.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Etcd {
    /// `leader`, `follower`, `learner`, `noLeader`, `starting`, `stopped`; `null` if that is not known.
    pub role: Option<String>,
    /// What the node's copy allows it to do: `pair`, `alone`, `learner`, `left`, `none`, `broken`.
    pub dataset: Option<String>,
    /// It may go on without the other node.
    pub eligible: Option<bool>,
    /// Its disk takes writes and has room.
    pub disk_writable: Option<bool>,
    /// Its member id.
    pub member: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The size of its database.
    pub db_size_bytes: Option<u64>,
    /// How much of that is used.
    pub db_in_use_bytes: Option<u64>,
    /// The last log entry that it knows to be committed.
    pub raft_index: Option<u64>,
    /// How many log entries it is behind the one of the two that is further; `null` if only one is known.
    pub behind_entries: Option<u64>,
    /// How far a learner has come.
    pub caught_up_percent: Option<u64>,
    /// Alarms that are raised.
    pub alarms: Vec<String>,
}

/// One cluster link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Its number.
    pub number: u32,
    /// The address here.
    pub own: String,
    /// The address there.
    pub peer: String,
    /// It is connected; `null` if that is not known.
    pub connected: Option<bool>,
}

/// Corosync's token goes round between the nodes; one that it does not come back from in time is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Detection {
    /// After which silence of the token a node is lost.
    pub token_timeout_ms: u64,
    /// How long the token was away: on the mean of its last rounds, or at the moment of the look, whichever is longer. A
    /// quiet pair holds it for a part of the time-out on purpose.
    pub token_silence_ms: u64,
    /// How often the token was lost since Corosync started here.
    pub tokens_lost: u64,
}

/// How a lost node is switched off.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fencing {
    /// Fencing is on, start-up fencing too; `null` if that is not known.
    pub enabled: Option<bool>,
    /// What can switch each node off.
    pub devices: Vec<FenceDevice>,
    /// The last time that a node was switched off by fencing, as far as Pacemaker remembers.
    pub last: Option<FenceEvent>,
    /// The last `dyad drill --really` that was typed on this node.
    #[serde(default)]
    pub last_drill: Option<Drill>,
}

/// A drill: a node was fenced to see that it can be, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drill {
    /// When it began, in milliseconds since 1970.
    pub time_ms: u64,
    /// The node that was fenced.
    pub node: String,
    /// Why it failed; `null` if it did not.
    pub failure: Option<String>,
    /// When the node was fenced, from the beginning.
    pub fenced_after_ms: Option<u64>,
    /// The longest time without a write on the node that stayed.
    pub longest_write_gap_ms: Option<u64>,
    /// When the pair was protected again, from the beginning.
    pub protected_after_ms: Option<u64>,
}

/// What can switch one node off.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FenceDevice {
    /// The node that it switches.
    pub node: String,
    /// The node that tests it.
    pub tested_by: Option<String>,
    /// The last test succeeded; `null` if that is not known.
    pub works: Option<bool>,
    /// How often it is tested.
    pub test_interval_ms: u64,
    /// Since when its tests end as the last one did, in milliseconds since 1970; `null` if that is not known.
    #[serde(default)]
    pub test_since_ms: Option<u64>,
}

/// One act of fencing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FenceEvent {
    /// The node.
    pub node: String,
    /// `off`, `reboot`, `on`.
    pub action: String,
    /// `success`, `failed`, `pending`.
    pub outcome: String,
    /// When it ended, as Pacemaker writes it.
    pub completed: Option<String>,
}

impl FenceEvent {
    /// When it ended, to the second, for people. How finely Pacemaker writes it depends on its release.
    pub fn when(&self) -> String {
        let Some(text) = &self.completed else { return "now".to_owned() };
        match text.strip_suffix('Z') {
            Some(utc) => format!("{} UTC", utc.split('.').next().unwrap_or(utc)),
            None => text.clone(),
        }
    }
}

/// One systemd unit of the pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// It runs here; `null` if that is not known.
    pub runs_here: Option<bool>,
    /// It runs on the other node, as Pacemaker says.
    pub runs_on_peer: Option<bool>,
}

/// A time in which the pair was not protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Incident {
    /// When it began, in milliseconds since 1970.
    pub start_ms: u64,
    /// When the pair was protected again; `null` while it is not.
    pub end_ms: Option<u64>,
    /// How long it lasted, or has lasted.
    pub duration_ms: u64,
    /// What happened, in the words of the decision that mattered most.
    pub what: String,
    /// How it went on, from the loss to the protection; of many steps the first and the last ones.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// One step of an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// How long after the incident's beginning.
    pub after_ms: u64,
    /// What happened: `node-b lost`, `node-b fenced`, `alone`, `protected` ...
    pub what: String,
}
