//! The connections between the two etcds.
//!
//! They are long-lived, and one whose packets are lost on the way (one of two links is cut, a firewall has
//! forgotten it) may go unnoticed for a long time, while both nodes are well and see each other: no leader,
//! no writes. Cut on this side, they are made anew at once, by another link if the first does not answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::gather::words;
use crate::node::Node;
use crate::{boot, journal, record};

/// An ordinary election is over by then.
const PATIENCE_MS: u64 = 1_500;
/// A new connection by another link is up by then: etcd gives up on a silent address after two seconds.
const AGAIN_MS: u64 = 6_000;
/// The tool answers from the kernel.
const LIMIT: Duration = Duration::from_secs(2);

/// When the connections were last cut, on this boot's clock.
#[derive(Debug, Serialize, Deserialize)]
struct Cut {
    uptime_ms: u64,
}

/// Cuts the connections to the peer's etcd, if there has been no leader for a while, and not again and again.
pub(crate) fn renew(node: &Node, leaderless_ms: u64) {
    let path = node.place.runtime.join("connections-cut.json");
    let uptime_ms = boot::uptime_ms().unwrap_or_default();
    let last: Option<Cut> = record::read(&path).ok().flatten();
    let recent = last.is_some_and(|last| uptime_ms.saturating_sub(last.uptime_ms) < AGAIN_MS);
    if leaderless_ms < PATIENCE_MS || recent {
        return;
    }
    let _ = record::write_volatile(&path, &Cut { uptime_ms });
    for address in &node.peer().addresses {
        let port = format!(":{}", node.pair.etcd.peer_port);
        let address = address.to_string();
        let arguments = ["--kill", "--tcp", "--no-header", "dst", &address, "and", "(", "dport"];
        let rest = ["=", &port, "or", "sport", "=", &port, ")"];
        let mut ss = dyad_program::command("ss", arguments.iter().chain(&rest));
        match dyad_program::output(&mut ss, "", LIMIT) {
            Ok(cut) if cut.trim().is_empty() => {}
            Ok(cut) => journal::tell(&format!(
                "no leader for {leaderless_ms} ms: cut {} connections with {address}",
                cut.lines().count()
            )),
            Err(error) => journal::warn(&format!("cannot cut connections: {}", words(&error))),
        }
    }
}
