//! Scenarios `two failures`: both nodes die, one after the other or together.

use crate::common::Pair;

/// Both nodes lose their power under load. Both copies are whole: the pair starts again by itself, and every
/// acknowledged write is there.
#[test]
#[ignore = "needs root: make lab-test"]
fn both_nodes_die_at_once() {
    let pair = Pair::usual();
    let clients = pair.clients();
    for node in pair.names() {
        pair.pull_plug(node);
    }
    for node in pair.names() {
        pair.power_on(node);
    }
    pair.wait_protected();
    clients.judge(&pair);
}

/// The survivor dies too. Whoever boots first, the copy that went on alone is the one that goes on, and the
/// old one waits for it: a `Pair` dataset does not start alone.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_old_copy_waits_for_the_newer_one() {
    let pair = Pair::usual();
    let seen = pair.seen("node-b");
    let clients = pair.clients();
    pair.bmc("node-a", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-a");
    pair.wait_decision("node-b", seen, "takeOver", "R2");
    pair.wait_writable("node-b");
    pair.pull_plug("node-b");

    // The old copy boots alone and stays inert.
    pair.heal().unwrap();
    let seen = pair.seen("node-a");
    pair.power_on("node-a");
    pair.wait_decision("node-a", seen, "stayInert", "R5");
    assert!(!pair.is_writable("node-a"));

    pair.power_on("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}

/// The survivor dies too and comes back alone: it went on alone, so it is the newest. It proves its peer off
/// through the BMC and starts by itself (R5).
#[test]
#[ignore = "needs root: make lab-test"]
fn the_newer_copy_boots_alone() {
    let pair = Pair::usual();
    let seen = pair.seen("node-b");
    let clients = pair.clients();
    pair.bmc("node-a", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-a");
    pair.wait_decision("node-b", seen, "takeOver", "R2");
    pair.wait_writable("node-b");
    pair.pull_plug("node-b");

    let seen = pair.seen("node-b");
    pair.power_on("node-b");
    pair.wait_decision("node-b", seen, "forcePeerOff", "R5");
    pair.wait_writable("node-b");
    assert_eq!(pair.members("node-b").len(), 1);

    pair.heal().unwrap();
    pair.power_on("node-a");
    pair.wait_protected();
    clients.judge(&pair);
}

/// A fenced node comes back, and the survivor dies before it has rejoined: the one that came back must not go
/// on with its old copy.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_survivor_dies_before_the_other_has_rejoined() {
    let pair = Pair::usual();
    let seen = pair.seen("node-b");
    let clients = pair.clients();
    pair.pull_plug("node-a");
    pair.wait_decision("node-b", seen, "takeOver", "R2");
    pair.wait_writable("node-b");
    // node-a boots meanwhile; whatever it has done so far, it is no replica yet.
    pair.pull_plug("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}
