//! Short campaigns: one whose seed stays the same, so that a change shows, and one with a seed of its own, so that
//! every run looks somewhere else. Longer ones are for the night: `make campaign`.

use std::path::PathBuf;
use std::process::Command;

fn campaign(arguments: &[&str]) {
    let programs = std::env::var_os("DYAD_PROGRAMS").expect("scripts/lab-test says where they are");
    let mut command = Command::new(PathBuf::from(programs).join("dyad"));
    command.args(["lab", "campaign", "--minutes", "3"]).args(arguments);
    let status = command.status().unwrap();
    // The command has told its seed, and where everything is kept.
    assert!(status.success(), "{command:?}: {status}");
}

/// Every promise is kept in a sequence of faults that stays the same.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_known_seed() {
    campaign(&["--seed", "8", "--faults", "4"]);
}

/// Every promise is kept in a sequence of faults that nobody has seen before.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_fresh_seed() {
    campaign(&["--faults", "4"]);
}
