//! The files by which a node proves who it is to etcd, and knows who etcd is.

use std::path::PathBuf;

use dyad_http::{Builder, Client, Endpoint, Identity, Trust};

/// TLS towards etcd: whom to trust, and the own certificate where etcd asks for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// A PEM file with the authorities that etcd's certificate must lead to.
    pub ca_file: PathBuf,
    /// The own certificate and key.
    pub identity: Option<Identity>,
}

/// The settings of an HTTP client for this address.
pub(crate) fn builder(url: &str, tls: Option<&Tls>) -> Result<Builder, dyad_http::Error> {
    let builder = Client::builder(Endpoint::parse(url)?);
    let Some(tls) = tls else { return Ok(builder) };
    let builder = builder.trust(Trust::CaFile(tls.ca_file.clone()));
    Ok(match &tls.identity {
        Some(identity) => builder.identity(identity.clone()),
        None => builder,
    })
}
