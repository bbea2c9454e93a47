//! Agreement with real etcd of both series: what is read from disk is what etcd itself says.

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dyad_core::dataset::{Class, Dataset, Member, OwnRemoval};
use dyad_core::ids::{ClusterId, MemberId, Revision};
use etcd_fixture::{Cluster, ListedMember, Options, Release, Status, wait_for};

fn read(dir: &Path) -> Dataset {
    etcd_disk::read(dir).unwrap()
}

fn expected_members(listed: &[ListedMember]) -> Vec<Member> {
    listed
        .iter()
        .map(|member| Member {
            id: MemberId(member.id),
            name: member.name.clone(),
            peer_urls: member.peer_urls.clone(),
            learner: member.learner,
        })
        .collect()
}

/// What must be equal after a stop in good order.
fn assert_agrees(dataset: &Dataset, status: &Status, listed: &[ListedMember], what: &str) {
    assert_eq!(dataset.cluster_id, Some(ClusterId(status.cluster_id)), "{what}: cluster id");
    assert_eq!(dataset.member_id, Some(MemberId(status.member_id)), "{what}: member id");
    assert_eq!(dataset.revision, Revision(status.revision), "{what}: revision");
    assert_eq!(dataset.members, expected_members(listed), "{what}: members");
    assert!(dataset.raft.last_index.0 >= status.raft_index, "{what}: last index");
    assert!(dataset.raft.commit.0 >= status.raft_index, "{what}: commit mark");
    assert!(dataset.raft.term.0 >= status.raft_term, "{what}: term");
    assert!(!dataset.live, "{what}: not running");
}

/// The problems but for one that 3.5.16 gives by itself: its database does not know of promotions.
fn other_problems(dataset: &Dataset) -> Vec<&str> {
    let problems = dataset.problems.iter().map(String::as_str);
    problems.filter(|problem| !problem.contains("members bucket")).collect()
}

fn assert_no_problems(dataset: &Dataset, what: &str) {
    assert_eq!(dataset.problems, Vec::<String>::new(), "{what}");
}

/// A single member: alone, and everything as etcdctl says.
fn single_node(release: Release) {
    let mut cluster = Cluster::single(release).unwrap();
    assert_eq!(cluster.members[0].status().unwrap().revision, 1);
    cluster.members[0].put_many("key", 20, 100).unwrap();
    let status = cluster.members[0].status().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    cluster.members[0].stop().unwrap();
    let dataset = read(cluster.members[0].data_dir());
    assert_agrees(&dataset, &status, &listed, "single");
    assert_no_problems(&dataset, "single");
    assert_eq!(dataset.class, Class::Alone);
    assert_eq!(dataset.revision, Revision(21));
    assert_eq!(dataset.raft.vote, dataset.member_id);
    assert_eq!(dataset.prefixes.len(), 1);
    assert_eq!(
        common::revision_by_etcd(release, &cluster.members[0].data_dir().join("member/snap/db")),
        dataset.revision
    );
}

/// An empty key space: revision 1, as etcd counts.
fn fresh_node(release: Release) {
    let mut cluster = Cluster::single(release).unwrap();
    let status = cluster.members[0].status().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    cluster.members[0].stop().unwrap();
    let dataset = read(cluster.members[0].data_dir());
    assert_agrees(&dataset, &status, &listed, "fresh");
    assert_eq!(dataset.revision, Revision(1));
}

/// Two voters, stopped in good order: both are a solid pair and agree with etcdctl.
fn two_voters(release: Release) {
    let mut cluster = Cluster::pair(release).unwrap();
    cluster.members[0].put_many("key", 30, 100).unwrap();
    cluster.wait_applied().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    let statuses: Vec<_> = cluster.members.iter().map(|m| m.status().unwrap()).collect();
    for place in [0, 1] {
        cluster.members[place].stop().unwrap();
        let dataset = read(cluster.members[place].data_dir());
        let what = format!("voter {place}");
        assert_agrees(&dataset, &statuses[place], &listed, &what);
        assert_no_problems(&dataset, &what);
        assert_eq!(dataset.class, Class::Pair, "{what}: {}", dataset.reason);
        assert!(dataset.solid_pair());
        assert_eq!(
            common::revision_by_etcd(
                release,
                &cluster.members[place].data_dir().join("member/snap/db")
            ),
            dataset.revision
        );
    }
}

