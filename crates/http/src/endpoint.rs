//! Where a server is.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::error::Error;

/// How the server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain TCP.
    Http,
    /// TLS.
    Https,
}

/// A server: scheme, host and port. No path: each request names its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    /// A name, an IPv4 address, or an IPv6 address without brackets (a zone is allowed: `fe80::1%eth0`).
    host: String,
    port: u16,
}

impl Endpoint {
    /// A server by its parts. The host may be an IPv6 address with or without brackets.
    pub fn new(scheme: Scheme, host: &str, port: u16) -> Result<Self, Error> {
        let fault = |why| Error::Endpoint { url: host.to_owned(), why };
        let bare = match host.strip_prefix('[') {
            Some(rest) => {
                rest.strip_suffix(']').ok_or_else(|| fault("the bracket is not closed"))?
            }
            None => host,
        };
        check_host(bare).map_err(fault)?;
        if port == 0 {
            return Err(fault("the port is 0"));
        }
        Ok(Self { scheme, host: bare.to_owned(), port })
    }

    /// A server by its URL: `http://10.0.0.1:2379`, `https://[fd00::7]`, a trailing `/` is allowed.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let fault = |why| Error::Endpoint { url: url.to_owned(), why };
        let (scheme, rest) = if let Some(rest) = url.strip_prefix("https://") {
            (Scheme::Https, rest)
        } else if let Some(rest) = url.strip_prefix("http://") {
            (Scheme::Http, rest)
        } else {
            return Err(fault("it must start with https:// or http://"));
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(fault("it must not have a path"));
        }
        if authority.contains('@') {
            return Err(fault("it must not have a user name or password"));
        }
        let (host, port) = split_port(authority).map_err(fault)?;
        let default = if scheme == Scheme::Https { 443 } else { 80 };
        let port = match port {
            None => default,
            Some(text) => {
                text.parse().map_err(|_| fault("the port is not a number up to 65535"))?
            }
        };
        Self::new(scheme, host, port).map_err(|error| match error {
            Error::Endpoint { why, .. } => fault(why),
            other => other,
        })
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host as an address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host_without_zone().parse().ok()
    }

    /// The host without the zone of a link-local address: neither a certificate nor a Host header names it.
    pub(crate) fn host_without_zone(&self) -> &str {
        self.host.split_once('%').map_or(&self.host, |(address, _)| address)
    }

    /// Host and port as the Host header has them.
    pub(crate) fn authority(&self) -> String {
        let host = self.host_without_zone();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match (self.scheme, self.port) {
            (Scheme::Https, 443) | (Scheme::Http, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(end) = authority.strip_prefix('[').and_then(|rest| rest.find(']')) {
        let (host, rest) = authority.split_at(end + 2);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("there is something between the bracket and the port"),
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => Err("an IPv6 address needs brackets"),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn check_host(host: &str) -> Result<(), &'static str> {
    if host.is_empty() {
        return Err("the host is empty");
    }
    if host.contains(':') {
        let (address, zone) = host.split_once('%').unwrap_or((host, "0"));
        address.parse::<Ipv6Addr>().map_err(|_| "the IPv6 address is not valid")?;
        let zone_is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        return if !zone.is_empty() && zone.chars().all(zone_is_plain) {
            Ok(())
        } else {
            Err("the zone of the IPv6 address is not valid")
        };
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if host.len() > 253 || !host.chars().all(is_plain) {
        return Err("the host is neither a name nor an address");
    }
    // 10.0.0.256 and 10.0.1 are typing errors, not names: no top-level domain is a number.
    let is_number = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit());
    if host.rsplit('.').next().is_some_and(is_number) && host.parse::<IpAddr>().is_err() {
        return Err("the IPv4 address is not valid");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, both address families, zones and default ports are understood and written back.
    #[test]
    fn good_urls() {
        for (url, shown, authority) in [
            ("https://bmc1", "https://bmc1:443", "bmc1"),
            ("http://10.0.0.1:2379", "http://10.0.0.1:2379", "10.0.0.1:2379"),
            ("https://[fd00::7]/", "https://[fd00::7]:443", "[fd00::7]"),
            ("https://[fd00::7]:8443", "https://[fd00::7]:8443", "[fd00::7]:8443"),
            ("http://[fe80::1%eth0]:80", "http://[fe80::1%eth0]:80", "[fe80::1]"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(endpoint.authority(), authority);
        }
    }

    /// What is not a server's address is refused, each with its reason; nothing is guessed.
    #[test]
    fn bad_urls() {
        for (url, reason) in [
            ("bmc1", "start with"),
            ("ftp://bmc1", "start with"),
            ("https://", "empty"),
            ("https://bmc1/redfish", "path"),
            ("https://root:calvin@bmc1", "user name"),
            ("https://bmc1:0", "port is 0"),
            ("https://bmc1:65536", "65535"),
            ("https://bmc1:", "65535"),
            ("https://fd00::7", "brackets"),
            ("https://[fd00::7", "brackets"),
            ("https://[fd00::7]8443", "between"),
            ("https://[fd00::x]", "IPv6"),
            ("https://[fe80::1%]", "zone"),
            ("https://10.0.0.256", "IPv4"),
            ("https://10.0.1", "IPv4"),
            ("https://bmc 1", "neither"),
            ("https://bmc1\r\nX", "neither"),
        ] {
            let message = Endpoint::parse(url).unwrap_err().to_string();
            assert!(message.contains(reason), "{url:?}: {message}");
        }
    }
}
