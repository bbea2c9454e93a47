//! Choosing the one TCP connection that is to stall.

use super::Connection;

/// Of the established connections with this port on either end the one that carried most, from `ss -HtniO
/// state established`: two counters, the local and the remote end, then numbers with their names. etcd also
/// keeps connections on which next to nothing is said; losing those would show nothing.
pub(super) fn pick(listing: &str, port: u16) -> Option<Connection> {
    let mut picked = None;
    for line in listing.lines() {
        let Some((connection, bytes)) = connection(line) else { continue };
        let Connection { local, remote } = connection;
        let wanted = local.port() == port || remote.port() == port;
        // A node's talk with itself never comes to the switch.
        if !wanted || local.ip() == remote.ip() {
            continue;
        }
        if picked.as_ref().is_none_or(|(_, most)| bytes > *most) {
            picked = Some((connection, bytes));
        }
    }
    picked.map(|(connection, _)| connection)
}

/// A connection, and how many bytes it carried.
fn connection(line: &str) -> Option<(Connection, u64)> {
    let mut fields = line.split_whitespace().skip(2);
    let connection = Connection { local: end(fields.next()?)?, remote: end(fields.next()?)? };
    let bytes = fields
        .filter_map(|field| field.split_once(':'))
        .filter(|(name, _)| matches!(*name, "bytes_sent" | "bytes_received"))
        .filter_map(|(_, number)| number.parse::<u64>().ok())
        .sum();
    Some((connection, bytes))
}

/// An end as `ss` writes it: IPv4 that was accepted on an IPv6 socket comes as a mapped address.
fn end(text: &str) -> Option<std::net::SocketAddr> {
    let end: std::net::SocketAddr = text.parse().ok()?;
    Some((end.ip().to_canonical(), end.port()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Talk of a node with itself and other ports are passed over; of the rest the busiest is taken. Mapped
    /// addresses are what is on the wire.
    #[test]
    fn the_busiest_connection_on_the_wire_is_taken() {
        let listing = "0 0 10.77.1.1:2380 10.77.1.1:5000 cubic bytes_sent:9000\n\
                       0 0 10.77.1.1:4444 10.77.1.2:2379 cubic bytes_sent:9000\n\
                       0 0 10.77.1.1:2380 10.77.1.2:39999 cubic bytes_sent:200 bytes_received:99\n\
                       0 0 [::ffff:10.77.1.1]:2380 [::ffff:10.77.1.2]:40000 cubic rto:204 bytes_sent:300\n\
                       0 0 10.77.1.1:2380 10.77.1.2:40001\n";
        let connection = pick(listing, 2380).unwrap();
        assert_eq!(connection.local, "10.77.1.1:2380".parse().unwrap());
        assert_eq!(connection.remote, "10.77.1.2:40000".parse().unwrap());
        assert_eq!(pick(listing, 9), None);
    }
}
