//! Mutation tests: whatever the bytes, the readers answer, within their limits.
//!
//! Seeds are what real etcd of both series wrote. Each input is a seed with up to eight random edits
//! (flipped bits, overwritten, inserted, removed and repeated ranges, truncation, absurd numbers). The log's
//! checksums are made right again for half of the inputs, so that edits reach beyond them. How many inputs
//! each test tries: `DYAD_FUZZ_INPUTS`, by default 4,000 each (the log, the database, the snapshot), with
//! the seed printed on failure by proptest.

use std::path::Path;
use std::sync::LazyLock;

use dyad_core::ids::Index;
use etcd_fixture::{Cluster, Options, Release};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use crate::db;
use crate::fault::Fault;
use crate::files::Place;
use crate::snap;
use crate::wal::frames::encode;
use crate::wal::replay::{Position, replay};
use crate::wal::{Segment, identity};

/// The parts of a data directory, as bytes.
struct Seed {
    segment: Vec<u8>,
    db: Vec<u8>,
    snapshot: Vec<u8>,
    snapshot_position: Position,
}

static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| Release::ALL.map(seed).into());

fn seed(release: Release) -> Seed {
    let mut cluster = Cluster::start(1, Options::new(release).snapshot_count(30)).unwrap();
    cluster.members[0].put_many("key", 60, 40).unwrap();
    let second = cluster.add_learner().unwrap();
    cluster.members[0].put_many("more", 20, 700).unwrap();
    cluster.promote(second).unwrap();
    cluster.members[0].wait_writable().unwrap();
    cluster.members[0].stop().unwrap();
    let dir = cluster.members[0].data_dir();
    let snap = Place::root(dir).join("member").join("snap");
    let newest = snap::candidates(&snap).ok().and_then(|found| found.into_iter().next()).unwrap();
    let mut segment = std::fs::read(only_segment(dir)).unwrap();
    let used = segment.iter().rposition(|byte| *byte != 0).unwrap();
    segment.truncate(used.next_multiple_of(8) + 1024);
    Seed {
        segment,
        db: std::fs::read(dir.join("member/snap/db")).unwrap(),
        snapshot: std::fs::read(&newest.place.path).unwrap(),
        snapshot_position: newest.position,
    }
}

fn only_segment(dir: &Path) -> std::path::PathBuf {
    let names = std::fs::read_dir(dir.join("member/wal")).unwrap();
    let mut names = names.map(|name| name.unwrap().path());
    names.find(|path| path.extension().is_some_and(|extension| extension == "wal")).unwrap()
}

#[derive(Debug, Clone)]
enum Edit {
    Flip { at: usize, bit: u8 },
    Overwrite { at: usize, bytes: Vec<u8> },
    Insert { at: usize, bytes: Vec<u8> },
    Remove { at: usize, length: usize },
    Repeat { from: usize, to: usize, length: usize },
    Truncate { at: usize },
    Number { at: usize, number: u64 },
}

fn edit() -> impl Strategy<Value = Edit> {
    // Places are taken modulo the length; small ones are where heads and metas lie.
    let at = prop_oneof![3 => 0..usize::MAX, 1 => 0..200_usize, 1 => 4096..4200_usize];
    let bytes = prop::collection::vec(any::<u8>(), 1..40);
    let number = prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(1 << 63),
        Just(1 << 55),
        Just(1 << 40),
        any::<u64>(),
        0..64_u64,
    ];
    prop_oneof![
        (at.clone(), 0..8_u8).prop_map(|(at, bit)| Edit::Flip { at, bit }),
        (at.clone(), bytes.clone()).prop_map(|(at, bytes)| Edit::Overwrite { at, bytes }),
        (at.clone(), bytes).prop_map(|(at, bytes)| Edit::Insert { at, bytes }),
        (at.clone(), 1..600_usize).prop_map(|(at, length)| Edit::Remove { at, length }),
        (at.clone(), at.clone(), 8..5000_usize).prop_map(|(from, to, length)| Edit::Repeat {
            from,
            to,
            length
        }),
        at.clone().prop_map(|at| Edit::Truncate { at }),
        (at, number).prop_map(|(at, number)| Edit::Number { at, number }),
    ]
}

fn apply_all(bytes: &mut Vec<u8>, edits: &[Edit]) {
    for edit in edits {
        apply(bytes, edit);
    }
}

fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let place = |at: usize| at % length;
    match edit {
        Edit::Flip { at, bit } => {
            let at = place(*at);
            bytes[at] ^= 1 << bit;
        }
        Edit::Overwrite { at, bytes: new } => overwrite(bytes, place(*at), new),
        Edit::Insert { at, bytes: new } => {
            let at = place(*at);
            bytes.splice(at..at, new.iter().copied());
        }
        Edit::Remove { at, length } => {
            let at = place(*at);
            let end = (at + length).min(bytes.len());
            bytes.drain(at..end);
        }
        Edit::Repeat { from, to, length } => {
            let (from, to) = (place(*from), place(*to));
            let part = bytes[from..(from + length).min(bytes.len())].to_vec();
            overwrite(bytes, to, &part);
        }
        Edit::Truncate { at } => {
            let at = place(*at);
            bytes.truncate(at);
        }
        Edit::Number { at, number } => {
            let at = place(*at) / 8 * 8;
            overwrite(bytes, at, &number.to_le_bytes());
        }
    }
}

fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) {
    let length = new.len().min(bytes.len() - at);
    bytes[at..at + length].copy_from_slice(&new[..length]);
}

fn inputs() -> u32 {
    std::env::var("DYAD_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(4000)
}

fn run(test: impl Fn(usize, Vec<Edit>, bool) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: inputs(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    };
    let strategy = (0..SEEDS.len(), prop::collection::vec(edit(), 1..9), any::<bool>());
    let mut runner = TestRunner::new(config);
    runner.run(&strategy, |(seed, edits, repair)| test(seed, edits, repair)).unwrap();
}

/// Makes every checksum in a segment right again, as far as its frames can be told apart.
fn repair_checksums(bytes: &[u8]) -> Vec<u8> {
    let (mut repaired, mut crc, mut at) = (Vec::new(), 0, 0);
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u64::from_le_bytes(head.try_into().unwrap());
        let record = (length & 0x00ff_ffff_ffff_ffff) as usize;
        let padding = if length >> 63 == 1 { (length >> 56 & 7) as usize } else { 0 };
        let Some(frame) = bytes.get(at + 8..(at + 8).saturating_add(record)) else { break };
        let fields: Option<Vec<_>> = crate::proto::fields(frame).collect();
        let (kind, data) = match fields.as_deref() {
            Some([(1, kind), (2, _), (3, data)]) => (kind.number(), data.bytes()),
            Some([(1, kind), (2, _)]) => (kind.number(), Some(&[][..])),
            _ => break,
        };
        let (Some(kind), Some(data)) = (kind, data) else { break };
        repaired.extend(encode(kind, crc, data));
        crc = crc32c::crc32c_append(crc, data);
        at += 8 + record + padding;
    }
    if repaired.is_empty() {
        bytes.to_vec()
    } else {
        repaired.extend([0; 64]);
        repaired
    }
}

fn no_error<T>(result: crate::fault::Result<T>) -> Result<Option<T>, TestCaseError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Damage(damage)) => {
            prop_assert!(!damage.what.is_empty());
            Ok(None)
        }
        Err(other) => Err(TestCaseError::fail(format!("{other:?}"))),
    }
}

/// The log: no panic, no loop, and an answer keeps what raft demands of a log.
#[test]
fn any_log() {
    run(|seed, edits, repair| {
        let mut bytes = SEEDS[seed].segment.clone();
        apply_all(&mut bytes, &edits);
        if repair {
            bytes = repair_checksums(&bytes);
        }
        let place = Place::root(Path::new("/")).join("memory");
        let segment = Segment { place, sequence: 0, first: 0 };
        let source = bytes.as_slice();
        for start in [Position::default(), SEEDS[seed].snapshot_position] {
            let log = replay(std::slice::from_ref(&segment), 0, start, |_| Ok(source));
            if let Some(log) = no_error(log)? {
                prop_assert!(log.last.index >= start.index);
                prop_assert!(log.end.offset <= bytes.len() as u64);
                prop_assert!(log.changes.windows(2).all(|two| two[0].index <= two[1].index));
                prop_assert!(log.changes.iter().all(|change| change.index <= log.last.index));
                prop_assert!(log.changes.iter().all(|change| change.index > Index(0)));
            }
        }
        no_error(identity(&source))?;
        Ok(())
    });
}

/// The database: no panic, no endless walk, no revision that etcd could not have.
#[test]
fn any_database() {
    run(|seed, edits, _| {
        let mut bytes = SEEDS[seed].db.clone();
        apply_all(&mut bytes, &edits);
        let source = bytes.as_slice();
        if let Some(db) = no_error(db::read(&source))? {
            prop_assert!(i64::try_from(db.revision.0).is_ok());
            prop_assert_eq!(db.size_bytes, bytes.len() as u64);
        }
        Ok(())
    });
}

/// The snapshot: its checksum stands for everything in it.
#[test]
fn any_snapshot() {
    run(|seed, edits, _| {
        let Seed { snapshot, snapshot_position, .. } = &SEEDS[seed];
        let mut bytes = snapshot.clone();
        apply_all(&mut bytes, &edits);
        let source = bytes.as_slice();
        if let Some(read) = no_error(snap::read(&source, *snapshot_position))? {
            let untouched = snap::read(&snapshot.as_slice(), *snapshot_position);
            prop_assert_eq!(Some(read), untouched.ok());
        }
        Ok(())
    });
}
