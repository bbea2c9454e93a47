//! The rendered units, read by systemd itself.

mod common;

use std::time::Duration;

use common::Site;
use dyad_setup::output::{Form, write};

/// systemd understands every line of every unit; only the programs are not on this machine.
#[test]
fn systemd_reads_the_units() {
    let site = Site::new("usual");
    let bundles = site.render().unwrap();
    let out = site.path("out");
    write(&bundles.each_ref(), Form::Directory, &out).unwrap();
    let mut command = dyad_program::command("systemd-analyze", ["verify", "--man=no"]);
    for unit in ["dyad-setup.service", "dyad-etcd.service", "dyad.slice"] {
        command.arg(out.join("node-a/etc/systemd/system").join(unit));
    }
    let finished = dyad_program::run(&mut command, "", Duration::from_mins(1))
        .expect("systemd-analyze runs (package systemd)");
    let complaints: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| line.contains("dyad") && !line.contains("is not executable"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
