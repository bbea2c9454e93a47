//! What is changed on a pair in its life, while clients write: where its events go, its certificates, its authority, its
//! key, and one of its machines. One lab goes through all of it.

use std::process::Command;
use std::time::Duration;

use dyad_lab::ExecTarget;
use dyad_lab::config::{PairStack, Stack};
use serde_json::Value;

use crate::common::{Pair, config, package, programs};
use crate::cut_off;
use crate::day_two::{refused, status, wait_state};

/// How long a command that ends with a whole pair may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// A receiver that refuses the first three, and writes down what it takes.
const RECEIVER: &str = r#"
import http.server
failures = 3
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global failures
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if failures > 0:
            failures -= 1
            self.send_response(503)
        elif self.path != "/hook/s3cret" or self.headers["Authorization"] != "Bearer t0ken":
            self.send_response(400)
        else:
            with open("/root/received.jsonl", "ab") as log:
                log.write(body + b"\n")
            self.send_response(204)
        self.end_headers()
    # Its own log is none of the pair's.
    def log_message(self, *words):
        pass
http.server.HTTPServer(("127.0.0.1", 9480), Receiver).serve_forever()
"#;

/// Runs a shell script in a node, with something to read; it must succeed.
#[track_caller]
pub(crate) fn shell(pair: &Pair, node: &str, script: &str, input: &str) -> String {
    let words = ["sh", "-ec", script].map(Into::into);
    let mut command = pair.exec_command(&ExecTarget::Node(node.into()), &words).unwrap();
    let finished = dyad_program::run(&mut command, input, PATIENCE).unwrap();
    assert!(finished.success(), "{script} on {node}: {finished:?}");
    finished.stdout
}

/// Renders the lab's pair.yaml, changed by `change`, and gives each node its bundle in `/root/new`. `names` are the names
/// of the nodes as rendered, in the order of the lab's.
pub(crate) fn render(
    pair: &Pair,
    renew: Option<&str>,
    names: [&str; 2],
    change: impl Fn(&str) -> String,
) {
    let directory = &pair.place().directory;
    let text = std::fs::read_to_string(directory.join("pair.yaml")).unwrap();
    std::fs::write(directory.join("changed.yaml"), change(&text)).unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut render = Command::new(programs().join("dyad"));
    render.arg("render").arg(directory.join("changed.yaml")).arg("--out").arg(out.path());
    render.arg("--secrets").arg(directory.join("pair-secrets"));
    if let Some(renew) = renew {
        render.args(["--renew", renew]);
    }
    let rendered = dyad_program::run(&mut render, "", PATIENCE).unwrap();
    assert!(rendered.success(), "{rendered:?}");
    for (node, name) in pair.names().into_iter().zip(names) {
        let mut pack = Command::new("sh");
        pack.args(["-c", "tar -C \"$1\" -c . | base64", "sh"]).arg(out.path().join(name));
        let archive = dyad_program::run(&mut pack, "", PATIENCE).unwrap().stdout;
        let unpack = "rm -rf /root/new; mkdir -m 700 /root/new; base64 -d | tar -x -C /root/new";
        shell(pair, node, unpack, &archive);
    }
}

/// Runs the same command on both nodes at the same time; both must succeed.
#[track_caller]
pub(crate) fn on_both(pair: &Pair, command: &[&str]) {
    let [first, second] = pair.names();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| pair.exec(second, command, PATIENCE).unwrap());
        let here = pair.exec(first, command, PATIENCE).unwrap();
        let there = other.join().unwrap();
        for (node, finished) in [(first, here), (second, there)] {
            eprintln!(
                "---- {} on {node}: {}\n{}",
                command.join(" "),
                finished.code,
                finished.stderr
            );
            assert!(finished.success(), "{node}: {finished:?}");
        }
    });
}

pub(crate) fn with_webhook(text: &str) -> String {
    format!("{text}webhook:\n  urlFile: webhook\n")
}

/// Since when these services run.
fn services(pair: &Pair, node: &str) -> String {
    let show = "systemctl show -p ActiveEnterTimestampMonotonic corosync pacemaker dyad-etcd";
    shell(pair, node, show, "")
}

/// Names a receiver of events on the running pair.
pub(crate) fn name_a_receiver(pair: &Pair) {
    let webhook = pair.place().directory.join("webhook");
    let text = "url=http://127.0.0.1:9480/hook/s3cret\nauthorization=Bearer t0ken\n";
    std::fs::write(&webhook, text).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&webhook, private).unwrap();
    render(pair, None, pair.names(), with_webhook);
    on_both(pair, &["dyad", "apply", "--bundle", "/root/new"]);
}

