//! Scenarios `units`: the container runtime and kubelet, as Pacemaker runs them beside etcd.

use dyad_lab::timeline::Phase;

use crate::common::Pair;

const KUBELET: &str = "kubelet.service";

fn wait_kubelet(pair: &Pair, wanted: &str) {
    pair.wait(&format!("kubelet on node-b to be {wanted}"), || {
        let limit = std::time::Duration::from_secs(10);
        let finished = pair.exec("node-b", &["systemctl", "is-active", KUBELET], limit);
        let state = finished.map(|finished| finished.stdout).unwrap_or_default();
        (state.trim() != wanted).then_some(state)
    });
}

/// Changes kubelet's unit on node-b until the node's next boot.
fn change_kubelet(pair: &Pair, lines: &str) {
    let script = format!(
        "mkdir -p /run/systemd/system/{KUBELET}.d && \
         printf '[Service]\\n{lines}\\n' > /run/systemd/system/{KUBELET}.d/scenario.conf && \
         systemctl daemon-reload"
    );
    pair.run("node-b", &["sh", "-c", &script]);
}

/// A unit that crashes is started again; etcd goes on as if nothing had happened.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_crashed_kubelet_is_restarted_and_etcd_untouched() {
    let pair = Pair::usual();
    let etcd = pair.run("node-b", &["pidof", "etcd"]);
    let clients = pair.clients();
    pair.run("node-b", &["systemctl", "kill", "--signal=KILL", "kubelet.service"]);
    wait_kubelet(&pair, "active");
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.run("node-b", &["pidof", "etcd"]), etcd);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// A unit that cannot be stopped leaves its node in an unknown state: the node is fenced, the other goes on,
/// and the fenced one comes back.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_kubelet_that_does_not_stop_is_fenced() {
    let pair = Pair::usual();
    let clients = pair.clients();
    // Its process cannot be ended, and systemd waits for it longer than Pacemaker does.
    change_kubelet(&pair, "KillMode=none\\nExecStop=/bin/sleep infinity\\nTimeoutStopSec=infinity");
    let short =
        ["crm_resource", "--resource=kubelet", "--ban", "--node=node-b", "--lifetime=PT30S"];
    shorten_stop(&pair);
    pair.run("node-a", &short);
    // Nodes of the lab boot within seconds, real ones do not: whether the other takes over before it is back
    // depends on who coordinates.
    pair.wait_for(Phase::PowerOff, "");
    pair.wait_writable("node-a");
    assert_eq!(pair.powered_off(), ["node-b"]);
    pair.wait_protected();
    wait_kubelet(&pair, "active");
    clients.judge(&pair);
    pair.end();
}

/// Two minutes are a sensible limit for stopping kubelet, and too long for a scenario.
fn shorten_stop(pair: &Pair) {
    let op = r#"<op id="kubelet-stop-0s" name="stop" interval="0s" timeout="5s" on-fail="fence"/>"#;
    pair.run("node-a", &["cibadmin", "--modify", "--xml-text", op]);
}

/// A unit that cannot be started stays off and is shown so. etcd goes on on both nodes, and nobody is fenced.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_kubelet_that_does_not_start_stays_off_and_is_shown() {
    let pair = Pair::usual();
    let etcd = pair.run("node-b", &["pidof", "etcd"]);
    let clients = pair.clients();
    change_kubelet(&pair, "ExecStart=\\nExecStart=/bin/false");
    pair.run("node-b", &["systemctl", "kill", "--signal=KILL", KUBELET]);
    pair.wait("Pacemaker to show the failure", || {
        let shown = pair.run("node-a", &["crm_mon", "--one-shot"]);
        let failed = shown.contains("kubelet start on node-b") && shown.contains("Failed");
        (!failed).then_some(shown)
    });
    wait_kubelet(&pair, "failed");
    pair.wait_writable("node-b");
    assert_eq!(pair.run("node-b", &["pidof", "etcd"]), etcd);
    assert_eq!(pair.powered_off(), Vec::<String>::new());

    change_kubelet(&pair, "");
    pair.run("node-b", &["crm_resource", "--cleanup", "--resource=kubelet"]);
    wait_kubelet(&pair, "active");
    clients.judge(&pair);
}
