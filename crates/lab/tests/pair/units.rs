//! Scenarios `units`: the container runtime and kubelet, as Pacemaker runs them beside etcd.

use crate::common::Pair;

/// A unit that crashes is started again; etcd goes on as if nothing had happened.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_crashed_kubelet_is_restarted_and_etcd_untouched() {
    let pair = Pair::usual();
    let etcd = pair.run("node-b", &["pidof", "etcd"]);
    let clients = pair.clients();
    pair.run("node-b", &["systemctl", "kill", "--signal=KILL", "kubelet.service"]);
    pair.wait("kubelet to run again", || {
        let finished = pair.exec(
            "node-b",
            &["systemctl", "is-active", "kubelet.service"],
            std::time::Duration::from_secs(10),
        );
        let state = finished.map(|finished| finished.stdout).unwrap_or_default();
        (state.trim() != "active").then_some(state)
    });
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.run("node-b", &["pidof", "etcd"]), etcd);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}
