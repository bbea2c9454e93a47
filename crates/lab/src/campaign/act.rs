//! What a campaign does to a pair, in words that can be written down and read back.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Link;

/// One of the two nodes, by its place in the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Side {
    /// The first node, which wins a split.
    #[serde(rename = "node-a")]
    A,
    /// The second one.
    #[serde(rename = "node-b")]
    B,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Its place in the lab's configuration.
    pub fn position(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Its name in every campaign.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "node-a",
            Self::B => "node-b",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Act {
    /// Pull the plug.
    PowerOff {
        /// Whose.
        node: Side,
    },
    /// Pull the plug and put it back at once.
    PowerCycle {
        /// Whose.
        node: Side,
    },
    /// Press the power button.
    PowerOn {
        /// Whose.
        node: Side,
    },
    /// Cut links.
    Cut {
        /// Which.
        links: Vec<Link>,
        /// If given, only what this node sends is lost.
        from: Option<Side>,
    },
    /// Hang a node.
    Freeze {
        /// Which.
        node: Side,
    },
    /// Let a hung node go on.
    Thaw {
        /// Which.
        node: Side,
    },
    /// Crash etcd.
    KillEtcd {
        /// Whose.
        node: Side,
    },
    /// Make a TCP port unreachable.
    BlockPort {
        /// Whose.
        node: Side,
        /// Which.
        port: u16,
    },
    /// Lose the packets of one connection between the members.
    Stall {
        /// At which node.
        node: Side,
    },
    /// Make the disk under etcd stall again and again.
    SlowDisk {
        /// Whose.
        node: Side,
        /// For how long each time.
        stall_ms: u64,
    },
    /// Make etcd's fsync calls slow.
    SlowFsync {
        /// Whose.
        node: Side,
        /// By how much.
        delay_ms: u32,
    },
    /// Fill the disk under etcd.
    FullDisk {
        /// Whose.
        node: Side,
    },
    /// Shift the monotonic clock from the next boot on.
    Clock {
        /// Whose.
        node: Side,
        /// How far ahead.
        ahead_s: i64,
    },
    /// Make a BMC misbehave.
    Bmc {
        /// Whose.
        node: Side,
        /// How, in the words of the BMC simulator.
        fault: String,
    },
    /// Stop the cluster on a node in good order.
    StopPacemaker {
        /// On which.
        node: Side,
    },
    /// Shut a node down in good order.
    Shutdown {
        /// Which.
        node: Side,
    },
    /// Take a node out of service.
    Maintenance {
        /// Which.
        node: Side,
    },
    /// A person looks, and confirms a node that is off and of which nothing can be lost.
    SensiblePerson,
    /// A person types whatever makes a blocked pair go on.
    CarelessPerson,
    /// Everything is repaired: faults end, nodes get power, what was stopped is started, maintenance ends.
    Repair,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PowerOff { node } => write!(f, "pull {node}'s plug"),
            Self::PowerCycle { node } => write!(f, "power-cycle {node}"),
            Self::PowerOn { node } => write!(f, "power {node} on"),
            Self::Cut { links, from } => {
                let names: Vec<_> = links.iter().map(|link| link.name()).collect();
                write!(f, "cut {}", names.join(" and "))?;
                from.map_or(Ok(()), |from| write!(f, ", one way, from {from}"))
            }
            Self::Freeze { node } => write!(f, "hang {node}"),
            Self::Thaw { node } => write!(f, "let {node} go on"),
            Self::KillEtcd { node } => write!(f, "kill etcd on {node}"),
            Self::BlockPort { node, port } => write!(f, "block port {port} of {node}"),
            Self::Stall { node } => write!(f, "stall a connection of {node}"),
            Self::SlowDisk { node, stall_ms } => {
                write!(f, "{node}'s disk stalls for {stall_ms} ms")
            }
            Self::SlowFsync { node, delay_ms } => {
                write!(f, "{node}'s fsync takes {delay_ms} ms longer")
            }
            Self::FullDisk { node } => write!(f, "fill {node}'s disk"),
            Self::Clock { node, ahead_s } => write!(f, "{node}'s clock {ahead_s} s ahead"),
            Self::Bmc { node, fault } => write!(f, "{node}'s BMC: {fault}"),
            Self::StopPacemaker { node } => write!(f, "stop Pacemaker on {node}"),
            Self::Shutdown { node } => write!(f, "shut {node} down"),
            Self::Maintenance { node } => write!(f, "maintenance of {node}"),
            Self::SensiblePerson => f.write_str("a sensible person looks"),
            Self::CarelessPerson => f.write_str("a careless person confirms"),
            Self::Repair => f.write_str("repair"),
        }
    }
}

impl Act {
    /// The node whose power this takes away.
    pub fn takes_power_of(&self) -> Option<Side> {
        match self {
            Self::PowerOff { node } | Self::PowerCycle { node } | Self::Shutdown { node } => {
                Some(*node)
            }
            _ => None,
        }
    }
}
