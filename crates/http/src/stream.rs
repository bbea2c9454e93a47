//! An answer that is read while it is still being written.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::body::Decoder;
use crate::connect::{Connection, Limit, shut_down};
use crate::error::Error;
use crate::message::Headers;
use crate::wire::Buffer;

/// A response whose body is read piece by piece, decoded from its transfer encoding.
///
/// A read that times out ([`io::ErrorKind::TimedOut`]) may be repeated; no byte is lost.
#[derive(Debug)]
pub struct Stream {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Headers,
    connection: Connection,
    buffer: Buffer,
    decoder: Decoder,
    handle: StreamHandle,
}

impl Stream {
    pub(crate) fn new(
        status: u16,
        headers: Headers,
        mut connection: Connection,
        buffer: Buffer,
        decoder: Decoder,
    ) -> io::Result<Self> {
        connection.set_limit(Limit::Each(None));
        let handle = StreamHandle {
            tcp: Arc::new(connection.try_clone_socket()?),
            closed: Arc::new(AtomicBool::new(false)),
        };
        Ok(Self { status, headers, connection, buffer, decoder, handle })
    }

    /// How long one read may wait for bytes; `None` waits until they come or the stream is closed.
    pub fn set_read_timeout(&mut self, limit: Option<Duration>) {
        // The kernel refuses a time-out of zero; the shortest one is what is meant.
        let limit = limit.map(|limit| limit.max(Duration::from_micros(1)));
        self.connection.set_limit(Limit::Each(limit));
    }

    /// A handle by which another thread can end this stream.
    pub fn handle(&self) -> StreamHandle {
        self.handle.clone()
    }

    /// The rest of the body, if it ends within the deadline and the limit (for error answers, mostly).
    pub fn read_rest(mut self, deadline: crate::Deadline, limit: usize) -> Result<Vec<u8>, Error> {
        self.connection.set_limit(Limit::Until(deadline));
        crate::client::read_body(
            &mut self.connection,
            &mut self.buffer,
            &mut self.decoder,
            limit,
            "the stream",
        )
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let result = self.decoder.read(&mut self.connection, &mut self.buffer, out);
        if result.is_err() && self.handle.is_closed() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "closed by this side"));
        }
        result
    }
}

/// Ends a [`Stream`] from another thread; the reader's call returns at once with an error.
#[derive(Debug, Clone)]
pub struct StreamHandle {
    tcp: Arc<TcpStream>,
    closed: Arc<AtomicBool>,
}

impl StreamHandle {
    /// Closes the connection. Closing twice, or a connection that has ended, is no error.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        shut_down(&self.tcp);
    }

    /// Whether this side closed the stream.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}
