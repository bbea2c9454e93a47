//! Moments that only a kill at the right instant leaves on a disk, made with real etcd.

mod common;

use std::path::Path;
use std::time::Duration;

use dyad_core::dataset::{Class, Dataset, OwnRemoval};
use etcd_disk::{SealError, Sealed, seal};
use etcd_fixture::{Cluster, Options, Release, wait_for};
use serde_json::json;

fn read(dir: &Path) -> Dataset {
    etcd_disk::read(dir).unwrap()
}

/// A pair whose leader has the removal of a member in its log that nothing has committed; both are killed.
/// Returns the leader's place.
fn with_uncommitted_removal(release: Release, whom: impl Fn(usize) -> usize) -> (Cluster, usize) {
    // Without its check etcd takes the removal at once. An election takes long: the leader stays one.
    let mut options = Options::new(release).argument("--strict-reconfig-check=false");
    options.election_ms = 2_000;
    let mut cluster = Cluster::start(2, options).unwrap();
    cluster.members[0].put_many("key", 10, 10).unwrap();
    cluster.wait_applied().unwrap();
    let leader = cluster.leader().unwrap();
    let id = cluster.id_of(whom(leader)).unwrap().to_string();
    let before = read(cluster.members[leader].data_dir()).raft.last_index;
    let mut gateway = cluster.members[leader].gateway().unwrap();
    cluster.members[1 - leader].pause().unwrap();
    std::thread::scope(|scope| {
        // With the follower hanging nothing can be committed: no answer, but the entry is in the log.
        let body = json!({ "ID": id });
        scope.spawn(move || drop(gateway.post("/v3/cluster/member/remove", &body)));
        let dir = cluster.members[leader].data_dir().to_owned();
        wait_for("the removal to be in the leader's log", || {
            (etcd_disk::read(&dir).ok()?.raft.last_index > before).then_some(())
        })
        .unwrap();
        for place in [leader, 1 - leader] {
            cluster.members[place].kill().unwrap();
        }
    });
    (cluster, leader)
}

/// V5 on real disks: what the tail holds is not believed where it would make the class better, and the
/// membership is reported as of the last entry.
fn removal_of_the_peer_not_committed(release: Release) {
    let (cluster, leader) = with_uncommitted_removal(release, |leader| 1 - leader);
    let dataset = read(cluster.members[leader].data_dir());
    assert_eq!(dataset.class, Class::Pair, "{}", dataset.reason);
    assert!(!dataset.solid_pair());
    assert_eq!(dataset.members.len(), 1);
    assert!(dataset.problems.iter().any(|problem| problem.contains("not known to be committed")));
    assert_eq!(dataset.at_commit_mark().unwrap().voters().count(), 2);
    assert_eq!(dataset.own_removal, None);
    let other = read(cluster.members[1 - leader].data_dir());
    assert!(other.solid_pair(), "{}", other.reason);
}

/// V7 on a real disk: a member whose own removal is in its log has left, but must not say so to its peer while
/// nobody knows whether the removal is committed.
fn own_removal_not_committed(release: Release) {
    let (mut cluster, leader) = with_uncommitted_removal(release, |leader| leader);
    let dataset = read(cluster.members[leader].data_dir());
    assert_eq!(dataset.class, Class::Left, "{}", dataset.reason);
    assert_eq!(dataset.own_removal, Some(OwnRemoval::Uncommitted), "{}", dataset.reason);
    assert_eq!(dataset.at_commit_mark().unwrap().voters().count(), 2);
    // Both started again, the longer log wins: the removal is committed, and known to be.
    for member in &mut cluster.members {
        member.start().unwrap();
    }
    cluster.members[leader].wait_exit().unwrap();
    let dataset = read(cluster.members[leader].data_dir());
    assert_eq!(dataset.class, Class::Left, "{}", dataset.reason);
    assert_eq!(dataset.own_removal, Some(OwnRemoval::Committed), "{}", dataset.reason);
}

