//! Certificates for members: one authority per cluster, one certificate per member for both of its ports.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The files by which a member, or a client in its place, proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The member's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The authority of one cluster.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    ca: PathBuf,
}

impl Authority {
    pub(crate) fn new(root: &Path) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "etcd fixture");
        let ca = root.join("ca.pem");
        fs::write(&ca, params.self_signed(&key)?.pem()).context("writing the authority")?;
        Ok(Self { issuer: Issuer::new(params, key), ca })
    }

    /// A certificate for one member, by its address. etcd checks a peer's certificate against the address it
    /// comes from, which on the loopback is 127.0.0.1; and its gateway shows the server's certificate as a
    /// client.
    pub(crate) fn issue(
        &self,
        root: &Path,
        name: &str,
        address: Ipv4Addr,
    ) -> anyhow::Result<TlsFiles> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![address.to_string(), "127.0.0.1".into()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let files = TlsFiles {
            ca: self.ca.clone(),
            certificate: root.join(format!("{name}.pem")),
            key: root.join(format!("{name}.key")),
        };
        fs::write(&files.certificate, params.signed_by(&key, &self.issuer)?.pem())?;
        fs::write(&files.key, key.serialize_pem())?;
        Ok(files)
    }
}
