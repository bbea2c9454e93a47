//! Choosing the one TCP connection that is to stall.

use super::Connection;

/// The first established connection with this port on either end, from `ss -Htn state established`:
/// two counters, the local and the remote end.
pub(super) fn pick(listing: &str, port: u16) -> Option<Connection> {
    listing.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let local = end(fields.next()?)?;
        let remote = end(fields.next()?)?;
        let wanted = local.port() == port || remote.port() == port;
        // A node's talk with itself never comes to the switch.
        (wanted && local.ip() != remote.ip()).then_some(Connection { local, remote })
    })
}

/// An end as `ss` writes it: IPv4 that was accepted on an IPv6 socket comes as a mapped address.
fn end(text: &str) -> Option<std::net::SocketAddr> {
    let end: std::net::SocketAddr = text.parse().ok()?;
    Some((end.ip().to_canonical(), end.port()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Talk of a node with itself and other ports are passed over; mapped addresses are what is on the wire.
    #[test]
    fn the_first_connection_on_the_wire_is_taken() {
        let listing = "0 0 10.77.1.1:2380 10.77.1.1:5000\n\
                       0 0 10.77.1.1:4444 10.77.1.2:2379\n\
                       0 0 [::ffff:10.77.1.1]:2380 [::ffff:10.77.1.2]:40000\n";
        let connection = pick(listing, 2380).unwrap();
        assert_eq!(connection.local, "10.77.1.1:2380".parse().unwrap());
        assert_eq!(connection.remote, "10.77.1.2:40000".parse().unwrap());
        assert_eq!(pick(listing, 9), None);
    }
}
