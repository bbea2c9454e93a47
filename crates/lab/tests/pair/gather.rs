//! `dyad gather` on a real pair: whole, harmless, and also there when half is broken.

use std::time::Duration;

use dyad_lab::config::{PairStack, Stack};

use crate::changes::{name_a_receiver, shell};
use crate::common::{Pair, config, package};
use crate::day_two::{refused, wait_state};

/// How long a command of a person may take.
const COMMAND: Duration = Duration::from_mins(2);

/// Tells every secret that a node has as text, one a line.
const SECRETS: &str = "sed -n 's/^password=//p' /etc/dyad/bmc-node-a /etc/dyad/bmc-node-b; \
    cat /etc/dyad/serve.token; sed -n 's/^authorization=//p; s|^url=[a-z]*://[^/]*||p' /etc/dyad/webhook; \
    for key in $(find /etc/dyad -name '*.key'); do sed /-----/d $key; done";

/// A bundle is made of whatever can be had, also with Pacemaker down on one node; it holds no secret of the pair, and a
/// second one does not overwrite the first. Its index has the timeline of both nodes.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_bundle_holds_no_secret() {
    let mut config = config();
    config.stack =
        Stack::Pair(PairStack { package: package(), tls: true, by_hand: false, podman: false });
    let pair = Pair::of(&config);
    name_a_receiver(&pair);
    for node in pair.names() {
        let token = format!("umask 077; echo s3rve-t0ken-of-{node} > /etc/dyad/serve.token");
        pair.run(node, &["sh", "-ec", &token]);
        // Somebody has put all of it where it does not belong: into the journal of a unit that is gathered.
        shell(&pair, node, "cat > /root/secrets.sh", SECRETS);
        let leak =
            ["systemd-run", "--quiet", "--wait", "--unit=dyad-leak", "sh", "/root/secrets.sh"];
        pair.run(node, &leak);
    }
    lead_ssh(&pair);
    whole_bundle(&pair, "bundle.tar.zst");
    let again = ["dyad", "gather", "--out", "/root/bundle.tar.zst"];
    let told = refused(&pair, "node-a", &again, 2);
    assert!(told.contains("exists"), "{told}");
    pair.run("node-b", &["systemctl", "stop", "pacemaker"]);
    wait_state(&pair, "node-a", "alone");
    let other = whole_bundle(&pair, "bundle-2.tar.zst");
    let mon = String::from_utf8(in_tar(&other, "pacemaker/crm_mon.txt").unwrap()).unwrap();
    assert!(!mon.contains("---- exit 0"), "Pacemaker is down, and that is told: {mon}");
    pair.end();
}

/// Gathers on node-a, looks at both nodes' parts, and gives the other one's.
fn whole_bundle(pair: &Pair, name: &str) -> Vec<u8> {
    let out = format!("/root/{name}");
    eprintln!("{}", pair.run_patiently("node-a", &["dyad", "gather", "--out", &out]));
    // The nodes have no zstd: the bundle is opened where the test runs.
    let place = pair.place().node("node-a").join("upper/root").join(name);
    let tar = zstd::decode_all(std::fs::File::open(place).unwrap()).unwrap();
    let other = in_tar(&tar, "node-b.tar.zst").expect("the other node's bundle, by ssh");
    let other = zstd::decode_all(other.as_slice()).unwrap();
    for (node, tar) in [("node-a", &tar), ("node-b", &other)] {
        no_secret_of_the_pair(pair, node, tar);
        for file in [
            "index.html",
            "status.json",
            "facts.json",
            "corosync/blackbox.txt",
            "corosync/map.txt",
            "dyad/decisions.jsonl",
            "pacemaker/cib.txt",
            "pacemaker/fencing.txt",
            "system/journal.txt",
            "config/pair.json",
            "versions/corosync.txt",
            "versions/pacemaker.txt",
            "versions/etcd.txt",
            "versions/dyad.txt",
            "bmc/own.txt",
        ] {
            let content = in_tar(tar, file).unwrap_or_else(|| panic!("{node} has no {file}"));
            assert!(!content.is_empty(), "{file} of {node} is empty");
        }
        let log = String::from_utf8(in_tar(tar, "bmc/own.txt").unwrap()).unwrap();
        assert!(log.contains(" entries"), "the BMC's log: {log}");
    }
    let index = String::from_utf8(in_tar(&tar, "index.html").unwrap()).unwrap();
    for node in pair.names() {
        let line = format!("<td>{node}<td>decision<td>");
        assert!(index.contains(&line), "the timeline has nothing of {node}: {index}");
    }
    other
}

/// Every secret of the pair, of both nodes, in this part of a bundle: as it is, and as tools would show it.
fn no_secret_of_the_pair(pair: &Pair, node: &str, tar: &[u8]) {
    let has = |secret: &[u8]| tar.windows(secret.len()).any(|window| window == secret);
    for from in pair.names() {
        let listed = pair.run(from, &["sh", "/root/secrets.sh"]);
        let secrets: Vec<&str> = listed.lines().filter(|line| line.len() >= 4).collect();
        // Two passwords, a token, an address, an authorization, two keys of several lines.
        assert!(secrets.len() >= 9, "only {} secrets of {from}", secrets.len());
        for secret in secrets {
            let length = secret.len();
            assert!(
                !has(secret.as_bytes()),
                "a secret of {from} ({length} bytes) in {node}'s part"
            );
        }
        let hex = pair.run(from, &["sh", "-c", "od -An -v -tx1 /etc/corosync/authkey"]);
        let key: Vec<u8> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert!(key.len() >= 128, "Corosync's key has {} bytes", key.len());
        let hex: String = hex.split_whitespace().collect();
        assert!(!has(&key[..24]) && !has(&hex.as_bytes()[..48]), "Corosync's key, of {from}");
    }
}

/// What a tar archive has under a name that ends so.
fn in_tar(archive: &[u8], end: &str) -> Option<Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut found = entries.find(|entry| entry.path().unwrap().to_string_lossy().ends_with(end))?;
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut found, &mut content).unwrap();
    Some(content)
}

/// An `ssh` on node-a that leads into node-b: the nodes have none.
fn lead_ssh(pair: &Pair) {
    let remote = "import socketserver, subprocess\n\
        class Remote(socketserver.StreamRequestHandler):\n    \
            def handle(self):\n        \
                command = self.rfile.readline().decode()\n        \
                done = subprocess.run(command, shell=True, stdout=subprocess.PIPE)\n        \
                self.wfile.write(done.stdout)\n\
        socketserver.TCPServer((\"10.77.1.2\", 9481), Remote).serve_forever()\n";
    pair.run("node-b", &["sh", "-ec", &format!("cat > /root/remote.py <<'END'\n{remote}END")]);
    pair.run("node-b", &["systemd-run", "--unit=remote", "python3", "/root/remote.py"]);
    let ssh = "#!/bin/bash\nwhile [ \"$1\" = -o ]; do shift 2; done\ntarget=${1#root@}\nshift\n\
        exec 3<>/dev/tcp/$target/9481\nprintf '%s\\n' \"$*\" >&3\nexec cat <&3\n";
    let install =
        format!("cat > /usr/local/bin/ssh <<'END'\n{ssh}END\nchmod 755 /usr/local/bin/ssh");
    pair.run("node-a", &["sh", "-ec", &install]);
    pair.wait("the way into node-b", || {
        let asked = pair.exec("node-a", &["ssh", "root@10.77.1.2", "echo", "here"], COMMAND);
        (!asked.is_ok_and(|asked| asked.stdout.contains("here"))).then(|| "no answer".to_owned())
    });
}
