//! `dyad etcd take-over` against real etcd: what it does, and what it refuses.

use std::process::{Command, Output};

use etcd_fixture::{Cluster, Options, Release};
use serde_json::Value;

/// Runs the command for this survivor. With TLS, with the survivor's own certificate.
fn take_over(cluster: &Cluster, survivor: usize, dead: &str, more: &[&str]) -> Output {
    let member = &cluster.members[survivor];
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyad"));
    command.args(["etcd", "take-over", "--endpoint", &member.client_url(), "--dead", dead]);
    command.arg("--lock").arg(cluster.directory().join("lock"));
    if let Some(tls) = member.tls() {
        command.arg("--cacert").arg(&tls.ca).arg("--cert").arg(&tls.certificate);
        command.arg("--key").arg(&tls.key);
    }
    command.args(more).output().unwrap()
}

const PROOF: [&str; 2] = ["--proof", "pulled the plug"];

#[track_caller]
fn assert_refused(output: &Output, code: i32, words: &str) {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{talk}");
    assert!(talk.contains(words), "{talk}");
    assert!(output.stdout.is_empty());
}

/// A pair loses a member, and the survivor is asked to go on: it serves alone, and the document tells who, on
/// what proof and when each step was done.
#[test]
fn the_survivor_goes_on() {
    for options in Release::ALL.map(Options::new).into_iter().flat_map(|o| [o.clone(), o.tls()]) {
        let mut pair = Cluster::start(2, options).unwrap();
        let leader = pair.leader().unwrap();
        let (dead, survivor) = (leader, 1 - leader);
        let name = pair.members[dead].name().to_owned();
        pair.members[survivor].put("before", "1").unwrap();
        pair.members[dead].kill().unwrap();
        let output = take_over(&pair, survivor, &name, &[&PROOF[..], &["-o", "json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["apiVersion"], "dyad/v1");
        assert_eq!(document["kind"], "TakeOver");
        assert_eq!(document["dead"]["name"], name.as_str());
        assert_eq!(document["survivor"]["name"], pair.members[survivor].name());
        assert_eq!(document["proof"], PROOF[1]);
        let steps = document["steps"].as_array().unwrap();
        assert_eq!(steps.last().unwrap()["step"], "removed");
        assert!(steps.iter().all(|step| step["ms"].is_number()), "{steps:?}");

        assert_eq!(pair.members[survivor].member_list().unwrap().len(), 1);
        pair.members[survivor].put("after", "1").unwrap();
    }
}

/// For people: the first line says what is the case now, and the last what must not be done.
#[test]
fn it_is_told_in_words() {
    let mut pair = Cluster::pair(Release::Trixie).unwrap();
    let dead = pair.leader().unwrap();
    let id = format!("{:x}", pair.members[dead].status().unwrap().member_id);
    pair.members[dead].kill().unwrap();
    let output = take_over(&pair, 1 - dead, &id, &PROOF);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(&format!("node{} (", 1 - dead)), "{text}");
    assert!(first.contains("runs alone"), "{text}");
    assert!(text.contains("proof: pulled the plug"), "{text}");
    assert!(text.contains("must never start again"), "{text}");
}

/// Nothing is done for a member that lives, without a proof, or for one that is not there.
#[test]
fn what_is_refused() {
    for release in Release::ALL {
        let pair = Cluster::pair(release).unwrap();
        let [one, other] = [0, 1].map(|place| pair.members[place].name().to_owned());
        assert_refused(&take_over(&pair, 0, &other, &PROOF), 4, "it is not dead");
        assert_refused(&take_over(&pair, 0, &one, &PROOF), 4, "is the one that was asked");
        // R10: node1 is not node10, nor node.
        for name in ["node10", "node", "1"] {
            assert_refused(&take_over(&pair, 0, name, &PROOF), 4, "there is no member");
        }
        assert_refused(&take_over(&pair, 0, &other, &["--proof", "  "]), 2, "proof is empty");
        assert_refused(&take_over(&pair, 0, &other, &[]), 2, "--proof");
        assert_eq!(pair.members[0].member_list().unwrap().len(), 2);
    }
}

/// Nothing is done unless exactly two vote: not by a learner, not for one, not beside a third.
#[test]
fn only_two_voters() {
    let mut cluster = Cluster::single(Release::Trixie).unwrap();
    let second = cluster.add_learner().unwrap();
    let [one, other] = [0, second].map(|place| cluster.members[place].name().to_owned());
    assert_refused(&take_over(&cluster, 0, &other, &PROOF), 4, "is a learner and has no vote");
    // A learner tells no member list to clients, so its disk is asked.
    let dir = cluster.members[second].data_dir().display().to_string();
    let output = take_over(&cluster, second, &one, &[&PROOF[..], &["--data-dir", &dir]].concat());
    assert_refused(&output, 4, "learner");
    cluster.promote(second).unwrap();
    let third = cluster.add_voter().unwrap();
    cluster.members[third].kill().unwrap();
    let name = cluster.members[third].name().to_owned();
    assert_refused(&take_over(&cluster, 0, &name, &PROOF), 4, "other voters");
}

/// An etcd that was just started answers no client before it has a leader: its disk tells what is needed.
#[test]
fn a_just_started_survivor_is_known_by_its_disk() {
    for release in Release::ALL {
        let mut pair = Cluster::pair(release).unwrap();
        pair.members[0].put("before", "1").unwrap();
        let name = pair.members[1].name().to_owned();
        pair.members[1].kill().unwrap();
        pair.members[0].kill().unwrap();
        pair.members[0].start().unwrap();
        let output = take_over(&pair, 0, &name, &PROOF);
        assert_refused(&output, 1, "--data-dir");
        let dir = pair.members[0].data_dir().display().to_string();
        let output = take_over(&pair, 0, &name, &[&PROOF[..], &["--data-dir", &dir]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            pair.members[0].wait_ready().unwrap().leader,
            pair.members[0].status().unwrap().member_id
        );
        assert_eq!(pair.members[0].count("before").unwrap(), 1);
    }
}

/// Where nobody is at home it says so and ends.
#[test]
fn nobody_is_at_home() {
    let mut pair = Cluster::pair(Release::Trixie).unwrap();
    let name = pair.members[1].name().to_owned();
    pair.members[0].kill().unwrap();
    pair.members[1].kill().unwrap();
    assert_refused(&take_over(&pair, 0, &name, &PROOF), 1, "cannot be reached");
    // Its disk is known, but its peer port is closed: the limit ends it.
    let dir = pair.members[0].data_dir().display().to_string();
    let more = [&PROOF[..], &["--data-dir", &dir, "--limit", "1"]].concat();
    assert_refused(&take_over(&pair, 0, &name, &more), 6, "nothing was changed");
}
