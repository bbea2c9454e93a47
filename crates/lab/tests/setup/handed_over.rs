//! An etcd that ran before there was a pair: taken over with its data, while clients write.

use dyad_judge::linearizable::Limits;
use dyad_judge::verdict::{self, Answer};
use dyad_lab::clients::{Clients as Process, Load};
use dyad_lab::error::chain;
use dyad_lab::pair::BUNDLES_BY_HAND;
use tempfile::TempDir;

use crate::common::{COMMAND, Nodes, SETUP, config, programs};

/// Clients that write through both nodes all the time, and the judge of what they saw.
pub(crate) struct Clients {
    process: Process,
    // What they write into; gone with them.
    _directory: TempDir,
}

impl Clients {
    pub(crate) fn start(nodes: &Nodes) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let load = Load { clients: 4, rate: 80, ..Load::usual(&programs().join("dyad")) };
        let process = Process::start(nodes, &load, &directory.path().join("history.jsonl"));
        let process = process.unwrap_or_else(|error| panic!("{}", chain(&error)));
        Self { process, _directory: directory }
    }

    /// Nothing that was acknowledged is lost, before, while and after.
    pub(crate) fn judge(self, nodes: &Nodes) {
        let history = self.process.end(nodes).unwrap_or_else(|error| panic!("{}", chain(&error)));
        let verdict = verdict::judge(&history, Limits::default());
        assert_eq!(verdict.answer, Answer::Good, "{}", verdict.render());
        eprintln!("{}", verdict.render());
    }
}

/// An etcd as Debian runs it, on this node, with these members.
fn start_old_etcd(nodes: &Nodes, node: &str, peer_url: &str, members: &str) {
    write_settings(nodes, node, peer_url, members);
    nodes.shell(node, "systemctl enable --quiet etcd; systemctl start --no-block etcd");
}

pub(crate) fn write_settings(nodes: &Nodes, node: &str, peer_url: &str, members: &str) {
    let settings = format!(
        "ETCD_NAME={node}\nETCD_DATA_DIR=/var/lib/etcd/default\nETCD_LISTEN_PEER_URLS={peer_url}\n\
         ETCD_INITIAL_ADVERTISE_PEER_URLS={peer_url}\nETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379\n\
         ETCD_ADVERTISE_CLIENT_URLS=http://127.0.0.1:2379\nETCD_INITIAL_CLUSTER={members}\n"
    );
    nodes.shell_with(node, "cat > /etc/default/etcd", &settings);
}

/// The peer URLs of an etcd with a member on each node, and how they are told of each other.
pub(crate) fn two_members(nodes: &Nodes) -> (Vec<String>, String) {
    let urls: Vec<_> =
        nodes.config().nodes.iter().map(|node| format!("http://{}:2380", node.link1)).collect();
    let members: Vec<_> =
        nodes.names().iter().zip(&urls).map(|(name, url)| format!("{name}={url}")).collect();
    (urls, members.join(","))
}

/// Waits until an etcd that ran before takes a write, which the pair must still have.
pub(crate) fn wait_for_old_etcd(nodes: &Nodes, node: &str) {
    nodes.wait("the old etcd", || {
        let put = ["env", "ETCDCTL_API=3", "etcdctl", "put", "before", "hand-over"];
        (!nodes.exec(node, &put, COMMAND).unwrap().success()).then(|| "no write".into())
    });
}

pub(crate) fn etcdctl(nodes: &Nodes, node: &str, words: &str) -> String {
    let script = format!("ETCDCTL_API=3 etcdctl --command-timeout=5s {words}");
    nodes.shell(node, &script)
}

fn taking_over(node: &str) -> Vec<String> {
    taking_over_by(node, ["--take-over-unit", "etcd.service"])
}

pub(crate) fn taking_over_by(node: &str, what: [&str; 2]) -> Vec<String> {
    let bundle = format!("{BUNDLES_BY_HAND}/{node}");
    let words = ["dyad", "setup", "--bundle", &bundle, what[0], what[1]];
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["--take-over-data".to_owned(), "/var/lib/etcd/default".to_owned()]);
    words
}

pub(crate) fn as_words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

pub(crate) fn assert_taken_over(nodes: &Nodes, said: &str, with_etcd: &[&str]) {
    assert!(said.contains("clients waited"), "{said}");
    let line = said.lines().find(|line| line.contains("clients waited")).unwrap_or_default();
    eprintln!("{line}");
    nodes.assert_pair();
    for node in with_etcd {
        nodes.shell(
            node,
            "! systemctl is-enabled etcd; ! systemctl is-active etcd; test ! -e /var/lib/etcd/default/member; \
             test -d /var/lib/etcd/member; test ! -e /var/lib/dyad/hand-over.json",
        );
        assert!(etcdctl(nodes, node, "get before").contains("hand-over"));
        assert_eq!(etcdctl(nodes, node, "member list").lines().count(), 2);
    }
}

