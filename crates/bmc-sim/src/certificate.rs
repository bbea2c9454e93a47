//! The BMC's certificate: self-signed, as they come from the factory.

use std::sync::Arc;

use dyad_http::Fingerprint;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A self-signed certificate and its key.
#[derive(Debug)]
pub struct Certificate {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Certificate {
    /// A new one for these names and addresses.
    pub fn self_signed(names: &[&str]) -> Result<Self, rcgen::Error> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        Ok(Self { certificate, key })
    }

    /// Its fingerprint, for pinning.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.certificate.der())
    }

    /// It in PEM form: as it signs itself, it is also the authority to trust.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Its key in PEM form, for other servers that shall show this certificate.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    pub(crate) fn server_config(&self) -> Result<Arc<ServerConfig>, rustls::Error> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key)?;
        Ok(Arc::new(config))
    }
}
