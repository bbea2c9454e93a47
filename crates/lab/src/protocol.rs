//! What is asked of a lab's supervisor, and what it answers: one JSON object per line on a Unix socket.

use serde::{Deserialize, Serialize};

use crate::config::Link;

/// What to do with a node's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PowerAction {
    /// Boot it.
    On,
    /// Pull the plug.
    Off,
    /// Pull the plug and boot it again.
    Cycle,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Tell how things are.
    Status,
    /// Change a node's power.
    Power {
        /// Which node.
        node: String,
        /// What to do.
        action: PowerAction,
    },
    /// Cut links.
    Cut {
        /// Which links.
        links: Vec<Link>,
        /// If given, only what this node sends is lost.
        from: Option<String>,
    },
    /// End every fault but power.
    Heal,
    /// Hang a node.
    Freeze {
        /// Which node.
        node: String,
    },
    /// Let a hung node go on.
    Thaw {
        /// Which node.
        node: String,
    },
    /// Crash a node's etcd.
    KillEtcd {
        /// Which node.
        node: String,
    },
    /// Make a TCP port of a node unreachable.
    BlockPort {
        /// Which node.
        node: String,
        /// Which port.
        port: u16,
    },
    /// Lose the packets of one connection.
    Stall {
        /// Which node.
        node: String,
        /// A port at either end of it.
        port: u16,
    },
    /// Make the disk under etcd stall.
    SlowDisk {
        /// Which node.
        node: String,
        /// How long each stall lasts.
        stall_ms: u64,
    },
    /// Make etcd's fsync calls slow.
    SlowFsync {
        /// Which node.
        node: String,
        /// How much slower.
        delay_ms: u32,
    },
    /// Fill the disk under etcd.
    FullDisk {
        /// Which node.
        node: String,
    },
    /// Shift a node's monotonic clock from its next boot on.
    Clock {
        /// Which node.
        node: String,
        /// How far ahead.
        ahead_s: i64,
    },
    /// Make a BMC misbehave.
    Bmc {
        /// Whose BMC.
        node: String,
        /// How, in the words of [`bmc_sim::Fault`]; "none" heals it.
        fault: String,
    },
    /// Tell what the BMCs were told to do.
    BmcEvents,
    /// Write something into the lab's record, such as what a client saw.
    Record {
        /// What happened, and when.
        event: crate::events::Event,
    },
    /// End the lab when this connection ends, unless one more byte is sent on it first.
    Lease,
    /// End the lab.
    Down,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Response {
    /// Done; what was done, in words.
    Done(String),
    /// How things are.
    Status(LabStatus),
    /// What happened.
    Events(Vec<crate::events::Event>),
    /// It did not work.
    Failed(String),
}

/// How a lab is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabStatus {
    /// The lab's name.
    pub name: String,
    /// The Debian release of its nodes.
    pub release: crate::config::Release,
    /// Its nodes.
    pub nodes: Vec<NodeStatus>,
    /// What is broken in the network, in words.
    pub network_faults: Vec<String>,
    /// The supervisor's process id. Its network namespace is the switch, where clients run.
    pub supervisor: u32,
}

/// How a node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Whether it has power.
    pub on: bool,
    /// Whether it hangs.
    pub frozen: bool,
    /// The process on this machine that is its number 1.
    pub init: Option<u32>,
    /// Its addresses: link1, link2.
    pub links: [std::net::IpAddr; 2],
    /// Its BMC.
    pub bmc: String,
    /// Its address for clients.
    pub client: std::net::IpAddr,
    /// What is broken in it, in words.
    pub faults: Vec<String>,
}
