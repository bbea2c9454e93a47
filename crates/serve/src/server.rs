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

/// Connections at the same time. More are turned away at once: nobody waits in a queue.
const CONNECTIONS_MAX: usize = 64;
/// How many of them may stay, for events.
const EVENTS_MAX: usize = 16;
/// The head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long a client may take to ask.
const ASK_LIMIT: Duration = Duration::from_secs(3);
/// How long a client may take to read.
const TELL_LIMIT: Duration = Duration::from_secs(5);
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

    /// Serves until the process ends.
    pub fn run(&self) {
        let open = Arc::new(AtomicUsize::new(0));
        let events = Arc::new(AtomicUsize::new(0));
        for stream in self.listener.incoming() {
            let Ok(stream) = stream else {
                // Out of files, perhaps: the next ones may fare better.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let Some(slot) = Slot::take(&open, CONNECTIONS_MAX) else { continue };
            let connection = Connection {
                tls: self.tls.clone(),
                access: Arc::clone(&self.access),
                watch: Arc::clone(&self.watch),
                events: Arc::clone(&events),
            };
            let named = thread::Builder::new().stack_size(STACK_BYTES);
            let _ = named.spawn(move || {
                // A client that breaks off is its own affair.
                let _ = connection.serve(stream);
                drop(slot);
            });
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
        stream.set_read_timeout(Some(ASK_LIMIT))?;
        stream.set_write_timeout(Some(TELL_LIMIT))?;
        match &self.tls {
            None => self.talk(&mut &stream),
            Some(config) => {
                let session =
                    rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                let mut secured = rustls::StreamOwned::new(session, stream);
                self.talk(&mut secured)?;
                secured.conn.send_close_notify();
                secured.flush()
            }
        }
    }

    fn talk(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let asked = match read_head(stream)? {
            Ok(asked) => asked,
            Err(status) => {
                let text = head(status, "text/plain", Some(0), "");
                return stream.write_all(text.as_bytes());
            }
        };
        match answer(&asked, &self.access, &self.watch) {
            Answer::Whole { status, kind, body, more } => {
                let mut bytes = head(status, kind, Some(body.len()), more).into_bytes();
                if asked.method != "HEAD" {
                    bytes.extend_from_slice(&body);
                }
                stream.write_all(&bytes)?;
                stream.flush()
            }
            Answer::Events => self.tell_news(stream),
        }
    }

    /// Tells that there is something new, as often as there is.
    fn tell_news(&self, stream: &mut impl Write) -> io::Result<()> {
        let Some(_slot) = Slot::take(&self.events, EVENTS_MAX) else {
            let text = head(503, "text/plain", Some(0), "Retry-After: 10\r\n");
            return stream.write_all(text.as_bytes());
        };
        stream.write_all(head(200, "text/event-stream", None, "").as_bytes())?;
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
            stream.write_all(text.as_bytes())?;
            stream.flush()?;
        }
        Ok(())
    }
}

/// Reads the head of a request, within its limits; else says with which status to refuse it.
fn read_head(stream: &mut impl Read) -> io::Result<Result<crate::answer::Asked, u16>> {
    let start = Instant::now();
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
        match parse(&bytes) {
            Ok(Some(asked)) => return Ok(Ok(asked)),
            Ok(None) if bytes.len() > HEAD_BYTES_MAX => return Ok(Err(400)),
            // A byte now and then does not keep a connection.
            Ok(None) if start.elapsed() > ASK_LIMIT => return Ok(Err(408)),
            Ok(None) => {}
            Err(_) => return Ok(Err(400)),
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
