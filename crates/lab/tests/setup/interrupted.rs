//! A power cycle in the middle of each step, on either node: the next boot goes on, and a pair comes of it.

use std::time::{Duration, Instant};

use dyad_lab::events::now_us;
use dyad_lab::progress::ToStderr;
use dyad_lab::protocol::PowerAction;
use dyad_setup::job::STEPS;

use crate::common::{Nodes, SETUP, config};

/// Waits for a node to begin a step, looking often: some last milliseconds only. Tells whether it was seen; a node
/// that is ready has passed it. What a boot before this time has left does not count.
fn reaches(nodes: &Nodes, node: &str, step: &str, since_ms: u64) -> bool {
    let begin = Instant::now();
    loop {
        let state = nodes.state(node);
        let position = |name: &str| STEPS.iter().position(|step| step.name == name);
        if let Some(state) = state.as_ref().filter(|state| state.started_ms >= since_ms) {
            if state.is_ready() {
                return false;
            }
            let current = state.steps.last().and_then(|last| position(&last.name));
            if current >= position(step) && state.failure.is_none() {
                return true;
            }
        }
        assert!(begin.elapsed() < SETUP, "{node} never came to {step}: {state:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every step but the first, which changes nothing, is cut off on one node or the other.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_power_cycle_in_each_step_is_survived() {
    let nodes = Nodes::start(&config("interrupted", false, true));
    // By hand, so that the lab does not wait; the bundles are where the boot finds them from now on.
    for node in nodes.names() {
        nodes.wait_booted(node);
        nodes.shell(node, "mkdir -p /etc/dyad; cp -a /root/bundles /etc/dyad/nodes");
    }
    let mut cut = Vec::new();
    for (number, step) in STEPS.iter().enumerate().skip(1) {
        let node = nodes.names()[number % 2];
        // One that got ready meanwhile goes through all steps again.
        nodes.wait_booted(node);
        nodes.shell(node, "systemctl stop dyad-setup; rm -f /var/lib/dyad/setup.json");
        nodes.power(node, PowerAction::Off).unwrap();
        let since_ms = now_us() / 1000;
        for node in nodes.names() {
            nodes.power(node, PowerAction::On).unwrap();
        }
        if reaches(&nodes, node, step.name, since_ms) {
            nodes.power(node, PowerAction::Off).unwrap();
            cut.push(step.name);
        }
        nodes.power(node, PowerAction::On).unwrap();
    }
    eprintln!("cut off in: {}", cut.join(", "));
    assert!(cut.len() >= STEPS.len() / 2, "too few steps were cut off: {cut:?}");
    nodes.assert_pair();
    nodes.wait_for_pair(&ToStderr::default()).unwrap();
}
