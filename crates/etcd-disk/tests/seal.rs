//! Sealing on real data: the tail is kept, a kill at any instant leaves a directory that etcd opens.

mod common;

use std::fs;
use std::path::Path;

use dyad_core::dataset::Class;
use dyad_core::ids::Index;
use etcd_disk::{SealError, Sealed, read, seal};
use etcd_fixture::{Cluster, Options, Release, wait_for};

/// How many writes stand behind the commit mark.
const TAIL: u32 = 12;

/// A pair whose leader has writes in its log that nothing has committed; both are killed. Returns the
/// leader's place.
fn with_tail(release: Release) -> (Cluster, usize) {
    let mut cluster = Cluster::start(2, Options::new(release).snapshot_count(100)).unwrap();
    cluster.members[0].put_many("committed", 150, 50).unwrap();
    cluster.wait_applied().unwrap();
    let leader = cluster.leader().unwrap();
    let before = read(cluster.members[leader].data_dir()).unwrap().raft.last_index;
    cluster.members[1 - leader].pause().unwrap();
    let data_dir = cluster.members[leader].data_dir().to_owned();
    std::thread::scope(|scope| {
        // None of them is answered: the follower hangs.
        for number in 0..TAIL {
            let mut gateway = cluster.members[leader].gateway().unwrap();
            scope.spawn(move || drop(gateway.put(&format!("tail{number}"), b"kept")));
        }
        wait_for("the writes to be in the leader's log", || {
            let last = read(&data_dir).ok()?.raft.last_index;
            (last.0 >= before.0 + u64::from(TAIL)).then_some(())
        })
        .unwrap();
        for place in [leader, 1 - leader] {
            cluster.members[place].kill().unwrap();
        }
    });
    (cluster, leader)
}

fn the_tail_is_kept(release: Release) {
    let (mut cluster, leader) = with_tail(release);
    let dir = cluster.members[leader].data_dir().to_owned();
    let before = read(&dir).unwrap();
    assert_eq!(before.class, Class::Pair);
    assert!(before.raft.commit.0 + u64::from(TAIL) <= before.raft.last_index.0, "{before:?}");

    let sealed = seal(&dir).unwrap();
    assert_eq!(sealed, Sealed::Raised { from: before.raft.commit, to: before.raft.last_index });
    let after = read(&dir).unwrap();
    assert_eq!(after.raft.commit, before.raft.last_index);
    assert_eq!(after.raft.last_index, before.raft.last_index);
    assert_eq!((after.raft.term, after.raft.vote), (before.raft.term, before.raft.vote));
    assert_eq!(after.problems, before.problems);

    // Twice changes nothing.
    let fingerprint = common::fingerprint(&dir);
    assert_eq!(seal(&dir).unwrap(), Sealed::Already { at: before.raft.last_index });
    assert_eq!(common::fingerprint(&dir), fingerprint);

    cluster.members[leader].start_with(&["--force-new-cluster"]).unwrap();
    cluster.members[leader].wait_ready().unwrap();
    assert_eq!(cluster.members[leader].count("tail").unwrap(), u64::from(TAIL));
    assert_eq!(cluster.members[leader].count("committed").unwrap(), 150);
    assert!(matches!(seal(&dir), Err(SealError::Running)));
}

/// The reason why sealing exists: without it the same directory loses the tail.
#[test]
fn without_a_seal_the_tail_is_lost() {
    let (mut cluster, leader) = with_tail(Release::Trixie);
    cluster.members[leader].start_with(&["--force-new-cluster"]).unwrap();
    cluster.members[leader].wait_ready().unwrap();
    assert!(cluster.members[leader].count("tail").unwrap() < u64::from(TAIL));
}

/// The bytes that sealing writes, and where: found by comparing the last segment before and after.
fn written(before: &Path, dir: &Path) -> (std::path::PathBuf, usize, Vec<u8>) {
    let segment = common::files(dir, "wal", "wal").pop().unwrap();
    let old = fs::read(before.join("member/wal").join(segment.file_name().unwrap())).unwrap();
    let new = fs::read(&segment).unwrap();
    assert_eq!(old.len(), new.len(), "sealing keeps the space that etcd has allocated");
    let start = (0..old.len()).find(|at| old[*at] != new[*at]).unwrap();
    let end = (0..old.len()).rfind(|at| old[*at] != new[*at]).unwrap() + 1;
    assert_eq!(start % 8, 0, "the record is aligned");
    (segment, start, new[start..end.next_multiple_of(8)].to_vec())
}

