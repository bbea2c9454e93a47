//! The stand-in vote against real etcd of both series, with a peer that dies politely or not at all.

mod support;

use std::time::Duration;

use dyad_core::ids::{ClusterId, MemberId};
use etcd_fixture::{Cluster, Options, Release};
use etcd_peer::client::Consistency;
use etcd_peer::stand_in::{Error, Limits, Report, Role, StandIn, Step, Survivor, Veto};
use support::{Lost, Pair, SHORT, Writers, client_of, tls_of, wait_written};

fn role(report: &Report) -> Option<Role> {
    report.steps.iter().find_map(|timed| match timed.step {
        Step::RoleKnown { role, .. } => Some(role),
        _ => None,
    })
}

/// Each series, without and with mutual TLS.
fn each(test: impl Fn(Options)) {
    for release in Release::ALL {
        test(Options::new(release));
        test(Options::new(release).tls());
    }
}

/// A survivor that leads stays in office: it is never told to campaign, and its term does not change.
#[test]
fn the_survivor_leads() {
    each(|mut options| {
        // Long enough that it leads still when the stand-in comes.
        options.election_ms = 5000;
        let mut pair = Pair::start(options, Lost::Follower);
        let before = pair.cluster.members[pair.survivor].status().unwrap();
        let writers = Writers::start(4, SHORT, || pair.client());
        wait_written(&pair.client(), 50);
        let dead = pair.dead;
        pair.cluster.members[dead].kill().unwrap();
        let report = pair.take_over().unwrap();
        let written = writers.stop();
        assert_eq!(role(&report), Some(Role::Leader), "{report:?}");
        written.assert_all_there(&pair.client());
        pair.assert_alone();
        let after = pair.cluster.members[pair.survivor].status().unwrap();
        assert_eq!(after.raft_term, before.raft_term);
    });
}

/// A survivor that follows the dead leader is made the leader at once.
#[test]
fn the_survivor_follows() {
    each(|mut options| {
        options.election_ms = 5000;
        let mut pair = Pair::start(options, Lost::Leader);
        let writers = Writers::start(4, SHORT, || pair.client());
        wait_written(&pair.client(), 50);
        let dead = pair.dead;
        pair.cluster.members[dead].kill().unwrap();
        let report = pair.take_over().unwrap();
        wait_written(&pair.client(), 1);
        let written = writers.stop();
        written.assert_all_there(&pair.client());
        pair.assert_alone();
        // A polite death is noticed by the survivor's own connections, so it may have become leaderless.
        assert!(matches!(role(&report), Some(Role::Follower | Role::Leaderless)), "{report:?}");
    });
}

/// A survivor without a leader, in the midst of vain elections, is helped all the same.
#[test]
fn the_survivor_has_no_leader() {
    each(|options| {
        let mut pair = Pair::start(options, Lost::Leader);
        pair.client().put(b"before", b"1", support::soon()).unwrap();
        let dead = pair.dead;
        pair.cluster.members[dead].kill().unwrap();
        pair.wait_leaderless();
        pair.take_over().unwrap();
        pair.assert_alone();
        let before =
            pair.client().get(b"before", Consistency::Linearizable, support::soon()).unwrap();
        assert!(before.is_some());
    });
}

/// A survivor that was just started has no leader and does not serve clients: everything works from known
/// ids and the peer port. The stand-in may even come before etcd does.
#[test]
fn the_survivor_was_just_started() {
    each(|options| {
        for early in [false, true] {
            let mut pair = Pair::start(options.clone(), Lost::Leader);
            pair.client().put(b"before", b"1", support::soon()).unwrap();
            let (dead, survivor) = (pair.dead, pair.survivor);
            pair.cluster.members[dead].kill().unwrap();
            pair.cluster.members[survivor].kill().unwrap();
            if !early {
                pair.cluster.members[survivor].start().unwrap();
            }
            let stand_in = pair.stand_in(Duration::from_secs(20));
            let waiting = std::thread::spawn(move || stand_in.run(&mut |_| {}));
            if early {
                std::thread::sleep(Duration::from_millis(100));
                pair.cluster.members[survivor].start().unwrap();
            }
            waiting.join().unwrap().unwrap();
            pair.assert_alone();
            let before =
                pair.client().get(b"before", Consistency::Linearizable, support::soon()).unwrap();
            assert!(before.is_some());
        }
    });
}

