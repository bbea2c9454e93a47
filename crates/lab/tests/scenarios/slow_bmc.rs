//! Scenario `slow-bmc`: a split while both BMCs take two seconds to switch.

use crate::common;

use std::time::Duration;

use crate::common::{Scenario, config, powered_off};
use bmc_sim::Fault;
use dyad_lab::cluster::SERVICE;
use dyad_lab::timeline::Phase;

/// With a delay that is longer than the BMC is slow there is still exactly one survivor. (Without a delay,
/// two nodes behind slow BMCs switch each other off.)
#[test]
#[ignore = "needs root: make lab-test"]
fn slow_bmcs_leave_one_survivor() {
    let mut config = config("slow-bmc");
    config.fence_delay_s = 6;
    let lab = Scenario::start(&config);
    for node in ["node-a", "node-b"] {
        lab.bmc(node, Fault::SlowPower(Duration::from_secs(2))).unwrap();
    }

    lab.cut_all().unwrap();
    let timeline = lab.wait_for(Phase::FencingDone, "node-b is off, by node-a");
    let done = timeline.first(Phase::FencingDone).unwrap().time_us;
    let off = timeline.first(Phase::PowerOff).unwrap().time_us;
    assert!(off < done, "fencing was reported before the node was off");
    lab.wait("the service on node-a", common::FENCING, || {
        let view = lab.view("node-a").ok()?;
        (view.runs_on(SERVICE) != Some("node-a")).then(|| format!("{view:?}"))
    });
    assert_eq!(powered_off(&lab.timeline(false).unwrap()), ["node-b"]);
    lab.finish();
}
