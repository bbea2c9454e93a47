//! Scenarios `node failure`: a node dies or hangs; the other goes on with everything, and takes it back.

use dyad_lab::protocol::Request;

use crate::common::Pair;

/// A node that dies is fenced, the other goes on alone, and the dead one comes back as a full replica by
/// itself. Nothing that was acknowledged is lost.
fn dies(victim: &str, leader: &str) {
    let pair = Pair::usual();
    let survivor = pair.peer_of(victim).to_owned();
    pair.lead(leader);
    let members = pair.members(&survivor);
    let seen = pair.seen(&survivor);
    let clients = pair.clients();

    pair.pull_plug(victim);
    pair.wait_decision(&survivor, seen, "takeOver", "R2");
    pair.wait_protected();

    let judged = clients.judge(&pair);
    assert_eq!(judged.read.len(), 2, "both nodes hold the data in the end");
    // The survivor kept its identity; the one that came back has a new one.
    let after = pair.members(&survivor);
    let kept = after.iter().filter(|id| members.contains(id)).count();
    assert_eq!((after.len(), kept), (2, 1), "{members:?} became {after:?}");
    assert_eq!(pair.powered_off(), [victim]);
}

#[test]
#[ignore = "needs root: make lab-test"]
fn the_preferred_node_dies_as_leader() {
    dies("node-a", "node-a");
}

#[test]
#[ignore = "needs root: make lab-test"]
fn the_preferred_node_dies_as_follower() {
    dies("node-a", "node-b");
}

#[test]
#[ignore = "needs root: make lab-test"]
fn the_other_node_dies_as_leader() {
    dies("node-b", "node-b");
}

#[test]
#[ignore = "needs root: make lab-test"]
fn the_other_node_dies_as_follower() {
    dies("node-b", "node-a");
}

/// A node that hangs answers nobody and has its power on: it is fenced like a dead one, and when it comes to
/// nothing of what it believed matters any more.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_hung_leader_is_fenced() {
    let pair = Pair::usual();
    pair.lead("node-b");
    let seen = pair.seen("node-a");
    let clients = pair.clients();

    pair.ask(&Request::Freeze { node: "node-b".into() });
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait_protected();

    clients.judge(&pair);
    assert_eq!(pair.powered_off(), ["node-b"]);
}

/// A node that does not come back leaves the other alone, for as long as it takes; what is written meanwhile
/// is there when it does.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_node_that_stays_off_is_not_needed() {
    let pair = Pair::usual();
    let clients = pair.clients();

    pair.lose("node-b");
    assert_eq!(pair.voters("node-a"), 1);
    pair.run("node-a", &["grep", "-q", "member", "/var/lib/etcd/dyad/take-over.json"]);

    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait_protected();
    let judged = clients.judge(&pair);
    assert_eq!(judged.read.len(), 2);
}

/// A node that boots faster than the news of its fencing travels is told that it "was allegedly just fenced", and its
/// Pacemaker ends for good. Here somebody says so of a node that runs: it comes back by itself, and nothing is lost.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_node_that_is_told_it_was_fenced_comes_back() {
    let pair = Pair::usual();
    let clients = pair.clients();
    let started = |pair: &Pair| {
        let show = ["systemctl", "show", "--value", "-p", "NRestarts", "pacemaker"];
        pair.run("node-a", &show).trim().to_owned()
    };
    assert_eq!(started(&pair), "0");
    pair.run("node-b", &["stonith_admin", "--confirm", "node-a"]);
    pair.wait("Pacemaker on node-a to have started again", || {
        let restarts = started(&pair);
        (restarts == "0").then(|| "it has not".to_owned())
    });
    pair.wait_protected();
    clients.judge(&pair);
}

/// R5: Corosync waits for the peer anew whenever it starts. A survivor whose stack is started again in the same boot proves its
/// peer off anew, too, and serves.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_survivor_starts_its_stack_again() {
    let pair = Pair::usual();
    pair.lose("node-b");
    let seen = pair.seen("node-a");
    // etcd may hang when it is stopped right after a removal, until systemd kills it after 25 s.
    pair.run_patiently("node-a", &["systemctl", "stop", "pacemaker", "corosync"]);
    pair.run("node-a", &["systemctl", "start", "corosync", "pacemaker"]);
    pair.wait_decision("node-a", seen, "releaseWaitForAll", "R5");
    pair.wait_writable("node-a");
    pair.end();
}
