//! Scenarios `two failures`: both nodes die, one after the other or together.

use dyad_judge::verdict::Answer;

use crate::common::Pair;

/// Both nodes lose their power under load. Both copies are whole: the pair starts again by itself, and every
/// acknowledged write is there.
#[test]
#[ignore = "needs root: make lab-test"]
fn both_nodes_die_at_once() {
    let pair = Pair::usual();
    let clients = pair.clients();
    for node in pair.names() {
        pair.pull_plug(node);
    }
    for node in pair.names() {
        pair.power_on(node);
    }
    pair.wait_protected();
    clients.judge(&pair);
}

/// The survivor dies too. Whoever boots first, the copy that went on alone is the one that goes on, and the
/// old one waits for it: a `Pair` dataset does not start alone.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_old_copy_waits_for_the_newer_one() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-a");
    pair.pull_plug("node-b");

    // The old copy boots alone and stays inert.
    pair.heal().unwrap();
    let seen = pair.seen("node-a");
    pair.power_on("node-a");
    pair.wait_decision("node-a", seen, "stayInert", "R5");
    assert!(!pair.is_writable("node-a"));

    pair.power_on("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}

/// The survivor dies too and comes back alone: it went on alone, so it is the newest. It proves its peer off
/// through the BMC and starts by itself (R5).
#[test]
#[ignore = "needs root: make lab-test"]
fn the_newer_copy_boots_alone() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-a");
    pair.pull_plug("node-b");

    let seen = pair.seen("node-b");
    pair.power_on("node-b");
    pair.wait_decision("node-b", seen, "forcePeerOff", "R5");
    pair.wait_writable("node-b");
    assert_eq!(pair.voters("node-b"), 1);

    pair.heal().unwrap();
    pair.power_on("node-a");
    pair.wait_protected();
    clients.judge(&pair);
}

/// A fenced node comes back, and the survivor dies before it has rejoined: the one that came back must not go
/// on with its old copy.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_survivor_dies_before_the_other_has_rejoined() {
    let pair = Pair::usual();
    let seen = pair.seen("node-b");
    let clients = pair.clients();
    pair.pull_plug("node-a");
    pair.wait_decision("node-b", seen, "takeOver", "R2");
    pair.wait_writable("node-b");
    // node-a boots meanwhile; whatever it has done so far, it is no replica yet.
    pair.pull_plug("node-b");
    pair.power_on("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}

/// A person lets an old copy go on. Without accepting a loss that is named it is refused; accepted, it is
/// written down. When the newer copy comes back the two have diverged: it stays off, and nothing is erased.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_stale_copy_goes_on_only_by_a_person() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-a");
    assert!(pair.etcdctl("node-b", &["put", "only-on-b", "1"]).is_some());
    pair.bmc("node-b", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-b");

    let seen = pair.seen("node-a");
    pair.power_on("node-a");
    pair.wait_decision("node-a", seen, "stayInert", "R5");
    let confirm = ["dyad", "confirm", "--yes-peer-is-down", "node-b", "--reason", "it was stolen"];
    let refused = pair.exec("node-a", &confirm, std::time::Duration::from_mins(1)).unwrap();
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("would be lost"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--accept-possible-loss"), "{}", refused.stderr);
    assert!(!pair.is_writable("node-a"));

    let accept: Vec<&str> = confirm.iter().copied().chain(["--accept-possible-loss"]).collect();
    pair.run("node-a", &accept);
    pair.wait_writable("node-a");
    let record = pair.run("node-a", &["cat", "/var/log/dyad/confirmations.jsonl"]);
    assert!(record.contains("it was stolen"), "{record}");

    // The newer copy comes back: two histories, and nobody may find them both served.
    let seen = pair.seen("node-b");
    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait("node-b to refuse", || {
        let decisions = pair.decisions("node-b");
        let refused = decisions.iter().skip(seen).any(|entry| {
            entry["decision"]["action"] == "refuse" && entry["decision"]["reason"] == "diverged"
        });
        (!refused).then(|| "it has not yet".into())
    });
    assert!(!pair.is_writable("node-b"));
    assert!(pair.is_writable("node-a"));
    pair.run("node-b", &["test", "-d", "/var/lib/etcd/member/wal"]);
    // What was written on the newer copy alone is lost to clients, as was said: the judge sees it.
    let (_, answer, verdict) = clients.end(&pair);
    assert_eq!(answer, Answer::Bad, "{verdict}");
    pair.end();
}

/// A node whose cluster stack was stopped in good order, without leaving, and is started again in the same boot: the
/// other one may have gone on meanwhile, without any fencing. What was earned before counts no more, and a person is told
/// what could be lost.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_stack_that_was_restarted_may_hold_an_old_copy() {
    let pair = Pair::usual();
    let clients = pair.clients();
    let role = |update: &[&str]| {
        let words = ["crm_resource", "--resource", "etcd-clone", "--meta"];
        pair.run("node-a", &[&words, update].concat());
    };
    // Both stop: neither leaves.
    role(&["--set-parameter", "target-role", "--parameter-value", "Stopped"]);
    for node in pair.names() {
        pair.wait(&format!("etcd to stop on {node}"), || {
            let ask =
                ["systemctl", "show", "--property=ActiveState", "--value", "dyad-etcd.service"];
            let state = pair.run(node, &ask);
            (state.trim() != "inactive").then_some(state)
        });
    }
    pair.run_patiently("node-b", &["systemctl", "stop", "pacemaker", "corosync"]);
    let seen = pair.seen("node-a");
    role(&["--delete-parameter", "target-role"]);
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait_writable("node-a");
    assert_eq!(pair.powered_off(), Vec::<String>::new());
    assert!(pair.etcdctl("node-a", &["put", "only-on-a", "1"]).is_some());

    pair.bmc("node-a", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-a");
    let seen = pair.seen("node-b");
    pair.run("node-b", &["systemctl", "start", "corosync", "pacemaker"]);
    pair.wait_decision("node-b", seen, "stayInert", "R5");
    let confirm = ["dyad", "confirm", "--yes-peer-is-down", "node-a", "--reason", "it is dark"];
    let refused = pair.exec("node-b", &confirm, std::time::Duration::from_mins(1)).unwrap();
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("would be lost"), "{}", refused.stderr);
    assert!(!pair.is_writable("node-b"));

    pair.heal().unwrap();
    pair.power_on("node-a");
    pair.wait_protected();
    clients.judge(&pair);
}
