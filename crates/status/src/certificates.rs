//! Until when the certificates of this node's etcd are good.

use std::path::Path;
use std::time::UNIX_EPOCH;

use dyad_cluster::pair::Pair;

use crate::document::Certificate;

/// A certificate that expires sooner is told of.
const SOON_MS: u64 = 30 * DAY_MS;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Reads them.
pub(crate) fn read(pair: &Pair) -> Vec<Certificate> {
    let Some(tls) = &pair.etcd.tls else { return Vec::new() };
    [
        ("peer", &tls.peer.cert_file),
        ("peerCa", &tls.peer.ca_file),
        ("server", &tls.client.cert_file),
        ("serverCa", &tls.client.ca_file),
    ]
    .into_iter()
    .map(|(name, path)| Certificate { name: name.to_owned(), not_after_ms: not_after_ms(path) })
    .collect()
}

fn not_after_ms(path: &Path) -> Option<u64> {
    let end = dyad_http::first_expiry(path).ok()?;
    u64::try_from(end.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// What is worth telling of them.
pub(crate) fn risks(certificates: &[Certificate], now_ms: u64) -> Vec<String> {
    let told = |certificate: &Certificate| {
        let name = &certificate.name;
        match certificate.not_after_ms {
            None => Some(format!("etcd's certificate ({name}) cannot be read")),
            Some(end) if end <= now_ms => Some(format!("etcd's certificate ({name}) has expired")),
            Some(end) if end - now_ms < SOON_MS => {
                let days = (end - now_ms) / DAY_MS;
                Some(format!("etcd's certificate ({name}) expires in {days} days"))
            }
            Some(_) => None,
        }
    };
    certificates.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is good for long is not told of; what expires, has expired or cannot be read is.
    #[test]
    fn only_what_matters_is_told() {
        let of = |not_after_ms| Certificate { name: "peer".into(), not_after_ms };
        let now = 1_000 * DAY_MS;
        let told = |not_after_ms| risks(&[of(not_after_ms)], now).join("");
        assert_eq!(told(Some(now + 31 * DAY_MS)), "");
        assert!(told(Some(now + 7 * DAY_MS)).ends_with("expires in 7 days"));
        assert!(told(Some(now - 1)).ends_with("has expired"));
        assert!(told(None).ends_with("cannot be read"));
    }
}
