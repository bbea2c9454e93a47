//! Every command in the states of a pair: what only looks answers in each of them, and what is used wrongly, or at the
//! wrong time, is refused and does nothing.

use std::time::Duration;

use dyad_lab::protocol::PowerAction;

use crate::common::Pair;
use crate::day_two::{status, wait_state};

/// How long a command may take that only looks, or is refused.
const LIMIT: Duration = Duration::from_secs(40);

/// Runs everything that must not change anything on this node, in this state of the pair.
#[track_caller]
pub(crate) fn harmless_commands(pair: &Pair, node: &str, state: &str) {
    let seen = wait_state(pair, node, state);
    let (own, other) = (node, pair.peer_of(node));
    let code = i32::try_from(seen["exitCode"].as_u64().unwrap()).unwrap();
    let gate = if state == "protected" { 0 } else { 3 };
    let resolve = if state == "diverged" { 3 } else { 0 };
    let looks: [(&[&str], &[i32]); 8] = [
        (&["status", "--limit-ms", "3000"], &[code]),
        (&["gate"], &[gate]),
        (&["explain"], &[0]),
        (&["archive", "list"], &[0]),
        (&["resolve"], &[resolve]),
        (&["drill"], &[0, 3]),
        (&["etcd", "inspect", "/var/lib/etcd"], &[0, 3]),
        (&["exit-codes"], &[0]),
    ];
    let wrong: [(&[&str], &[i32]); 13] = [
        (&["confirm", "--yes-peer-is-down", own], &[2]),
        (&["confirm", "--yes-peer-is-down", "node-x"], &[2]),
        (&["rotate", "bmc", other, "--from", "/nowhere"], &[2]),
        (&["maintenance", "start", "node-x"], &[2]),
        (&["maintenance", "end", "node-x"], &[2]),
        (&["resolve", "--keep", "node-x"], &[2]),
        (&["archive", "restore", "999"], &[2]),
        (&["archive", "prune", "999"], &[2]),
        (&["drill", "--really", own, "--yes"], &[2]),
        (&["rotate", "bmc", "node-x", "--from", "/etc/hostname"], &[2]),
        (&["rotate", "etcd-certs", "--from", "/nowhere"], &[2]),
        (&["replace", own], &[2]),
        (&["uninstall", "--yes-uninstall", "node-x"], &[2]),
    ];
    let mut untimely: Vec<(Vec<&str>, &[i32])> = Vec::new();
    if state != "protected" {
        untimely.push((vec!["drill", "--really", other, "--yes"], &[4]));
    }
    if state != "diverged" {
        let keep = vec!["resolve", "--keep", other, "--yes-give-up", own];
        untimely.push((keep, &[4]));
    }
    if !["alone", "maintenance"].contains(&state) {
        untimely.push((vec!["replace", other], &[4]));
    }
    if ["protected", "catchingUp", "maintenance", "diverged"].contains(&state) {
        // It is plainly there.
        let confirm = vec!["confirm", "--yes-peer-is-down", other, "--although-it-seems-up"];
        untimely.push((confirm, &[4]));
    }
    if let Some(serves) = seen["on"].as_str().filter(|_| state == "catchingUp") {
        untimely.push((vec!["maintenance", "start", serves], &[4]));
    }
    let all = looks.into_iter().chain(wrong).map(|(words, codes)| (words.to_vec(), codes));
    for (words, codes) in all.chain(untimely) {
        let mut command = vec!["dyad"];
        command.extend(&words);
        let finished = pair.exec(node, &command, LIMIT).unwrap();
        let told = format!("dyad {} on {node} while {state}: {finished:?}", words.join(" "));
        assert!(codes.contains(&finished.code), "{told}");
        assert!(!finished.stderr.contains("panicked"), "{told}");
        // Whoever is refused is told why, and what to do instead.
        let refused = [2, 4].contains(&finished.code);
        assert!(!refused || finished.stderr.contains("\nhint: "), "{told}");
        let said = finished.stderr + &finished.stdout;
        assert!(finished.code == 0 || finished.code > 9 || !said.is_empty(), "{told}");
    }
    let still = status(pair, node).unwrap();
    assert_eq!(still["state"], state, "something was changed: {still}");
}

/// Corosync's packets are lost and nothing else, and neither node can switch the other off: both run, both see that the
/// other one runs, and say so. When the network and the BMCs are well again the pair heals by itself.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_split_is_told() {
    let pair = Pair::usual();
    for node in pair.names() {
        pair.bmc(node, "server-error".parse().unwrap()).unwrap();
    }
    let deaf = "nft add table inet deaf; nft add chain inet deaf in '{ type filter hook input priority 0; }'; \
                nft add rule inet deaf in udp dport 5400-5410 drop";
    pair.run("node-b", &["sh", "-ec", deaf]);
    let split = wait_state(&pair, "node-a", "split");
    assert!(split["because"].as_str().unwrap().contains("node-b runs and answers"), "{split}");
    for node in pair.names() {
        harmless_commands(&pair, node, "split");
    }
    pair.run("node-b", &["nft", "delete", "table", "inet", "deaf"]);
    pair.heal().unwrap();
    for node in pair.names() {
        // One of them may have been switched off for what Pacemaker still held against it.
        let _ = pair.power(node, PowerAction::On);
    }
    pair.wait_protected();
}
