//! Nothing is left of a lab, however it ends, and labs do not see each other.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{config, supervision};
use dyad_lab::progress::Silent;
use dyad_lab::protocol::Request;
use dyad_lab::{Lab, Lifetime, residue};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What labs make on a machine: mounts, loop devices, cgroups, interfaces of the host.
fn inventory() -> BTreeSet<String> {
    let names = |directory: &str| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut found: BTreeSet<String> = mounts.lines().map(Into::into).collect();
    found.extend(names("/sys/class/net"));
    found.extend(names("/run/netns"));
    found.extend(names("/run/systemd/nspawn"));
    found
}

/// Two labs with the same addresses run side by side. One loses its supervisor by SIGKILL while a node's
/// disk hangs, which is the worst moment: `down` still ends it, and the other lab does not notice.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_killed_lab_leaves_nothing_and_disturbs_nobody() {
    let before = inventory();
    let (mut one, mut other) = (config("left-one"), config("left-other"));
    (one.etcd, other.etcd) = (true, false);
    let [one, other] = std::thread::scope(|scope| {
        let start = |config| move || Lab::up(config, &supervision(), Lifetime::OfCaller, &Silent);
        [scope.spawn(start(&one)), scope.spawn(start(&other))]
            .map(|started| started.join().unwrap().unwrap_or_else(|error| panic!("{error}")))
    });
    assert_eq!(inventory(), before, "the lab shows on the host");

    one.request(&Request::SlowDisk { node: "node-a".into(), stall_ms: 3_600_000 }).unwrap();
    let supervisor = one.status().unwrap().supervisor;
    kill(Pid::from_raw(supervisor.cast_signed()), Signal::SIGKILL).unwrap();
    let place = one.place().clone();
    assert!(Lab::down(&place.name).unwrap(), "there was a lab");
    assert_eq!(residue(&place).unwrap(), Vec::<String>::new());
    assert!(!Lab::down(&place.name).unwrap(), "there is none any more");

    assert_eq!(other.missing_of_pair("node-a"), None);
    let place = other.place().clone();
    drop((one, other));
    assert_eq!(residue(&place).unwrap(), Vec::<String>::new());
    assert_eq!(inventory(), before);
}
