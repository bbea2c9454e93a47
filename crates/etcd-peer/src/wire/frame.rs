//! How etcd's two streams frame their messages.
//!
//! The *message* stream is a sequence of 8-byte big-endian lengths, each followed by one raft message. The
//! *msgapp* stream (version 2) carries entries only and leaves out what the receiver can predict: see
//! [`MsgAppStream`]. Both send a heartbeat of their own now and then, which says nothing but "I am here".

use std::fmt;
use std::io::{self, Read};

use prost::Message as _;

use super::raft::{Entry, Message, MessageType};

/// The longest message or entry that is taken off a stream. etcd itself cuts append messages at 1 MiB plus
/// one entry, and an entry at `--max-request-bytes` (1.5 MiB unless somebody raised it).
const FRAME_BYTES_MAX: u64 = 128 << 20;

/// The most entries in one append.
const ENTRIES_MAX: u64 = 1 << 20;

/// Which of etcd's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Votes, heartbeats, proposals: everything but entries.
    Message,
    /// Entries.
    MsgApp,
}

impl StreamKind {
    /// The path under which a member asks for this stream.
    pub fn path(self, from: dyad_core::ids::MemberId) -> String {
        match self {
            Self::Message => format!("/raft/stream/message/{from}"),
            Self::MsgApp => format!("/raft/stream/msgapp/{from}"),
        }
    }
}

impl fmt::Display for StreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message => "message stream",
            Self::MsgApp => "append stream",
        })
    }
}

/// Why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It ended between two messages.
    #[error("the stream ended")]
    Ended,
    /// The connection failed, or ended within a message.
    #[error("reading the stream failed")]
    Read(#[source] io::Error),
    /// What came is not what a peer sends.
    #[error("the stream is not what an etcd peer sends: {0}")]
    Malformed(String),
}

