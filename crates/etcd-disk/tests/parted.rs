//! The keys that were changed since two members parted, as real etcd of both series writes them.

use std::path::Path;

use etcd_disk::since_parting;
use etcd_fixture::{Cluster, Release};

/// Keys written before the other member was removed do not count; each key written, changed or deleted afterwards counts
/// once, in transactions too; ranges count for themselves. An etcd that runs is not disturbed.
#[test]
fn keys_since_the_parting_are_counted() {
    for release in [Release::Bookworm, Release::Trixie] {
        let mut cluster = Cluster::pair(release).unwrap();
        let survivor = cluster.leader().unwrap();
        for number in 0..5 {
            cluster.members[survivor].put(&format!("common-{number}"), "1").unwrap();
        }
        let directory = cluster.members[survivor].data_dir().to_owned();
        assert_eq!(since_parting(&directory), Ok(None), "{release:?}: they have not parted");
        cluster.remove(1 - survivor).unwrap();
        let member = &mut cluster.members[survivor];
        member.wait_writable().unwrap();
        let before = since_parting(&directory).unwrap().unwrap();
        for number in 0..7 {
            member.put(&format!("alone-{number}"), "1").unwrap();
            member.put(&format!("alone-{number}"), "2").unwrap();
        }
        member.ctl_text(&["del", "common-0"]).unwrap();
        member.ctl_text(&["del", "--prefix", "common-"]).unwrap();
        let after = since_parting(&directory).unwrap().unwrap();
        assert_eq!(after.index, before.index, "{release:?}");
        assert_eq!(after.keys - before.keys, 8, "{release:?}: seven keys, and one deleted");
        assert_eq!(after.ranges, 1, "{release:?}");
        member.stop().unwrap();
        assert_eq!(since_parting(&directory), Ok(Some(after)), "{release:?}: the same at rest");
    }
    assert!(since_parting(Path::new("/nowhere")).is_err());
}
