//! Scenarios `etcd failure`: the process dies, the node does not.

use dyad_lab::protocol::Request;

use crate::common::Pair;

/// An etcd that crashes in a whole pair is started again on its data (R1): same members, nobody fenced.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_crashed_etcd_is_restarted_plainly() {
    let pair = Pair::usual();
    let members = pair.members("node-a");
    let clients = pair.clients();
    for (leader, victim) in [("node-a", "node-a"), ("node-a", "node-b")] {
        pair.lead(leader);
        let process = pair.run(victim, &["pidof", "etcd"]);
        pair.ask(&Request::KillEtcd { node: victim.into() });
        pair.wait("another etcd", || {
            let now = pair.exec(victim, &["pidof", "etcd"], std::time::Duration::from_secs(5));
            let now = now.map(|finished| finished.stdout).unwrap_or_default();
            (now.trim().is_empty() || now == process).then(|| format!("pid {now}"))
        });
        pair.wait_writable(victim);
        pair.wait_protected();
    }
    clients.judge(&pair);
    assert_eq!(pair.members("node-a"), members);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// An etcd that crashes while its node is alone is started again on its data: it is the only copy.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_crash_while_alone_is_a_restart() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-b");
    let alone = pair.members("node-a");

    pair.ask(&Request::KillEtcd { node: "node-a".into() });
    pair.wait_writable("node-a");
    assert_eq!(pair.members("node-a"), alone);

    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}
