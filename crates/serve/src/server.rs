//! The listener: a bounded number of connections, each with little time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::access::Access;
use crate::answer::{Answer, answer, head, parse};
use crate::watch::Watch;

/// Connections at the same time. More wait for their turn; none of these takes long.
const CONNECTIONS_MAX: usize = 64;
/// How many of them may stay, for events.
const EVENTS_MAX: usize = 16;
/// The head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long a client may take to ask, all in all: from its connection, or from its last answer, to the last byte of its
/// request; a TLS handshake included.
const ASK_LIMIT: Duration = Duration::from_secs(3);
/// A connection ends after so many requests: others want a turn.
const REQUESTS_MAX: usize = 1000;
/// How long a client may take to read an answer.
const TELL_LIMIT: Duration = Duration::from_secs(5);
/// How much longer than allowed a single step may last: to tell the kernel of every millisecond costs more than the rest.
const SLACK: Duration = Duration::from_millis(300);
/// How often a sign of life is sent to those who listen for events.
const PULSE: Duration = Duration::from_secs(15);
/// How long somebody may listen: a browser comes back by itself.
const LISTEN_MAX: Duration = Duration::from_mins(30);
/// A connection needs little.
const STACK_BYTES: usize = 192 << 10;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The certificate or its key cannot be used. Nothing of the key is told.
    #[error("cannot use {}: {why}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// A server, ready to run.
pub struct Server {
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    access: Arc<Access>,
    watch: Arc<Watch>,
}

