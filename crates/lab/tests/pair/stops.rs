//! Scenarios `graceful stop`: of one node, of both at once, one after the other.

use crate::common::Pair;

/// Asks Pacemaker on a node to stop, as a shutdown of the node would.
fn stop(pair: &Pair, node: &str) {
    pair.run(node, &["systemctl", "stop", "--no-block", "pacemaker"]);
}

fn stopped(pair: &Pair, node: &str) {
    pair.wait(&format!("{node} to stop"), || {
        let finished = pair.exec(
            node,
            &["systemctl", "show", "--property=ActiveState", "--value", "pacemaker"],
            std::time::Duration::from_secs(10),
        );
        let state = finished.map(|finished| finished.stdout).unwrap_or_default();
        (state.trim() != "inactive").then_some(state)
    });
}

fn start(pair: &Pair, node: &str) {
    pair.run(node, &["systemctl", "start", "--no-block", "pacemaker"]);
}

/// A node that is stopped in good order leaves (R7): no write through the other fails, nobody is fenced, and
/// started again it is a replica as before.
fn one(leaver: &str, leader: &str) {
    let pair = Pair::usual();
    let stays = pair.peer_of(leaver).to_owned();
    pair.lead(leader);
    let clients = pair.clients();

    stop(&pair, leaver);
    stopped(&pair, leaver);
    assert_eq!(pair.voters(&stays), 1);
    pair.wait_writable(&stays);
    start(&pair, leaver);
    pair.wait_protected();

    let judged = clients.judge(&pair);
    let gap = judged.report.longest_gap_by_endpoint.get(&stays);
    eprintln!("the longest time without a write through {stays}: {gap:?}");
    let writes = judged.report.writes_by_endpoint[&stays];
    assert!(writes.ok > 0 && writes.unanswered() == 0, "writes through {stays}: {writes:?}");
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root: make lab-test"]
fn the_leader_leaves() {
    one("node-a", "node-a");
}

#[test]
#[ignore = "needs root: make lab-test"]
fn the_follower_leaves() {
    one("node-b", "node-a");
}

/// Both nodes stop at once: neither leaves, and the pair starts again as it was.
#[test]
#[ignore = "needs root: make lab-test"]
fn both_stop_at_once() {
    let pair = Pair::usual();
    let clients = pair.clients();
    for node in pair.names() {
        stop(&pair, node);
    }
    for node in pair.names() {
        stopped(&pair, node);
    }
    for node in pair.names() {
        start(&pair, node);
    }
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// One after the other: the last one has everything, and the first one joins it again, whoever starts first.
#[test]
#[ignore = "needs root: make lab-test"]
fn one_after_the_other() {
    let pair = Pair::usual();
    let clients = pair.clients();
    stop(&pair, "node-a");
    stopped(&pair, "node-a");
    pair.wait_writable("node-b");
    stop(&pair, "node-b");
    stopped(&pair, "node-b");
    for node in pair.names() {
        start(&pair, node);
    }
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// A node that is shut down in good order, network and all, leaves in time: a planned reboot is no failure.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_shutdown_is_no_failure() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.run("node-b", &["systemctl", "poweroff", "--no-block"]);
    pair.wait("node-b to be off", || {
        let nodes = pair.status().map(|lab| lab.nodes).unwrap_or_default();
        let on = nodes.iter().any(|node| node.name == "node-b" && node.on);
        on.then(|| "it is on".into())
    });
    assert_eq!(pair.voters("node-a"), 1);
    pair.wait_writable("node-a");
    pair.power_on("node-b");
    pair.wait_protected();
    clients.judge(&pair);
    let timeline = pair.timeline(false).unwrap();
    assert!(timeline.first(dyad_lab::timeline::Phase::FencingRequested).is_none());
}
