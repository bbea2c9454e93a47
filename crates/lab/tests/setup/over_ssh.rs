//! Both nodes set up from another machine, with an `ssh` that leads into the lab's nodes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::common::{Nodes, SETUP, config, programs};

/// One command makes the pair; each line is told with its node; no bundle is left behind. Where ssh fails, that is
/// told for its node.
#[test]
#[ignore = "needs root: make lab-test"]
fn both_nodes_are_set_up_from_elsewhere() {
    let nodes = Nodes::start(&config("over-ssh", false, true));
    for node in nodes.names() {
        nodes.wait_booted(node);
    }
    let directory = tempfile::tempdir().unwrap();
    let ssh = directory.path().join("ssh");
    let mut path = std::ffi::OsString::from(directory.path());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let run = |script: &str| {
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let mut setup = Command::new(programs().join("dyad"));
        setup.args(["setup", "--over-ssh"]).arg(nodes.place().directory.join("pair.yaml"));
        setup.env("PATH", &path);
        dyad_program::run(&mut setup, "", SETUP).unwrap()
    };
    let [first, second] = nodes.names();
    let refused = run("#!/bin/sh\necho Permission denied >&2\nexit 255\n");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains(&format!("{second}: Permission denied")), "{refused:?}");

    let dyad = programs().join("dyad");
    let lab = &nodes.config().name;
    // ssh -o ... -o ... NODE COMMAND
    let lead = format!(
        "#!/bin/sh\nwhile [ \"$1\" = -o ]; do shift 2; done\nnode=$1\nshift\nexec {} lab --name {lab} exec \"$node\" -- sh -c \"$*\"\n",
        dyad.display()
    );
    let done = run(&lead);
    assert!(done.success(), "{done:?}");
    assert!(done.stderr.contains(&format!("{first}: [2/")), "{done:?}");
    nodes.assert_pair();
    for node in nodes.names() {
        nodes.shell(node, "! ls -d /root/dyad-bundle.*");
    }
}
