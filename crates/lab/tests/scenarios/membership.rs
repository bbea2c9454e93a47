//! Scenario `membership`: a pair with IPv6 on both links stays together when one link is lost.

use crate::common;

use crate::common::{Scenario, config, powered_off};
use dyad_lab::config::Link;
use dyad_lab::protocol::Request;
use dyad_lab::timeline::Phase;

/// Losing one of two links is no reason to lose a node: both stay members, nobody is fenced, and the link
/// comes back by itself when it is healed.
#[test]
#[ignore = "needs root: make lab-test"]
fn one_lost_link_does_not_split_the_pair() {
    let lab = Scenario::start(&config("membership").ipv6());

    for node in ["node-a", "node-b"] {
        let links = lab.run(node, &["corosync-cfgtool", "-n"]);
        assert_eq!(links.matches("connected").count(), 2, "{links}");
    }
    lab.request(&Request::Cut { links: vec![Link::Link1], from: None }).unwrap();
    lab.wait_for(Phase::Link, "link1 to node-a down");
    lab.wait_for(Phase::Link, "link1 to node-b down");
    assert_eq!(lab.missing_of_pair("node-a"), None);

    lab.heal().unwrap();
    lab.wait("link1 to come back", common::FENCING, || {
        let links = lab.run("node-a", &["corosync-cfgtool", "-n"]);
        (links.matches("enabled connected").count() != 2).then(|| links.replace('\n', " "))
    });
    let timeline = lab.timeline(false).unwrap();
    assert_eq!(timeline.count(Phase::TokenLost), 0);
    assert_eq!(powered_off(&timeline), Vec::<&str>::new());
    lab.finish();
}
