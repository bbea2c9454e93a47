//! Sending requests, and keeping connections for the next one.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::body::{BadFraming, Decoder};
use crate::connect::{Connection, Dialer, Limit};
use crate::deadline::Deadline;
use crate::endpoint::{Endpoint, Scheme};
use crate::error::{Error, Step};
use crate::message::{Request, Response};
use crate::stream::Stream;
use crate::tls::{self, Identity, Trust};
use crate::wire::{self, Buffer, Head};

/// How many idle connections a client keeps.
const IDLE_MAX: usize = 4;

/// How much of an answer is taken, and how long a connection is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of status line and headers.
    pub head_bytes_max: usize,
    /// The size of the body.
    pub body_bytes_max: usize,
    /// How long an idle connection may wait for the next request; zero keeps none.
    pub idle_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 32 * 1024,
            body_bytes_max: 4 * 1024 * 1024,
            idle_max: Duration::from_secs(10),
        }
    }
}

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct Builder {
    endpoint: Endpoint,
    trust: Option<Trust>,
    identity: Option<Identity>,
    tls_name: Option<String>,
    bind: Option<IpAddr>,
    limits: Limits,
}

impl Builder {
    /// Which server certificates are accepted. An `https` endpoint needs this.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// The certificate to show when the server asks for one.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The name that the server's certificate must bear, if it is not the endpoint's host.
    #[must_use]
    pub fn tls_name(mut self, name: impl Into<String>) -> Self {
        self.tls_name = Some(name.into());
        self
    }

    /// The local address to connect from.
    #[must_use]
    pub fn bind(mut self, address: IpAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Other limits than the default ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The client. Reads the files that the TLS settings name; connects to nobody yet.
    pub fn build(self) -> Result<Client, Error> {
        let tls = match (self.endpoint.scheme(), &self.trust) {
            (Scheme::Http, _) => None,
            (Scheme::Https, None) => {
                let why = "nothing says which certificates to accept".to_owned();
                return Err(Error::TlsSetup { why });
            }
            (Scheme::Https, Some(trust)) => {
                let host = self.endpoint.host_without_zone();
                let name = tls::server_name(self.tls_name.as_deref().unwrap_or(host))?;
                Some((tls::config(trust, self.identity.as_ref())?, name))
            }
        };
        Ok(Client {
            server: self.endpoint.to_string(),
            authority: self.endpoint.authority(),
            dialer: Dialer { endpoint: self.endpoint, bind: self.bind, tls },
            limits: self.limits,
            idle: Mutex::default(),
        })
    }
}

/// A client of one server. It can be shared between threads; each request under way has its own connection.
#[derive(Debug)]
pub struct Client {
    server: String,
    authority: String,
    dialer: Dialer,
    limits: Limits,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Client {
    /// The settings of a client for this server.
    pub fn builder(endpoint: Endpoint) -> Builder {
        Builder {
            endpoint,
            trust: None,
            identity: None,
            tls_name: None,
            bind: None,
            limits: Limits::default(),
        }
    }

    /// The server that this client speaks to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.dialer.endpoint
    }

    /// Sends a request and reads the whole answer, whatever its status, by the deadline.
    pub fn send(&self, request: &Request, deadline: Deadline) -> Result<Response, Error> {
        let (mut connection, mut buffer, head) = self.exchange(request, deadline)?;
        let mut decoder = Decoder::new(head.framing);
        let limit = self.limits.body_bytes_max;
        let body = read_body(&mut connection, &mut buffer, &mut decoder, limit, &self.server)?;
        // Bytes after the body belong to no request: such a connection is not used again.
        if head.keep_alive && buffer.unread().is_empty() {
            self.keep(connection);
        }
        Ok(Response { status: head.status, headers: head.headers, body })
    }

    /// Sends a request and returns as soon as the head of the answer is there, by the deadline.
    ///
    /// The deadline does not cover the body: see [`Stream::set_read_timeout`].
    pub fn open_stream(&self, request: &Request, deadline: Deadline) -> Result<Stream, Error> {
        let (connection, buffer, head) = self.exchange(request, deadline)?;
        let decoder = Decoder::new(head.framing);
        Stream::new(head.status, head.headers, connection, buffer, decoder)
            .map_err(|error| Error::Closed { step: Step::Body, source: Some(error) })
    }

    /// Drops every idle connection, so that the next request opens a new one.
    pub fn drop_idle(&self) {
        self.idle_connections().clear();
    }

    fn exchange(
        &self,
        request: &Request,
        deadline: Deadline,
    ) -> Result<(Connection, Buffer, Head), Error> {
        let bytes = request.encode(&self.authority)?;
        if let Some(kept) = self.take_idle() {
            match self.exchange_on(kept, request, &bytes, deadline) {
                // The server closed the kept connection while the request was on its way. Whether it saw the
                // request is unknown, so only one that may be sent twice is; and only once.
                Err(Error::Closed { step: Step::Send | Step::Head, .. })
                    if request.is_retry_safe() => {}
                other => return other,
            }
        }
        let fresh = self.dialer.dial(deadline)?;
        self.exchange_on(fresh, request, &bytes, deadline)
    }

    fn exchange_on(
        &self,
        mut connection: Connection,
        request: &Request,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Result<(Connection, Buffer, Head), Error> {
        connection.set_limit(Limit::Until(deadline));
        let sent = connection.write_all(bytes).and_then(|()| connection.flush());
        let mut buffer = Buffer::default();
        let limit = self.limits.head_bytes_max;
        let head =
            wire::read_head(&mut connection, &mut buffer, request.method, limit, &self.server);
        match (sent, head) {
            // A server may refuse a request before it has read all of it; its answer is the better reason.
            (_, Ok(head)) => Ok((connection, buffer, head)),
            (Ok(()), Err(error)) => Err(error),
            (Err(error), Err(_)) => Err(Error::from_io(error, Step::Send, &self.server)),
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle_connections();
        while let Some((connection, since)) = idle.pop() {
            if since.elapsed() < self.limits.idle_max && connection.is_quiet() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle_connections();
        if !self.limits.idle_max.is_zero() && idle.len() < IDLE_MAX {
            idle.push((connection, Instant::now()));
        }
    }

    fn idle_connections(&self) -> std::sync::MutexGuard<'_, Vec<(Connection, Instant)>> {
        // A thread that panicked while it held the list has left a list all the same.
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

pub(crate) fn read_body(
    connection: &mut Connection,
    buffer: &mut Buffer,
    decoder: &mut Decoder,
    limit: usize,
    server: &str,
) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    while !decoder.is_done() {
        let count = decoder
            .read(connection, buffer, &mut chunk)
            .map_err(|error| body_fault(error, server))?;
        if body.len() + count > limit {
            return Err(Error::TooLarge { part: "body", limit });
        }
        body.extend_from_slice(&chunk[..count]);
    }
    Ok(body)
}

fn body_fault(error: std::io::Error, server: &str) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<BadFraming>()) {
        Some(BadFraming(why)) => Error::Malformed { why },
        None => Error::from_io(error, Step::Body, server),
    }
}
