//! Scenario `membership`: a pair with IPv6 on both links stays together when one link is lost.

use crate::common::{Scenario, config, powered_off};
use dyad_lab::config::Link;
use dyad_lab::protocol::Request;
use dyad_lab::timeline::Phase;

/// Losing one of two links is no reason to lose a node: both stay members, nobody is fenced, and the link
/// comes back by itself when it is healed. Also if it is lost again at once: Corosync trusts a link that has
/// just come back for ten times as long, and the token must not depend on it.
#[test]
#[ignore = "needs root: make lab-test"]
fn one_lost_link_does_not_split_the_pair() {
    let lab = Scenario::start(&config("membership").ipv6());
    lab.wait_for_links();
    for link in [Link::Link1, Link::Link1, Link::Link2, Link::Link2] {
        lab.request(&Request::Cut { links: vec![link], from: None }).unwrap();
        for node in ["node-a", "node-b"] {
            lab.wait_for(Phase::Link, &format!("{} to {node} down", link.name()));
        }
        assert_eq!(lab.missing_of_pair("node-a"), None);
        lab.heal().unwrap();
        lab.wait_for_links();
        let timeline = lab.timeline(false).unwrap();
        assert_eq!(timeline.count(Phase::TokenLost), 0, "{}", timeline.table());
        assert_eq!(powered_off(&timeline), Vec::<&str>::new());
    }
    lab.finish();
}
