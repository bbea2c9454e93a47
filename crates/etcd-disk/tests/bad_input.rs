//! Bad input, made from directories that real etcd wrote: class `Broken` with file and place, no panic,
//! nothing written.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyad_core::dataset::{Class, Dataset};
use etcd_disk::read;
use etcd_fixture::{Cluster, Options, Release};

/// A voter's directory with several snapshots, at rest.
fn healthy(release: Release) -> (Cluster, PathBuf, Dataset) {
    let mut cluster = Cluster::start(2, Options::new(release).snapshot_count(40)).unwrap();
    cluster.members[0].put_many("key", 150, 100).unwrap();
    cluster.wait_applied().unwrap();
    cluster.members[0].stop().unwrap();
    cluster.members[1].kill().unwrap();
    let healthy = cluster.directory().join("healthy");
    common::copy(cluster.members[0].data_dir(), &healthy);
    let dataset = read(&healthy).unwrap();
    assert_eq!(dataset.class, Class::Pair, "{}", dataset.reason);
    assert_eq!(dataset.problems, Vec::<String>::new());
    assert!(common::files(&healthy, "snap", "snap").len() >= 3);
    (cluster, healthy, dataset)
}

/// Reads a damaged copy, and proves that reading it changed nothing.
fn read_unchanged(dir: &Path, what: &str) -> Dataset {
    let before = common::fingerprint(dir);
    let dataset = read(dir).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(common::fingerprint(dir), before, "{what}: something was written");
    dataset
}

/// A copy of the healthy directory with one thing wrong.
fn damaged(cluster: &Cluster, healthy: &Path, damage: impl FnOnce(&Path)) -> PathBuf {
    let dir = cluster.directory().join("damaged");
    let _ = fs::remove_dir_all(&dir);
    common::copy(healthy, &dir);
    damage(&dir);
    dir
}

fn segment(dir: &Path) -> PathBuf {
    common::files(dir, "wal", "wal").pop().unwrap()
}

