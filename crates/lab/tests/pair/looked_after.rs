//! What people do on a pair in its life, in one go: for a release of the distribution that has no scenario for each.

use serde_json::Value;

use crate::changes::{on_both, render};
use crate::common::Pair;
use crate::day_two::{refused, served, status, wait_state};
use crate::states::harmless_commands;

/// The lab's container lays the node's own boot id over the kernel's. The older systemd uncovers that of the machine
/// below for a service which it keeps from the kernel's settings; a machine of its own has only one.
const SERVE: &str = "mkdir -p /run/systemd/system/dyad-serve.service.d; \
    printf '[Service]\\nProtectKernelTunables=no\\n' > /run/systemd/system/dyad-serve.service.d/lab.conf; \
    systemctl daemon-reload; systemctl start dyad-serve";

/// Every command of day two once, while clients write; then the leader dies.
pub(crate) fn looked_after(pair: &Pair) {
    let clients = pair.clients();
    for node in pair.names() {
        harmless_commands(pair, node, "protected");
    }
    let told = refused(pair, "node-a", &["dyad", "confirm", "--yes-peer-is-down", "node-b"], 4);
    assert!(told.contains("in the cluster now"), "{told}");
    pair.run_patiently("node-a", &["dyad", "maintenance", "start", "node-b"]);
    wait_state(pair, "node-b", "maintenance");
    pair.run_patiently("node-b", &["dyad", "maintenance", "end", "node-b"]);
    wait_state(pair, "node-a", "protected");
    secrets_are_rotated(pair);
    a_drill_is_measured(pair);
    pair.run("node-a", &["sh", "-ec", SERVE]);
    the_leader_dies(pair);
    clients.judge(pair);
    what_is_served(pair);
    let bundle = ["dyad", "gather", "--only-here", "--out", "/root/bundle.tar.zst"];
    pair.run_patiently("node-a", &bundle);
    let size = pair.run("node-a", &["stat", "--format=%s", "/root/bundle.tar.zst"]);
    assert!(size.trim().parse::<u64>().unwrap() > 10_000, "{size}");
}

/// Password, certificates and key; nothing is restarted for it, nobody is fenced.
fn secrets_are_rotated(pair: &Pair) {
    pair.run("node-a", &["cp", "--preserve=mode", "/etc/dyad/bmc-node-b", "/root/password"]);
    pair.run("node-a", &["dyad", "rotate", "bmc", "node-b", "--from", "/root/password"]);
    render(pair, Some("certificates"), pair.names(), str::to_owned);
    for node in pair.names() {
        let rotate = ["dyad", "rotate", "etcd-certs", "--from", "/root/new"];
        pair.run_patiently(node, &rotate);
    }
    render(pair, Some("authkey"), pair.names(), str::to_owned);
    on_both(pair, &["dyad", "rotate", "authkey", "--from", "/root/new"]);
    wait_state(pair, "node-a", "protected");
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// A drill tells how long it took. The lab's nodes boot within seconds: the fenced one may be back before anybody had to
/// take over.
fn a_drill_is_measured(pair: &Pair) {
    let drill = ["dyad", "drill", "--really", "node-b", "--yes", "--output", "json"];
    let report: Value = serde_json::from_str(&pair.run_patiently("node-a", &drill)).unwrap();
    assert!(report["longestWriteGapMs"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(pair.powered_off(), ["node-b"]);
    pair.wait_protected();
    let seen = status(pair, "node-a").unwrap();
    let kept = &seen["fencing"]["lastDrill"];
    assert_eq!(kept["longestWriteGapMs"], report["longestWriteGapMs"], "{seen}");
    // Both devices are tested, and it is known since when; the incident is told from the loss on.
    for device in seen["fencing"]["devices"].as_array().unwrap() {
        assert!(device["testSinceMs"].as_u64().is_some(), "{seen}");
    }
    assert_eq!(seen["incident"]["steps"][0]["what"], "node-b lost", "{seen}");
}

fn the_leader_dies(pair: &Pair) {
    pair.lead("node-b");
    let seen = pair.seen("node-a");
    pair.pull_plug("node-b");
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait_protected();
}

/// The metrics tell of the fail-over with its times, of the margin that detection has, and when certificates expire.
fn what_is_served(pair: &Pair) {
    pair.wait("the metrics to tell of the fail-over", || {
        let metrics = served(pair, "node-a", "/metrics");
        let wanted = [
            "\ndyad_redundant 1\n",
            "\ndyad_failovers_total 1\n",
            "\ndyad_fencing_duration_seconds_count 1\n",
            "\ndyad_fencings_total{result=\"success\"} 1\n",
            "\ndyad_fencings_total{result=\"failed\"} 0\n",
            "\ndyad_detection_margin_seconds 0.",
            "\ndyad_take_over_duration_seconds_count 1\n",
            "\ndyad_certificate_expiry_timestamp_seconds{",
        ];
        wanted
            .into_iter()
            .find(|line| !metrics.contains(line))
            .map(|line| format!("no {line}: {metrics}"))
    });
    pair.run("node-a", &["systemctl", "stop", "dyad-serve"]);
}
