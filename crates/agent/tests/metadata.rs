//! What Pacemaker reads about the agent, checked with Pacemaker's own tool.

mod common;

use std::process::Command;

use common::{Fixture, agent, run_with};
use dyad_power::fence::{Action, PARAMETERS};

/// The description is XML as Pacemaker reads it, the same from stdin and as an option, and it is complete.
#[test]
fn metadata() {
    let by_stdin = run_with("action=metadata\n");
    let by_option = agent().args(["-o", "metadata"]).output().unwrap();
    assert_eq!((by_stdin.code, by_option.status.code()), (0, Some(0)));
    assert_eq!(by_stdin.stdout.as_bytes(), by_option.stdout);
    let document = roxmltree::Document::parse(&by_stdin.stdout).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("name"), Some("fence_dyad_redfish"));
    let names = |tag: &str| -> Vec<_> {
        let tagged = document.descendants().filter(|node| node.has_tag_name(tag));
        tagged.filter_map(|node| node.attribute("name").map(str::to_owned)).collect()
    };
    let actions: Vec<_> = Action::ALL.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    assert_eq!(names("action"), actions);
    let parameters = names("parameter");
    assert!(PARAMETERS.iter().all(|parameter| parameters.contains(&parameter.name.to_owned())));
    // Pacemaker would pass the node's name as plug or port if it found one of these here.
    assert!(
        !parameters.iter().any(|name| name == "plug" || name == "port" || name.contains("pass"))
    );
    for parameter in document.descendants().filter(|node| node.has_tag_name("parameter")) {
        for tag in ["getopt", "content", "shortdesc"] {
            assert!(
                parameter.children().any(|child| child.has_tag_name(tag)),
                "{parameter:?} has no {tag}"
            );
        }
        assert!(matches!(parameter.attribute("required"), Some("0" | "1")));
    }
    // Unfencing is not for power: a node must not be switched on because it joins.
    let on = document.descendants().find(|node| node.attribute("name") == Some("on")).unwrap();
    assert_eq!(on.attribute("automatic"), Some("0"));
}

/// Pacemaker's `stonith_admin` takes the description and validates a device with it. It looks for agents in
/// /usr/sbin only, so the agent is put over another one there, in a mount namespace of this test's own.
#[test]
fn stonith_admin_accepts_it() {
    let fixture = Fixture::new();
    let in_namespace = |arguments: &str| {
        let script = format!(
            "mount --bind {} /usr/sbin/fence_redfish && exec stonith_admin {arguments} --agent fence_redfish",
            env!("CARGO_BIN_EXE_fence_dyad_redfish")
        );
        Command::new("unshare").args(["--mount", "--", "sh", "-c", &script]).output().unwrap()
    };
    let output = in_namespace("--metadata");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("fence_dyad_redfish") && text.contains("split_delay_ms"), "{text}");

    let options: String =
        fixture.parameters().lines().map(|line| format!(" --option {line}")).collect();
    let output = in_namespace(&format!("--validate --timeout 10{options}"));
    assert!(output.status.success(), "{output:?}");
    let output = in_namespace(&format!("--validate --timeout 10{options} --option sytem=1"));
    assert!(!output.status.success(), "{output:?}");
}
