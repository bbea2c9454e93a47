//! Scenario `node-killed`: a node loses its power; the other fences it, goes on, and takes it back.

use crate::common;

use crate::common::{Scenario, bookworm, config, steps};
use dyad_lab::LabConfig;
use dyad_lab::cluster::SERVICE;
use dyad_lab::config::FenceAgent;
use dyad_lab::timeline::Phase;

#[test]
#[ignore = "needs root: make lab-test"]
fn a_node_without_power_is_fenced_and_comes_back() {
    play(config("node-killed"));
}

/// The same with the distribution's fence agent.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_distributions_agent_fences_too() {
    let mut config = config("node-killed-dist");
    config.fence_agent = FenceAgent::Distribution;
    play(config);
}

/// The same on Debian 12.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_node_without_power_is_fenced_on_bookworm() {
    play(bookworm("node-killed-bookworm"));
}

/// The survivor knows that its peer is off before it goes on, by the peer's exact name: this pair is called
/// node1 and node10, with addresses that are just as easily confused.
fn play(mut config: LabConfig) {
    for (node, (name, last)) in config.nodes.iter_mut().zip([("node1", 1), ("node10", 10)]) {
        node.name = name.into();
        node.link1 = std::net::Ipv4Addr::new(10, 0, 0, last).into();
    }
    let lab = Scenario::start(&config);
    let (victim, survivor) = match lab.view("node1").unwrap().runs_on(SERVICE) {
        Some("node1") => ("node1", "node10"),
        _ => ("node10", "node1"),
    };

    // The node with the service is lost, so that there is something to take over.
    lab.pull_plug(victim);
    lab.wait("the service on the survivor", common::FENCING, || {
        let view = lab.view(survivor).ok()?;
        (view.runs_on(SERVICE) != Some(survivor)).then(|| format!("{view:?}"))
    });
    let timeline = lab.wait_for(Phase::FencingDone, &format!("{victim} is off, by {survivor}"));
    let fenced = timeline.first(Phase::FencingDone).unwrap().time_us;
    let started = steps(&timeline, Phase::Started);
    let started =
        started.iter().find(|step| step.text == SERVICE && step.place == survivor).unwrap();
    assert!(fenced < started.time_us, "the service started before fencing was done");

    lab.wait_complete();
    lab.finish();
}
