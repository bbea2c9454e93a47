//! Scenarios `disk`: the disk under etcd is full or slow.

use dyad_lab::protocol::Request;

use crate::common::Pair;

/// A full disk on one node is one failure: the other goes on, and when there is room again the pair is whole.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_full_disk_stops_one_node_only() {
    let pair = Pair::usual();
    pair.lead("node-b");
    let clients = pair.clients();
    pair.ask(&Request::FullDisk { node: "node-b".into() });
    pair.wait("node-b's disk to matter", || {
        let status = pair.exec(
            "node-b",
            &["df", "--output=avail", "/var/lib/etcd"],
            std::time::Duration::from_secs(10),
        );
        let text = status.map(|finished| finished.stdout).unwrap_or_default();
        let free: u64 =
            text.lines().nth(1).and_then(|line| line.trim().parse().ok()).unwrap_or(u64::MAX);
        (free > 1024).then(|| format!("{free} KiB free"))
    });
    // Its etcd ends by itself as soon as it needs room; a crash makes it need room at once.
    let _ = pair.request(&Request::KillEtcd { node: "node-b".into() });
    pair.wait_writable("node-a");
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}