/// One member: it becomes the only voter of the pair, and the other node joins it.
#[test]
#[ignore = "needs root: make lab-test"]
fn one_member_is_taken_over() {
    let nodes = Nodes::start(&config("one-member", false, true));
    let [first, second] = nodes.names();
    for node in nodes.names() {
        nodes.wait_booted(node);
    }
    // The node without data is the one that would begin a new pair: it must not.
    let (old, new) = (second, first);
    let url = "http://127.0.0.1:2380";
    start_old_etcd(&nodes, old, url, &format!("{old}={url}"));
    wait_for_old_etcd(&nodes, old);
    let clients = Clients::start(&nodes);
    let mut joins = nodes.begin_setup(new);
    let finished = nodes.exec(old, &as_words(&taking_over(old)), SETUP).unwrap();
    assert!(finished.success(), "{finished:?}");
    assert!(joins.wait().unwrap().success());
    assert_taken_over(&nodes, &finished.stderr, &[old]);
    clients.judge(&nodes);
}

/// Runs what a manifest asks for as long as the manifest is there, as kubelet does with static pods.
const STATIC_PODS: &str = "\
    while :; do\n\
      if test -e /etc/kubernetes/manifests/etcd.yaml; then\n\
        systemctl is-active --quiet static-etcd || systemd-run --quiet --collect --unit=static-etcd \
          --property=EnvironmentFile=/etc/default/etcd /usr/bin/etcd\n\
      else systemctl stop static-etcd 2>/dev/null; fi\n\
      sleep 0.2\n\
    done\n";
const MANIFEST: &str = "/etc/kubernetes/manifests/etcd.yaml";

/// A static pod: its manifest is moved away. The new etcd cannot begin at first, for somebody has its port: the
/// manifest and the data come back, and the old etcd serves on; the second try succeeds. Nothing is lost on the way.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_static_pod_is_brought_back_and_then_taken_over() {
    let nodes = Nodes::start(&config("static-pod", false, true));
    let [old, new] = nodes.names();
    for node in nodes.names() {
        nodes.wait_booted(node);
    }
    let url = "http://127.0.0.1:2380";
    write_settings(&nodes, old, url, &format!("{old}={url}"));
    nodes.shell_with(old, "cat > /root/static-pods", STATIC_PODS);
    nodes.shell(old, "mkdir -p /etc/kubernetes/manifests");
    nodes.shell_with(old, &format!("cat > {MANIFEST}"), "kind: Pod\n");
    nodes.shell(old, "systemd-run --quiet --unit=static-pods sh /root/static-pods");
    wait_for_old_etcd(&nodes, old);
    let address = nodes.config().nodes[0].link1;
    let hold = format!(
        "systemd-run --quiet --unit=port-holder --service-type=exec python3 -c 'import socket, time; \
         s = socket.create_server((\"{address}\", 2380)); time.sleep(1000)'"
    );
    nodes.shell(old, &hold);
    let clients = Clients::start(&nodes);
    let mut joins = nodes.begin_setup(new);
    let words = taking_over_by(old, ["--take-over-manifest", MANIFEST]);
    let failed = nodes.exec(old, &as_words(&words), SETUP).unwrap();
    assert!(!failed.success() && failed.stderr.contains("step hand-over"), "{failed:?}");
    nodes.shell(old, &format!("grep -q Pod {MANIFEST}; test -d /var/lib/etcd/default/member"));
    nodes.wait("the old etcd, with its data", || {
        let get = ["env", "ETCDCTL_API=3", "etcdctl", "get", "before"];
        let found = nodes.exec(old, &get, COMMAND).unwrap().stdout;
        (!found.contains("hand-over")).then_some(found)
    });

    nodes.shell(old, "systemctl stop port-holder");
    let finished = nodes.exec(old, &as_words(&words), SETUP).unwrap();
    assert!(finished.success(), "{finished:?}");
    assert!(joins.wait().unwrap().success());
    assert_taken_over(&nodes, &finished.stderr, &[old]);
    nodes.shell(old, &format!("test ! -e {MANIFEST}; ! systemctl is-active static-etcd"));
    clients.judge(&nodes);
}

/// Two members: both are stopped together, and start as the pair they already were. Nothing below /usr can be written
/// there, as on a system that comes as an image.
#[test]
#[ignore = "needs root: make lab-test"]
fn two_members_are_taken_over() {
    let nodes = Nodes::start(&config("two-members", false, true));
    let [first, second] = nodes.names();
    let (urls, members) = two_members(&nodes);
    for (node, url) in nodes.names().iter().zip(&urls) {
        nodes.wait_booted(node);
        nodes.shell(node, "mount --bind /usr /usr; mount -o remount,bind,ro /usr; ! touch /usr/x");
        start_old_etcd(&nodes, node, url, &members);
    }
    wait_for_old_etcd(&nodes, first);
    let clients = Clients::start(&nodes);
    let mut other = nodes.begin(second, &as_words(&taking_over(second)));
    let finished = nodes.exec(first, &as_words(&taking_over(first)), SETUP).unwrap();
    assert!(finished.success(), "{finished:?}");
    assert!(other.wait().unwrap().success());
    assert_taken_over(&nodes, &finished.stderr, &[first, second]);
    clients.judge(&nodes);
}
