//! The connections between the two etcds.
//!
//! They are long-lived, and one whose packets are lost on the way (one of two links is cut, a firewall has
//! forgotten it) may go unnoticed for a long time, while both nodes are well and see each other: no leader,
//! no writes. Cut on this side, they are made anew at once, by another link if the first does not answer.
//!
//! etcd 3.5 waits on a silent stream for ever. If it is the one with the log on it, there is a leader, heartbeats
//! arrive on the other stream, and no write ends until the kernel gives up after a quarter of an hour. The kernel knows
//! long before: it counts how often it has sent the same bytes again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::gather::words;
use crate::node::Node;
use crate::{boot, journal, record};

/// An ordinary election is over by then.
const PATIENCE_MS: u64 = 1_500;
/// A new connection by another link is up by then: etcd gives up on a silent address after two seconds.
const AGAIN_MS: u64 = 6_000;
/// The kernel repeats itself after 0.2 s, and waits twice as long each time: three seconds of silence.
const REPEATS_MAX: u32 = 4;
/// The tool answers from the kernel.
const LIMIT: Duration = Duration::from_secs(2);

/// When the connections were last cut, on this boot's clock.
#[derive(Debug, Serialize, Deserialize)]
struct Cut {
    uptime_ms: u64,
}

/// Cuts the connections to the peer's etcd, if there has been no leader for a while, and not again and again.
pub(crate) fn renew(node: &Node, leaderless_ms: u64) {
    if leaderless_ms >= PATIENCE_MS {
        cut(node, &format!("no leader for {leaderless_ms} ms"));
    }
}

/// Cuts them, if one of them has been silent for a while though the kernel had something to say on it.
pub(crate) fn renew_silent(node: &Node) {
    // The kernel walks all it has for the table, some 5 ms; its counters are free.
    let path = node.place.runtime.join("repeated-segments.json");
    let snmp = std::fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let repeated = repeated_segments(&snmp);
    let last: Option<u64> = record::read(&path).ok().flatten();
    if repeated.is_some() && repeated == last {
        return;
    }
    let _ = record::write_volatile(&path, &repeated);
    let port = node.pair.etcd.peer_port;
    let silent = ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|path| {
        let table = std::fs::read_to_string(path).unwrap_or_default();
        table.lines().filter_map(Connection::parse).any(|connection| {
            connection.repeats >= REPEATS_MAX
                && node.peer().addresses.contains(&connection.remote.0)
                && (connection.remote.1 == port || connection.local_port == port)
        })
    });
    if silent {
        cut(node, "a connection is silent");
    }
}

/// How many segments this machine has ever sent again: `RetransSegs` of `/proc/net/snmp`.
fn repeated_segments(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(name, _)| *name == "RetransSegs")?.1.parse().ok()
}

fn cut(node: &Node, why: &str) {
    let path = node.place.runtime.join("connections-cut.json");
    let uptime_ms = boot::uptime_ms().unwrap_or_default();
    let last: Option<Cut> = record::read(&path).ok().flatten();
    if last.is_some_and(|last| uptime_ms.saturating_sub(last.uptime_ms) < AGAIN_MS) {
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
                "{why}: cut {} connections with {address}",
                cut.lines().count()
            )),
            Err(error) => journal::warn(&format!("cannot cut connections: {}", words(&error))),
        }
    }
}

/// An established connection in the kernel's table.
#[derive(Debug, PartialEq, Eq)]
struct Connection {
    local_port: u16,
    remote: (IpAddr, u16),
    /// How often the oldest unanswered bytes were sent again.
    repeats: u32,
}

impl Connection {
    /// A line of `/proc/net/tcp` or `tcp6`.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, "01", _, _, repeats, ..] = words.as_slice() else { return None };
        let repeats = u32::from_str_radix(repeats, 16).ok()?;
        Some(Self { local_port: socket(local)?.1, remote: socket(remote)?, repeats })
    }
}

/// An address and a port as the kernel prints them: words of 32 bits in the machine's own order.
fn socket(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let used = bytes.chunks_exact_mut(4).zip(address.as_bytes().chunks_exact(8));
    for (word, digits) in used {
        let digits = std::str::from_utf8(digits).ok()?;
        word.copy_from_slice(&u32::from_str_radix(digits, 16).ok()?.to_ne_bytes());
    }
    let [a, b, c, d, ..] = bytes;
    match address.len() {
        8 => Some((Ipv4Addr::new(a, b, c, d).into(), port)),
        32 => Some((Ipv6Addr::from(bytes).to_canonical(), port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count is found by its name, and a text without it is no count.
    #[test]
    fn repeated_segments_are_counted() {
        let snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoMin InSegs OutSegs RetransSegs InErrs\n\
                    Tcp: 200 92 80 17 0\nUdp: InDatagrams\nUdp: 4\n";
        assert_eq!(repeated_segments(snmp), Some(17));
        assert_eq!(repeated_segments("Tcp: RtoMin\nTcp: 200\n"), None);
        assert_eq!(repeated_segments(""), None);
    }

    /// The kernel's own tables, one line each: addresses of both families, one that is carried in the other, and the
    /// count of repetitions; headings and connections that are not established are passed over.
    #[test]
    fn the_kernels_table_is_read() {
        let line = "   1: 01014D0A:094C 02014D0A:9C42 01 00000A12:00000000 01:00000064 00000005  0 0 7 2 0 20";
        let connection = Connection::parse(line).unwrap();
        let remote = ("10.77.1.2".parse().unwrap(), 40002);
        assert_eq!(connection, Connection { local_port: 2380, remote, repeats: 5 });

        let line = "   0: 0000000000000000FFFF00000101A8C0:094C 0000000000000000FFFF00000201A8C0:A001 01 \
                    00000000:00000000 00:00000000 00000000 0 0 9 1 0";
        assert_eq!(Connection::parse(line).unwrap().remote.0.to_string(), "192.168.1.2");

        let line = "   0: 000080FE00000000FF005450B4E1A2FE:094C 0000DAFD000000000000000002000000:A001 01 \
                    00000000:00000000 00:00000000 00000002 0 0 9 1 0";
        let connection = Connection::parse(line).unwrap();
        assert_eq!((connection.remote.0.to_string().as_str(), connection.repeats), ("fdda::2", 2));

        let heading =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid";
        assert_eq!(Connection::parse(heading), None);
        let listens =
            "   0: 00000000:094C 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0";
        assert_eq!(Connection::parse(listens), None);
    }
}
