//! The etcd of an OpenShift cluster of two nodes: its operator lets go of it, and the pair has it.

use crate::common::{COMMAND, Nodes, SETUP, config};
use crate::handed_over::{
    Clients, as_words, assert_taken_over, etcdctl, taking_over_by, two_members, wait_for_old_etcd,
    write_settings,
};

/// API server, etcd operator and kubelet of a node.
const CONTROL_PLANE: &str = include_str!("openshift.py");
const URL: &str = "https://127.0.0.1:6443";
const TOKEN: &str = "sha256~a-service-accounts-token";
const INFRASTRUCTURE: &str = "/apis/config.openshift.io/v1/infrastructures/cluster";
const OPERATOR_CONFIG: &str =
    "/api/v1/namespaces/openshift-etcd-operator/configmaps/etcd-operator-config";

fn start_control_plane(nodes: &Nodes, node: &str) {
    let first = nodes.names()[0];
    nodes.shell_with(node, "cat > /root/openshift.py", CONTROL_PLANE);
    nodes.shell_with(node, "umask 077; cat > /root/token", TOKEN);
    nodes.shell(
        node,
        "cd /root && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
         -subj /CN=api -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1 \
         -keyout api.key -out api.pem 2> /dev/null",
    );
    let start =
        format!("systemd-run --quiet --unit=openshift python3 /root/openshift.py {node} {first}");
    nodes.shell(node, &start);
}

fn topology(nodes: &Nodes, topology: &str) {
    let object = format!(r#"{{"status":{{"controlPlaneTopology":"{topology}"}}}}"#);
    etcdctl(nodes, nodes.names()[0], &format!("put {INFRASTRUCTURE} '{object}'"));
}

fn taking_over(node: &str) -> Vec<String> {
    let mut words = taking_over_by(node, ["--take-over-openshift", URL]);
    let access = ["--openshift-token-file", "/root/token", "--openshift-ca-file", "/root/api.pem"];
    words.extend(access.map(str::to_owned));
    words
}

/// A cluster with another topology is refused, and nothing of it is touched. One of two nodes is handed over: the
/// operator is told once, does not put its pods back, and has its own containers running again afterwards; what the
/// API server held is there, and nothing that clients wrote is lost.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_operator_lets_go_of_its_etcd() {
    let nodes = Nodes::start(&config("openshift", false, true));
    let [first, second] = nodes.names();
    let (urls, members) = two_members(&nodes);
    for (node, url) in nodes.names().iter().zip(&urls) {
        nodes.wait_booted(node);
        write_settings(&nodes, node, url, &members);
        start_control_plane(&nodes, node);
    }
    wait_for_old_etcd(&nodes, first);
    let settings = r#"{"data":{"config.yaml":"its own"}}"#;
    etcdctl(&nodes, first, &format!("put {OPERATOR_CONFIG} '{settings}'"));
    topology(&nodes, "HighlyAvailable");

    let clients = Clients::start(&nodes);
    let mut other = nodes.begin(second, &as_words(&taking_over(second)));
    let refused = nodes.exec(first, &as_words(&taking_over(first)), SETUP).unwrap();
    assert!(!refused.success() && refused.stderr.contains("HighlyAvailable"), "{refused:?}");
    assert!(!refused.stderr.contains(TOKEN));
    assert!(!other.wait().unwrap().success());
    for node in nodes.names() {
        nodes.shell(node, "systemctl is-active static-etcd; test -d /var/lib/etcd/default/member");
    }
    assert!(!etcdctl(&nodes, first, &format!("get {OPERATOR_CONFIG}")).contains("External"));

    topology(&nodes, "DualReplica");
    let mut other = nodes.begin(second, &as_words(&taking_over(second)));
    let finished = nodes.exec(first, &as_words(&taking_over(first)), SETUP).unwrap();
    assert!(finished.success(), "{finished:?}");
    assert!(other.wait().unwrap().success());
    assert_taken_over(&nodes, &finished.stderr, &[first, second]);

    let settings = etcdctl(&nodes, first, &format!("get {OPERATOR_CONFIG}"));
    assert!(settings.contains("External") && settings.contains("its own"), "{settings}");
    for node in nodes.names() {
        nodes.wait(&format!("the operator's own containers on {node}"), || {
            let manifest =
                nodes.exec(node, &["cat", "/etc/kubernetes/manifests/etcd-pod.yaml"], COMMAND);
            let text = manifest.unwrap().stdout;
            (text != "kind: Pod\ncontainers: [etcdctl, etcd-metrics]\n").then_some(text)
        });
        nodes.shell(node, "! systemctl is-active static-etcd");
        let log = nodes.shell(node, "journalctl --unit openshift --output cat");
        assert!(!log.contains("puts etcd's pod back"), "{log}");
        eprintln!("{log}");
    }
    clients.judge(&nodes);
}
