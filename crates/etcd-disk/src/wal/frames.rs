//! The frames of one WAL segment: length, record, padding; each record with a rolling checksum.

use crate::fault::{Result, damage_at};
use crate::files::Source;
use crate::proto;

/// How much of a log is read at once. Small enough to stay in the processor's cache.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
/// Enough for the head of a segment.
pub(crate) const HEAD_BYTES: usize = 4 << 10;
/// The largest record: etcd 3.4 takes up to 10 MB, later ones what `--max-request-bytes` allows.
const RECORD_BYTES_MAX: u64 = 64 << 20;
pub(crate) const FRAME_HEAD_BYTES: u64 = 8;
/// What a disk writes at once, for etcd's judgement of a torn write.
const SECTOR_BYTES: u64 = 512;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Metadata,
    Entry,
    State,
    Crc,
    Snapshot,
}

impl Kind {
    fn of(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Metadata,
            2 => Self::Entry,
            3 => Self::State,
            4 => Self::Crc,
            5 => Self::Snapshot,
            _ => return None,
        })
    }
}

/// What comes next in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// A whole record with a right checksum.
    Record { offset: u64, kind: Kind, data: &'a [u8] },
    /// The end of the file, or space that was allocated in advance.
    End,
    /// A write that did not reach the disk as a whole, in the last segment: etcd cuts it off at its start.
    Torn(&'static str),
}

/// Reads one segment's frames in their order.
#[derive(Debug)]
pub(crate) struct Frames<'a, S> {
    source: &'a S,
    /// Whether it is the log's last segment: only there can a write have been torn.
    last: bool,
    buffer: Vec<u8>,
    /// The place in the file of the buffer's first byte.
    buffer_offset: u64,
    filled: usize,
    /// The end of the last whole record.
    offset: u64,
    /// The checksum over everything so far.
    crc: u32,
}

impl<'a, S: Source> Frames<'a, S> {
    /// From the start of a segment. `crc` is the checksum at the end of the segment before it, 0 if that
    /// one was not read; `buffer` says how much is read at once, and grows only for a larger record.
    pub(crate) fn new(source: &'a S, last: bool, crc: u32, buffer: Vec<u8>) -> Self {
        Self { source, last, buffer, buffer_offset: 0, filled: 0, offset: 0, crc }
    }

    /// The end of the last whole record.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The checksum over everything up to there.
    pub(crate) fn crc(&self) -> u32 {
        self.crc
    }

    /// Gives the buffer back.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The next record, checked.
    pub(crate) fn next(&mut self) -> Result<Next<'_>> {
        let offset = self.offset;
        let head = self.fill(offset, FRAME_HEAD_BYTES as usize)?;
        if head == 0 {
            return Ok(Next::End);
        }
        if head < FRAME_HEAD_BYTES as usize {
            return if self.last {
                Ok(Next::Torn("the file ends within a record's length"))
            } else {
                Err(self.damage("the segment ends within a record's length"))
            };
        }
        let start = (offset - self.buffer_offset) as usize;
        let length =
            self.buffer[start..start + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        if length == 0 {
            return Ok(Next::End);
        }
        let record_bytes = length & 0x00ff_ffff_ffff_ffff;
        let padding_bytes = if length >> 63 == 1 { (length >> 56) & 7 } else { 0 };
        self.record(offset, record_bytes, padding_bytes)
    }

