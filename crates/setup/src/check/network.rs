//! Names, addresses, links and ports as this machine sees them.

use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs as _, UdpSocket};

use dyad_cluster::pair::Pair;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

use super::Finding;
use super::probe::Probe;

/// Corosync's port on the first link; each further link has the next one.
const COROSYNC_PORT: u16 = 5405;

/// What the nodes' names resolve to. Nothing here needs names, so only a wrong answer is worth a word.
pub(super) fn names(pair: &Pair) -> Probe {
    let nodes: Vec<_> =
        pair.nodes.iter().map(|node| (node.name.0.clone(), node.addresses.clone())).collect();
    Probe::new("names", "names", move || {
        nodes.iter().map(|(name, addresses)| resolved(name, addresses)).collect()
    })
}

fn resolved(name: &str, addresses: &[IpAddr]) -> Finding {
    // The port is only there because the resolver wants one.
    let found: Vec<IpAddr> =
        (name, 0).to_socket_addrs().map(|all| all.map(|a| a.ip()).collect()).unwrap_or_default();
    if found.is_empty() {
        let message = format!("{name} does not resolve; nothing here needs it to");
        return Finding::ok("names", "names", message);
    }
    let stray = found.iter().find(|ip| !addresses.contains(ip) && !ip.is_loopback());
    match stray {
        None => Finding::ok("names", "names", format!("{name} resolves to its own address")),
        Some(stray) => {
            let message = format!("{name} resolves to {stray}, which is none of its addresses");
            Finding::warning("names", "names", message)
                .hint("correct the name service or /etc/hosts, or the address in the file")
        }
    }
}

/// The devices of this machine with their addresses.
fn devices() -> Vec<(String, IpAddr)> {
    let all = getifaddrs().map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    let address = |storage: SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    };
    all.into_iter().filter_map(|one| Some((one.interface_name, address(one.address?)?))).collect()
}

/// Whether this machine has the addresses that the file gives it, each link on a device of its own.
pub(crate) fn links(pair: &Pair, own: usize) -> Probe {
    let own_addresses = pair.nodes[own].addresses.clone();
    let peer_addresses = pair.nodes[1 - own].addresses.clone();
    Probe::new("links", "links", move || links_of(&own_addresses, &peer_addresses, &devices()))
}

fn links_of(own: &[IpAddr], peer: &[IpAddr], devices: &[(String, IpAddr)]) -> Vec<Finding> {
    let device = |ip: &IpAddr| devices.iter().find(|(_, other)| other == ip).map(|(name, _)| name);
    let mut findings = Vec::new();
    let mut used: Vec<&String> = Vec::new();
    for (link, ip) in own.iter().enumerate() {
        let subject = format!("link {link}");
        findings.push(match device(ip) {
            None => {
                Finding::error("address", &subject, format!("{ip} is on no device of this machine"))
                    .hint("is the link configured and up? is the address this node's?")
            }
            Some(name) if used.contains(&name) => {
                let message = format!("{ip} is on {name}, like another link");
                Finding::warning("address", &subject, message)
                    .hint("links on one device fail together: use a second network card")
            }
            Some(name) => {
                used.push(name);
                Finding::ok("address", &subject, format!("{ip} is on {name}"))
            }
        });
    }
    for ip in peer.iter().filter(|ip| device(ip).is_some()) {
        let message = format!("{ip} is the peer's in the file, but this machine has it");
        findings.push(
            Finding::error("address", "links", message).hint("are the nodes swapped in the file?"),
        );
    }
    findings
}

/// Whether the ports are free.
pub(super) fn ports(pair: &Pair) -> Probe {
    let tcp = [pair.etcd.client_port, pair.etcd.peer_port];
    let links = pair.nodes[0].addresses.len();
    let any: IpAddr = match pair.nodes[0].addresses.first() {
        Some(IpAddr::V6(_)) => IpAddr::from([0; 16]),
        _ => IpAddr::from([0; 4]),
    };
    Probe::new("ports", "ports", move || {
        let udp = (0..links).map(|link| COROSYNC_PORT + link as u16);
        let mut taken: Vec<String> = tcp
            .into_iter()
            .filter(|port| TcpListener::bind(SocketAddr::new(any, *port)).is_err())
            .map(|port| format!("TCP {port}"))
            .collect();
        taken.extend(
            udp.filter(|port| UdpSocket::bind(SocketAddr::new(any, *port)).is_err())
                .map(|port| format!("UDP {port}")),
        );
        vec![if taken.is_empty() {
            Finding::ok("ports", "ports", "etcd's and Corosync's ports are free")
        } else {
            let message = format!("in use already: {}", taken.join(", "));
            Finding::warning("ports", "ports", message)
                .hint("fine if this pair runs already; `ss -tulpn` shows who has them")
        }]
    })
}

#[cfg(test)]
mod tests {
    use super::super::Status::{self, Error, Ok, Warning};
    use super::*;

    /// Each way in which links can be wrong on a machine is told apart.
    #[test]
    fn links_on_devices() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let devices = [
            ("eth0".to_owned(), ip("10.1.0.1")),
            ("eth0".to_owned(), ip("10.2.0.1")),
            ("eth1".to_owned(), ip("fd00::1")),
        ];
        let statuses = |own: &[&str], peer: &[&str]| -> Vec<Status> {
            let own: Vec<_> = own.iter().map(|text| ip(text)).collect();
            let peer: Vec<_> = peer.iter().map(|text| ip(text)).collect();
            links_of(&own, &peer, &devices).iter().map(|finding| finding.status).collect()
        };
        assert_eq!(statuses(&["10.1.0.1", "fd00::1"], &["10.1.0.2"]), [Ok, Ok]);
        assert_eq!(statuses(&["10.1.0.1", "10.2.0.1"], &["10.1.0.2"]), [Ok, Warning]);
        assert_eq!(statuses(&["10.1.0.10"], &["10.1.0.2"]), [Error]);
        assert_eq!(statuses(&["10.1.0.1"], &["fd00::1"]), [Ok, Error]);
    }
}
