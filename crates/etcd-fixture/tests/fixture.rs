//! The fixture against both etcd series: everything that other tests lean on.

use etcd_fixture::{Cluster, Release};

fn learner_flags(cluster: &Cluster) -> Vec<bool> {
    let mut listed = cluster.members[0].member_list().unwrap();
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    listed.iter().map(|member| member.learner).collect()
}

/// A member can be added, promoted, paused, killed, started again and removed, on both series.
#[test]
fn the_life_of_a_second_member() {
    for release in Release::ALL {
        let mut cluster = Cluster::single(release).unwrap();
        cluster.members[0].put("before", "1").unwrap();
        let second = cluster.add_learner().unwrap();
        assert_eq!(learner_flags(&cluster), [false, true], "{release}");
        cluster.promote(second).unwrap();
        assert_eq!(learner_flags(&cluster), [false, false], "{release}");

        cluster.members[0].put_many("many", 50, 10).unwrap();
        assert_eq!(cluster.members[second].count("many").unwrap(), 50, "{release}");
        cluster.members[second].kill().unwrap();
        cluster.members[second].start().unwrap();
        cluster.members[second].wait_ready().unwrap();
        cluster.wait_applied().unwrap();

        cluster.remove(second).unwrap();
        cluster.members[second].wait_exit().unwrap();
        assert_eq!(learner_flags(&cluster), [false], "{release}");
        cluster.members[0].stop().unwrap();
    }
}

/// A dropped cluster leaves no process and no directory behind.
#[test]
fn nothing_is_left_behind() {
    let cluster = Cluster::pair(Release::Trixie).unwrap();
    let pids: Vec<_> = cluster.members.iter().filter_map(etcd_fixture::Member::pid).collect();
    let directory = cluster.directory().to_owned();
    assert!(directory.exists());
    assert_eq!(pids.len(), 2);
    drop(cluster);
    assert!(!directory.exists());
    for pid in pids {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