fn truncate(path: &Path, length: u64) {
    File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn flip(path: &Path, at: usize, bit: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1 << bit;
    fs::write(path, bytes).unwrap();
}

/// A page that is a branch with one child: itself.
fn circular_page(id: u64) -> Vec<u8> {
    let mut page = Vec::new();
    page.extend(id.to_le_bytes());
    page.extend(1_u16.to_le_bytes()); // a branch
    page.extend(1_u16.to_le_bytes()); // of one element
    page.extend(0_u32.to_le_bytes());
    page.extend(16_u32.to_le_bytes());
    page.extend(0_u32.to_le_bytes());
    page.extend(id.to_le_bytes());
    page
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The root page of a database, by the newer of its metas.
fn root_page(db: &Path) -> u64 {
    let bytes = fs::read(db).unwrap();
    let metas = [16, 4096 + 16];
    let newest = metas.into_iter().max_by_key(|at| u64_at(&bytes, at + 48)).unwrap();
    u64_at(&bytes, newest + 16)
}

type Case = (&'static str, fn(&Path));

/// Damage that makes a dataset unusable, and a word that its reason must have.
const BROKEN: &[(&str, Case)] = &[
    (
        "member/wal",
        ("the log is missing", |dir| fs::remove_dir_all(dir.join("member/wal")).unwrap()),
    ),
    ("member/wal", ("the log has no segment", |dir| fs::remove_file(segment(dir)).unwrap())),
    (".wal", ("the segment is empty", |dir| truncate(&segment(dir), 0))),
    (".wal at byte", ("the segment ends in its first length", |dir| truncate(&segment(dir), 4))),
    (".wal at byte", ("the segment ends in its first record", |dir| truncate(&segment(dir), 12))),
    (".wal", ("the segment ends behind its checksum", |dir| truncate(&segment(dir), 16))),
    (
        ".wal",
        ("the segment is cut off in the middle", |dir| {
            let path = segment(dir);
            truncate(&path, fs::metadata(&path).unwrap().len() / 2);
        }),
    ),
    (
        ".wal at byte",
        ("a length of 2^55", |dir| {
            common::overwrite(&segment(dir), 0, &(1_u64 << 55).to_le_bytes());
        }),
    ),
    (
        ".wal at byte",
        ("a length of all ones", |dir| {
            common::overwrite(&segment(dir), 0, &u64::MAX.to_le_bytes());
        }),
    ),
    (
        ".wal at byte 16",
        ("a length beyond the file, later", |dir| {
            common::overwrite(&segment(dir), 16, &(1_u64 << 40).to_le_bytes());
        }),
    ),
    (
        "gap",
        ("a segment is missing in between", |dir| {
            let path = segment(dir);
            let later = dir.join("member/wal/0000000000000002-0000000000000100.wal");
            fs::copy(path, later).unwrap();
        }),
    ),
    (
        "begins with entry",
        ("the first segments are missing, and so are the snapshots", |dir| {
            fs::rename(segment(dir), dir.join("member/wal/0000000000000001-0000000000000fff.wal"))
                .unwrap();
            for snap in common::files(dir, "snap", "snap") {
                fs::remove_file(snap).unwrap();
            }
        }),
    ),
    ("symbolic link", ("a segment is a link", |dir| link_instead(&segment(dir)))),
    ("symbolic link", ("the database is a link", |dir| link_instead(&dir.join("member/snap/db")))),
    ("symbolic link", ("a directory is a link", |dir| link_instead(&dir.join("member")))),
    (
        "symbolic link",
        ("the log's directory is a link", |dir| link_instead(&dir.join("member/wal"))),
    ),
    (
        "db: it is missing",
        ("the database is missing", |dir| {
            fs::remove_file(dir.join("member/snap/db")).unwrap();
        }),
    ),
    ("db: it is empty", ("the database is empty", |dir| truncate(&dir.join("member/snap/db"), 0))),
    (
        "db at byte",
        ("the database ends within its first meta", |dir| {
            truncate(&dir.join("member/snap/db"), 40);
        }),
    ),
    (
        "db at byte",
        ("the database has one page", |dir| truncate(&dir.join("member/snap/db"), 4096)),
    ),
    (
        "db at byte",
        ("the database lacks its last half", |dir| {
            let path = dir.join("member/snap/db");
            let root = root_page(&path);
            truncate(&path, root * 4096);
        }),
    ),
    (
        "db at byte 0",
        ("both metas are damaged", |dir| {
            flip(&dir.join("member/snap/db"), 30, 1);
            flip(&dir.join("member/snap/db"), 4096 + 30, 1);
        }),
    ),
    (
        "circle",
        ("pages in a circle", |dir| {
            let path = dir.join("member/snap/db");
            let root = root_page(&path);
            common::overwrite(&path, root * 4096, &circular_page(root));
        }),
    ),
    (
        "db at byte",
        ("a page of a wrong kind", |dir| {
            let path = dir.join("member/snap/db");
            common::overwrite(&path, root_page(&path) * 4096 + 8, &[0xff]);
        }),
    ),
    (
        "db at byte",
        ("a page with absurdly many elements", |dir| {
            let path = dir.join("member/snap/db");
            common::overwrite(&path, root_page(&path) * 4096 + 10, &[0xff, 0xff]);
        }),
    ),
    (
        "db at byte",
        ("an element outside of its page", |dir| {
            let path = dir.join("member/snap/db");
            common::overwrite(&path, root_page(&path) * 4096 + 16 + 4, &[0xff; 8]);
        }),
    ),
    (
        "not a regular file",
        ("a directory in the place of the database", |dir| {
            fs::remove_file(dir.join("member/snap/db")).unwrap();
            fs::create_dir(dir.join("member/snap/db")).unwrap();
        }),
    ),
    (
        "not a regular file",
        ("a pipe in the place of the database", |dir| {
            fs::remove_file(dir.join("member/snap/db")).unwrap();
            assert!(
                Command::new("mkfifo").arg(dir.join("member/snap/db")).status().unwrap().success()
            );
        }),
    ),
    (
        "not a directory",
        ("a file in the place of `member`", |dir| {
            fs::remove_dir_all(dir.join("member")).unwrap();
            fs::write(dir.join("member"), b"").unwrap();
        }),
    ),
    (
        "member/snap",
        ("the snapshots are missing", |dir| {
            for snap in common::files(dir, "snap", "snap") {
                fs::remove_file(snap).unwrap();
            }
        }),
    ),
    (
        ".snap",
        ("all snapshots are damaged", |dir| {
            for snap in common::files(dir, "snap", "snap") {
                flip(&snap, 100, 3);
            }
        }),
    ),
    (
        "member/snap",
        ("the snapshots' directory is missing", |dir| {
            fs::remove_dir_all(dir.join("member/snap")).unwrap();
        }),
    ),
];

fn link_instead(path: &Path) {
    let real = path.with_extension("real");
    fs::rename(path, &real).unwrap();
    symlink(&real, path).unwrap();
}

fn each_kind_of_damage(release: Release) {
    let (cluster, healthy, _) = healthy(release);
    for (word, (what, damage)) in BROKEN {
        let dir = damaged(&cluster, &healthy, damage);
        let dataset = read_unchanged(&dir, what);
        assert_eq!(dataset.class, Class::Broken, "{what}: {}", dataset.reason);
        assert!(dataset.reason.contains(word), "{what}: `{word}` is not in: {}", dataset.reason);
    }
    // The directory itself a link, to something and to nothing.
    let link = cluster.directory().join("link");
    symlink(&healthy, &link).unwrap();
    assert_eq!(read(&link).unwrap().class, Class::Broken);
    assert_eq!(read(&link.join("")).unwrap().class, Class::Broken, "with a trailing slash");
    fs::remove_file(&link).unwrap();
    symlink(cluster.directory().join("nothing"), &link).unwrap();
    assert_eq!(read(&link).unwrap().class, Class::Broken);
    // Nothing at all is no damage.
    assert_eq!(read(&cluster.directory().join("nothing")).unwrap().class, Class::None);
    let empty = cluster.directory().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(read(&empty).unwrap().class, Class::None);
}

/// Segments of two clusters in one directory.
fn mixed_clusters(release: Release) {
    let (cluster, healthy, _) = healthy(release);
    let mut other = Cluster::single(release).unwrap();
    other.members[0].stop().unwrap();
    let foreign = common::without_zeros(&segment(other.members[0].data_dir()));
    let dir = damaged(&cluster, &healthy, |dir| {
        fs::write(dir.join("member/wal/0000000000000001-0000000000000100.wal"), foreign).unwrap();
    });
    let dataset = read_unchanged(&dir, "mixed clusters");
    assert_eq!(dataset.class, Class::Broken);
    assert!(dataset.reason.contains("of cluster"), "{}", dataset.reason);
    assert_eq!(dataset.cluster_id, None, "which one it is of cannot be said");
}

/// Cut off at every record boundary, within lengths, records and padding: broken, or the same facts with
/// nothing lost that the database has applied.
fn cut_off_anywhere(release: Release) {
    let (cluster, healthy, whole) = healthy(release);
    let bytes = fs::read(segment(&healthy)).unwrap();
    let mut cuts = Vec::new();
    let mut at = 0;
    while u64_at(&bytes, at) != 0 {
        let length = u64_at(&bytes, at);
        let padding = if length >> 63 == 1 { length >> 56 & 7 } else { 0 };
        let record = (length & 0x00ff_ffff_ffff_ffff) as usize;
        cuts.extend([at, at + 3, at + 8, at + 8 + record / 2, at + 8 + record]);
        at += 8 + record + padding as usize;
    }
    assert!(cuts.len() > 500);
    let dir = damaged(&cluster, &healthy, |_| {});
    let (mut broken, mut shorter) = (0, 0);
    // From the end on, so that each cut makes the file shorter.
    for cut in cuts.iter().rev() {
        truncate(&segment(&dir), *cut as u64);
        let dataset = read(&dir).unwrap();
        if dataset.class == Class::Broken {
            assert!(dataset.reason.contains("member/"), "cut at {cut}: {}", dataset.reason);
            broken += 1;
            continue;
        }
        assert_eq!(dataset.class, Class::Pair, "cut at {cut}: {}", dataset.reason);
        assert_eq!(dataset.members, whole.members);
        assert!(dataset.raft.last_index >= whole.consistent_index, "cut at {cut}: {dataset:?}");
        shorter += 1;
    }
    assert!(broken > 20 * shorter, "{broken} broken, {shorter} shorter");
}

/// A flipped bit anywhere in the log is found, or changes nothing that matters (padding, zeros).
fn flipped_bits_in_the_log(release: Release) {
    let (cluster, healthy, whole) = healthy(release);
    let path = segment(&healthy);
    let bytes = fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let dir = damaged(&cluster, &healthy, |_| {});
    let target = segment(&dir);
    let mut broken = 0;
    let step = (used / 1500).max(1);
    let places: Vec<_> = (0..used).step_by(step).collect();
    for (number, at) in places.iter().enumerate() {
        let bit = 1 << (number % 8);
        common::overwrite(&target, *at as u64, &[bytes[*at] ^ bit]);
        let dataset = read(&dir).unwrap();
        common::overwrite(&target, *at as u64, &[bytes[*at]]);
        if dataset.class == Class::Broken {
            assert!(dataset.reason.contains("member/"), "byte {at}: {}", dataset.reason);
            broken += 1;
            continue;
        }
        assert_eq!(dataset.class, Class::Pair, "byte {at}: {}", dataset.reason);
        assert_eq!(dataset.cluster_id, whole.cluster_id, "byte {at}");
        assert_eq!(dataset.member_id, whole.member_id, "byte {at}");
        assert_eq!(dataset.members, whole.members, "byte {at}");
        assert!(dataset.raft.last_index >= whole.consistent_index, "byte {at}");
    }
    assert!(broken * 10 > places.len() * 8, "{broken} of {} found", places.len());
}

/// A damaged newest snapshot: etcd goes on from the one before, and so do we, and say so.
fn an_older_snapshot_serves(release: Release) {
    let (cluster, healthy, whole) = healthy(release);
    for (what, damage) in [
        ("damaged", (|snap: &Path| flip(snap, 100, 0)) as fn(&Path)),
        ("empty", |snap: &Path| truncate(snap, 0)),
        ("missing", |snap: &Path| fs::remove_file(snap).unwrap()),
        ("a link", |snap: &Path| link_instead(snap)),
    ] {
        let dir = damaged(&cluster, &healthy, |dir| {
            damage(&common::files(dir, "snap", "snap").pop().unwrap());
        });
        let dataset = read_unchanged(&dir, what);
        assert_eq!(dataset.class, Class::Pair, "{what}: {}", dataset.reason);
        assert!(!dataset.problems.is_empty(), "{what}");
        assert_eq!(dataset.members, whole.members, "{what}");
        assert_eq!(dataset.raft, whole.raft, "{what}");
    }
    // One that a crash left over, unknown to the log, is ignored.
    let dir = damaged(&cluster, &healthy, |dir| {
        let newest = common::files(dir, "snap", "snap").pop().unwrap();
        fs::copy(newest, dir.join("member/snap/00000000000000ff-00000000000000ff.snap")).unwrap();
    });
    let dataset = read_unchanged(&dir, "left over");
    assert_eq!((dataset.class, dataset.raft), (Class::Pair, whole.raft));
}

/// One damaged meta of two is no loss: bolt itself falls back to the other.
fn one_meta_is_enough(release: Release) {
    let (cluster, healthy, whole) = healthy(release);
    for meta in [0, 4096] {
        let dir =
            damaged(&cluster, &healthy, |dir| flip(&dir.join("member/snap/db"), meta + 64, 5));
        let dataset = read_unchanged(&dir, "a damaged meta");
        assert_eq!(dataset.class, Class::Pair, "{}", dataset.reason);
        assert!(dataset.problems.iter().any(|problem| problem.contains("meta")));
        assert!(dataset.revision <= whole.revision);
    }
}

/// A database that has applied more than the log holds: the log has lost its end.
fn a_log_that_lost_its_end(release: Release) {
    let (mut cluster, healthy, _) = healthy(release);
    cluster.members[0].start().unwrap();
    cluster.members[1].start().unwrap();
    cluster.members[0].wait_writable().unwrap();
    cluster.members[0].put_many("later", 20, 10).unwrap();
    cluster.wait_applied().unwrap();
    cluster.members[0].stop().unwrap();
    let dir = damaged(&cluster, &healthy, |dir| {
        let newer = cluster.members[0].data_dir().join("member/snap/db");
        fs::copy(newer, dir.join("member/snap/db")).unwrap();
    });
    let dataset = read_unchanged(&dir, "a log of yesterday");
    assert_eq!(dataset.class, Class::Broken);
    assert!(dataset.reason.contains("lost its end"), "{}", dataset.reason);
}

macro_rules! on_both_series {
    ($($name:ident),+ $(,)?) => {
        mod etcd_3_4 {
            $(#[test] fn $name() { super::$name(etcd_fixture::Release::Bookworm); })+
        }
        mod etcd_3_5 {
            $(#[test] fn $name() { super::$name(etcd_fixture::Release::Trixie); })+
        }
    };
}

on_both_series!(
    each_kind_of_damage,
    mixed_clusters,
    cut_off_anywhere,
    flipped_bits_in_the_log,
    an_older_snapshot_serves,
    one_meta_is_enough,
    a_log_that_lost_its_end,
);
