//! The receiver of a pair's events: an address and, if it wants one, an authorization. Both may be secret.

use std::path::{Path, PathBuf};

use dyad_cluster::pair::Webhook;
use dyad_http::{Client, Endpoint, Request, Scheme, Secret, Trust};

/// Where machines keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Whoever takes the events.
#[derive(Debug)]
pub struct Receiver {
    endpoint: Endpoint,
    /// Path and query: where receivers keep their secret.
    target: Secret,
    authorization: Option<Secret>,
}

impl Receiver {
    /// Reads it from its root-only file.
    pub fn read(path: &Path) -> Result<Self, String> {
        dyad_power::read_private(path).and_then(|text| Self::parse(&text))
    }

    /// Reads the lines `url=…` and `authorization=…`. What is wrong is told by line, never by content.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut url, mut authorization) = (None, None);
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').ok_or(format!("line {number} has no ="))?;
            let slot = match key.trim() {
                "url" => &mut url,
                "authorization" => &mut authorization,
                _ => return Err(format!("line {number} is neither url= nor authorization=")),
            };
            let value = value.trim();
            if slot.is_some() {
                return Err(format!("line {number} says the same a second time"));
            }
            if value.is_empty() || value.chars().any(char::is_control) {
                return Err(format!("line {number} has an empty value or a control character"));
            }
            *slot = Some(value);
        }
        let (endpoint, target) = split(url.ok_or("it has no url= line")?)?;
        Ok(Self { endpoint, target, authorization: authorization.map(Secret::new) })
    }

    /// A client of it.
    pub fn client(&self, webhook: &Webhook) -> Result<Client, String> {
        let builder = Client::builder(self.endpoint.clone());
        let builder = match self.endpoint.scheme() {
            Scheme::Http => builder,
            Scheme::Https => builder.trust(Trust::CaFile(authorities(webhook)?)),
        };
        builder.build().map_err(|error| crate::gather::words(&error))
    }

    /// The request that brings it this JSON document.
    pub fn request(&self, document: Vec<u8>) -> Request {
        let request = Request::post(self.target.expose(), document)
            .header("Content-Type", "application/json")
            .header("User-Agent", concat!("dyad/", env!("CARGO_PKG_VERSION")));
        match &self.authorization {
            Some(value) => request.secret_header("Authorization", value),
            None => request,
        }
    }
}

fn authorities(webhook: &Webhook) -> Result<PathBuf, String> {
    if let Some(given) = &webhook.ca_file {
        return Ok(given.clone());
    }
    let found = SYSTEM_AUTHORITIES.iter().map(PathBuf::from).find(|path| path.is_file());
    found.ok_or_else(|| {
        "this machine has no authorities of its own (package ca-certificates); webhook.caFile names some"
            .to_owned()
    })
}

/// An address is a server and, for its eyes only, the rest.
fn split(url: &str) -> Result<(Endpoint, Secret), String> {
    let fault = || "its url is not https://host[:port]/path".to_owned();
    let (scheme, rest) = url.split_once("://").ok_or_else(fault)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let endpoint = Endpoint::parse(&format!("{scheme}://{authority}")).map_err(|_| fault())?;
    let target = target.split('#').next().unwrap_or_default();
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("its url has characters that must be written as %XX".to_owned());
    }
    Ok((endpoint, Secret::new(target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server is known, the secret part is sent and never shown.
    #[test]
    fn an_address_is_taken_apart() {
        let text = "# chat\nurl=https://hooks.example.org:8443/services/T0/s3cret?x=1\nauthorization=Bearer t0ken\n";
        let receiver = Receiver::parse(text).unwrap();
        assert_eq!(receiver.endpoint.to_string(), "https://hooks.example.org:8443");
        assert_eq!(receiver.target.expose(), "/services/T0/s3cret?x=1");
        let shown = format!("{receiver:?} {:?}", receiver.request(b"{}".to_vec()));
        assert!(!shown.contains("t0ken"), "{shown}");
        assert_eq!(Receiver::parse("url=http://10.0.0.1").unwrap().target.expose(), "/");
        assert_eq!(Receiver::parse("url=http://[fd00::1]:80?a").unwrap().target.expose(), "/?a");
    }

    /// What cannot be used is refused by line, and nothing of it is told.
    #[test]
    fn mistakes_are_told_without_the_secret() {
        for (text, reason) in [
            ("", "no url="),
            ("authorization=s3cret\n", "no url="),
            ("https://h/s3cret\n", "line 1 has no ="),
            ("address=https://h/s3cret\n", "line 1 is neither"),
            ("url=https://h/s3cret\nurl=https://h/s3cret", "line 2 says"),
            ("url=ftp://h/s3cret\n", "is not https"),
            ("url=https://user:s3cret@h/\n", "is not https"),
            ("url=https://h/a b s3cret\n", "%XX"),
        ] {
            let why = Receiver::parse(text).unwrap_err();
            assert!(why.contains(reason) && !why.contains("s3cret"), "{text:?}: {why}");
        }
    }
}
