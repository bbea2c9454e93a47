//! The main scenario on other kinds of pairs: look-alike names, IPv6, the older release.

use std::net::Ipv4Addr;

use dyad_lab::LabConfig;
use dyad_lab::config::{PairStack, Release, Stack};

use crate::by_the_book::keeps_to_the_book;
use crate::common::{Pair, config, package};
use crate::looked_after::looked_after;

fn leader_dies_and_returns(config: &LabConfig) {
    the_leader_dies(&Pair::of(config));
}

fn the_leader_dies(pair: &Pair) {
    let [survivor, victim] = pair.names();
    pair.lead(victim);
    let seen = pair.seen(survivor);
    let clients = pair.clients();
    pair.pull_plug(victim);
    pair.wait_decision(survivor, seen, "takeOver", "R2");
    pair.wait_protected();
    let judged = clients.judge(pair);
    assert_eq!(judged.read.len(), 2);
}

/// Debian 12: Pacemaker 2.1 and etcd 3.4, with everything that people do on a pair; then the leader dies.
#[test]
#[ignore = "needs root: make lab-test"]
fn bookworm() {
    let mut config = config();
    config.release = Release::Bookworm;
    config.stack =
        Stack::Pair(PairStack { package: package(), tls: true, by_hand: false, podman: false });
    let pair = Pair::of(&config);
    keeps_to_the_book(&pair);
    looked_after(&pair);
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

/// etcd in a podman container, of an image made from the node's own etcd: the same story.
#[test]
#[ignore = "needs root: make lab-test"]
fn podman() {
    let mut config = config();
    let package = package();
    config.stack = Stack::Pair(PairStack { package, tls: false, by_hand: false, podman: true });
    leader_dies_and_returns(&config);
}

/// Certificates both ways, between the members and towards clients: who has none is not served, and the take-over and
/// the join work alike.
#[test]
#[ignore = "needs root: make lab-test"]
fn mutual_tls() {
    let mut config = config();
    config.stack =
        Stack::Pair(PairStack { package: package(), tls: true, by_hand: false, podman: false });
    let pair = Pair::of(&config);
    let plain = ["curl", "--silent", "--max-time", "3", "http://10.77.1.1:2379/version"];
    let without_certificate =
        ["curl", "--silent", "--insecure", "--max-time", "3", "https://10.77.1.1:2379/version"];
    for command in [plain.as_slice(), without_certificate.as_slice()] {
        let answer = pair.exec("node-a", command, std::time::Duration::from_secs(10)).unwrap();
        assert!(!answer.stdout.contains("etcdserver"), "{command:?}: {answer:?}");
    }
    the_leader_dies(&pair);
}
