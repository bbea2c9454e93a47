//! Day two: what people see and do. Each command in the states of a real pair.

use std::time::Duration;

use serde_json::Value;

use crate::common::Pair;
use crate::states::harmless_commands;

/// How long a command of a person may take.
const COMMAND: Duration = Duration::from_mins(2);

/// What `dyad status` on a node says; nothing from a node that does not know its name yet, because it boots.
pub(crate) fn status(pair: &Pair, node: &str) -> Option<Value> {
    // Machines that run tests are busy: patience changes what is known, not what is said of it.
    let command = ["dyad", "status", "--output", "json", "--limit-ms", "3000"];
    let finished = pair.exec(node, &command, COMMAND).ok()?;
    let document: Value = serde_json::from_str(&finished.stdout).ok()?;
    assert_eq!(document["exitCode"], finished.code, "{document}");
    Some(document)
}

/// Waits until a node says that the pair is in this state.
#[track_caller]
pub(crate) fn wait_state(pair: &Pair, node: &str, state: &str) -> Value {
    let mut last = Value::Null;
    pair.wait(&format!("{node} to say {state}"), || {
        let Some(seen) = status(pair, node) else { return Some("it says nothing".to_owned()) };
        last = seen;
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
        harmless_commands(&pair, node, "protected");
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
    harmless_commands(&pair, "node-a", "alone");
    harmless_commands(&pair, "node-b", "alone");
    pair.run("node-b", &["systemctl", "start", "pacemaker"]);
    pair.wait_protected();

    pair.lose("node-b");
    let alone = wait_state(&pair, "node-a", "alone");
    assert_eq!(alone["on"], "node-a");
    assert!(alone["sinceMs"].is_u64(), "{alone}");
    assert!(show(&pair, "node-a").starts_with("ALONE on node-a for "));
    // The other one cannot be reached at all.
    harmless_commands(&pair, "node-a", "alone");

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
            let unknown = status(&pair, node).unwrap_or_default()["unknown"].to_string();
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
pub(crate) fn refused(pair: &Pair, node: &str, command: &[&str], code: i32) -> String {
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

    for node in pair.names() {
        harmless_commands(&pair, node, "maintenance");
    }

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

/// Two failures at night. The node that comes back first has the older copy: it says so and waits. A person's word
/// on the wrong node or with the wrong name does nothing; with the loss named and accepted the node serves. The
/// newer copy comes back, both are kept, a person chooses, and the one that was given up can be found again.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_double_failure_at_night() {
    let pair = Pair::usual();
    // A live peer is never confirmed dead, whoever asks where.
    let told = refused(&pair, "node-a", &["dyad", "confirm", "--yes-peer-is-down", "node-b"], 4);
    assert!(told.contains("in the cluster now"), "{told}");
    let told = refused(&pair, "node-b", &["dyad", "confirm", "--yes-peer-is-down", "node-b"], 2);
    assert!(told.contains("this is node-b; its peer is node-a"), "{told}");

    pair.lose("node-a");
    assert!(pair.etcdctl("node-b", &["put", "only-on-b", "1"]).is_some());
    pair.bmc("node-b", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-b");
    pair.power_on("node-a");
    let blocked = wait_state(&pair, "node-a", "blocked");
    let next = blocked["next"].as_str().unwrap().to_owned();
    assert_eq!(next, "dyad confirm --yes-peer-is-down node-b --accept-possible-loss");
    show(&pair, "node-a");
    refused(&pair, "node-a", &["dyad", "gate"], 3);
    refused(&pair, "node-a", &["dyad", "maintenance", "start", "node-a"], 4);
    harmless_commands(&pair, "node-a", "blocked");

    let confirm = ["dyad", "confirm", "--yes-peer-is-down", "node-b"];
    let told = refused(&pair, "node-a", &confirm, 4);
    assert!(told.contains("would be lost") && told.contains("not since"), "{told}");
    // What the status says is typed as it stands.
    let words: Vec<&str> = next.split(' ').chain(["--reason", "it was stolen"]).collect();
    pair.run_patiently("node-a", &words);
    assert!(pair.is_writable("node-a"));
    assert!(pair.etcdctl("node-a", &["put", "only-on-a", "1"]).is_some());
    assert_eq!(wait_state(&pair, "node-a", "alone")["on"], "node-a");

    // The newer copy comes back.
    pair.heal().unwrap();
    pair.power_on("node-b");
    let diverged = wait_state(&pair, "node-b", "diverged");
    assert_eq!(diverged["next"], "dyad resolve");
    wait_state(&pair, "node-a", "diverged");
    show(&pair, "node-b");
    for node in pair.names() {
        harmless_commands(&pair, node, "diverged");
    }
    // Each has told the other by now: what only one of them wrote is shown on both, and it is one key each; the
    // scenario's own key is the other.
    for node in pair.names() {
        let both = pair.exec(node, &["dyad", "resolve"], COMMAND).unwrap();
        eprintln!("---- dyad resolve on {node}: {}\n{}", both.code, both.stdout);
        assert_eq!(both.code, 3);
        let both = pair.exec(node, &["dyad", "resolve", "--output", "json"], COMMAND).unwrap();
        let both: Value = serde_json::from_str(&both.stdout).unwrap();
        for side in both["sides"].as_array().unwrap() {
            let keys = side["keysChanged"].as_u64().unwrap_or_else(|| panic!("{both}"));
            assert!((1..=4).contains(&keys), "{both}");
            assert!(side["lastWrittenMs"].is_u64(), "{both}");
        }
    }
    let told = refused(&pair, "node-a", &["dyad", "resolve", "--keep", "node-a"], 2);
    assert!(told.contains("on node-b: dyad resolve --keep node-a"), "{told}");
    let told = refused(&pair, "node-b", &["dyad", "resolve", "--keep", "node-a"], 2);
    assert!(told.contains("--yes-give-up node-b"), "{told}");

    // The one that serves gives way: the person knows that the other one is worth more.
    // Whoever breaks it off in the middle is told so, and the same command goes on.
    let resolve = ["dyad", "resolve", "--keep", "node-b", "--yes-give-up", "node-a"];
    let impatient: Vec<&str> = resolve.into_iter().chain(["--wait", "1"]).collect();
    let told = refused(&pair, "node-a", &impatient, 6);
    assert!(
        told.contains("dyad resolve --keep node-b goes on") || told.contains("to join"),
        "{told}"
    );
    if let Some(seen) = status(&pair, "node-a").filter(|seen| seen["state"] != "protected") {
        assert_eq!(seen["next"], "dyad resolve --keep node-b", "{seen}");
        assert!(seen["risks"].to_string().contains("broken off"), "{seen}");
    }
    pair.run_patiently("node-a", &resolve);
    pair.wait_protected();
    assert!(pair.etcdctl("node-a", &["get", "only-on-b"]).unwrap().contains("only-on-b"));
    assert_eq!(pair.etcdctl("node-a", &["get", "only-on-a"]).unwrap().trim(), "");

    // What was given up is there, whole, and goes only if it is named for what it is.
    let list = pair.run("node-a", &["dyad", "archive", "list"]);
    eprintln!("---- dyad archive list on node-a\n{list}");
    let list = pair.run("node-a", &["dyad", "archive", "list", "--output", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let copies = list["copies"].as_array().unwrap();
    let given_up = copies.iter().find(|copy| copy["worth"] == "diverged").unwrap();
    assert_eq!(given_up["class"], "alone", "{given_up}");
    let number = given_up["number"].to_string();
    let told = refused(&pair, "node-a", &["dyad", "archive", "prune", &number], 4);
    assert!(told.contains("exist nowhere else"), "{told}");
    let told = refused(&pair, "node-a", &["dyad", "archive", "restore", &number], 4);
    assert!(told.contains("not out of service"), "{told}");
    pair.run_patiently("node-a", &["dyad", "archive", "prune", &number, "--diverged-too"]);
    let list = pair.run("node-a", &["dyad", "archive", "list", "--output", "json"]);
    assert!(!list.contains("diverged"), "{list}");
}

/// A drill fences a node of a protected pair, measures, and ends with a protected pair. A BMC that does not answer
/// and a password that does not fit are found without harm.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_drill_ends_as_it_began() {
    let pair = Pair::usual();
    wait_state(&pair, "node-a", "protected");
    eprintln!("{}", pair.run("node-a", &["dyad", "drill"]));
    refused(&pair, "node-a", &["dyad", "drill", "--really", "node-a", "--yes"], 2);
    let told = refused(&pair, "node-a", &["dyad", "drill", "--really", "node-b"], 2);
    assert!(told.contains("nobody to ask"), "{told}");

    // A wrong password is tried before it is used; the old one stays.
    let wrong = "umask 077; printf 'username=admin\\npassword=wrong\\n' > /root/new";
    pair.run("node-a", &["sh", "-c", wrong]);
    let rotate = ["dyad", "rotate", "bmc", "node-b", "--from", "/root/new"];
    let told = refused(&pair, "node-a", &rotate, 1);
    assert!(told.contains("the old ones stay in use") && !told.contains("wrong"), "{told}");
    pair.run("node-a", &["cp", "--preserve=mode", "/etc/dyad/bmc-node-b", "/root/new"]);
    pair.run("node-a", &rotate);
    pair.run("node-a", &["dyad", "drill"]);

    let report = pair.run_patiently(
        "node-a",
        &["dyad", "drill", "--really", "node-b", "--yes", "--output", "json"],
    );
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(report["longestWriteGapMs"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(pair.powered_off(), ["node-b"]);
    wait_state(&pair, "node-a", "protected");
}

/// Asks the status page's server on a node for something.
pub(crate) fn served(pair: &Pair, node: &str, path: &str) -> String {
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/9470; printf 'GET {path} HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3"
    );
    let finished = pair.exec(node, &["bash", "-c", &script], COMMAND).unwrap();
    finished.stdout
}

/// The service of the status page tells the same as the command, follows a fail-over, holds no secret, and is not to be
/// reached from elsewhere without TLS and a token.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_status_page_is_served() {
    let pair = Pair::usual();
    let told = refused(&pair, "node-a", &["dyad", "serve", "--listen", "0.0.0.0:9470"], 2);
    assert!(told.contains("needs TLS and a token"), "{told}");
    pair.run("node-a", &["systemctl", "start", "dyad-serve"]);
    let says = |state: &str, redundant: &str| {
        pair.wait(&format!("the page to say {state}"), || {
            let page = served(&pair, "node-a", "/");
            let metrics = served(&pair, "node-a", "/metrics");
            let whole = page.contains(&format!("<h1>{state}")) && metrics.contains(redundant);
            (!whole).then(|| served(&pair, "node-a", "/healthz"))
        });
    };
    says("PROTECTED", "\ndyad_redundant 1\n");
    pair.lose("node-b");
    says("ALONE on node-a", "\ndyad_redundant 0\n");
    assert!(served(&pair, "node-a", "/metrics").contains("\ndyad_failovers_total 1\n"));
    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait_protected();
    says("PROTECTED", "\ndyad_redundant 1\n");
    let password = pair.run("node-a", &["sed", "-n", "s/^password=//p", "/etc/dyad/bmc-node-a"]);
    for path in ["/", "/metrics", "/status.json"] {
        let text = served(&pair, "node-a", path);
        assert!(text.starts_with("HTTP/1.1 200") && !text.contains(password.trim()), "{path}");
    }
    pair.run("node-a", &["systemctl", "stop", "dyad-serve"]);
}

/// A BMC that does not answer is told before it matters. When its node is lost all the same nobody can prove that: the
/// other one waits, says so, and goes on with everything on a person's word.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_lost_node_that_cannot_be_fenced() {
    let pair = Pair::usual();
    pair.bmc("node-b", "hang".parse().unwrap()).unwrap();
    let risk = wait_state(&pair, "node-a", "atRisk");
    assert_eq!(risk["next"], "dyad drill", "{risk}");
    assert!(
        risk["because"].as_str().unwrap().contains("node-b could not be switched off"),
        "{risk}"
    );
    let report = pair.exec("node-a", &["dyad", "drill"], COMMAND).unwrap();
    assert_eq!(report.code, 3, "{report:?}");
    assert!(report.stdout.contains("crm_resource --cleanup"), "{}", report.stdout);
    refused(&pair, "node-a", &["dyad", "drill", "--really", "node-b", "--yes"], 4);
    refused(&pair, "node-a", &["dyad", "gate"], 3);

    let clients = pair.clients();
    pair.pull_plug("node-b");
    let blocked = wait_state(&pair, "node-a", "blocked");
    assert_eq!(blocked["next"], "dyad confirm --yes-peer-is-down node-b", "{blocked}");
    show(&pair, "node-a");
    assert!(!pair.is_writable("node-a"));
    // What the metrics and the alert of a failed fencing are made of.
    pair.wait("the record of a fencing that failed", || {
        let seen = status(&pair, "node-a").unwrap_or_default();
        let steps = seen["incident"]["steps"].as_array().cloned().unwrap_or_default();
        let failed = steps.iter().any(|step| step["what"] == "fencing of node-b FAILED");
        (!failed).then(|| seen["incident"].to_string())
    });
    pair.run_patiently("node-a", &["dyad", "confirm", "--yes-peer-is-down", "node-b"]);
    assert!(pair.is_writable("node-a"));
    wait_state(&pair, "node-a", "alone");

    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait_protected();
    pair.run("node-a", &["crm_resource", "--cleanup", "--resource", "fence-node-b"]);
    wait_state(&pair, "node-a", "protected");
    clients.judge(&pair);
}

/// An old copy that is put back by mistake is not served: the node joins the one that went on, and nothing is lost.
#[test]
#[ignore = "needs root: make lab-test"]
fn an_old_copy_that_is_put_back_is_not_served() {
    let pair = Pair::usual();
    let clients = pair.clients();
    // A leave and a join leave a copy aside.
    pair.run_patiently("node-a", &["dyad", "maintenance", "start", "node-b"]);
    pair.run_patiently("node-a", &["dyad", "maintenance", "end", "node-b"]);
    pair.wait_protected();
    let list = pair.run("node-b", &["dyad", "archive", "list", "--output", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let number = list["copies"].as_array().unwrap().last().unwrap()["number"].to_string();
    refused(&pair, "node-b", &["dyad", "archive", "restore", &number], 4);
    pair.run_patiently("node-b", &["dyad", "maintenance", "start", "node-b"]);
    pair.run("node-b", &["dyad", "archive", "restore", &number, "--reason", "a mistake"]);
    pair.run_patiently("node-b", &["dyad", "maintenance", "end", "node-b"]);
    pair.wait_protected();
    clients.judge(&pair);
}
