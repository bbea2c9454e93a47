//! Whom to trust, and who we are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, SignatureScheme};

use crate::error::Error;

/// Which server certificates are accepted. There is no default, and the system's store is never asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those that lead to one of the authorities in this PEM file, for the server's name or address.
    CaFile(PathBuf),
    /// Exactly the one with this fingerprint, whatever names and dates it bears.
    Pin(Fingerprint),
    /// Any. The connection is secret to a listener, but whoever answers is believed.
    InsecureAcceptAnyCertificate,
}

/// The certificate and key that this client shows when a server asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A PEM file with the certificate, then its chain.
    pub certificate_file: PathBuf,
    /// A PEM file with the key.
    pub key_file: PathBuf,
}

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of this DER-encoded certificate.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
        Self(bytes)
    }
}

impl FromStr for Fingerprint {
    type Err = &'static str;

    /// Reads 64 hexadecimal digits, with or without colons, either case, optionally after `sha256:` or
    /// `SHA256=` as `openssl x509 -fingerprint -sha256` prints it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let digits = match text.split_at_checked(7) {
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case("sha256:") => rest,
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case("sha256=") => rest,
            _ => text,
        };
        let digits: Vec<u8> = digits.bytes().filter(|b| *b != b':').collect();
        if digits.len() != 64 {
            return Err("a SHA-256 fingerprint has 64 hexadecimal digits");
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
            let (Some(high), Some(low)) = (value(pair[0]), value(pair[1])) else {
                return Err("a fingerprint consists of hexadecimal digits and colons");
            };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The TLS settings of a client.
pub(crate) fn config(
    trust: &Trust,
    identity: Option<&Identity>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::CaFile(path) => authorities(path, &provider)?,
        Trust::Pin(pin) => Arc::new(LeafVerifier { pin: Some(*pin), provider: provider.clone() }),
        Trust::InsecureAcceptAnyCertificate => {
            Arc::new(LeafVerifier { pin: None, provider: provider.clone() })
        }
    };
    let setup = |error: rustls::Error| Error::TlsSetup { why: error.to_string() };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(setup)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.certificate_file)?;
            let key = PrivateKeyDer::from_pem_file(&identity.key_file)
                .map_err(|error| pem_fault(&identity.key_file, error, "private key"))?;
            builder.with_client_auth_cert(chain, key).map_err(setup)?
        }
    };
    Ok(Arc::new(config))
}

pub(crate) fn authorities(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| Error::TlsFile { path: path.to_owned(), why: error.to_string() })?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| Error::TlsSetup { why: error.to_string() })?;
    Ok(verifier)
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let fault = |error| pem_fault(path, error, "certificate");
    let found = CertificateDer::pem_file_iter(path)
        .map_err(fault)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(fault)?;
    if found.is_empty() {
        return Err(pem_fault(path, pem::Error::NoItemsFound, "certificate"));
    }
    Ok(found)
}

/// Says what is wrong with a PEM file without quoting it: it may be a key.
fn pem_fault(path: &Path, error: pem::Error, wanted: &str) -> Error {
    let why = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("it holds no {wanted} in PEM form"),
        _ => format!("it is not a PEM file with a {wanted}"),
    };
    Error::TlsFile { path: path.to_owned(), why }
}

/// The name that the server's certificate must bear.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| Error::TlsSetup { why: format!("{host:?} is no name for a certificate") })
}

/// What an error of the TLS library means.
pub(crate) fn error_of(error: &rustls::Error, server: &str) -> Error {
    let server = server.to_owned();
    let rustls::Error::InvalidCertificate(certificate) = error else {
        return Error::Tls { server, why: error.to_string() };
    };
    if let CertificateError::Other(OtherError(other)) = certificate
        && let Some(WrongPin(found)) = other.downcast_ref::<WrongPin>()
    {
        return Error::PinMismatch { server, found: *found };
    }
    // The library's words are for its own developers; these are for whoever holds the certificate.
    let why = match certificate {
        // A bad signature is what another authority of the same name leaves.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it was not issued by an accepted authority".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet (is the clock right?)".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name or address".to_owned()
        }
        other => other.to_string(),
    };
    Error::Certificate { server, why }
}

#[derive(Debug, thiserror::Error)]
#[error("the certificate has fingerprint {0}")]
struct WrongPin(Fingerprint);

/// Looks at the certificate itself, or not at all. The handshake's signature is checked all the same:
/// without it anyone could show a copy of the pinned certificate.
#[derive(Debug)]
struct LeafVerifier {
    pin: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LeafVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of(leaf);
        match self.pin {
            Some(pin) if pin != found => Err(rustls::Error::InvalidCertificate(
                CertificateError::Other(OtherError(Arc::new(WrongPin(found)))),
            )),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, leaf, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, leaf, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms in which tools print a fingerprint are all read, and mean the same.
    #[test]
    fn fingerprints_are_read_in_every_usual_form() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let pairs: Vec<_> = hex.as_bytes().chunks(2).map(|p| str::from_utf8(p).unwrap()).collect();
        let colons = pairs.join(":").to_uppercase();
        let expected = Fingerprint::of(b"");
        for text in [hex, &colons, &format!("sha256:{hex}"), &format!("SHA256={colons}\n")] {
            assert_eq!(text.parse::<Fingerprint>().unwrap(), expected, "{text}");
        }
        assert_eq!(expected.to_string(), format!("sha256:{hex}"));
    }

    /// A fingerprint of another kind or with a typing error is refused, not shortened or padded.
    #[test]
    fn other_texts_are_no_fingerprints() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for text in
            ["", "sha256:", &hex[1..], &format!("{hex}0"), &hex.replace('e', "g"), "sha1:00"]
        {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }
}
