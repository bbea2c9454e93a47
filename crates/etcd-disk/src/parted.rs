//! What one copy holds and the other does not: the keys that were changed since its owner went on alone.
//!
//! The moment of parting is in the log itself: the entry that removes the other member. What follows it was never
//! sent to anybody. etcd keeps some hundred megabytes of log, so that it is found long afterwards.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use dyad_core::ids::{Index, MemberId};

use crate::fault::{Fault, Result};
use crate::files::Place;
use crate::proto;
use crate::wal::frames::{BLOCK_BYTES, Frames, Kind, Next};
use crate::wal::replay::{ChangeKind, Entry, parse_changes, parse_entry};
use crate::wal::{self, parse_identity};

/// More keys than these are not told apart.
const KEYS_MAX: usize = 5_000_000;
/// A transaction within a transaction within ... ends somewhere.
const DEPTH_MAX: u32 = 8;

/// What was written since the two parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parted {
    /// The entry that removed the other member.
    pub index: Index,
    /// Keys that were written or deleted since. A transaction counts with all keys that it could change.
    pub keys: usize,
    /// Ranges of keys that were deleted since; how many keys were in them the log does not tell.
    pub ranges: usize,
}

/// Reads what was written to this data directory since the other member was removed last; nothing if the log does not
/// reach back to a removal. What cannot be read is told in words. Writes nothing.
pub fn since_parting(dir: &Path) -> std::result::Result<Option<Parted>, String> {
    read(dir).map_err(|fault| match fault {
        Fault::Damage(damage) => damage.to_string(),
        Fault::Changed(what) => what,
        Fault::Error(error) => error.to_string(),
    })
}

#[derive(Default)]
struct Scan {
    own: Option<MemberId>,
    parted: Option<Index>,
    hasher: RandomState,
    keys: HashSet<u64>,
    ranges: usize,
}

fn read(dir: &Path) -> Result<Option<Parted>> {
    let segments = wal::segments(&Place::root(dir).join("member").join("wal"))?;
    let mut scan = Scan::default();
    let (mut crc, mut buffer) = (0, vec![0; BLOCK_BYTES]);
    for (place, segment) in segments.iter().enumerate() {
        let source = segment.place.open()?;
        let mut frames = Frames::new(&source, place + 1 == segments.len(), crc, buffer);
        // A write that is torn, or under way, is not the past.
        while let Next::Record { kind, data, offset } = frames.next()? {
            match kind {
                Kind::Metadata => {
                    let label = &segment.place.label;
                    scan.own = Some(parse_identity(label, offset, data)?.member);
                }
                Kind::Entry => {
                    if let Some(entry) = parse_entry(data) {
                        scan.entry(&entry);
                    }
                }
                Kind::State | Kind::Crc | Kind::Snapshot => {}
            }
        }
        crc = frames.crc();
        buffer = frames.into_buffer();
    }
    let (keys, ranges) = (scan.keys.len(), scan.ranges);
    Ok(scan.parted.map(|index| Parted { index, keys, ranges }))
}

impl Scan {
    fn entry(&mut self, entry: &Entry<'_>) {
        let index = entry.position.index;
        // A new leader has overwritten the removal: it never happened.
        if self.parted.is_some_and(|parted| index <= parted) {
            self.begin(None);
        }
        if entry.kind == 0 {
            if self.parted.is_some() {
                let _ = self.request(entry.data, 0);
            }
            return;
        }
        let changes = parse_changes(entry).unwrap_or_default();
        let removes = |kind, id| kind == ChangeKind::Remove && Some(id) != self.own;
        if changes.iter().any(|change| removes(change.kind, change.id)) {
            self.begin(Some(index));
        }
    }

    fn begin(&mut self, parted: Option<Index>) {
        self.parted = parted;
        self.keys.clear();
        self.ranges = 0;
    }

    /// A request as raft carries it: 4 is a put, 5 a deletion, 6 a transaction.
    fn request(&mut self, message: &[u8], depth: u32) -> Option<()> {
        for field in proto::fields(message) {
            match field? {
                (4, value) => self.put(value.bytes()?)?,
                (5, value) => self.delete(value.bytes()?)?,
                (6, value) => self.transaction(value.bytes()?, depth)?,
                _ => {}
            }
        }
        Some(())
    }

    fn put(&mut self, message: &[u8]) -> Option<()> {
        for field in proto::fields(message) {
            if let (1, value) = field? {
                self.key(value.bytes()?);
            }
        }
        Some(())
    }

    fn delete(&mut self, message: &[u8]) -> Option<()> {
        let (mut key, mut has_end) = (&[][..], false);
        for field in proto::fields(message) {
            match field? {
                (1, value) => key = value.bytes()?,
                (2, value) => has_end = !value.bytes()?.is_empty(),
                _ => {}
            }
        }
        if has_end {
            self.ranges += 1;
        } else {
            self.key(key);
        }
        Some(())
    }

    /// 2 and 3 are what is done if the comparisons hold, and if not. The log does not tell which it was.
    fn transaction(&mut self, message: &[u8], depth: u32) -> Option<()> {
        if depth == DEPTH_MAX {
            return None;
        }
        for field in proto::fields(message) {
            let (2 | 3, value) = field? else { continue };
            for operation in proto::fields(value.bytes()?) {
                match operation? {
                    (2, value) => self.put(value.bytes()?)?,
                    (3, value) => self.delete(value.bytes()?)?,
                    (4, value) => self.transaction(value.bytes()?, depth + 1)?,
                    _ => {}
                }
            }
        }
        Some(())
    }

    fn key(&mut self, key: &[u8]) {
        if self.keys.len() < KEYS_MAX {
            self.keys.insert(self.hasher.hash_one(key));
        }
    }
}
