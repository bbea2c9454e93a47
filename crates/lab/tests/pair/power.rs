//! Scenarios `power`: a BMC that does not do what it is told, at the moment when it is needed.

use std::time::Duration;

use dyad_lab::timeline::Phase;

use crate::common::Pair;

/// Without proof that the peer is off nobody goes on, whatever the BMC does; with it, at once.
fn no_proof_no_take_over(fault: &str) {
    let pair = Pair::usual();
    let seen = pair.seen("node-a");
    let clients = pair.clients();
    pair.bmc("node-b", fault.parse().unwrap()).unwrap();
    // A node that hangs is still on: only the BMC could end it.
    pair.ask(&dyad_lab::protocol::Request::Freeze { node: "node-b".into() });
    pair.wait_for(Phase::FencingFailed, "");
    assert!(!pair.is_writable("node-a"));
    assert!(pair.decision("node-a", seen, "takeOver", "").is_none());

    pair.bmc("node-b", "none".parse().unwrap()).unwrap();
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait_writable("node-a");
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

/// The BMC says yes and does nothing.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_bmc_that_does_nothing_proves_nothing() {
    no_proof_no_take_over("do-nothing");
}

/// The BMC's password was changed, and nobody told the pair.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_bmc_with_another_password_proves_nothing() {
    no_proof_no_take_over("wrong-password");
}

/// The survivor of a first failure dies too and boots alone, and its peer's BMC is dead: nothing proves that
/// the peer is off. It waits; a person's word is enough, and since it went on alone nothing can be lost by it.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_person_can_stand_in_for_a_dead_bmc() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-a");
    pair.pull_plug("node-b");
    pair.bmc("node-a", "refuse".parse().unwrap()).unwrap();
    let seen = pair.seen("node-b");
    pair.power_on("node-b");
    pair.wait_decision("node-b", seen, "forcePeerOff", "R5");
    assert!(!pair.is_writable("node-b"));

    let words =
        ["dyad", "confirm", "--yes-peer-is-down", "node-a", "--reason", "its mains are out"];
    let confirmed = pair.exec("node-b", &words, Duration::from_mins(1)).unwrap();
    assert!(confirmed.success(), "{confirmed:?}");
    pair.wait_writable("node-b");

    pair.heal().unwrap();
    pair.power_on("node-a");
    pair.wait_protected();
    clients.judge(&pair);
}