/// A receiver is named on the running pair; a node is fenced while the receiver fails; both nodes' events arrive in the
/// end, in order, and the address stands in no log, no command line and not in the CIB.
fn events_reach_the_receiver(pair: &Pair) {
    name_a_receiver(pair);
    shell(pair, "node-a", "cat > /root/receiver.py; rm -f /root/received.jsonl", RECEIVER);
    pair.run("node-a", &["systemd-run", "--unit=receiver", "python3", "/root/receiver.py"]);
    let seen = pair.seen("node-a");
    pair.pull_plug("node-b");
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    pair.wait("events at the receiver", || {
        let text = pair.exec("node-a", &["cat", "/root/received.jsonl"], PATIENCE).ok()?.stdout;
        let events: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let has = |event: &str, what: &str| {
            events.iter().any(|each| {
                each["event"] == event
                    && each["what"] == what
                    && each["node"] == "node-b"
                    && each["reportedBy"] == "node-a"
            })
        };
        let whole = has("node", "lost") && has("fencing", "reboot") && has("node", "member");
        (!whole).then_some(text)
    });
    pair.wait_protected();
    let received = pair.run("node-a", &["cat", "/root/received.jsonl"]);
    eprintln!("---- the receiver has\n{received}");
    let times: Vec<u64> = received
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["timeMs"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let journal = pair.run("node-a", &["journalctl", "--no-pager", "--output=short-iso"]);
    assert!(journal.contains("event: node-b was fenced"), "no line of the fencing");
    assert!(journal.contains("the receiver answers 503"), "no line of the failure");
    for place in ["/var/lib/pacemaker/cib/*", "/etc/dyad/pair.json", "/var/spool/dyad/events.jsonl"]
    {
        shell(pair, "node-a", &format!("! cat {place} | grep -a -e s3cret -e t0ken"), "");
    }
    assert!(!journal.contains("s3cret") && !journal.contains("t0ken"), "a secret in the journal");
    // Nobody listens any more: nothing waits for that.
    pair.run("node-a", &["systemctl", "stop", "receiver"]);
}

/// New certificates of the same authority go into use on one node after the other, without a restart and without a
/// request lost; what the other node would not take is refused before anything is changed.
fn certificates_are_rotated(pair: &Pair) {
    let clients = pair.clients();
    let before = pair.names().map(|node| services(pair, node));
    let shown = |node: &str| {
        let address = if node == "node-a" { "10.77.1.1" } else { "10.77.1.2" };
        let script = format!(
            "for port in 2379 2380; do openssl s_client -connect {address}:$port </dev/null 2>/dev/null | \
             openssl x509 -noout -fingerprint -sha256; done"
        );
        shell(pair, node, &script, "")
    };
    let old = pair.names().map(shown);
    // Certificates of an authority that nobody trusts yet.
    let rotate = ["dyad", "rotate", "etcd-certs", "--from", "/root/new"];
    shell(
        pair,
        "node-a",
        "rm -rf /root/stranger; cp -a /root/new /root/stranger; cd /root/stranger/etc/dyad/pki; \
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=stranger \
        -addext subjectAltName=IP:10.77.1.1,IP:10.77.2.1 -keyout peer.key -out peer.pem 2>/dev/null",
        "",
    );
    let told =
        refused(pair, "node-a", &["dyad", "rotate", "etcd-certs", "--from", "/root/stranger"], 4);
    assert!(told.contains("peer certificate cannot be used"), "{told}");
    render(pair, Some("certificates"), pair.names(), with_webhook);
    for node in pair.names() {
        pair.run_patiently(node, &rotate);
    }
    for (position, node) in pair.names().into_iter().enumerate() {
        let new = shown(node);
        assert_ne!(old[position], new, "{node} shows the old certificate");
        assert_eq!(before[position], services(pair, node), "{node}: something was restarted");
        assert!(pair.run(node, &rotate).contains("nothing differs"));
    }
    clients.judge(pair);
}

/// A new authority in three steps, each on one node after the other; the pair serves throughout, and in the end the old
/// one is trusted no more.
fn the_authority_is_changed(pair: &Pair) {
    let off_before = pair.powered_off();
    let rotate = ["dyad", "rotate", "etcd-certs", "--from", "/root/new"];
    for step in ["trust-new-authority", "use-new-authority", "drop-old-authority"] {
        render(pair, Some(step), pair.names(), with_webhook);
        for node in pair.names() {
            pair.run_patiently(node, &rotate);
            pair.wait_protected();
        }
    }
    for node in pair.names() {
        let count = shell(pair, node, "grep -c BEGIN /etc/dyad/pki/ca.pem", "");
        assert_eq!(count.trim(), "1", "{node}");
        assert!(pair.etcdctl(node, &["put", "authority", "new"]).is_some());
    }
    assert_eq!(pair.powered_off(), off_before, "nobody was fenced");
}

/// A new key of Corosync, on both nodes at one moment: nothing is restarted, nobody is fenced, and both can be started
/// anew with it.
fn the_key_is_changed(pair: &Pair) {
    let off_before = pair.powered_off();
    let before = pair.names().map(|node| services(pair, node));
    let key = |node: &str| shell(pair, node, "sha256sum < /etc/corosync/authkey", "");
    let old = key("node-a");
    render(pair, Some("authkey"), pair.names(), with_webhook);
    let rotate = ["dyad", "rotate", "authkey", "--from", "/root/new", "--wait", "3"];
    let told = refused(pair, "node-a", &rotate, 6);
    assert!(told.contains("on node-b"), "{told}");
    assert_eq!(key("node-a"), old, "one node alone changes nothing");
    on_both(pair, &["dyad", "rotate", "authkey", "--from", "/root/new"]);
    for (position, node) in pair.names().into_iter().enumerate() {
        assert_ne!(key(node), old, "{node}");
        assert_eq!(before[position], services(pair, node), "{node}: something was restarted");
    }
    wait_state(pair, "node-a", "protected");
    // The one that is started anew knows the new key only: that they find each other shows that both use it.
    pair.run_patiently("node-b", &["dyad", "maintenance", "start", "node-b"]);
    pair.run_patiently("node-b", &["systemctl", "restart", "corosync", "pacemaker"]);
    pair.run_patiently("node-b", &["dyad", "maintenance", "end", "node-b"]);
    pair.wait_protected();
    assert_eq!(pair.powered_off(), off_before, "nobody was fenced");
}

/// A machine with an empty disk takes the place of a node, first under the old name, then another under a new one.
fn machines_are_replaced(pair: &Pair) {
    let told = refused(pair, "node-a", &["dyad", "replace", "node-b"], 4);
    assert!(told.contains("node-b is in the cluster"), "{told}");
    let told = refused(pair, "node-a", &["dyad", "replace", "node-a"], 2);
    assert!(told.contains("on node-b"), "{told}");
    let clients = pair.clients();
    for (old, new) in [("node-b", "node-b"), ("node-b", "node-c")] {
        // All that a new machine does not have.
        pair.run_patiently("node-a", &["dyad", "maintenance", "start", old]);
        let wipe = "systemctl stop pacemaker corosync dyad-webhook.path; \
            rm -rf /etc/dyad /etc/corosync /var/lib/dyad /var/log/dyad /var/spool/dyad /run/dyad /var/lib/corosync/*; \
            rm -rf /var/lib/pacemaker/cib/* /var/lib/etcd/* /var/lib/etcd/.[!.]*; mkdir /etc/corosync; hostname ";
        shell(pair, "node-b", &format!("{wipe} {new}"), "");
        let rename =
            |text: &str| with_webhook(text).replace("name: node-b", &format!("name: {new}"));
        render(pair, None, ["node-a", new], rename);
        let mut replace = vec!["dyad", "replace", old];
        if old != new {
            replace.extend(["--bundle", "/root/new"]);
        }
        pair.run_patiently("node-a", &replace);
        assert!(pair.is_writable("node-a"), "the one that stays serves");
        pair.run_patiently("node-b", &["dyad", "setup", "--bundle", "/root/new"]);
        let whole = wait_state(pair, "node-a", "protected");
        assert_eq!(whole["nodes"][1]["name"], new, "{whole}");
        assert_eq!(status(pair, "node-b").unwrap()["state"], "protected");
    }
    clients.judge(pair);
}

#[test]
#[ignore = "needs root: make lab-test"]
fn a_pair_is_changed_in_its_life() {
    let mut config = config();
    config.stack =
        Stack::Pair(PairStack { package: package(), tls: true, by_hand: false, podman: false });
    let pair = Pair::of(&config);
    events_reach_the_receiver(&pair);
    certificates_are_rotated(&pair);
    cut_off::certificates_survive_it(&pair);
    the_authority_is_changed(&pair);
    the_key_is_changed(&pair);
    cut_off::the_key_survives_it(&pair);
    machines_are_replaced(&pair);
    pair.end();
}