/// Two voters in the middle of load: read while they run, then killed. Every acknowledged write is in the
/// log of both, and what was read was never anything but a pair.
fn two_voters_under_load(release: Release) {
    let mut cluster = Cluster::start(2, Options::new(release).snapshot_count(200)).unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // Also when an assertion fails: the scope waits for its threads.
        let _stop = StopOnDrop(&stop);
        for writer in 0..6 {
            let mut gateway = cluster.members[writer % 2].gateway().unwrap();
            let (stop, acknowledged) = (&stop, &acknowledged);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    if gateway.put(&format!("key{writer}-{number}"), &[b'v'; 300]).is_err() {
                        break;
                    }
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut before = [Revision(0); 2];
        while acknowledged.load(Ordering::Relaxed) < 1500 {
            for place in [0, 1] {
                let dataset = read(cluster.members[place].data_dir());
                assert!(dataset.live);
                assert_eq!(dataset.class, Class::Pair, "{}", dataset.reason);
                assert_eq!(dataset.members, expected_members(&listed));
                assert_no_problems(&dataset, "under load");
                assert!(dataset.revision >= before[place], "the revision went backwards");
                assert!(dataset.consistent_index <= dataset.raft.last_index);
                before[place] = dataset.revision;
            }
        }
        for place in [0, 1] {
            cluster.members[place].kill().unwrap();
        }
    });
    let acknowledged = acknowledged.load(Ordering::Relaxed);
    for place in [0, 1] {
        let dataset = read(cluster.members[place].data_dir());
        assert!(!dataset.live);
        assert_eq!(dataset.class, Class::Pair, "{}", dataset.reason);
        assert!(
            dataset.raft.last_index.0 >= acknowledged,
            "an acknowledged write is not in the log"
        );
        assert_eq!(
            common::revision_by_etcd(
                release,
                &cluster.members[place].data_dir().join("member/snap/db")
            ),
            dataset.revision
        );
        cluster.members[place].start().unwrap();
    }
    // etcd itself agrees on all of it once it runs again.
    for place in [0, 1] {
        let status = cluster.members[place].wait_ready().unwrap();
        assert!(status.revision > acknowledged);
        assert_eq!(cluster.members[place].member_list().unwrap(), listed);
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A voter and a learner, then the promotion, then the removal: both sides at each step.
fn life_of_a_learner(release: Release) {
    let options = Options::new(release).snapshot_count(50);
    let mut cluster = Cluster::start(1, options).unwrap();
    cluster.members[0].put_many("before", 120, 100).unwrap();
    let second = cluster.add_learner().unwrap();
    cluster.members[0].put_many("with-learner", 10, 100).unwrap();
    cluster.wait_applied().unwrap();
    check_both(&mut cluster, second, "learner", [Class::Alone, Class::Learner]);

    cluster.promote(second).unwrap();
    cluster.members[0].put_many("promoted", 10, 100).unwrap();
    cluster.wait_applied().unwrap();
    check_both(&mut cluster, second, "promoted", [Class::Pair, Class::Pair]);
    // The same once the promotion is behind a snapshot.
    cluster.members[0].put_many("more", 120, 100).unwrap();
    cluster.wait_applied().unwrap();
    check_both(&mut cluster, second, "promoted, snapshot", [Class::Pair, Class::Pair]);

    let removed_id = MemberId(cluster.id_of(second).unwrap());
    cluster.remove(second).unwrap();
    cluster.members[second].wait_exit().unwrap();
    cluster.members[0].put_many("removed", 10, 100).unwrap();
    let status = cluster.members[0].status().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    cluster.members[0].stop().unwrap();
    let stayer = read(cluster.members[0].data_dir());
    assert_agrees(&stayer, &status, &listed, "the one that stayed");
    assert_eq!(stayer.class, Class::Alone, "{}", stayer.reason);
    assert_eq!(stayer.removed, [removed_id]);
    assert_eq!(stayer.own_removal, None);
    let leaver = read(cluster.members[second].data_dir());
    assert_eq!(leaver.class, Class::Left, "{}", leaver.reason);
    assert_eq!(leaver.member_id, Some(removed_id));
    assert!(leaver.own_removal.is_some());
    assert!(leaver.removed.contains(&removed_id));
    assert_eq!(leaver.members, expected_members(&listed));
}

/// Stops both, reads both, starts both.
fn check_both(cluster: &mut Cluster, second: usize, what: &str, classes: [Class; 2]) {
    let listed = cluster.members[0].member_list().unwrap();
    let statuses =
        [cluster.members[0].status().unwrap(), cluster.members[second].status().unwrap()];
    for (place, member) in [0, second].into_iter().enumerate() {
        cluster.members[member].stop().unwrap();
        let dataset = read(cluster.members[member].data_dir());
        let what = format!("{what}: member {place}");
        assert_agrees(&dataset, &statuses[place], &listed, &what);
        assert_eq!(dataset.class, classes[place], "{what}: {}", dataset.reason);
        assert_eq!(other_problems(&dataset), Vec::<&str>::new(), "{what}");
        assert_eq!(dataset.prefixes.len(), 1, "{what}");
    }
    for member in [0, second] {
        cluster.members[member].start().unwrap();
    }
    cluster.members[0].wait_writable().unwrap();
    cluster.members[second].wait_ready().unwrap();
    cluster.wait_applied().unwrap();
}

/// A learner is removed: it has left, though it never voted.
fn removed_learner(release: Release) {
    let mut cluster = Cluster::single(release).unwrap();
    let second = cluster.add_learner().unwrap();
    cluster.members[0].put_many("key", 5, 10).unwrap();
    cluster.wait_applied().unwrap();
    cluster.remove(second).unwrap();
    cluster.members[second].wait_exit().unwrap();
    let dataset = read(cluster.members[second].data_dir());
    assert_eq!(dataset.class, Class::Left, "{}", dataset.reason);
}

/// `--force-new-cluster` on one of two voters: alone afterwards, the other unchanged.
fn force_new_cluster(release: Release) {
    let mut cluster = Cluster::pair(release).unwrap();
    cluster.members[0].put_many("key", 30, 100).unwrap();
    cluster.wait_applied().unwrap();
    for place in [0, 1] {
        cluster.members[place].stop().unwrap();
    }
    let before = read(cluster.members[0].data_dir());
    cluster.members[0].start_with(&["--force-new-cluster"]).unwrap();
    cluster.members[0].wait_ready().unwrap();
    cluster.members[0].put_many("alone", 10, 100).unwrap();
    let status = cluster.members[0].status().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    cluster.members[0].stop().unwrap();
    let after = read(cluster.members[0].data_dir());
    assert_agrees(&after, &status, &listed, "forced");
    assert_eq!(after.class, Class::Alone, "{}", after.reason);
    assert_eq!((after.cluster_id, after.member_id), (before.cluster_id, before.member_id));
    let other = read(cluster.members[1].data_dir());
    assert_eq!(other.class, Class::Pair);
    assert_eq!(after.removed, [other.member_id.unwrap()]);
}

/// Compaction and defragmentation change the file, not the revision; also where the very last revision is
/// a deletion that the compaction has taken away.
fn compaction_and_defrag(release: Release) {
    let mut cluster = Cluster::single(release).unwrap();
    let member = &mut cluster.members[0];
    for round in 0..5 {
        member.put_many("key", 40, 2000 + round).unwrap();
    }
    member.ctl(&["compaction", "100", "--physical"]).unwrap();
    member.ctl(&["defrag"]).unwrap();
    check_single(member, "compacted in the middle");
    member.ctl(&["del", "key7"]).unwrap();
    let revision = member.status().unwrap().revision.to_string();
    check_single(member, "deleted");
    member.ctl(&["compaction", &revision, "--physical"]).unwrap();
    check_single(member, "compacted at the last revision, a deletion");
    member.ctl(&["defrag"]).unwrap();
    check_single(member, "and defragmented");
    // Nothing at all is left.
    member.ctl(&["del", "--prefix", "key"]).unwrap();
    let revision = member.status().unwrap().revision.to_string();
    member.ctl(&["compaction", &revision, "--physical"]).unwrap();
    member.ctl(&["defrag"]).unwrap();
    check_single(member, "everything deleted");
}

/// Stops, reads, starts again, and compares with what etcd says before and after.
fn check_single(member: &mut etcd_fixture::Member, what: &str) {
    let listed = member.member_list().unwrap();
    let before = member.status().unwrap();
    member.stop().unwrap();
    let dataset = read(member.data_dir());
    member.start().unwrap();
    let after = member.wait_ready().unwrap();
    assert_eq!(before.revision, after.revision, "{what}");
    assert_agrees(&dataset, &before, &listed, what);
    assert_no_problems(&dataset, what);
}

/// Several snapshots and segments: read from the newest snapshot on; also after etcd has deleted the
/// oldest segments and snapshots.
fn snapshots_and_rolls(release: Release) {
    let options = Options::new(release).snapshot_count(20);
    let mut cluster = Cluster::start(2, options).unwrap();
    cluster.members[0].put_many("key", 150, 1 << 20).unwrap();
    cluster.members[0].put_many("small", 5, 10).unwrap();
    cluster.wait_applied().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    let statuses: Vec<_> = cluster.members.iter().map(|m| m.status().unwrap()).collect();
    for place in [0, 1] {
        cluster.members[place].stop().unwrap();
        let dir = cluster.members[place].data_dir();
        assert!(count(dir, "wal", ".wal") >= 3, "no rolls");
        assert!(count(dir, "snap", ".snap") >= 3, "no snapshots");
        let dataset = read(dir);
        assert_agrees(&dataset, &statuses[place], &listed, "rolled");
        assert_no_problems(&dataset, "rolled");
        assert_eq!(dataset.class, Class::Pair);
        // At its start etcd deletes what is too old.
        cluster.members[place].start_with(&["--max-wals=1", "--max-snapshots=1"]).unwrap();
    }
    for place in [0, 1] {
        cluster.members[place].wait_ready().unwrap();
        let dir = cluster.members[place].data_dir().to_owned();
        wait_for("the oldest segments to go", || (count(&dir, "wal", ".wal") < 3).then_some(()))
            .unwrap();
    }
    cluster.members[0].put_many("after", 5, 10).unwrap();
    cluster.wait_applied().unwrap();
    let statuses: Vec<_> = cluster.members.iter().map(|m| m.status().unwrap()).collect();
    for place in [0, 1] {
        cluster.members[place].stop().unwrap();
        let dir = cluster.members[place].data_dir();
        assert!(!dir.join("member/wal/0000000000000000-0000000000000000.wal").exists());
        let dataset = read(dir);
        assert_agrees(&dataset, &statuses[place], &listed, "rolled and purged");
        assert_no_problems(&dataset, "rolled and purged");
    }
}

fn count(dir: &Path, part: &str, suffix: &str) -> usize {
    let names = fs::read_dir(dir.join("member").join(part)).unwrap();
    names
        .filter(|name| name.as_ref().unwrap().file_name().to_str().unwrap().ends_with(suffix))
        .count()
}

/// Changes that etcd takes into its log but refuses to apply leave no trace in the membership.
fn refused_changes(release: Release) {
    let mut cluster = Cluster::start(1, Options::new(release)).unwrap();
    let second = cluster.add_learner().unwrap();
    // A second learner: etcd 3.4 and 3.5 write the change into the log, then refuse it.
    let refused = cluster.members[0].ctl(&[
        "member",
        "add",
        "third",
        "--learner",
        "--peer-urls=http://127.0.0.9:1",
    ]);
    assert!(refused.is_err());
    cluster.members[0].put_many("key", 5, 10).unwrap();
    cluster.wait_applied().unwrap();
    check_both(&mut cluster, second, "refused", [Class::Alone, Class::Learner]);
}

/// Moved addresses are those of the log.
fn moved_address(release: Release) {
    let mut cluster = Cluster::single(release).unwrap();
    let id = format!("{:x}", cluster.id_of(0).unwrap());
    cluster.members[0]
        .ctl(&["member", "update", &id, "--peer-urls=http://127.0.0.9:2380,http://[::1]:2380"])
        .unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    let status = cluster.members[0].status().unwrap();
    cluster.members[0].stop().unwrap();
    let dataset = read(cluster.members[0].data_dir());
    assert_agrees(&dataset, &status, &listed, "moved");
    assert_eq!(dataset.members[0].peer_urls.len(), 2);
}

/// A third voter is read like any other, and said to be one too many.
fn three_voters(release: Release) {
    let mut cluster = Cluster::start(3, Options::new(release)).unwrap();
    cluster.members[0].put("key", "value").unwrap();
    cluster.wait_applied().unwrap();
    let listed = cluster.members[0].member_list().unwrap();
    let status = cluster.members[0].status().unwrap();
    cluster.members[0].stop().unwrap();
    let dataset = read(cluster.members[0].data_dir());
    assert_agrees(&dataset, &status, &listed, "three");
    assert_eq!(dataset.class, Class::Pair);
    assert!(dataset.problems.iter().any(|problem| problem.contains("3 voters")));
}

/// A leaver that heard of its committed removal can say so.
fn own_removal_is_known(release: Release) {
    let mut cluster = Cluster::pair(release).unwrap();
    cluster.members[0].put_many("key", 5, 10).unwrap();
    let id = format!("{:x}", cluster.id_of(1).unwrap());
    // Asked to remove itself, the member ends once it has applied its removal. etcd refuses it until its
    // members have been connected for five seconds.
    wait_for("the member to have removed itself", || {
        let _ = cluster.members[1].ctl(&["member", "remove", &id]);
        (!cluster.members[1].is_running()).then_some(())
    })
    .unwrap();
    let dataset = read(cluster.members[1].data_dir());
    assert_eq!(dataset.class, Class::Left, "{}", dataset.reason);
    assert_eq!(dataset.own_removal, Some(OwnRemoval::Committed), "{}", dataset.reason);
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
    single_node,
    fresh_node,
    two_voters,
    two_voters_under_load,
    life_of_a_learner,
    removed_learner,
    force_new_cluster,
    compaction_and_defrag,
    snapshots_and_rolls,
    refused_changes,
    moved_address,
    three_voters,
    own_removal_is_known,
);