/// R9: a survivor whose disk takes 50 ms for each sync, or which is stopped again and again, is slow, not
/// lost: it takes over, and keeps everything.
#[test]
fn the_survivor_is_slow() {
    for release in Release::ALL {
        for lost in [Lost::Leader, Lost::Follower] {
            let mut pair = Pair::start(Options::new(release), lost);
            let slow =
                pair.cluster.members[pair.survivor].slow_disk(Duration::from_millis(50)).unwrap();
            let writers = Writers::start(4, SHORT, || pair.client());
            wait_written(&pair.client(), 10);
            let dead = pair.dead;
            pair.cluster.members[dead].kill().unwrap();
            pair.take_over().unwrap();
            wait_written(&pair.client(), 4);
            drop(slow);
            let written = writers.stop();
            written.assert_all_there(&pair.client());
            pair.assert_alone();
        }
    }
}

/// R9: the same with a survivor that stands still for a quarter of a second, every half second.
#[test]
fn the_survivor_stands_still_now_and_then() {
    for release in Release::ALL {
        for lost in [Lost::Leader, Lost::Follower] {
            let mut pair = Pair::start(Options::new(release), lost);
            let dead = pair.dead;
            let writers = Writers::start(4, SHORT, || pair.client());
            wait_written(&pair.client(), 50);
            pair.cluster.members[dead].kill().unwrap();
            let stand_in = pair.stand_in(Duration::from_secs(20)).client(pair.client());
            let voting = std::thread::spawn(move || stand_in.run(&mut |_| {}));
            let survivor = &pair.cluster.members[pair.survivor];
            for _ in 0..8 {
                survivor.pause().unwrap();
                std::thread::sleep(Duration::from_millis(250));
                survivor.resume().unwrap();
                std::thread::sleep(Duration::from_millis(25));
            }
            voting.join().unwrap().unwrap();
            let written = writers.stop();
            written.assert_all_there(&pair.client());
            pair.assert_alone();
        }
    }
}

/// After the take-over the dead member's identity is refused for good: started again on its old disk, its
/// etcd ends. A second stand-in finds the work done.
#[test]
fn the_dead_member_stays_out() {
    for release in Release::ALL {
        let mut pair = Pair::start(Options::new(release), Lost::Follower);
        let dead = pair.dead;
        pair.cluster.members[dead].kill().unwrap();
        pair.take_over().unwrap();
        pair.cluster.members[dead].start().unwrap();
        pair.cluster.members[dead].wait_exit().unwrap();
        let again = pair.take_over().unwrap();
        let steps: Vec<_> = again.steps.iter().map(|timed| &timed.step).collect();
        assert_eq!(steps, [&Step::Removed]);
        pair.assert_alone();
    }
}

/// Ids that do not fit are refused by what the peer port says of itself, and nothing happens to the survivor.
#[test]
fn wrong_ids_are_refused() {
    for release in Release::ALL {
        let pair = Pair::start(Options::new(release), Lost::Follower);
        let try_with = |change: &dyn Fn(&mut Survivor)| {
            let mut target = pair.target.clone();
            change(&mut target);
            let limits = Limits { total: Duration::from_secs(3) };
            StandIn::new(target, pair.lock(), limits).run(&mut |_| {}).unwrap_err()
        };
        let error = try_with(&|target| target.cluster = ClusterId(1));
        assert!(matches!(error, Error::WrongCluster { .. }), "{error:?}");
        let error = try_with(&|target| target.survivor = MemberId(1));
        assert!(
            matches!(
                error,
                Error::Rejected { status: 412, .. } | Error::Vetoed(Veto::SurvivorUnknown(_))
            ),
            "{error:?}"
        );
        // Somebody who is no member has no vote to cast.
        let error = try_with(&|target| target.dead = MemberId(1));
        assert!(
            matches!(
                error,
                Error::TimedOut { burnt: false, .. } | Error::Vetoed(Veto::ThirdVoter(_))
            ),
            "{error:?}"
        );
        let members = pair.client().members_linearizable(support::soon()).unwrap();
        assert_eq!(members.voters().count(), 2);
    }
}

