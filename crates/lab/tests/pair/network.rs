//! Scenarios `network failure`: the nodes are well and cannot hear each other.

use dyad_lab::config::Link;
use dyad_lab::protocol::Request;
use dyad_lab::timeline::Phase;

use crate::common::Pair;

/// Exactly one of two nodes that cannot hear each other survives a cut, and it is the preferred one. The other
/// is rebooted and stays blocked while the cut lasts; when it ends it comes back by itself.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_cut_leaves_exactly_the_preferred_node() {
    let pair = Pair::usual();
    pair.lead("node-b");
    let seen = pair.seen("node-a");
    let clients = pair.clients();

    pair.cut_all().unwrap();
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait_writable("node-a");
    // The fenced node boots, sees nobody and waits: its data may be old.
    let timeline = pair.wait_for(Phase::Waiting, "until it has seen its peer");
    let waits = timeline.first(Phase::Waiting).unwrap();
    assert_eq!(waits.place, "node-b");
    assert!(!pair.is_writable("node-b"));
    assert_eq!(pair.powered_off(), ["node-b"]);

    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

fn one_way(from: &str) {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.ask(&Request::Cut { links: Link::ALL.to_vec(), from: Some(from.into()) });
    pair.wait("a node to go on alone", || {
        let alone = pair.names().into_iter().find(|node| pair.voters(node) == 1);
        alone.is_none().then(|| "none does".into())
    });
    let off = pair.powered_off();
    assert_eq!(off.len(), 1, "{off:?}");
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

/// Nothing that the preferred node sends arrives.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_one_way_cut_from_the_preferred_node_leaves_one() {
    one_way("node-a");
}

/// Nothing that the other node sends arrives.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_one_way_cut_from_the_other_node_leaves_one() {
    one_way("node-b");
}

/// Losing one of two links costs nothing: nobody is fenced, and writes go on, also when it is the link that
/// etcd's connections were on.
#[test]
#[ignore = "needs root: make lab-test"]
fn one_link_is_not_needed() {
    let pair = Pair::usual();
    let members = pair.members("node-a");
    let clients = pair.clients();
    for link in Link::ALL {
        pair.ask(&Request::Cut { links: vec![link], from: None });
        pair.wait_for(Phase::Link, &format!("{} to node-a down", link.name()));
        pair.wait_writable("node-a");
        pair.wait_writable("node-b");
        pair.heal().unwrap();
        pair.wait_protected();
    }
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
    assert_eq!(pair.members("node-a"), members);
}

/// A healthy cluster with a deaf etcd (R8): the peer port is blocked, both nodes see each other. One yields,
/// the other goes on; nobody is fenced, and when the port is open again the pair is whole.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_blocked_peer_port_makes_one_yield() {
    let pair = Pair::usual();
    let clients = pair.clients();
    for node in pair.names() {
        pair.ask(&Request::BlockPort { node: node.into(), port: 2380 });
    }
    pair.wait_writable("node-a");
    assert_eq!(pair.voters("node-a"), 1);
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// One of etcd's connections between its members goes silent, and everything else is well: Corosync, the port,
/// every other connection. Writes go on, and nobody is fenced.
#[test]
#[ignore = "needs root: make lab-test"]
fn one_silent_connection_does_not_stop_writes() {
    let pair = Pair::usual();
    let clients = pair.clients();
    for (leader, node) in [("node-a", "node-a"), ("node-a", "node-b")] {
        pair.lead(leader);
        pair.ask(&Request::Stall { node: node.into(), port: 2380 });
        pair.wait_writable("node-a");
        pair.wait_writable("node-b");
    }
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}