    fn record(&mut self, offset: u64, record_bytes: u64, padding_bytes: u64) -> Result<Next<'_>> {
        // etcd 3.5 takes a record that reaches beyond the file for damage, not for a torn write: the file is
        // allocated in advance, and a torn write leaves zeros, not a shorter file.
        let rest = self.source.len().saturating_sub(offset).saturating_sub(padding_bytes);
        if record_bytes > rest || record_bytes > RECORD_BYTES_MAX {
            return Err(self.damage(format!(
                "a record of {record_bytes} bytes, where the file has {rest} more and a record at most \
                 {RECORD_BYTES_MAX}"
            )));
        }
        let frame_bytes = (record_bytes + padding_bytes) as usize;
        let body_offset = offset + FRAME_HEAD_BYTES;
        if self.fill(body_offset, frame_bytes)? < frame_bytes {
            return if self.last {
                Ok(Next::Torn("the file ends within a record"))
            } else {
                Err(self.damage("the segment ends within a record"))
            };
        }
        let start = (body_offset - self.buffer_offset) as usize;
        let frame = &self.buffer[start..start + frame_bytes];
        let Some(record) = parse(&frame[..record_bytes as usize]) else {
            if self.last && has_empty_sector(frame, body_offset) {
                return Ok(Next::Torn("a record was not written as a whole"));
            }
            return Err(self.damage("this is not a record"));
        };
        if record.kind == Kind::Crc {
            // A segment begins with the checksum of the one before. The first one read has nothing to
            // compare it with.
            if self.crc != 0 && record.crc != self.crc {
                return Err(self.damage(format!(
                    "the checksum of the segment before is {:#010x}, this one continues {:#010x}",
                    self.crc, record.crc
                )));
            }
            self.crc = record.crc;
        } else {
            let crc = crc32c::crc32c_append(self.crc, record.data);
            if crc != record.crc {
                if self.last && has_empty_sector(frame, body_offset) {
                    return Ok(Next::Torn("a record was not written as a whole"));
                }
                return Err(self.damage(format!(
                    "the checksum of a record is {crc:#010x}, it should be {:#010x}",
                    record.crc
                )));
            }
            self.crc = crc;
        }
        self.offset = body_offset + record_bytes + padding_bytes;
        Ok(Next::Record { offset, kind: record.kind, data: record.data })
    }

    fn damage(&self, what: impl Into<String>) -> crate::fault::Fault {
        damage_at(self.source.label(), self.offset, what)
    }

    /// Makes `length` bytes at `offset` lie in the buffer, or as many as the file has. Offsets only grow.
    fn fill(&mut self, offset: u64, length: usize) -> Result<usize> {
        let start = (offset - self.buffer_offset) as usize;
        if start + length <= self.filled {
            return Ok(length);
        }
        self.buffer.copy_within(start.min(self.filled)..self.filled, 0);
        self.filled = self.filled.saturating_sub(start);
        self.buffer_offset = offset;
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let read_offset = self.buffer_offset + self.filled as u64;
        self.filled += self.source.read_at(&mut self.buffer[self.filled..], read_offset)?;
        Ok(self.filled.min(length))
    }
}

struct Record<'a> {
    kind: Kind,
    crc: u32,
    data: &'a [u8],
}

fn parse(message: &[u8]) -> Option<Record<'_>> {
    let (mut kind, mut crc, mut data) = (0, 0, &[][..]);
    for field in proto::fields(message) {
        match field? {
            (1, value) => kind = value.number()?,
            (2, value) => crc = value.number()?,
            (3, value) => data = value.bytes()?,
            _ => {}
        }
    }
    Some(Record { kind: Kind::of(kind)?, crc: u32::try_from(crc).ok()?, data })
}

/// etcd's test for a torn write: a sector within the record that holds nothing but zeros.
fn has_empty_sector(frame: &[u8], mut offset: u64) -> bool {
    let mut rest = frame;
    while !rest.is_empty() {
        let length = ((SECTOR_BYTES - offset % SECTOR_BYTES) as usize).min(rest.len());
        let (sector, after) = rest.split_at(length);
        if sector.iter().all(|byte| *byte == 0) {
            return true;
        }
        offset += length as u64;
        rest = after;
    }
    false
}

/// A frame around a record with this data, continuing this checksum.
pub(crate) fn encode(kind: u64, crc: u32, data: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    proto::put_number(&mut record, 1, kind);
    proto::put_number(&mut record, 2, u64::from(crc32c::crc32c_append(crc, data)));
    proto::put_bytes(&mut record, 3, data);
    let padding = (8 - record.len() % 8) % 8;
    let mut length = record.len() as u64;
    if padding > 0 {
        length |= (0x80 | padding as u64) << 56;
    }
    let mut frame = length.to_le_bytes().to_vec();
    frame.append(&mut record);
    frame.resize(frame.len() + padding, 0);
    frame
}
