//! raft's messages, as etcd 3.4 to 3.6 write them (`raftpb`).
//!
//! etcd's own fields are proto2 and always written; a missing one means zero. So the plain proto3 form reads
//! and writes the same bytes, save for zeros, which are left out.

use prost::Message as _;

/// The kinds of raft message that two members exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum MessageType {
    /// Never on the wire: a member's own wish to campaign. Zero, so also what an unknown kind decodes to.
    Hup = 0,
    /// A proposal, forwarded by a follower to its leader.
    Prop = 2,
    /// Entries for a follower's log.
    App = 3,
    /// A follower's answer to entries.
    AppResp = 4,
    /// A candidate asks for a vote.
    Vote = 5,
    /// The answer.
    VoteResp = 6,
    /// A whole snapshot instead of entries.
    Snap = 7,
    /// The leader is there.
    Heartbeat = 8,
    /// So is the follower.
    HeartbeatResp = 9,
    /// A follower asks its leader to give way to a member.
    TransferLeader = 13,
    /// Campaign now, without waiting for the election time-out.
    TimeoutNow = 14,
    /// Asks a leader for an index that a linearizable read may rely on.
    ReadIndex = 15,
    /// The answer.
    ReadIndexResp = 16,
    /// Would you vote for me?
    PreVote = 17,
    /// The answer.
    PreVoteResp = 18,
}

/// The kinds of log entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum EntryType {
    /// A request of a client, or empty.
    Normal = 0,
    /// One change of the membership.
    ConfChange = 1,
    /// Several changes at once; etcd does not write these.
    ConfChangeV2 = 2,
}

/// One entry of the log.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Entry {
    /// What it holds.
    #[prost(enumeration = "EntryType", tag = "1")]
    pub kind: i32,
    /// The term in which it was proposed.
    #[prost(uint64, tag = "2")]
    pub term: u64,
    /// Its place in the log.
    #[prost(uint64, tag = "3")]
    pub index: u64,
    /// What is to be applied.
    #[prost(bytes = "vec", tag = "4")]
    pub data: Vec<u8>,
}

impl Entry {
    /// The change of membership that this entry holds, if it holds one.
    pub fn conf_change(&self) -> Option<ConfChange> {
        (self.kind() == EntryType::ConfChange)
            .then(|| ConfChange::decode(&*self.data).ok())
            .flatten()
    }
}

/// A raft message. Term, index and ids are plain numbers here: this is the wire.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Message {
    /// What is said.
    #[prost(enumeration = "MessageType", tag = "1")]
    pub kind: i32,
    /// To which member.
    #[prost(uint64, tag = "2")]
    pub to: u64,
    /// By which member.
    #[prost(uint64, tag = "3")]
    pub from: u64,
    /// The sender's term; 0 in proposals and read requests.
    #[prost(uint64, tag = "4")]
    pub term: u64,
    /// The term of the entry at `index`.
    #[prost(uint64, tag = "5")]
    pub log_term: u64,
    /// For `App`: the entry before the first of `entries`. For `AppResp`: the last one acknowledged.
    #[prost(uint64, tag = "6")]
    pub index: u64,
    /// The entries.
    #[prost(message, repeated, tag = "7")]
    pub entries: Vec<Entry>,
    /// How far the sender knows the log to be committed.
    #[prost(uint64, tag = "8")]
    pub commit: u64,
    /// A "no".
    #[prost(bool, tag = "10")]
    pub reject: bool,
    /// With a "no" to entries: where to try next.
    #[prost(uint64, tag = "11")]
    pub reject_hint: u64,
    /// Goes back unchanged with the answer.
    #[prost(bytes = "vec", tag = "12")]
    pub context: Vec<u8>,
}

/// The kinds of change of the membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum ConfChangeType {
    /// A new voter, or a learner's promotion.
    AddNode = 0,
    /// A removal.
    RemoveNode = 1,
    /// New addresses.
    UpdateNode = 2,
    /// A new learner.
    AddLearnerNode = 3,
}

/// One change of the membership.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConfChange {
    /// Whom etcd tells when it is applied; 0 is nobody.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// What is changed.
    #[prost(enumeration = "ConfChangeType", tag = "2")]
    pub kind: i32,
    /// Of which member.
    #[prost(uint64, tag = "3")]
    pub node_id: u64,
    /// etcd's description of the member.
    #[prost(bytes = "vec", tag = "4")]
    pub context: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// etcd writes every field of a message, zeros and an empty snapshot too. Bytes of a heartbeat as Go's
    /// generated code writes them decode to the message they mean.
    #[test]
    fn a_message_with_every_field_written_out_is_read() {
        let bytes = [
            0x08, 8, // type: heartbeat
            0x10, 2, // to
            0x18, 3, // from
            0x20, 5, // term
            0x28, 0, // logTerm
            0x30, 0, // index
            0x40, 7, // commit
            0x4a, 8, 0x12, 6, 0x0a, 0, 0x10, 0, 0x18, 0, // an empty snapshot
            0x50, 0, // reject
            0x58, 0, // rejectHint
            0x62, 1, 9, // context
        ];
        let message = Message::decode(&bytes[..]).unwrap();
        assert_eq!(message.kind(), MessageType::Heartbeat);
        assert_eq!((message.to, message.from, message.term, message.commit), (2, 3, 5, 7));
        assert_eq!(message.context, [9]);
    }

    /// A removal is recognised in an entry, and only there.
    #[test]
    fn a_removal_is_found_in_its_entry() {
        let change = ConfChange {
            kind: ConfChangeType::RemoveNode.into(),
            node_id: 7,
            ..ConfChange::default()
        };
        let mut entry = Entry {
            kind: EntryType::ConfChange.into(),
            data: change.encode_to_vec(),
            ..Entry::default()
        };
        assert_eq!(entry.conf_change(), Some(change));
        entry.kind = EntryType::Normal.into();
        assert_eq!(entry.conf_change(), None);
    }
}