/// A follower that is killed after it received a database and before it took it over: the received one counts,
/// for etcd and here.
fn a_received_database(release: Release) {
    // More entries than the leader keeps for those who lag behind.
    const WRITERS: u32 = 12;
    const WRITES: u32 = 450;
    let mut cluster = Cluster::start(1, Options::new(release).snapshot_count(100)).unwrap();
    let learner = cluster.add_learner().unwrap();
    cluster.members[0].put_many("key", 5, 10).unwrap();
    cluster.wait_applied().unwrap();
    let dir = cluster.members[learner].data_dir().to_owned();
    let old = read(&dir);
    cluster.members[learner].kill().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let leader = &cluster.members[0];
            scope.spawn(move || leader.put_many(&format!("w{writer}-"), WRITES, 10).unwrap());
        }
    });
    // Held before it has asked for anything. The first rename makes the received database, the second puts it
    // in the old one's place.
    cluster.members[learner].start().unwrap();
    cluster.members[learner].pause().unwrap();
    let slow = cluster.members[learner].slow_renames(Duration::from_secs(2)).unwrap();
    cluster.members[learner].resume().unwrap();
    wait_for("a received database", || {
        let dataset = etcd_disk::read(&dir).ok()?;
        dataset.problems.iter().any(|problem| problem.contains(".snap.db")).then_some(())
    })
    .unwrap();
    cluster.members[learner].kill().unwrap();
    drop(slow);

    let received = read(&dir);
    assert_eq!(received.class, Class::Learner, "{}", received.reason);
    assert!(received.problems.iter().any(|problem| problem.contains("etcd takes")), "{received:?}");
    assert!(received.consistent_index.0 > old.consistent_index.0 + 5_000, "{received:?}");
    let [file] = common::files(&dir, "snap", "db").try_into().unwrap();
    assert_eq!(received.revision, common::revision_by_etcd(release, &file));

    cluster.members[learner].start().unwrap();
    cluster.members[learner].wait_ready().unwrap();
    cluster.wait_applied().unwrap();
    cluster.members[learner].stop().unwrap();
    let taken = read(&dir);
    assert!(taken.problems.iter().all(|problem| !problem.contains(".snap.db")), "{taken:?}");
    assert!(taken.revision >= received.revision);
}

/// An etcd that starts while a directory is sealed waits, or is there first: either the whole tail is kept, or
/// sealing is refused. The directory opens in each case.
fn seal_beside_a_starting_etcd(release: Release) {
    const ROUNDS: u64 = 8;
    const TAIL: u32 = 5;
    let mut cluster = Cluster::pair(release).unwrap();
    cluster.members[0].put_many("committed", 20, 50).unwrap();
    cluster.wait_applied().unwrap();
    let leader = cluster.leader().unwrap();
    cluster.members[1 - leader].pause().unwrap();
    let dir = cluster.members[leader].data_dir().to_owned();
    let before = read(&dir).raft.last_index;
    std::thread::scope(|scope| {
        for number in 0..TAIL {
            let mut gateway = cluster.members[leader].gateway().unwrap();
            scope.spawn(move || drop(gateway.put(&format!("tail{number}"), b"kept")));
        }
        wait_for("the writes to be in the leader's log", || {
            let last = etcd_disk::read(&dir).ok()?.raft.last_index;
            (last.0 >= before.0 + u64::from(TAIL)).then_some(())
        })
        .unwrap();
        for place in [leader, 1 - leader] {
            cluster.members[place].kill().unwrap();
        }
    });
    let original = cluster.directory().join("original");
    common::copy(&dir, &original);
    let member = &mut cluster.members[leader];
    for round in 0..ROUNDS {
        std::fs::remove_dir_all(&dir).unwrap();
        common::copy(&original, &dir);
        member.start_with(&["--force-new-cluster"]).unwrap();
        // At another moment of the start each time.
        std::thread::sleep(Duration::from_millis(round * 15));
        let sealed = seal(&dir);
        member.wait_ready().unwrap();
        let kept = member.count("tail").unwrap();
        match sealed {
            Ok(Sealed::Raised { .. }) => assert_eq!(kept, u64::from(TAIL), "round {round}"),
            Err(SealError::Running | SealError::Read(etcd_disk::Error::Unsettled { .. })) => {}
            other => panic!("round {round}: {other:?}, {kept} writes of the tail"),
        }
        assert_eq!(member.count("committed").unwrap(), 20, "round {round}");
        eprintln!("round {round}: {sealed:?}, {kept} writes of the tail");
        member.stop().unwrap();
        assert_eq!(read(&dir).class, Class::Alone, "round {round}");
    }
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
    removal_of_the_peer_not_committed,
    own_removal_not_committed,
    a_received_database,
    seal_beside_a_starting_etcd,
);
