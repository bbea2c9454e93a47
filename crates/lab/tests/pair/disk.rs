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
    let seen = pair.seen("node-b");
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
    pair.wait_decision("node-b", seen, "yield", "R8");
    pair.wait_writable("node-a");
    assert_eq!(pair.powered_off(), Vec::<String>::new());
    assert_eq!(pair.voters("node-a"), 1);
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

/// A disk that stalls again and again makes etcd slow. It is no failure: nobody is fenced, no action hangs,
/// and what was acknowledged stays (R9).
#[test]
#[ignore = "needs root: make lab-test"]
fn a_slow_disk_fences_nobody() {
    let pair = Pair::usual();
    pair.lead("node-b");
    let clients = pair.clients();
    pair.ask(&Request::SlowDisk { node: "node-b".into(), stall_ms: 1_500 });
    // Whatever the disk does, a monitor answers, and within its limit.
    let monitor = "OCF_RESKEY_CRM_meta_on_node=node-b /usr/libexec/dyad/dyad-node ocf monitor";
    for _ in 0..10 {
        let limit = std::time::Duration::from_secs(20);
        let finished = pair.exec("node-b", &["sh", "-c", monitor], limit).unwrap();
        // Promoted; or promoted and degraded, while a stall costs the leader its place.
        assert!([8, 191].contains(&finished.code), "{finished:?}");
    }
    assert_eq!(pair.powered_off(), Vec::<String>::new());
    // "Might fail soon" is what a node without a leader says meanwhile; nothing has failed.
    let shown = pair.run("node-a", &["crm_mon", "--one-shot"]);
    let failed = shown.lines().skip_while(|line| !line.starts_with("Failed")).skip(1);
    let failed: Vec<_> = failed.filter(|line| !line.contains("might fail soon")).collect();
    assert!(failed.iter().all(|line| line.trim().is_empty()), "{shown}");
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

/// A node whose data are gone when it boots, as after a change of its disk, is filled again by the other.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_new_disk_is_filled_again() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.run("node-b", &["systemctl", "stop", "pacemaker"]);
    pair.run("node-b", &["sh", "-c", "rm -rf /var/lib/etcd/* /var/lib/etcd/.[!.]*"]);
    pair.run("node-b", &["systemctl", "start", "--no-block", "pacemaker"]);
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// A disk that takes no write any more, without an error, on the node that both would rather keep: its etcd hears nobody,
/// cannot yield and cannot be stopped. It is fenced for that, and the other one goes on (R8).
#[test]
#[ignore = "needs root: make lab-test"]
fn a_disk_that_hangs_costs_one_node() {
    let pair = Pair::usual();
    pair.lead("node-a");
    let clients = pair.clients();
    let seen = pair.seen("node-b");
    // Lab nodes boot in a second. Where the fenced one led the cluster, that is before the other one has begun to.
    pair.bmc("node-a", "slow-power=3000".parse().unwrap()).unwrap();
    pair.ask(&Request::SlowDisk { node: "node-a".into(), stall_ms: 600_000 });
    pair.wait_decision("node-b", seen, "takeOver", "R2");
    pair.wait_writable("node-b");
    let off = pair.powered_off();
    assert!(!off.is_empty() && off.iter().all(|node| node == "node-a"), "{off:?}");
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

/// A file system that an error has made read-only: no etcd runs on it, and not even the yield can be written down. The
/// other node goes on all the same; mended, it is filled again.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_read_only_disk_holds_nobody_up() {
    let pair = Pair::usual();
    pair.lead("node-b");
    let clients = pair.clients();
    let seen = pair.seen("node-a");
    let ended = "systemctl kill --signal=KILL dyad-etcd.service; \
                 for i in $(seq 100); do mount -o remount,ro /var/lib/etcd && exit; done; exit 1";
    pair.run("node-b", &["sh", "-c", ended]);
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait_writable("node-a");
    assert_eq!(pair.powered_off(), Vec::<String>::new());
    pair.run("node-b", &["mount", "-o", "remount,rw", "/var/lib/etcd"]);
    pair.wait_protected();
    clients.judge(&pair);
}
