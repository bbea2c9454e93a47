//! A small blocking HTTP/1.1 client whose every request has an end.
//!
//! It is what the agents on a node speak to BMCs and to etcd with, so it is built for a bad day: one total
//! [`Deadline`] covers name resolution, connecting, the TLS handshake, sending and reading, and a server
//! that trickles one byte a second cannot stretch it. Heads and bodies are bounded. There is no thread pool
//! and no async runtime; the only thread it ever starts resolves a host name.
//!
//! ```no_run
//! use std::time::Duration;
//! use dyad_http::{Client, Deadline, Endpoint, Request, Trust};
//!
//! # fn main() -> Result<(), dyad_http::Error> {
//! let client = Client::builder(Endpoint::parse("https://[fd00::7]:8443")?)
//!     .trust(Trust::CaFile("/etc/dyad/bmc-ca.pem".into()))
//!     .build()?;
//! let response = client.send(&Request::get("/redfish/v1/"), Deadline::after(Duration::from_secs(3)))?;
//! println!("{} {}", response.status, response.body.len());
//! # Ok(())
//! # }
//! ```
//!
//! What it does not do, on purpose: follow redirects, compress, speak HTTP/2, ask the system which
//! certificate authorities to trust.

mod body;
mod certificate;
mod client;
mod connect;
mod deadline;
mod endpoint;
mod error;
mod message;
mod secret;
mod stream;
mod tls;
mod wire;

pub use certificate::{check_certificate, fingerprint, first_expiry};
pub use client::{Builder, Client, Limits};
pub use deadline::Deadline;
pub use endpoint::{Endpoint, Scheme};
pub use error::{Error, Step};
pub use message::{Headers, Method, Request, Response};
pub use secret::Secret;
pub use stream::{Stream, StreamHandle};
pub use tls::{Fingerprint, Identity, Trust};
