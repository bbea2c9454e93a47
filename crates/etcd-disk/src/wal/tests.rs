//! Logs made by hand: what no healthy etcd writes, and what only an unlucky one does.

use std::path::Path;

use dyad_core::ids::{Index, MemberId, Term};

use super::frames::encode;
use super::replay::{ChangeKind, Log, Position, replay};
use super::{Segment, identity, parse_name};
use crate::fault::{Fault, Result};
use crate::files::Place;
use crate::proto::{put_bytes, put_number};

const METADATA: u64 = 1;
const ENTRY: u64 = 2;
const STATE: u64 = 3;
const CRC: u64 = 4;
const SNAPSHOT: u64 = 5;

/// A segment under construction.
struct Writer {
    bytes: Vec<u8>,
    crc: u32,
}

impl Writer {
    /// A segment's head, continuing this checksum.
    fn new(crc: u32, member: u64, cluster: u64) -> Self {
        let mut head = Vec::new();
        put_number(&mut head, 1, CRC);
        put_number(&mut head, 2, u64::from(crc));
        let padding = (8 - head.len() % 8) % 8;
        let length = head.len() as u64 | (0x80 | padding as u64) << 56;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.append(&mut head);
        bytes.resize(bytes.len() + padding, 0);
        let mut metadata = Vec::new();
        put_number(&mut metadata, 1, member);
        put_number(&mut metadata, 2, cluster);
        Self { bytes, crc }.record(METADATA, &metadata)
    }

    fn record(mut self, kind: u64, data: &[u8]) -> Self {
        self.bytes.extend(encode(kind, self.crc, data));
        self.crc = crc32c::crc32c_append(self.crc, data);
        self
    }

    fn numbers(self, kind: u64, numbers: &[u64]) -> Self {
        let mut data = Vec::new();
        for (field, number) in (1..).zip(numbers) {
            put_number(&mut data, field, *number);
        }
        self.record(kind, &data)
    }

    fn entry(self, kind: u64, term: u64, index: u64, payload: &[u8]) -> Self {
        let mut data = Vec::new();
        put_number(&mut data, 1, kind);
        put_number(&mut data, 2, term);
        put_number(&mut data, 3, index);
        put_bytes(&mut data, 4, payload);
        self.record(ENTRY, &data)
    }

    fn change(self, term: u64, index: u64, kind: u64, member: u64) -> Self {
        let mut payload = Vec::new();
        put_number(&mut payload, 1, 99);
        put_number(&mut payload, 2, kind);
        put_number(&mut payload, 3, member);
        self.entry(1, term, index, &payload)
    }

    fn state(self, term: u64, vote: u64, commit: u64) -> Self {
        self.numbers(STATE, &[term, vote, commit])
    }

    /// Space that was allocated in advance.
    fn zeros(mut self) -> Self {
        self.bytes.extend([0; 2048]);
        self
    }
}

fn read(segments: &[&Writer], start: Position) -> Result<Log> {
    let place = Place::root(Path::new("/"));
    let names: Vec<_> = (0_u64..)
        .zip(segments)
        .map(|(sequence, _)| Segment { place: place.join("segment"), sequence, first: 0 })
        .collect();
    replay(&names, 0, start, |segment| Ok(segments[segment.sequence as usize].bytes.as_slice()))
}

fn damage(result: Result<Log>) -> String {
    match result {
        Err(Fault::Damage(damage)) => damage.to_string(),
        other => panic!("{other:?}"),
    }
}

fn start() -> Writer {
    Writer::new(0, 0xa, 0xc).numbers(SNAPSHOT, &[0, 0])
}

const ORIGIN: Position = Position { index: Index(0), term: Term(0) };

/// A new leader overwrites what was never committed, the changes of the membership with it.
#[test]
fn overwritten_entries_are_gone() {
    let log = start()
        .change(1, 1, 0, 0xa)
        .entry(0, 1, 2, b"")
        .change(1, 3, 1, 0xb)
        .entry(0, 1, 4, b"")
        .state(1, 0xa, 2)
        .entry(0, 2, 3, b"")
        .state(2, 0, 3)
        .zeros();
    let log = read(&[&log], ORIGIN).unwrap();
    assert_eq!(log.last, Position { index: Index(3), term: Term(2) });
    assert_eq!(log.changes.len(), 1);
    assert_eq!((log.state.term, log.state.vote, log.state.commit), (Term(2), None, Index(3)));
}

