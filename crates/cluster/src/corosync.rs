//! `corosync.conf`, rendered from the description of a pair.

use std::fmt::Write as _;

use crate::pair::Pair;

/// The port of the first link; each further link has the next one. Two links on one port would disturb each
/// other where their networks meet.
const FIRST_PORT: usize = 5405;

/// Everything is sent on all links at once. With `passive`, Corosync's default, losing a link that had come up
/// less than ten seconds before looks like losing the peer: libknet believes such a link for ten times its
/// time-out, and the token is lost meanwhile (docs/benchmarks/links.md).
const LINK_MODE: &str = "active";

/// The configuration of Corosync, the same on both nodes.
pub fn render(pair: &Pair) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_totem(&mut text, pair);
    let _ = write_nodes(&mut text, pair);
    text.push_str(QUORUM_AND_LOGGING);
    text
}

/// `wait_for_all` comes with `two_node`; it is spelled out because P5 rests on it.
const QUORUM_AND_LOGGING: &str = "
quorum {
    provider: corosync_votequorum
    two_node: 1
    wait_for_all: 1
}

logging {
    to_syslog: yes
    to_stderr: no
    to_logfile: no
    timestamp: hires
}
";

fn write_totem(text: &mut String, pair: &Pair) -> std::fmt::Result {
    let detection = pair.detection;
    writeln!(text, "totem {{")?;
    writeln!(text, "    version: 2")?;
    writeln!(text, "    cluster_name: {}", pair.name)?;
    writeln!(text, "    transport: knet")?;
    writeln!(text, "    crypto_cipher: aes256")?;
    writeln!(text, "    crypto_hash: sha256")?;
    writeln!(text, "    token: {}", detection.token_ms())?;
    writeln!(text, "    consensus: {}", detection.consensus_ms())?;
    writeln!(text, "    link_mode: {LINK_MODE}")?;
    for link in 0..link_count(pair) {
        let timeout_ms = detection.link_timeout_ms();
        writeln!(text, "    interface {{")?;
        writeln!(text, "        linknumber: {link}")?;
        writeln!(text, "        mcastport: {}", FIRST_PORT + link)?;
        writeln!(text, "        knet_ping_interval: {}", (timeout_ms / 2).max(1))?;
        writeln!(text, "        knet_ping_timeout: {timeout_ms}")?;
        writeln!(text, "    }}")?;
    }
    writeln!(text, "}}")
}

fn write_nodes(text: &mut String, pair: &Pair) -> std::fmt::Result {
    writeln!(text, "\nnodelist {{")?;
    for (position, node) in pair.nodes.iter().enumerate() {
        writeln!(text, "    node {{")?;
        writeln!(text, "        nodeid: {}", position + 1)?;
        writeln!(text, "        name: {}", node.name)?;
        for (link, address) in node.addresses.iter().enumerate().take(link_count(pair)) {
            writeln!(text, "        ring{link}_addr: {address}")?;
        }
        writeln!(text, "    }}")?;
    }
    writeln!(text, "}}")
}

fn link_count(pair: &Pair) -> usize {
    pair.nodes.iter().map(|node| node.addresses.len()).min().unwrap_or_default()
}
