//! Day two: what people see and do. Each command in the states of a real pair.

use std::time::Duration;

use serde_json::Value;

use crate::common::Pair;

/// How long a command of a person may take.
const COMMAND: Duration = Duration::from_mins(2);

/// What `dyad status` on a node says, with its exit code.
pub(crate) fn status(pair: &Pair, node: &str) -> (Value, i32) {
    // Machines that run tests are busy: patience changes what is known, not what is said of it.
    let command = ["dyad", "status", "--output", "json", "--limit-ms", "3000"];
    let finished = pair.exec(node, &command, COMMAND).unwrap();
    let document: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    assert_eq!(document["exitCode"], finished.code, "{document}");
    (document, finished.code)
}

/// Waits until a node says that the pair is in this state.
#[track_caller]
pub(crate) fn wait_state(pair: &Pair, node: &str, state: &str) -> Value {
    let mut last = Value::Null;
    pair.wait(&format!("{node} to say {state}"), || {
        last = status(pair, node).0;
        (last["state"] != state).then(|| format!("{}: {}", last["state"], last["because"]))
    });
    last
}

/// The report for people, as it was on the screen.
fn show(pair: &Pair, node: &str) -> String {
    let finished = pair.exec(node, &["dyad", "status"], COMMAND).unwrap();
    eprintln!("---- dyad status on {node}: {}\n{}", finished.code, finished.stdout);
    assert!(finished.stdout.lines().all(|line| line.chars().count() <= 80), "{}", finished.stdout);
    finished.stdout
}

/// A whole pair is protected on both nodes; a node that is stopped, lost, and back is told as such on both.
#[test]
#[ignore = "needs root: make lab-test"]
fn status_tells_each_state() {
    let pair = Pair::usual();
    for node in pair.names() {
        let whole = wait_state(&pair, node, "protected");
        assert_eq!(whole["unknown"], Value::Array(Vec::new()), "{whole}");
        assert!(show(&pair, node).starts_with("PROTECTED"));
    }

    pair.run("node-b", &["systemctl", "stop", "pacemaker"]);
    let alone = wait_state(&pair, "node-a", "alone");
    assert_eq!(alone["on"], "node-a");
    let seen = wait_state(&pair, "node-b", "alone");
    assert_eq!(
        (seen["on"].as_str(), seen["next"].as_str()),
        (Some("node-a"), Some("systemctl start pacemaker"))
    );
    assert!(show(&pair, "node-b").starts_with("ALONE on node-a"));
    pair.run("node-b", &["systemctl", "start", "pacemaker"]);
    pair.wait_protected();

    pair.lose("node-b");
    let alone = wait_state(&pair, "node-a", "alone");
    assert_eq!(alone["on"], "node-a");
    assert!(alone["sinceMs"].is_u64(), "{alone}");
    assert!(show(&pair, "node-a").starts_with("ALONE on node-a for "));

    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait_protected();
    let whole = wait_state(&pair, "node-a", "protected");
    assert!(whole["incident"]["endMs"].is_u64(), "{whole}");
    assert_eq!(whole["fencing"]["last"]["node"], "node-b");
    show(&pair, "node-a");
}

/// Without Pacemaker and without etcd status still answers, and says what it cannot know.
#[test]
#[ignore = "needs root: make lab-test"]
fn status_works_when_half_is_broken() {
    let pair = Pair::usual();
    // Both stop at once: neither leaves.
    for node in pair.names() {
        pair.run(node, &["systemctl", "stop", "--no-block", "pacemaker", "corosync"]);
    }
    for node in pair.names() {
        pair.wait("Corosync to stop", || {
            let unknown = status(&pair, node).0["unknown"].to_string();
            (!unknown.contains("Corosync") || !unknown.contains("Pacemaker")).then_some(unknown)
        });
        let stopped = wait_state(&pair, node, "stopped");
        assert_eq!(stopped["next"], "systemctl start pacemaker");
        show(&pair, node);
    }
    for node in pair.names() {
        pair.run(node, &["systemctl", "start", "--no-block", "pacemaker"]);
    }
    pair.wait_protected();
}

/// Runs a command that must be refused, and gives what it said.
#[track_caller]
fn refused(pair: &Pair, node: &str, command: &[&str], code: i32) -> String {
    let finished = pair.exec(node, command, COMMAND).unwrap();
    eprintln!("---- {} on {node}: {}\n{}", command.join(" "), finished.code, finished.stderr);
    assert_eq!(finished.code, code, "{finished:?}");
    finished.stderr
}

/// A node in maintenance leaves in good order while clients write, is rebooted and shut down without being
/// fenced, stays out of service over the reboot, and is a full replica again when it ends.
#[test]
#[ignore = "needs root: make lab-test"]
fn maintenance_is_no_failure() {
    let pair = Pair::usual();
    let before = wait_state(&pair, "node-a", "protected")["fencing"]["last"].clone();
    pair.run("node-a", &["dyad", "gate"]);
    let told = refused(&pair, "node-a", &["dyad", "maintenance", "start", "node-c"], 2);
    assert!(told.contains("node-c is neither"), "{told}");
    let clients = pair.clients();

    // Typed on the node that stays; the reason is kept.
    let start = ["dyad", "maintenance", "start", "node-b", "--reason", "a new fan"];
    pair.run_patiently("node-a", &start);
    assert_eq!(pair.voters("node-a"), 1);
    let seen = wait_state(&pair, "node-b", "maintenance");
    assert_eq!(seen["next"], "dyad maintenance end node-b");
    assert!(show(&pair, "node-a").starts_with("MAINTENANCE of node-b"));
    assert!(pair.run("node-a", &["cat", "/var/log/dyad/acts.jsonl"]).contains("a new fan"));

    // The one that is left must not go too, and nothing else may start.
    let told = refused(&pair, "node-b", &["dyad", "maintenance", "start", "node-a"], 4);
    assert!(told.contains("node-a stays in service"), "{told}");
    refused(&pair, "node-a", &["dyad", "gate"], 3);

    // A reboot in good order.
    pair.reboot("node-b");
    let seen = wait_state(&pair, "node-b", "maintenance");
    assert_eq!(seen["on"], "node-b");
    wait_state(&pair, "node-a", "maintenance");
    assert_eq!(pair.voters("node-a"), 1);

    pair.run_patiently("node-b", &["dyad", "maintenance", "end", "node-b"]);
    pair.wait_protected();
    wait_state(&pair, "node-a", "protected");
    clients.judge(&pair);
    let whole = wait_state(&pair, "node-a", "protected");
    assert_eq!(whole["fencing"]["last"], before, "nobody was fenced");
}
