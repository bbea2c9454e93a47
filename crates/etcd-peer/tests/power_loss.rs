//! The stand-in vote when a member really loses power: no FIN, no RST, dead connections that look alive.

mod support;

use std::time::Instant;

use etcd_fixture::{Options, Release, in_own_network, wait_for};
use support::{Lost, Pair, SHORT, Writers, steps, wait_written};

/// P2 and R3: in every round every acknowledged write survives the loss of the leader or of the follower
/// under load, and the survivor ends alone. Every other round has TLS; every third waits until the survivor
/// has given up its role.
fn rounds(release: Release, lost: Lost) {
    for round in 0..10 {
        let mut options = Options::new(release).machines();
        options.tls = round % 2 == 1;
        // etcd's own defaults: the survivor keeps its role long enough for the stand-in to meet it there.
        (options.heartbeat_ms, options.election_ms) = (100, 1000);
        let mut pair = Pair::start(options, lost);
        let writers = Writers::start(8, SHORT, || pair.client());
        wait_written(&pair.client(), 200);
        let dead = pair.dead;
        pair.cluster.members[dead].lose_power().unwrap();
        if round % 3 == 2 {
            pair.wait_leaderless();
        }
        let proof = Instant::now();
        let report = pair.take_over().unwrap();
        wait_written(&pair.client(), 50);
        let written = writers.stop();
        println!(
            "{release} {lost:?} {round}: first write {:.1?}, {} acknowledged, {} unknown, slowest {:.0?}; \
             {}",
            written.first_after(proof),
            written.acknowledged.len(),
            written.unknown,
            written.slowest,
            steps(&report),
        );
        written.assert_all_there(&pair.client());
        pair.assert_alone();
    }
}

#[test]
fn the_leader_of_a_3_4_pair_loses_power() {
    if in_own_network("the_leader_of_a_3_4_pair_loses_power").unwrap() {
        rounds(Release::Bookworm, Lost::Leader);
    }
}

#[test]
fn the_follower_of_a_3_4_pair_loses_power() {
    if in_own_network("the_follower_of_a_3_4_pair_loses_power").unwrap() {
        rounds(Release::Bookworm, Lost::Follower);
    }
}

#[test]
fn the_leader_of_a_3_5_pair_loses_power() {
    if in_own_network("the_leader_of_a_3_5_pair_loses_power").unwrap() {
        rounds(Release::Trixie, Lost::Leader);
    }
}

#[test]
fn the_follower_of_a_3_5_pair_loses_power() {
    if in_own_network("the_follower_of_a_3_5_pair_loses_power").unwrap() {
        rounds(Release::Trixie, Lost::Follower);
    }
}

/// A link cut instead of a power loss: what the other side still had in its queues is not missed, and when it
/// is heard again it is refused for good (its etcd ends).
#[test]
fn an_isolated_member_that_comes_back_is_refused() {
    if !in_own_network("an_isolated_member_that_comes_back_is_refused").unwrap() {
        return;
    }
    for release in Release::ALL {
        let mut pair = Pair::start(Options::new(release).machines(), Lost::Follower);
        let writers = Writers::start(8, SHORT, || pair.client());
        wait_written(&pair.client(), 100);
        let dead = pair.dead;
        pair.cluster.members[dead].pull_cable().unwrap();
        pair.take_over().unwrap();
        wait_written(&pair.client(), 50);
        pair.cluster.members[dead].plug_cable().unwrap();
        pair.cluster.members[dead].wait_exit().unwrap();
        let written = writers.stop();
        written.assert_all_there(&pair.client());
        pair.assert_alone();
        wait_for("the removed member to stay away", || {
            (!pair.cluster.members[dead].is_running()).then_some(())
        })
        .unwrap();
    }
}
