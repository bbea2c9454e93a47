//! The first dataset of a pair.
//!
//! One node begins as the only voter; the other joins it by the same rules that bring back a lost one. So
//! there is no second way of becoming a pair.

use std::time::{Duration, Instant};

use etcd_peer::client::Deadline;

use crate::act::Failure;
use crate::etcd::{Endpoints, environment};
use crate::node::Node;
use crate::{aside, record};

/// A new etcd elects itself within an election time-out.
const LIMIT: Duration = Duration::from_secs(30);

/// Creates a dataset with this node as its only voter, and leaves etcd at rest. Refuses if there is anything
/// that could be a dataset, here or moved aside.
pub fn dataset(node: &Node) -> Result<(), Failure> {
    let data_dir = &node.pair.etcd.data_dir;
    if data_dir.join("member").try_exists()? {
        return Err(format!("{} holds a dataset already", data_dir.display()).into());
    }
    if !aside::list(node.memory.beside())?.is_empty() {
        return Err(format!("a dataset of {} was moved aside", data_dir.display()).into());
    }
    let endpoints = Endpoints::new(&node.pair);
    let own = (node.own().name.to_string(), endpoints.peer(node.own()));
    let text = environment(&node.pair, node.own(), &[own])
        .replace("ETCD_INITIAL_CLUSTER_STATE=existing", "ETCD_INITIAL_CLUSTER_STATE=new");
    record::create_directory(&node.place.runtime)?;
    std::fs::write(node.place.etcd_environment(), text)?;
    node.runner.start()?;
    let led = wait_for_leader(node);
    node.runner.stop()?;
    led
}

fn wait_for_leader(node: &Node) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        let status = node.client.status(Deadline::after(Duration::from_secs(1)));
        if status.as_ref().is_ok_and(|status| status.leader == Some(status.member)) {
            return Ok(());
        }
        if start.elapsed() > LIMIT {
            return Err(format!("the new etcd did not lead within {LIMIT:?}").into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
