//! The client against real etcd of both series.

use std::time::Duration;

use dyad_core::ids::{ClusterId, MemberId, Revision};
use etcd_fixture::{Cluster, Release, wait_for};
use etcd_peer::client::{
    AlarmKind, Client, Compare, Consistency, Deadline, Operation, OperationResult, Outcome, Range,
    Reason, Target, Txn,
};

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(15))
}

fn client(cluster: &Cluster, place: usize) -> Client {
    Client::new(&cluster.members[place].client_url(), None).unwrap()
}

/// Keys and values come back as they were written, whatever bytes they are; transactions compare before they
/// do; counts, limits and old revisions work.
#[test]
fn keys_and_values() {
    for release in Release::ALL {
        let cluster = Cluster::single(release).unwrap();
        let client = client(&cluster, 0);
        let value: Vec<u8> = (0..=255).collect();
        let first = client.put(b"\xff\0key", &value, soon()).unwrap();
        let read = client.get(b"\xff\0key", Consistency::Linearizable, soon()).unwrap().unwrap();
        assert_eq!((read.value, read.mod_revision, read.version), (value.clone(), first, 1));
        assert_eq!(client.get(b"none", Consistency::Serializable, soon()).unwrap(), None);

        for key in ["p/1", "p/2", "p/3", "q"] {
            client.put(key.as_bytes(), b"v", soon()).unwrap();
        }
        let range = client.range(&Range { limit: 2, ..Range::prefix("p/") }, soon()).unwrap();
        assert_eq!((range.kvs.len(), range.count, range.more), (2, 3, true));
        let count = Range { count_only: true, ..Range::prefix("p/") };
        assert_eq!(client.range(&count, soon()).unwrap().count, 3);
        let old = Range { revision: Some(first), ..Range::prefix("p/") };
        assert_eq!(client.range(&old, soon()).unwrap().count, 0);

        let swap = |from: &[u8], to: &[u8]| Txn {
            compare: vec![Compare { key: b"q".to_vec(), target: Target::Value(from.to_vec()) }],
            success: vec![Operation::Put { key: b"q".to_vec(), value: to.to_vec() }],
            failure: vec![Operation::Get { key: b"q".to_vec() }],
        };
        let done = client.txn(&swap(b"v", b"w"), soon()).unwrap();
        assert_eq!((done.succeeded, done.results), (true, vec![OperationResult::Put]));
        let not_done = client.txn(&swap(b"v", b"x"), soon()).unwrap();
        let [OperationResult::Get(Some(found))] = &not_done.results[..] else {
            panic!("{not_done:?}")
        };
        assert_eq!((not_done.succeeded, &found.value[..]), (false, &b"w"[..]));
        let create = Txn {
            compare: vec![
                Compare { key: b"new".to_vec(), target: Target::CreateRevision(Revision(0)) },
                Compare { key: b"new".to_vec(), target: Target::Version(0) },
                Compare { key: b"q".to_vec(), target: Target::ModRevision(done.revision) },
            ],
            success: vec![Operation::Delete { key: b"q".to_vec() }],
            failure: vec![],
        };
        let created = client.txn(&create, soon()).unwrap();
        assert_eq!((created.succeeded, created.results), (true, vec![OperationResult::Delete(1)]));
        assert_eq!(client.delete(b"p/", Some(b"p0"), soon()).unwrap(), 3);
    }
}

