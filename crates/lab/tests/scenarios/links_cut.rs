//! Scenario `links-cut`: both cluster links are lost at once; both nodes live and shoot.

use crate::common;

use crate::common::{Scenario, bookworm, config, powered_off};
use dyad_lab::LabConfig;
use dyad_lab::cluster::SERVICE;
use dyad_lab::timeline::Phase;

#[test]
#[ignore = "needs root: make lab-test"]
fn exactly_one_node_survives_a_split() {
    play(&config("links-cut"));
}

/// The same on Debian 12.
#[test]
#[ignore = "needs root: make lab-test"]
fn exactly_one_node_survives_a_split_on_bookworm() {
    play(&bookworm("links-cut-bookworm"));
}

/// Exactly one node survives, and it is the one that the delay favours.
fn play(config: &LabConfig) {
    let lab = Scenario::start(config);
    let boot = lab.status().unwrap().nodes[0].init;

    lab.cut_all().unwrap();
    lab.wait_for(Phase::FencingDone, "node-b is off, by node-a");
    lab.wait("the service on node-a", common::FENCING, || {
        let view = lab.view("node-a").ok()?;
        (view.runs_on(SERVICE) != Some("node-a")).then(|| format!("{view:?}"))
    });
    assert_eq!(powered_off(&lab.timeline(false).unwrap()), ["node-b"]);
    assert_eq!(lab.status().unwrap().nodes[0].init, boot, "node-a runs since before the cut");

    lab.heal().unwrap();
    lab.wait_complete();
    assert_eq!(powered_off(&lab.timeline(false).unwrap()), ["node-b"]);
    lab.finish();
}
