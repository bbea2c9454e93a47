//! `dyad decide` replays what an agent has logged.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Facts as an agent logs them: two nodes at rest, both visible, both a pair.
const FACTS: &str = include_str!("data/facts.json");

fn decide(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyad"))
        .arg("decide")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Decision, rule and reason are printed; nothing else is said.
#[test]
fn a_logged_document_is_decided_again() {
    let output = decide(&["-"], FACTS);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for wanted in
        ["action    recordComparison", "rule      cold-boot pair/pair", "because   both at rest"]
    {
        assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
    }
    assert!(output.stderr.is_empty());
}

/// The JSON form is one versioned document.
#[test]
fn json_is_one_versioned_document() {
    let output = decide(&["-", "-o", "json"], FACTS);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["apiVersion"], "dyad/v1");
    assert_eq!(json["kind"], "Decision");
    assert_eq!(json["action"], "recordComparison");
    assert_eq!(json["rule"], "cold-boot pair/pair");
}

/// A node that has to stay inert, or refuses, is told apart by the exit code.
#[test]
fn the_exit_code_tells_whether_the_node_may_act() {
    let alone = FACTS.replace("\"present\": true", "\"present\": false");
    assert_eq!(decide(&["-"], &alone).status.code(), Some(3));
    let diverged = FACTS.replace("\"clusterId\": \"c\"", "\"clusterId\": \"d\"").replacen(
        "\"clusterId\": \"d\"",
        "\"clusterId\": \"c\"",
        1,
    );
    assert_eq!(decide(&["-"], &diverged).status.code(), Some(4));
}

/// Bad input is named by file, line and key.
#[test]
fn bad_input_is_named() {
    let output = decide(&["-"], &FACTS.replace("\"quorate\"", "\"quorat\""));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    for wanted in ["standard input", "quorat", "line "] {
        assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
    }
    let missing = decide(&["no-such-file.json"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such-file.json"));
}
