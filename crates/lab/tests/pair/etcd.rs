//! Scenarios `etcd failure`: the process dies, the node does not.

use std::time::Duration;

use dyad_lab::protocol::Request;

use crate::common::Pair;

/// How long a look at a node may take.
const LOOK: Duration = Duration::from_secs(10);

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
            let now = pair.exec(victim, &["pidof", "etcd"], LOOK);
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

/// An etcd that ends at every start (a broken update, a damaged file) is given up by Pacemaker after a few tries. It
/// yields (R8), and the other node goes on; mended, it joins again.
fn does_not_start(survivor_is_new: bool) {
    let pair = Pair::usual();
    pair.lead("node-b");
    let clients = pair.clients();
    let seen = pair.seen("node-b");
    pair.run("node-b", &["mount", "--bind", "/bin/false", "/usr/bin/etcd"]);
    pair.ask(&Request::KillEtcd { node: "node-b".into() });
    if survivor_is_new {
        pair.ask(&Request::KillEtcd { node: "node-a".into() });
    }
    pair.wait_decision("node-b", seen, "yield", "R8");
    pair.wait_writable("node-a");
    assert_eq!(pair.voters("node-a"), 1);
    eprintln!("{}", pair.exec("node-a", &["dyad", "status"], LOOK).unwrap().stdout);

    pair.run("node-b", &["umount", "/usr/bin/etcd"]);
    pair.run("node-b", &["crm_resource", "--cleanup", "--resource", "etcd"]);
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root: make lab-test"]
fn an_etcd_that_does_not_start_holds_nobody_up() {
    does_not_start(false);
}

/// The survivor's own etcd was just started, too: before it has a leader it takes connections and answers nothing, which
/// must not be taken for a hang.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_new_etcd_that_has_no_leader_yet_goes_on() {
    does_not_start(true);
}

/// An etcd that hangs, on the node that both would rather keep, takes connections and answers nothing. Nobody yields to
/// it; it is restarted, and nobody is fenced (R8, R9).
#[test]
#[ignore = "needs root: make lab-test"]
fn an_etcd_that_hangs_is_restarted() {
    let pair = Pair::usual();
    pair.lead("node-a");
    let clients = pair.clients();
    let seen = pair.seen("node-a");
    pair.run("node-a", &["systemctl", "kill", "--signal=STOP", "dyad-etcd.service"]);
    pair.wait_decision("node-a", seen, "askForRestart", "R8");
    pair.wait_writable("node-b");
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}
