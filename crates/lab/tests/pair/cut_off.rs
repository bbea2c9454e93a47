//! A power cut in the middle of a rotation: whatever the disks hold then, the pair is whole again by itself.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::changes::{PATIENCE, on_both, render, shell, with_webhook};
use crate::common::Pair;
use crate::day_two::wait_state;

/// A file of a node, readable and writable whether the node runs or not: the lab keeps its disk mounted.
fn file(pair: &Pair, node: &str, path: &str) -> PathBuf {
    let supervisor = fs::read_to_string(pair.place().pid_file()).unwrap();
    let disk = pair.place().node(node).join("root");
    let inside = format!("/proc/{}/root{}", supervisor.trim(), disk.display());
    PathBuf::from(inside).join(path.trim_start_matches('/'))
}

/// Waits for a file of a node, looking often.
#[track_caller]
fn wait_for(pair: &Pair, node: &str, path: &str) {
    let (path, begin) = (file(pair, node, path), Instant::now());
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The power goes when the new certificates are on the disk and not yet in their places, and the disk is left with a
/// new certificate beside its old key: etcd could not start so. The next boot has the new ones in use.
pub(crate) fn certificates_survive_it(pair: &Pair) {
    const READY: &str = "/var/lib/dyad/certificates";
    const PKI: &str = "/etc/dyad/pki";
    let clients = pair.clients();
    render(pair, Some("certificates"), pair.names(), with_webhook);
    pair.bmc("node-b", "do-nothing".parse().unwrap()).unwrap();
    // Whoever brings them into their places holds this.
    let hold =
        ["systemd-run", "--unit=hold", "flock", "/run/dyad/certificates.lock", "sleep", "60"];
    pair.run("node-b", &hold);
    let seen = pair.seen("node-a");
    std::thread::scope(|scope| {
        let rotate = ["dyad", "rotate", "etcd-certs", "--from", "/root/new"];
        let rotation = scope.spawn(move || pair.exec("node-b", &rotate, PATIENCE));
        wait_for(pair, "node-b", &format!("{READY}/index.json"));
        pair.pull_plug("node-b");
        let _ = rotation.join().unwrap();
    });
    pair.wait_decision("node-a", seen, "takeOver", "R2");
    assert!(file(pair, "node-b", READY).exists(), "it was not cut off in the middle");
    let read = |path: String| fs::read(file(pair, "node-b", &path)).unwrap();
    let [new, old] = ["/root/new", ""].map(|root| read(format!("{root}{PKI}/peer.pem")));
    assert_ne!(new, old);
    fs::write(file(pair, "node-b", &format!("{PKI}/peer.pem")), &new).unwrap();
    pair.heal().unwrap();
    pair.power_on("node-b");
    pair.wait_protected();
    for name in ["peer.pem", "peer.key", "server.pem", "server.key", "client.key"] {
        let [wanted, found] = ["/root/new", ""].map(|root| read(format!("{root}{PKI}/{name}")));
        assert!(wanted == found, "{name} is not the new one");
    }
    assert!(!file(pair, "node-b", READY).exists(), "it was not brought to its end");
    let again = pair.run("node-b", &["dyad", "rotate", "etcd-certs", "--from", "/root/new"]);
    assert!(again.contains("nothing differs"), "{again}");
    pair.run_patiently("node-a", &["dyad", "rotate", "etcd-certs", "--from", "/root/new"]);
    clients.judge(pair);
}

/// The power of both goes when one has agreed to the new key of Corosync, has tried it even, and the other has not: they
/// boot with different keys and do not see each other. They find each other by themselves, and end with the new one.
pub(crate) fn the_key_survives_it(pair: &Pair) {
    const AGREED: &str = "/var/lib/dyad/next-agreed.json";
    const BEFORE: &str = "/var/lib/dyad/authkey-before";
    const KEY: &str = "/etc/corosync/authkey";
    render(pair, Some("authkey"), pair.names(), with_webhook);
    let path = |node: &str, path: &str| file(pair, node, path);
    let old = fs::read(path("node-a", KEY)).unwrap();
    let new = fs::read(path("node-a", &format!("/root/new{KEY}"))).unwrap();
    std::thread::scope(|scope| {
        for node in pair.names() {
            let rotate = ["dyad", "rotate", "authkey", "--from", "/root/new"];
            scope.spawn(move || pair.exec(node, &rotate, PATIENCE));
        }
        wait_for(pair, "node-a", AGREED);
        for node in pair.names() {
            pair.pull_plug(node);
        }
    });
    assert!(path("node-a", AGREED).exists() && path("node-a", "/var/lib/dyad/next").is_dir());
    assert!(path("node-b", "/var/lib/dyad/next").is_dir(), "node-b was cut off before it began");
    // Wherever the cut was, now it is the worst place.
    fs::write(path("node-a", BEFORE), &old).unwrap();
    fs::write(path("node-a", KEY), &new).unwrap();
    fs::write(path("node-b", KEY), &old).unwrap();
    for name in [AGREED, BEFORE] {
        let _ = fs::remove_file(path("node-b", name));
    }
    for node in pair.names() {
        pair.power_on(node);
    }
    pair.wait("node-a to tell of it", || {
        let said = crate::day_two::status(pair, "node-a")?["risks"].to_string();
        (!said.contains("Corosync's new key is in force here")).then_some(said)
    });
    pair.wait_protected();
    pair.wait("the change to end on both nodes", || {
        let waits = |node: &&str| path(node, "/var/lib/dyad/next").exists();
        pair.names().into_iter().find(waits).map(|node| format!("{node} has not ended it"))
    });
    for node in pair.names() {
        assert!(fs::read(path(node, KEY)).unwrap() == new, "{node} has the old key");
        assert!(!path(node, AGREED).exists() && !path(node, BEFORE).exists());
    }
    wait_state(pair, "node-a", "protected");
    let told = shell(pair, "node-b", "dyad rotate authkey --from /root/new 2>&1", "");
    assert!(told.contains("nothing differs"), "{told}");
    on_both(pair, &["dyad", "apply"]);
}
