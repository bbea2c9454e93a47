//! What can go wrong with a request, each cause with a name of its own.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The part of a request that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Asking for the addresses of a host name.
    Resolve,
    /// Opening the TCP connection.
    Connect,
    /// The TLS handshake.
    Handshake,
    /// Sending the request.
    Send,
    /// Waiting for the status line and the headers.
    Head,
    /// Reading the body.
    Body,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the name",
            Self::Connect => "connecting",
            Self::Handshake => "the TLS handshake",
            Self::Send => "sending the request",
            Self::Head => "waiting for the answer",
            Self::Body => "reading the answer's body",
        })
    }
}

/// Why a request, or making a client, failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the server is not one that this client can use.
    #[error("{url:?} is not an address of a server: {why}")]
    Endpoint {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The request cannot be put on the wire.
    #[error("the request is not valid: {why}")]
    Request {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file with certificates or a key cannot be used.
    #[error("cannot use {path} for TLS: {why}", path = .path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The TLS settings do not fit together.
    #[error("cannot set up TLS: {why}")]
    TlsSetup {
        /// What is wrong with them.
        why: String,
    },
    /// The host name has no address, or the resolver failed.
    #[error("cannot resolve {host}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Nobody listens there.
    #[error("connection to {address} refused")]
    ConnectRefused {
        /// Where nobody listens.
        address: String,
    },
    /// The server's address did not answer in time.
    #[error("connecting to {address} timed out")]
    ConnectTimedOut {
        /// What did not answer.
        address: String,
    },
    /// The connection could not be opened for another reason (no route, cannot bind).
    #[error("cannot connect to {address}")]
    Connect {
        /// Where to.
        address: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The server's certificate is not one that the trust settings allow.
    #[error("the certificate of {server} is not valid: {why}")]
    Certificate {
        /// The server.
        server: String,
        /// What is wrong with the certificate.
        why: String,
    },
    /// The server's certificate is not the pinned one.
    #[error("the certificate of {server} is not the pinned one: it has fingerprint {found}")]
    PinMismatch {
        /// The server.
        server: String,
        /// The SHA-256 fingerprint of the certificate that it showed.
        found: crate::Fingerprint,
    },
    /// TLS failed for a reason other than the server's certificate.
    #[error("TLS with {server} failed: {why}")]
    Tls {
        /// The server.
        server: String,
        /// What happened.
        why: String,
    },
    /// The connection ended, or broke, before the answer was complete.
    #[error("the connection broke during {step}")]
    Closed {
        /// What was under way.
        step: Step,
        /// What the kernel said, if anything.
        source: Option<io::Error>,
    },
    /// What the server sent is not HTTP/1.1.
    #[error("the server's answer is not valid HTTP: {why}")]
    Malformed {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The answer is larger than the limit.
    #[error("the answer's {part} exceeds {limit} bytes")]
    TooLarge {
        /// "head" or "body".
        part: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The time for the request ran out.
    #[error("time ran out during {step}")]
    Deadline {
        /// What was under way.
        step: Step,
    },
}

impl Error {
    /// What an I/O error on an open connection means.
    pub(crate) fn from_io(error: io::Error, step: Step, server: &str) -> Self {
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return crate::tls::error_of(tls, server);
        }
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Deadline { step },
            io::ErrorKind::UnexpectedEof => Self::Closed { step, source: None },
            _ => Self::Closed { step, source: Some(error) },
        }
    }

    /// Whether the time limit was the reason.
    pub fn is_time_out(&self) -> bool {
        matches!(self, Self::Deadline { .. } | Self::ConnectTimedOut { .. })
    }
}