/// A kill at any instant: every state that the disk can be in between the steps is read as the old log or
/// the new one, and real etcd opens it.
fn a_kill_at_any_instant(release: Release) {
    let (mut cluster, leader) = with_tail(release);
    let dir = cluster.members[leader].data_dir().to_owned();
    let before_dir = cluster.directory().join("before");
    common::copy(&dir, &before_dir);
    let before = read(&before_dir).unwrap();
    let sealed_dir = cluster.directory().join("sealed");
    common::copy(&dir, &sealed_dir);
    seal(&sealed_dir).unwrap();
    let (segment, start, record) = written(&before_dir, &sealed_dir);
    let name = segment.file_name().unwrap();

    let mut states = Vec::new();
    // First the record behind a length of zero, byte by byte; then the length.
    for bytes in 8..=record.len() {
        let mut state = record.clone();
        state[..8].fill(0);
        state[bytes..].fill(0);
        states.push((state, before.raft.commit));
    }
    for bytes in 1..=8 {
        let mut state = record.clone();
        state[bytes..8].fill(0);
        states.push((state, before.raft.last_index));
    }
    let total = states.len();
    for (number, (state, commit)) in states.into_iter().enumerate() {
        let path = before_dir.join("member/wal").join(name);
        common::overwrite(&path, start as u64, &state);
        let dataset = read(&before_dir).unwrap();
        let what = format!("state {number} of {total}");
        assert_eq!(dataset.class, Class::Pair, "{what}: {}", dataset.reason);
        assert_eq!(dataset.raft.commit, commit, "{what}");
        assert_eq!(dataset.raft.last_index, before.raft.last_index, "{what}");
        // Going on after the kill gives the same as without it.
        let again = cluster.directory().join("again");
        common::copy(&before_dir, &again);
        seal(&again).unwrap();
        assert_eq!(read(&again).unwrap().raft.commit, before.raft.last_index, "{what}");
        fs::remove_dir_all(&again).unwrap();
        // Real etcd for a sample of them: each takes a second.
        if number % (total / 6) == 0 || number == total - 8 {
            fs::remove_dir_all(&dir).unwrap();
            common::copy(&before_dir, &dir);
            cluster.members[leader].start_with(&["--force-new-cluster"]).unwrap();
            cluster.members[leader]
                .wait_ready()
                .unwrap_or_else(|error| panic!("{what}: {error:#}"));
            cluster.members[leader].kill().unwrap();
        }
    }
}

/// What a torn write left behind the log is cut off first, as etcd would.
fn a_torn_tail_is_cut_off(release: Release) {
    let (mut cluster, leader) = with_tail(release);
    let dir = cluster.members[leader].data_dir().to_owned();
    let last = read(&dir).unwrap().raft.last_index;
    let segment = common::files(&dir, "wal", "wal").pop().unwrap();
    let used = common::without_zeros(&segment).len() as u64 - 4096;
    // A record's length, and a first sector of it that never reached the disk.
    common::overwrite(&segment, used, &1200_u64.to_le_bytes());
    common::overwrite(&segment, used + 600, &[7; 300]);
    let torn = read(&dir).unwrap();
    assert_eq!(torn.class, Class::Pair, "{}", torn.reason);
    assert_eq!(torn.raft.last_index, last);
    assert!(torn.problems.iter().any(|problem| problem.contains("not written as a whole")));
    let length = fs::metadata(&segment).unwrap().len();
    assert!(matches!(seal(&dir).unwrap(), Sealed::Raised { .. }));
    assert_eq!(fs::metadata(&segment).unwrap().len(), length);
    let sealed = read(&dir).unwrap();
    assert_eq!((sealed.raft.commit, sealed.raft.last_index), (last, last));
    assert!(sealed.problems.iter().all(|problem| !problem.contains("as a whole")));
    cluster.members[leader].start_with(&["--force-new-cluster"]).unwrap();
    cluster.members[leader].wait_ready().unwrap();
    assert_eq!(cluster.members[leader].count("tail").unwrap(), u64::from(TAIL));
}

/// Only a voter's data may be sealed, and nothing is written otherwise.
fn what_is_refused(release: Release) {
    let mut cluster = Cluster::single(release).unwrap();
    let second = cluster.add_learner().unwrap();
    cluster.members[0].put_many("key", 5, 10).unwrap();
    cluster.wait_applied().unwrap();
    let learner = cluster.members[second].data_dir().to_owned();
    assert!(matches!(seal(&learner), Err(SealError::Running)));
    cluster.members[second].stop().unwrap();
    let before = common::fingerprint(&learner);
    let refused = seal(&learner);
    assert!(matches!(refused, Err(SealError::Class { class: Class::Learner, .. })), "{refused:?}");
    assert_eq!(common::fingerprint(&learner), before);

    let missing = cluster.directory().join("missing");
    assert!(matches!(seal(&missing), Err(SealError::Class { class: Class::None, .. })));
    assert!(!missing.exists());

    let broken = cluster.directory().join("broken");
    common::copy(&learner, &broken);
    fs::write(broken.join("member/snap/db"), b"").unwrap();
    assert!(matches!(seal(&broken), Err(SealError::Class { class: Class::Broken, .. })));

    // Stopped in good order everything is committed: there is nothing to seal.
    cluster.members[0].stop().unwrap();
    let last = read(cluster.members[0].data_dir()).unwrap().raft.last_index;
    let sealed = seal(cluster.members[0].data_dir()).unwrap();
    assert_eq!(sealed, Sealed::Already { at: last });
    assert!(last > Index(0));
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

on_both_series!(the_tail_is_kept, a_kill_at_any_instant, a_torn_tail_is_cut_off, what_is_refused);
