//! `dyad etcd inspect` and `dyad etcd seal`, the real binary on what real etcd wrote.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use etcd_fixture::{Cluster, Release};
use serde_json::Value;

fn dyad(arguments: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyad")).args(arguments).arg(dir).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn hex(id: u64) -> String {
    format!("{id:x}")
}

/// The JSON document has the keys of the interface with the values that etcdctl gives, while etcd runs and
/// after it has stopped.
#[test]
fn inspect_agrees_with_etcdctl() {
    for release in Release::ALL {
        let mut cluster = Cluster::pair(release).unwrap();
        cluster.members[0].put_many("key", 20, 10).unwrap();
        cluster.wait_applied().unwrap();
        let status = cluster.members[0].status().unwrap();
        let listed = cluster.members[0].member_list().unwrap();
        let dir = cluster.members[0].data_dir().to_owned();

        let output = dyad(&["etcd", "inspect", "-o", "json"], &dir);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(json(&output)["live"], true);
        cluster.members[0].stop().unwrap();

        let output = dyad(&["etcd", "inspect", "-o", "json"], &dir);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stderr.is_empty());
        let dataset = json(&output);
        let keys: Vec<_> = dataset.as_object().unwrap().keys().map(String::as_str).collect();
        for key in [
            "apiVersion",
            "kind",
            "class",
            "reason",
            "live",
            "clusterId",
            "memberId",
            "raft",
            "consistentIndex",
            "revision",
            "members",
            "removed",
            "dbSizeBytes",
            "problems",
        ] {
            assert!(keys.contains(&key), "{key} is not in {keys:?}");
        }
        assert_eq!(dataset["apiVersion"], "dyad/v1");
        assert_eq!(dataset["kind"], "Dataset");
        assert_eq!(dataset["class"], "pair");
        assert_eq!(dataset["live"], false);
        assert_eq!(dataset["clusterId"], hex(status.cluster_id));
        assert_eq!(dataset["memberId"], hex(status.member_id));
        assert_eq!(dataset["revision"], status.revision);
        for (shown, listed) in dataset["members"].as_array().unwrap().iter().zip(&listed) {
            assert_eq!(shown["id"], hex(listed.id));
            assert_eq!(shown["name"], listed.name.as_str());
            assert_eq!(shown["peerUrls"][0], listed.peer_urls[0].as_str());
            assert_eq!(shown["learner"], listed.learner);
        }

        let output = dyad(&["etcd", "inspect"], &dir);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("pair: "), "{text}");
        assert!(text.contains(&hex(status.member_id)), "{text}");
    }
}

/// What a script is told: 0 for a verdict, 3 for damage, 4 for a refused seal, and nothing on stdout then.
#[test]
fn exit_codes() {
    let mut cluster = Cluster::single(Release::Trixie).unwrap();
    let dir = cluster.members[0].data_dir().to_owned();
    let refused = dyad(&["etcd", "seal"], &dir);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let talk = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        talk.contains("an etcd runs on it") && talk.contains("hint: stop etcd first"),
        "{talk}"
    );
    assert!(refused.stdout.is_empty());
    cluster.members[0].stop().unwrap();

    let sealed = dyad(&["etcd", "seal", "-o", "json"], &dir);
    assert_eq!(sealed.status.code(), Some(0), "{sealed:?}");
    assert_eq!(json(&sealed)["kind"], "Sealed");

    let missing = dyad(&["etcd", "inspect", "-o", "json"], &dir.join("nothing"));
    assert_eq!(missing.status.code(), Some(0));
    assert_eq!(json(&missing)["class"], "none");
    assert_eq!(json(&missing)["clusterId"], Value::Null);
    assert_eq!(json(&missing)["raft"]["vote"], "0");
    assert_eq!(dyad(&["etcd", "seal"], &dir.join("nothing")).status.code(), Some(4));

    fs::write(dir.join("member/snap/db"), b"nonsense").unwrap();
    let broken = dyad(&["etcd", "inspect", "-o", "json"], &dir);
    assert_eq!(broken.status.code(), Some(3));
    assert_eq!(json(&broken)["class"], "broken");
    assert!(json(&broken)["reason"].as_str().unwrap().contains("member/snap/db at byte"));
    assert_eq!(dyad(&["etcd", "seal"], &dir).status.code(), Some(4));
}

/// Without permission nothing is said of the data: exit code 5 and a hint, not class `broken`.
#[test]
fn no_permission() {
    let mut cluster = Cluster::single(Release::Trixie).unwrap();
    cluster.members[0].stop().unwrap();
    // Root may read everything, so the command runs as nobody. Its binary may lie where nobody cannot go.
    let binary = cluster.directory().join("dyad");
    fs::copy(env!("CARGO_BIN_EXE_dyad"), &binary).unwrap();
    let dir = cluster.members[0].data_dir();
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if root {
        allow_passage(cluster.directory());
    } else {
        close(&dir.join("member"));
    }
    for command in ["inspect", "seal"] {
        let mut call = if root {
            let mut call = Command::new("setpriv");
            call.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&binary);
            call
        } else {
            Command::new(&binary)
        };
        let output = call.args(["etcd", command]).arg(dir).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{command}: {output:?}");
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(talk.contains("no permission") && talk.contains("hint:"), "{talk}");
        assert!(output.stdout.is_empty());
    }
    if !root {
        open(&dir.join("member"));
    }
}

fn allow_passage(dir: &Path) {
    set_mode(dir, 0o755);
}

fn close(dir: &Path) {
    set_mode(dir, 0o000);
}

fn open(dir: &Path) {
    set_mode(dir, 0o700);
}

fn set_mode(dir: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
}
