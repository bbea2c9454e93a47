//! The main scenario on other kinds of pairs: look-alike names, IPv6, the older release.

use std::net::Ipv4Addr;

use dyad_lab::LabConfig;
use dyad_lab::config::Release;

use crate::common::{Pair, config};

fn leader_dies_and_returns(config: &LabConfig) {
    let pair = Pair::of(config);
    let [survivor, victim] = pair.names();
    pair.lead(victim);
    let seen = pair.seen(survivor);
    let clients = pair.clients();
    pair.pull_plug(victim);
    pair.wait_decision(survivor, seen, "takeOver", "R2");
    pair.wait_protected();
    let judged = clients.judge(&pair);
    assert_eq!(judged.read.len(), 2);
}

/// Debian 12: Pacemaker 2.1 and etcd 3.4.
#[test]
#[ignore = "needs root: make lab-test"]
fn bookworm() {
    let mut config = config();
    config.release = Release::Bookworm;
    leader_dies_and_returns(&config);
}

/// Names and addresses of which one is the beginning of the other (R10).
#[test]
#[ignore = "needs root: make lab-test"]
fn look_alikes() {
    let mut config = config();
    for (node, (name, last)) in config.nodes.iter_mut().zip([("node1", 1), ("node10", 10)]) {
        node.name = name.into();
        node.link1 = Ipv4Addr::new(10, 0, 0, last).into();
    }
    leader_dies_and_returns(&config);
}

/// IPv6 on both links.
#[test]
#[ignore = "needs root: make lab-test"]
fn ipv6() {
    leader_dies_and_returns(&config().ipv6());
}
