//! Scenario `fenced-node-stays-blocked`: after a split the fenced node boots while the links are still cut.

use crate::common;

use std::time::{Duration, Instant};

use crate::common::{Scenario, config, powered_off};
use dyad_lab::cluster::SERVICE;
use dyad_lab::timeline::Phase;

/// How long the pair is watched for a second shot.
const WATCHED: Duration = Duration::from_secs(12);

/// A node that boots alone waits: it has no quorum, runs nothing and fences nobody (no fencing loop). It
/// joins when the links are back.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_fenced_node_waits_until_it_sees_its_peer() {
    let lab = Scenario::start(&config("blocked"));

    lab.cut_all().unwrap();
    lab.wait_for(Phase::FencingDone, "node-b is off, by node-a");
    lab.wait_for(Phase::Waiting, "until it has seen its peer");
    lab.wait("Pacemaker on node-b", common::FENCING, || {
        lab.view("node-b").err().map(|e| e.to_string())
    });

    // Not a wait for something: nothing may happen in this time.
    let start = Instant::now();
    while start.elapsed() < WATCHED {
        assert_eq!(lab.view("node-a").unwrap().runs_on(SERVICE), Some("node-a"));
        if let Ok(view) = lab.view("node-b") {
            assert_eq!(view.runs_on(SERVICE), None, "node-b runs something without quorum");
            assert!(!view.quorate, "node-b believes that it has quorum");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(powered_off(&lab.timeline(false).unwrap()), ["node-b"]);

    lab.heal().unwrap();
    lab.wait_complete();
    assert_eq!(powered_off(&lab.timeline(false).unwrap()), ["node-b"]);
    lab.finish();
}