/// Reads exactly this many bytes, taking memory only as they arrive.
fn read_block(reader: &mut impl Read, len: u64) -> Result<Vec<u8>, FrameError> {
    if len > FRAME_BYTES_MAX {
        return Err(FrameError::Malformed(format!("a frame of {len} bytes")));
    }
    let mut block = Vec::with_capacity(len.min(64 << 10) as usize);
    let got = reader.by_ref().take(len).read_to_end(&mut block).map_err(FrameError::Read)?;
    if (got as u64) < len {
        return Err(FrameError::Read(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(block)
}

fn read_u64(reader: &mut impl Read) -> Result<u64, FrameError> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes).map_err(FrameError::Read)?;
    Ok(u64::from_be_bytes(bytes))
}

/// The first byte of a frame; the only place where a stream may end in order.
fn read_first(reader: &mut impl Read) -> Result<u8, FrameError> {
    let mut byte = [0];
    loop {
        return match reader.read(&mut byte) {
            Ok(0) => Err(FrameError::Ended),
            Ok(_) => Ok(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(FrameError::Read(error)),
        };
    }
}

fn decode<T: prost::Message + Default>(bytes: &[u8]) -> Result<T, FrameError> {
    T::decode(bytes).map_err(|error| FrameError::Malformed(error.to_string()))
}

/// A link-level heartbeat: a raft heartbeat from nobody to nobody.
fn is_link_heartbeat(message: &Message) -> bool {
    message.kind() == MessageType::Heartbeat && message.from == 0 && message.to == 0
}

/// A message in the framing of the message stream.
pub fn encode_message(message: &Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let mut frame = (body.len() as u64).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

/// Reads the message stream.
#[derive(Debug)]
pub struct MessageStream<R> {
    reader: R,
}

impl<R: Read> MessageStream<R> {
    /// A stream at its beginning.
    pub fn new(reader: R) -> Self {
        Self { reader }
    }

    /// The next message; `None` for a sign of life.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        let mut length = [read_first(&mut self.reader)?, 0, 0, 0, 0, 0, 0, 0];
        self.reader.read_exact(&mut length[1..]).map_err(FrameError::Read)?;
        let message: Message = decode(&read_block(&mut self.reader, u64::from_be_bytes(length))?)?;
        Ok((!is_link_heartbeat(&message)).then_some(message))
    }
}

/// Reads the msgapp stream.
///
/// A frame is one byte of kind and then, all numbers 8 bytes big-endian:
/// - 0: nothing, a sign of life;
/// - 1: an append that follows on the one before it: number of entries, each with its length in front, then
///   the commit index. Sender, receiver, term and index are those that the receiver expects;
/// - 2: a whole raft message with its length in front; it sets what kind 1 then relies on.
#[derive(Debug)]
pub struct MsgAppStream<R> {
    reader: R,
    from: u64,
    to: u64,
    /// Term and last index of the append before; `None` as long as there was none.
    position: Option<(u64, u64)>,
}

impl<R: Read> MsgAppStream<R> {
    /// A stream at its beginning, from one member to another.
    pub fn new(reader: R, from: dyad_core::ids::MemberId, to: dyad_core::ids::MemberId) -> Self {
        Self { reader, from: from.0, to: to.0, position: None }
    }

    /// The next message; `None` for a sign of life.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        match read_first(&mut self.reader)? {
            0 => Ok(None),
            1 => self.read_following().map(Some),
            2 => self.read_whole().map(Some),
            other => Err(FrameError::Malformed(format!("a frame of kind {other}"))),
        }
    }

    fn read_following(&mut self) -> Result<Message, FrameError> {
        let Some((term, index)) = self.position else {
            return Err(FrameError::Malformed("an append that follows on none".into()));
        };
        let count = read_u64(&mut self.reader)?;
        if count > ENTRIES_MAX {
            return Err(FrameError::Malformed(format!("an append of {count} entries")));
        }
        let mut entries = Vec::new();
        for _ in 0..count {
            let len = read_u64(&mut self.reader)?;
            entries.push(decode::<Entry>(&read_block(&mut self.reader, len)?)?);
        }
        let commit = read_u64(&mut self.reader)?;
        let last = index
            .checked_add(count)
            .ok_or_else(|| FrameError::Malformed(format!("{count} entries after index {index}")))?;
        self.position = Some((term, last));
        Ok(Message {
            kind: MessageType::App.into(),
            from: self.from,
            to: self.to,
            term,
            log_term: term,
            index,
            entries,
            commit,
            ..Message::default()
        })
    }

    fn read_whole(&mut self) -> Result<Message, FrameError> {
        let len = read_u64(&mut self.reader)?;
        let message: Message = decode(&read_block(&mut self.reader, len)?)?;
        let last = message.entries.last().map_or(message.index, |entry| entry.index);
        self.position = Some((message.term, last));
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use dyad_core::ids::MemberId;
    use proptest::prelude::*;

    use super::*;

    fn append(index: u64, entries: &[u64], commit: u64) -> Message {
        Message {
            kind: MessageType::App.into(),
            from: 1,
            to: 2,
            term: 5,
            log_term: 5,
            index,
            commit,
            entries: entries
                .iter()
                .map(|index| Entry { term: 5, index: *index, ..Entry::default() })
                .collect(),
            ..Message::default()
        }
    }

    fn whole(message: &Message) -> Vec<u8> {
        let mut bytes = vec![2];
        bytes.extend(encode_message(message));
        bytes
    }

    fn following(message: &Message) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend((message.entries.len() as u64).to_be_bytes());
        for entry in &message.entries {
            let entry = entry.encode_to_vec();
            bytes.extend((entry.len() as u64).to_be_bytes());
            bytes.extend(entry);
        }
        bytes.extend(message.commit.to_be_bytes());
        bytes
    }

    fn msgapp(bytes: &[u8]) -> MsgAppStream<&[u8]> {
        MsgAppStream::new(bytes, MemberId(1), MemberId(2))
    }

    /// Appends that leave out the predictable come back as the messages they stand for.
    #[test]
    fn following_appends_are_completed() {
        let messages = [
            append(7, &[8], 7),
            append(8, &[9, 10], 8),
            append(10, &[], 10),
            append(10, &[11], 10),
        ];
        let mut bytes = whole(&messages[0]);
        bytes.push(0);
        messages[1..].iter().for_each(|message| bytes.extend(following(message)));
        let mut stream = msgapp(&bytes);
        assert_eq!(stream.next_message().unwrap().as_ref(), Some(&messages[0]));
        assert_eq!(stream.next_message().unwrap(), None);
        for message in &messages[1..] {
            assert_eq!(stream.next_message().unwrap().as_ref(), Some(message));
        }
        assert!(matches!(stream.next_message(), Err(FrameError::Ended)));
    }

    /// A message comes back from the message stream unchanged; the link's own heartbeat is no message.
    #[test]
    fn messages_come_back_and_signs_of_life_do_not() {
        let message = append(3, &[4], 3);
        let heartbeat = Message { kind: MessageType::Heartbeat.into(), ..Message::default() };
        let mut bytes = encode_message(&heartbeat);
        bytes.extend(encode_message(&message));
        let mut stream = MessageStream::new(&bytes[..]);
        assert_eq!(stream.next_message().unwrap(), None);
        assert_eq!(stream.next_message().unwrap(), Some(message));
        assert!(matches!(stream.next_message(), Err(FrameError::Ended)));
    }

    /// A stream cut within a message is a failure, not an end.
    #[test]
    fn a_cut_is_not_an_end() {
        let bytes = encode_message(&append(3, &[4], 3));
        for len in 1..bytes.len() {
            let outcome = MessageStream::new(&bytes[..len]).next_message();
            assert!(matches!(outcome, Err(FrameError::Read(_))), "{len}: {outcome:?}");
        }
    }

    /// Lengths that no peer sends are refused before memory is taken for them.
    #[test]
    fn senseless_lengths_are_refused() {
        let huge = u64::MAX.to_be_bytes();
        let mut bytes = vec![2];
        bytes.extend(huge);
        assert!(matches!(msgapp(&bytes).next_message(), Err(FrameError::Malformed(_))));
        assert!(matches!(
            MessageStream::new(&huge[..]).next_message(),
            Err(FrameError::Malformed(_))
        ));
        let mut bytes = whole(&append(0, &[], 0));
        bytes.push(1);
        bytes.extend(huge);
        let mut stream = msgapp(&bytes);
        stream.next_message().unwrap();
        assert!(matches!(stream.next_message(), Err(FrameError::Malformed(_))));
    }

    /// An append that follows on nothing has no index to acknowledge: it must not be guessed.
    #[test]
    fn an_append_that_follows_on_none_is_refused() {
        let bytes = following(&append(0, &[1], 0));
        assert!(matches!(msgapp(&bytes).next_message(), Err(FrameError::Malformed(_))));
    }

    proptest! {
        /// Whatever comes over the wire, reading it ends without a panic.
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let mut stream = msgapp(&bytes);
            while stream.next_message().is_ok() {}
            let mut stream = MessageStream::new(&bytes[..]);
            while stream.next_message().is_ok() {}
        }
    }
}
