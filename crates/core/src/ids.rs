//! Names and numbers of the field, each with a type of its own (R10: exact names).
//!
//! Ids are 64 bits wide and written in lower-case hexadecimal without leading zeros, as etcd writes them.
//! In JSON they are strings: a number above 2^53 does not survive every reader.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIdError {
    text: String,
    what: &'static str,
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.what)
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let wrong = || ParseIdError { text: text.to_owned(), what: $what };
                // `from_str_radix` would also take a sign, which no id has.
                if !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(wrong());
                }
                u64::from_str_radix(text, 16).map(Self).map_err(|_| wrong())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hex_id!(
    /// An etcd cluster. Two datasets with different cluster ids have nothing to do with each other.
    ClusterId,
    "a cluster id (up to 16 hexadecimal digits)"
);
hex_id!(
    /// One incarnation of a node as a member of an etcd cluster. A node that joins anew gets a new one;
    /// a removed one is refused by etcd for good.
    MemberId,
    "a member id (up to 16 hexadecimal digits)"
);

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter!(
    /// A raft term.
    Term
);
counter!(
    /// A position in the raft log.
    Index
);
counter!(
    /// etcd's revision: the number of changes to the key space.
    Revision
);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

name!(
    /// A node's name, exactly as Corosync and Pacemaker know it. Compared whole: node1 is not node10.
    NodeName
);
name!(
    /// One run of the cluster stack on a node: a new one begins whenever Pacemaker is started.
    RunId
);
name!(
    /// One boot of a node, as the kernel names it (`/proc/sys/kernel/random/boot_id`).
    BootId
);

name!(
    /// One Corosync membership, as Corosync names it (the ring id). It changes whenever a node comes or
    /// goes, and never comes back.
    RingId
);

#[cfg(test)]
mod tests {
    use super::*;

    /// R10: ids are u64, also above 2^53, and come back from text and JSON unchanged.
    #[test]
    fn ids_survive_text_and_json() {
        for id in [0, 1, 1 << 53, (1 << 53) + 1, u64::MAX] {
            let id = MemberId(id);
            assert_eq!(id.to_string().parse(), Ok(id));
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(json, format!("\"{id}\""));
            assert_eq!(serde_json::from_str::<MemberId>(&json).unwrap(), id);
        }
    }

    /// R10: what is not exactly an id is refused, not guessed at.
    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in ["", "+1", "-1", "0x1", "g", " 1", "1ffffffffffffffff"] {
            assert!(text.parse::<MemberId>().is_err(), "{text:?} was taken for an id");
        }
    }

    /// R10: node1 is not node10.
    #[test]
    fn names_are_compared_whole() {
        assert_ne!(NodeName::from("node1"), NodeName::from("node10"));
    }
}
