//! What etcd's peers say to each other: the raft messages and how two kinds of stream carry them.
//!
//! Only the fields that a vote needs are decoded; unknown ones are skipped, as protocol buffers ask. Every
//! length that comes over the wire is bounded before memory is taken for it.

mod frame;
mod raft;

pub use frame::{FrameError, MessageStream, MsgAppStream, StreamKind, encode_message};
pub use raft::{ConfChange, ConfChangeType, Entry, EntryType, Message, MessageType};
