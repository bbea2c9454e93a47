//! What can be wrong with a node, its peer or a BMC: told before, nothing started, and no obstacle to the next try.

use dyad_lab::cluster::BMC_PASSWORD;
use dyad_lab::protocol::Request;
use dyad_setup::state::{FailureKind, SetupResult};

use crate::common::{COMMAND, Nodes, config};

/// A set-up that must fail in this step, with these words; afterwards nothing of the cluster runs.
#[track_caller]
fn fails(nodes: &Nodes, node: &str, step: &str, words: &[&str]) {
    let finished = nodes.setup(node);
    assert_ne!(finished.code, 0, "{finished:?}");
    let said = &finished.stderr;
    assert!(said.contains(&format!("error: step {step}: ")), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
    assert!(said.contains("hint: "), "{said}");
    assert!(!said.contains(BMC_PASSWORD), "{said}");
    let state = nodes.state(node).unwrap();
    assert_eq!(state.result, SetupResult::Failed);
    let failure = state.failure.unwrap();
    assert_eq!((failure.step.as_str(), failure.kind), (step, FailureKind::NotFit));
    let running = nodes.exec(node, &["systemctl", "is-active", "pacemaker"], COMMAND).unwrap();
    assert_ne!(
        running.stdout.trim(),
        "active",
        "Pacemaker runs after a set-up that failed before it"
    );
}

/// One failure after the other on the same node, then the other node much later than the first: still a pair.
#[test]
#[ignore = "needs root: make lab-test"]
fn every_failure_is_told_and_can_be_mended() {
    let nodes = Nodes::start(&config("failures", false, true));
    let [first, second] = nodes.names();
    for node in nodes.names() {
        nodes.wait_booted(node);
    }
    packages_are_missing(&nodes, first);
    the_disk_is_full(&nodes, first);
    bmcs_misbehave(&nodes, first, second);
    former_data_are_respected(&nodes, first, second);
    nodes.assert_pair();
}

fn packages_are_missing(nodes: &Nodes, node: &str) {
    nodes.shell(node, "mv /usr/bin/etcd /usr/bin/etcd.away; mv /usr/sbin/corosync /root/");
    fails(
        nodes,
        node,
        "machine",
        &["etcd is not installed", "corosync is not installed", "etcd-server"],
    );
    nodes.shell(node, "mv /usr/bin/etcd.away /usr/bin/etcd; mv /root/corosync /usr/sbin/");
    nodes.shell(node, "mv /usr/lib/ocf/resource.d/dyad /root/");
    fails(nodes, node, "machine", &["agents are not installed", "install the package dyad"]);
    nodes.shell(node, "mv /root/dyad /usr/lib/ocf/resource.d/");
}

fn the_disk_is_full(nodes: &Nodes, node: &str) {
    nodes.request(&Request::FullDisk { node: node.into() }).unwrap();
    fails(nodes, node, "machine", &["MiB free at /var/lib/etcd", "make room"]);
    nodes.heal().unwrap();
}

fn bmcs_misbehave(nodes: &Nodes, node: &str, other: &str) {
    for (fault, words) in [
        ("wrong-password", ["user name and password"]),
        ("refuse", ["reachable"]),
        ("hang", ["reachable"]),
    ] {
        nodes.bmc(other, fault.parse().unwrap()).unwrap();
        fails(nodes, node, "bmc", &[&format!("bmc {other}: "), words[0]]);
        nodes.heal().unwrap();
    }
}

/// The first node waits for the second; that one has held data before, so both refuse to begin; without them
/// the next try makes the pair, begun by one node and joined by the other.
fn former_data_are_respected(nodes: &Nodes, first: &str, second: &str) {
    let aside = "/var/lib/etcd/dyad/aside/000001-a1";
    nodes.shell(second, &format!("mkdir -p {aside}/wal"));
    let mut waiting = nodes.begin_setup(first);
    nodes.wait("the first node to wait for its peer", || {
        let state = nodes.state(first)?;
        let step = state.current().map(|step| step.name.clone());
        (step.as_deref() != Some("peer")).then(|| format!("it is in {step:?}"))
    });
    let finished = nodes.setup(second);
    assert_eq!(finished.code, 4, "{finished:?}");
    assert!(finished.stderr.contains(&format!("held data before: {aside}")), "{finished:?}");
    let code = waiting.wait().unwrap().code();
    assert_eq!(code, Some(4), "the other node begins although its peer held data");
    for node in [first, second] {
        assert_eq!(nodes.state(node).unwrap().failure.unwrap().step, "data");
        nodes.shell(node, "test ! -e /var/lib/etcd/member");
    }
    nodes.shell(second, "rm -r /var/lib/etcd/dyad/aside");
    let mut waiting = nodes.begin_setup(first);
    let finished = nodes.setup(second);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(waiting.wait().unwrap().success());
}