/// Counts what is open, and closes with its last user.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(open: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let taken = open.fetch_add(1, Ordering::AcqRel);
        let slot = Self(Arc::clone(open));
        (taken < most).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    /// Listens. With TLS, `certificate` is the chain and `key` its private key, both PEM.
    pub fn new(
        address: SocketAddr,
        tls: Option<(&Path, &Path)>,
        access: Access,
        watch: Arc<Watch>,
    ) -> Result<Self, Error> {
        let tls = tls.map(|(certificate, key)| tls_config(certificate, key)).transpose()?;
        let listener =
            TcpListener::bind(address).map_err(|source| Error::Listen { address, source })?;
        Ok(Self { listener, tls: tls.map(Arc::new), access: Arc::new(access), watch })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends. Each thread takes the next connection itself: none is made for a connection, and
    /// no more than these are ever open.
    pub fn run(&self) {
        let events = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS_MAX {
                let connection = Connection {
                    tls: self.tls.clone(),
                    access: Arc::clone(&self.access),
                    watch: Arc::clone(&self.watch),
                    events: Arc::clone(&events),
                };
                let named = thread::Builder::new().stack_size(STACK_BYTES);
                let _ = named.spawn_scoped(scope, move || self.take_turns(&connection));
            }
        });
    }

    fn take_turns(&self, connection: &Connection) {
        loop {
            match self.listener.accept() {
                // A client that breaks off is its own affair.
                Ok((stream, _)) => drop(connection.serve(stream)),
                // Out of files, perhaps: the next ones may fare better.
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

struct Connection {
    tls: Option<Arc<rustls::ServerConfig>>,
    access: Arc<Access>,
    watch: Arc<Watch>,
    events: Arc<AtomicUsize>,
}

impl Connection {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let timed = Timed::new(stream);
        match &self.tls {
            None => self.talk(&mut { timed }),
            Some(config) => {
                let session =
                    rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                let mut secured = rustls::StreamOwned::new(session, timed);
                self.talk(&mut secured)?;
                secured.allow(TELL_LIMIT);
                secured.conn.send_close_notify();
                secured.flush()
            }
        }
    }

    /// Answers one request after the other, until either side has had enough.
    fn talk(&self, stream: &mut impl Talk) -> io::Result<()> {
        let mut bytes = Vec::new();
        for number in 1..=REQUESTS_MAX {
            if number > 1 {
                stream.allow(ASK_LIMIT);
            }
            let asked = match read_head(stream, &mut bytes)? {
                Ok(Some(asked)) => asked,
                Ok(None) => return Ok(()),
                Err(status) => {
                    stream.allow(TELL_LIMIT);
                    let text = head(status, "text/plain", Some(0), "", false);
                    return stream.write_all(text.as_bytes());
                }
            };
            bytes.drain(..asked.length);
            stream.allow(TELL_LIMIT);
            let stays = asked.stays && number < REQUESTS_MAX;
            match answer(&asked, &self.access, &self.watch) {
                Answer::Whole { status, kind, body, more } => {
                    let mut whole = head(status, kind, Some(body.len()), more, stays).into_bytes();
                    if asked.method != "HEAD" {
                        whole.extend_from_slice(&body);
                    }
                    stream.write_all(&whole)?;
                    stream.flush()?;
                }
                Answer::Events => return self.tell_news(stream),
            }
            if !stays {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells that there is something new, as often as there is.
    fn tell_news(&self, stream: &mut impl Talk) -> io::Result<()> {
        let Some(_slot) = Slot::take(&self.events, EVENTS_MAX) else {
            let text = head(503, "text/plain", Some(0), "Retry-After: 10\r\n", false);
            return stream.write_all(text.as_bytes());
        };
        stream.write_all(head(200, "text/event-stream", None, "", false).as_bytes())?;
        let start = Instant::now();
        let mut number = 0;
        while start.elapsed() < LISTEN_MAX {
            let text = match self.watch.newer_than(number, PULSE) {
                Some(view) => {
                    number = view.number;
                    format!("event: status\nid: {number}\ndata: {}\n\n", view.state)
                }
                None => ": still here\n\n".to_owned(),
            };
            stream.allow(TELL_LIMIT);
            stream.write_all(text.as_bytes())?;
            stream.flush()?;
        }
        Ok(())
    }
}

/// A connection that takes no longer than it is allowed, however many bytes come one at a time.
struct Timed {
    stream: TcpStream,
    end: Instant,
    /// What the kernel was told to wait for at most, for reading and for writing.
    told: [Duration; 2],
}

impl Timed {
    fn new(stream: TcpStream) -> Self {
        Self { stream, end: Instant::now() + ASK_LIMIT, told: [Duration::MAX; 2] }
    }

    /// How long the next step may take, if the kernel has to be told: not if it would wait but a little too long.
    fn news(&mut self, which: usize) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.told[which] <= left + SLACK {
            return Ok(None);
        }
        self.told[which] = left;
        Ok(Some(left))
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.news(0)? {
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.news(1)? {
            self.stream.set_write_timeout(Some(left))?;
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection, plain or not, whose time is given out in portions.
trait Talk: Read + Write {
    /// From now on it may take this long.
    fn allow(&mut self, limit: Duration);
}

impl Talk for Timed {
    fn allow(&mut self, limit: Duration) {
        self.end = Instant::now() + limit;
    }
}

impl Talk for rustls::StreamOwned<rustls::ServerConnection, Timed> {
    fn allow(&mut self, limit: Duration) {
        self.sock.allow(limit);
    }
}

fn is_over(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// Reads the head of a request, within its limits; else says with which status to refuse it. Nothing if the client has
/// no further one.
fn read_head(
    stream: &mut impl Read,
    bytes: &mut Vec<u8>,
) -> io::Result<Result<Option<crate::answer::Asked>, u16>> {
    let mut chunk = [0; 1024];
    loop {
        match parse(bytes) {
            Ok(Some(asked)) => return Ok(Ok(Some(asked))),
            Ok(None) if bytes.len() > HEAD_BYTES_MAX => return Ok(Err(400)),
            Ok(None) => {}
            Err(_) => return Ok(Err(400)),
        }
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(Ok(None)),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if is_over(&error) && bytes.is_empty() => return Ok(Ok(None)),
            // A byte now and then does not keep a connection.
            Err(error) if is_over(&error) => return Ok(Err(408)),
            Err(error) => return Err(error),
        }
    }
}

fn tls_config(certificate: &Path, key: &Path) -> Result<rustls::ServerConfig, Error> {
    let wrong = |path: &Path, why: String| Error::Certificate { path: path.to_owned(), why };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, error.to_string()))?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(certificate, error.to_string()))
}
