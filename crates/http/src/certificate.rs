//! Certificates in files: whether one would be accepted, and until when.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::UnixTime;

use crate::error::Error;
use crate::tls::{Fingerprint, authorities, certificates, error_of, server_name};

/// Whether the certificate in this file would be accepted now, as that of a server of this name or address, by
/// somebody who trusts these authorities.
pub fn check_certificate(ca_file: &Path, certificate_file: &Path, host: &str) -> Result<(), Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = authorities(ca_file, &provider)?;
    let chain = certificates(certificate_file)?;
    let name = server_name(host)?;
    let checked = verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now());
    checked.map(drop).map_err(|error| error_of(&error, &certificate_file.display().to_string()))
}

/// The fingerprint of the first certificate in this file: the one that a server with this file shows.
pub fn fingerprint(certificate_file: &Path) -> Result<Fingerprint, Error> {
    Ok(Fingerprint::of(&certificates(certificate_file)?[0]))
}

/// When the first of the certificates in this file expires.
pub fn first_expiry(certificate_file: &Path) -> Result<SystemTime, Error> {
    let times =
        certificates(certificate_file)?.into_iter().map(|certificate| not_after(&certificate));
    let first = times.min_by_key(|time| time.unwrap_or(0)).flatten();
    let fault = || Error::TlsFile {
        path: certificate_file.to_owned(),
        why: "its time cannot be read".to_owned(),
    };
    first.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)).ok_or_else(fault)
}

/// One element of DER: its tag, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The end of a certificate's validity, in seconds since 1970. Of the whole certificate only the way to that field is
/// looked at: Certificate, `tbsCertificate`, then version (if any), serial, algorithm, issuer, validity.
fn not_after(certificate: &[u8]) -> Option<u64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    let (tag, _, after_version) = element(fields)?;
    if tag == 0xa0 {
        fields = after_version;
    }
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (_, validity, _) = element(fields)?;
    let (_, _, end) = element(validity)?;
    let (tag, text, _) = element(end)?;
    seconds(tag, str::from_utf8(text).ok()?)
}

/// `UTCTime` has two digits of the year (of 1950 to 2049), `GeneralizedTime` four; both are in UTC.
fn seconds(tag: u8, text: &str) -> Option<u64> {
    let digits = text.strip_suffix('Z')?;
    if !digits.is_ascii() {
        return None;
    }
    let (year, rest) = match tag {
        0x17 => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: u64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        0x18 => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<u64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let of_day = part(4)? * 3600 + part(6)? * 60 + part(8)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + of_day)
}

/// Days since 1970: years begin in March, so that the leap day is the last of its year.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both forms of time are read, leap days too; anything else is no time.
    #[test]
    fn times_are_read() {
        assert_eq!(seconds(0x17, "700101000000Z"), Some(0));
        assert_eq!(seconds(0x17, "240229120000Z"), Some(1_709_208_000));
        assert_eq!(seconds(0x18, "20500101000000Z"), Some(2_524_608_000));
        assert_eq!(seconds(0x17, "491231235959Z"), Some(2_524_607_999));
        for (tag, text) in [
            (0x17, "24022912000"),
            (0x18, "240229120000Z"),
            (0x16, "240229120000Z"),
            (0x17, "Z"),
            (0x17, "ä40229120000Z"),
        ] {
            assert_eq!(seconds(tag, text), None, "{text}");
        }
    }

    /// The end of a real certificate is found; bytes that are none have no end.
    #[test]
    fn the_end_of_a_certificate_is_found() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["node-a".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let made = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cert.pem");
        std::fs::write(&path, made.pem()).unwrap();
        let end = first_expiry(&path).unwrap().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(end.as_secs(), 1_935_792_000, "2031-05-06");
        for length in [0, 1, 10, 40, 100] {
            assert_eq!(not_after(&made.der()[..length]), None);
        }
        assert!(first_expiry(&directory.path().join("none")).is_err());
        assert!(check_certificate(&path, &path, "node-b").is_err());
    }
}