/// Entries up to the snapshot are skipped; those behind it must follow it without a gap.
#[test]
fn a_gap_is_damage() {
    let log = start().entry(0, 1, 1, b"").entry(0, 1, 3, b"").zeros();
    let what = damage(read(&[&log], ORIGIN));
    assert!(what.contains("entry 3 follows entry 1"), "{what}");
    let behind = Position { index: Index(2), term: Term(1) };
    assert_eq!(read(&[&log], behind).unwrap().last.index, Index(3));
    let far_behind = Position { index: Index(9), term: Term(1) };
    assert_eq!(read(&[&log], far_behind).unwrap().last, far_behind);
}

/// A segment continues the checksum of the one before it.
#[test]
fn segments_are_chained() {
    let first = start().entry(0, 1, 1, b"one");
    let second = Writer::new(first.crc, 0xa, 0xc).entry(0, 1, 2, b"two").zeros();
    assert_eq!(read(&[&first, &second], ORIGIN).unwrap().last.index, Index(2));
    let other = Writer::new(first.crc ^ 1, 0xa, 0xc).entry(0, 1, 2, b"two").zeros();
    let what = damage(read(&[&first, &other], ORIGIN));
    assert!(what.contains("checksum of the segment before"), "{what}");
    let foreign = Writer::new(first.crc, 0xa, 0xd).zeros();
    let what = damage(read(&[&first, &foreign], ORIGIN));
    assert!(what.contains("cluster d"), "{what}");
}

/// A torn write is one only at the end of the last segment.
#[test]
fn torn_only_at_the_end() {
    let mut torn = start().entry(0, 1, 1, b"one").entry(0, 1, 2, &[7; 2000]);
    let whole = torn.bytes.len() as u64;
    // The third sector of the last record never reached the disk.
    let sector = (torn.bytes.len() - 1000) / 512 * 512;
    torn.bytes[sector..sector + 512].fill(0);
    let log = read(&[&torn], ORIGIN).unwrap();
    assert_eq!(log.last.index, Index(1));
    assert!(log.end.torn.is_some() && log.end.offset < whole);
    let next = Writer::new(torn.crc, 0xa, 0xc).zeros();
    let what = damage(read(&[&torn, &next], ORIGIN));
    assert!(what.contains("checksum of a record"), "{what}");
    // A record that is damaged without an empty sector is no torn write.
    let mut damaged = start().entry(0, 1, 1, b"one");
    let last = damaged.bytes.len() - 2;
    damaged.bytes[last - 8] ^= 1;
    assert!(damage(read(&[&damaged], ORIGIN)).contains("checksum"));
}

/// The second version of configuration changes: one at a time is understood, joint ones are refused.
#[test]
fn configuration_changes_of_the_second_version() {
    let single = |kind, member| {
        let mut single = Vec::new();
        put_number(&mut single, 1, kind);
        put_number(&mut single, 2, member);
        single
    };
    let mut one = Vec::new();
    put_bytes(&mut one, 2, &single(3, 0xb));
    let log = start().entry(2, 1, 1, &one).entry(2, 1, 2, &[]).zeros();
    let log = read(&[&log], ORIGIN).unwrap();
    assert_eq!(log.changes.len(), 1);
    assert_eq!((log.changes[0].kind, log.changes[0].id), (ChangeKind::AddLearner, MemberId(0xb)));
    let mut two = one.clone();
    put_bytes(&mut two, 2, &single(0, 0xc));
    let log = start().entry(2, 1, 1, &two).zeros();
    assert!(damage(read(&[&log], ORIGIN)).contains("joint"));
    let log = start().entry(7, 1, 1, b"").zeros();
    assert!(damage(read(&[&log], ORIGIN)).contains("unknown type 7"));
}

/// Without its whole head a segment is damaged, never torn.
#[test]
fn a_head_cannot_be_torn() {
    let whole = start().bytes;
    for length in 1..Writer::new(0, 0xa, 0xc).bytes.len() {
        let cut = Writer { bytes: whole[..length].to_vec(), crc: 0 };
        let what = damage(read(&[&cut], ORIGIN));
        assert!(what.contains("at byte"), "{length}: {what}");
        assert!(identity(&&whole[..length]).is_err(), "{length}");
    }
}

/// A commit mark behind the last entry makes raft panic; here it is damage.
#[test]
fn a_commit_mark_beyond_the_log() {
    let log = start().entry(0, 1, 1, b"").state(1, 0, 2).zeros();
    let log = read(&[&log], ORIGIN).unwrap();
    assert!(log.check_commit("segment").is_err());
}

/// Only names that etcd itself would read are segments.
#[test]
fn names() {
    assert_eq!(parse_name("0000000000000001-00000000000000ff.wal"), Some((1, 255)));
    for other in [
        "0.tmp",
        "0000000000000001-00000000000000ff.wal.broken",
        "1-ff.wal",
        "000000000000000+-00000000000000ff.wal",
        "00000000000000010-0000000000000ff.wal",
    ] {
        assert_eq!(parse_name(other), None, "{other}");
    }
}