/// A member joins as a learner, is promoted when it has caught up, takes the lead, and is removed; etcd's
/// refusals on the way are told apart.
#[test]
fn a_members_life() {
    for release in Release::ALL {
        let mut cluster = Cluster::single(release).unwrap();
        let first = client(&cluster, 0);
        let status = first.status(soon()).unwrap();
        assert_eq!(status.leader, Some(status.member));
        assert_eq!(status.applied_index, status.raft_index);
        assert!(!status.learner && status.errors.is_empty() && status.db_size_bytes > 0);
        let versions = first.versions(soon()).unwrap();
        assert_eq!(versions.server, status.version);

        let nowhere = ["http://127.0.0.1:1".to_owned()];
        let ghost = first.add_learner(&nowhere, soon()).unwrap();
        assert!(ghost.learner && ghost.name.is_empty());
        let error = first.add_learner(&nowhere, soon()).unwrap_err();
        assert_eq!(
            (error.reason(), error.outcome()),
            (Some(Reason::PeerUrlsExist), Outcome::NotExecuted)
        );
        let error = first.add_learner(&["http://127.0.0.1:2".to_owned()], soon()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::TooManyLearners));
        let error = first.promote(ghost.id, soon()).unwrap_err();
        assert_eq!(
            (error.reason(), error.outcome()),
            (Some(Reason::LearnerNotReady), Outcome::NotExecuted)
        );
        let error = first.promote(status.member, soon()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NotLearner));
        let error = first.remove(MemberId(1), soon()).unwrap_err();
        assert_eq!(
            (error.reason(), error.outcome()),
            (Some(Reason::MemberNotFound), Outcome::NotExecuted)
        );
        let updated = first.update(ghost.id, &["http://127.0.0.1:3".to_owned()], soon()).unwrap();
        assert_eq!(updated.get(ghost.id).unwrap().peer_urls, ["http://127.0.0.1:3"]);
        assert_eq!(first.remove(ghost.id, soon()).unwrap().members.len(), 1);

        let place = cluster.add_learner().unwrap();
        let second = client(&cluster, place);
        let id = second.status(soon()).unwrap().member;
        assert!(second.status(soon()).unwrap().learner);
        let error = second.put(b"k", b"v", soon()).unwrap_err();
        assert_eq!(
            (error.reason(), error.outcome()),
            (Some(Reason::AskedLearner), Outcome::NotExecuted)
        );
        wait_for("the promotion", || first.promote(id, soon()).ok()).unwrap();
        let members = wait_for("the learner to know", || {
            second.members_linearizable(soon()).ok().filter(|members| members.voters().count() == 2)
        })
        .unwrap();
        assert_eq!((members.cluster, members.asked), (status.cluster, id));

        let error = second.move_leader(id, soon()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::NotLeader));
        first.move_leader(id, soon()).unwrap();
        wait_for("the new leader", || {
            (second.status(soon()).ok()?.leader == Some(id)).then_some(())
        })
        .unwrap();
        assert!(second.health(soon()).unwrap().healthy);
        wait_for("the removal", || second.remove(status.member, soon()).ok()).unwrap();
        assert_eq!(second.members(soon()).unwrap().members.len(), 1);
        assert_ne!(members.cluster, ClusterId(0));
    }
}

/// Without a leader the state is still told, without a linearizable anything; a write's outcome is unknown.
#[test]
fn without_a_leader() {
    for release in Release::ALL {
        let mut cluster = Cluster::pair(release).unwrap();
        let leader = cluster.leader().unwrap();
        cluster.members[leader].kill().unwrap();
        let survivor = client(&cluster, 1 - leader);
        let status = wait_for("the survivor to have no leader", || {
            survivor.status(soon()).ok().filter(|status| status.leader.is_none())
        })
        .unwrap();
        assert!(
            status.errors.iter().any(|error| error.contains("no leader")),
            "{:?}",
            status.errors
        );
        assert_eq!(survivor.members(soon()).unwrap().voters().count(), 2);
        let error =
            survivor.put(b"k", b"v", Deadline::after(Duration::from_millis(300))).unwrap_err();
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        let short = Deadline::after(Duration::from_millis(300));
        assert!(survivor.members_linearizable(short).is_err());
        let dead = client(&cluster, leader);
        let error = dead.put(b"k", b"v", soon()).unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotExecuted, "{error}");
    }
}

/// A full database is an alarm and a refusal of its own.
#[test]
fn a_full_database() {
    for release in Release::ALL {
        let options = etcd_fixture::Options::new(release).argument("--quota-backend-bytes=65536");
        let cluster = Cluster::start(1, options).unwrap();
        let client = client(&cluster, 0);
        let value = vec![0; 8192];
        let error =
            (0..100).find_map(|n| client.put(format!("k{n}").as_bytes(), &value, soon()).err());
        assert_eq!(error.unwrap().reason(), Some(Reason::NoSpace));
        let alarms = wait_for("the alarm", || {
            client.alarms(soon()).ok().filter(|alarms| !alarms.is_empty())
        })
        .unwrap();
        assert_eq!(alarms[0].kind, AlarmKind::NoSpace);
        assert!(!client.health(soon()).unwrap().healthy);
    }
}

/// What answers but is no etcd is said to be none; what it did is not known.
#[test]
fn something_else_answers() {
    let cluster = Cluster::single(Release::Trixie).unwrap();
    let peer_port = Client::new(&cluster.members[0].peer_url(), None).unwrap();
    let error = peer_port.put(b"k", b"v", soon()).unwrap_err();
    assert!(matches!(error, etcd_peer::client::Error::NotEtcd { .. }), "{error:?}");
}