fn target(cluster: &Cluster, survivor: usize, dead: usize) -> Survivor {
    let status = |place: usize| cluster.members[place].status().unwrap();
    Survivor {
        cluster: ClusterId(status(survivor).cluster_id),
        survivor: MemberId(status(survivor).member_id),
        dead: MemberId(status(dead).member_id),
        peer_url: cluster.members[survivor].peer_url(),
        tls: tls_of(cluster, survivor),
    }
}

/// R2: a learner never takes over; a learner's vote is never cast; with a third voter nothing is done.
#[test]
fn only_two_voters() {
    for release in Release::ALL {
        let mut cluster = Cluster::single(release).unwrap();
        let second = cluster.add_learner().unwrap();
        let lock = cluster.directory().join("lock");
        let veto = |target: Survivor| {
            let limits = Limits { total: Duration::from_secs(10) };
            match StandIn::new(target, &lock, limits).run(&mut |_| {}) {
                Err(Error::Vetoed(veto)) => veto,
                other => panic!("{other:?}"),
            }
        };
        let survivor_is_learner = target(&cluster, second, 0);
        let dead_is_learner = target(&cluster, 0, second);
        assert!(matches!(veto(dead_is_learner), Veto::DeadIsLearner(_)));
        assert!(matches!(veto(survivor_is_learner), Veto::SurvivorIsLearner(_)));
        cluster.promote(second).unwrap();
        let third = cluster.add_voter().unwrap();
        let third_voter = target(&cluster, 0, second);
        assert_eq!(veto(third_voter), Veto::ThirdVoter(target(&cluster, 0, third).dead));
        let members = client_of(&cluster, 0).members_linearizable(support::soon()).unwrap();
        assert_eq!(members.voters().count(), 3);
    }
}

/// One stand-in at a time: the second is turned away while the first is under way.
#[test]
fn a_second_stand_in_is_turned_away() {
    let pair = Pair::start(Options::new(Release::Trixie), Lost::Follower);
    let held = std::fs::File::create(pair.lock()).unwrap();
    held.lock().unwrap();
    let error = pair.take_over().unwrap_err();
    assert!(matches!(error, Error::Busy(_)), "{error:?}");
    drop(held);
    let members = pair.client().members_linearizable(support::soon()).unwrap();
    assert_eq!(members.voters().count(), 2);
}

/// P6: a survivor that hangs does not make the stand-in hang; it says what it waited for.
#[test]
fn the_limit_is_kept() {
    for release in Release::ALL {
        let mut pair = Pair::start(Options::new(release), Lost::Follower);
        let dead = pair.dead;
        pair.cluster.members[dead].kill().unwrap();
        pair.cluster.members[pair.survivor].pause().unwrap();
        let error = pair.stand_in(Duration::from_millis(500)).run(&mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::TimedOut { burnt: false, .. }), "{error:?}");
        pair.cluster.members[pair.survivor].resume().unwrap();
        // What was begun can be done later.
        pair.take_over().unwrap();
        pair.assert_alone();
    }
}

/// Nobody listens: it is waited for up to the limit, and the reason is told.
#[test]
fn nobody_listens() {
    let mut pair = Pair::start(Options::new(Release::Trixie), Lost::Follower);
    let (dead, survivor) = (pair.dead, pair.survivor);
    pair.cluster.members[dead].kill().unwrap();
    pair.cluster.members[survivor].kill().unwrap();
    let error = pair.stand_in(Duration::from_millis(300)).run(&mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}
