//! Opening a connection, and keeping every operation on it within its limit.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{Domain, Protocol, Socket, Type};

use crate::deadline::Deadline;
use crate::endpoint::Endpoint;
use crate::error::{Error, Step};

/// How long an operation on the socket may take.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// All operations together end by then.
    Until(Deadline),
    /// Each single one ends after this; `None` waits for ever.
    Each(Option<Duration>),
}

/// A TCP socket whose reads and writes end in time.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) tcp: TcpStream,
    pub(crate) limit: Limit,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.limit {
            Limit::Each(each) => Ok(each),
            Limit::Until(deadline) => match deadline.remaining() {
                Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
                left => Ok(Some(left)),
            },
        }
    }
}

/// The kernel reports a passed socket time-out as "would block"; say what it is.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(self.left()?)?;
        self.tcp.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(self.left()?)?;
        self.tcp.write(buffer).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// An open connection to a server.
#[derive(Debug)]
pub(crate) enum Connection {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Connection {
    fn socket(&self) -> &Timed {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: Limit) {
        match self {
            Self::Plain(socket) => socket.limit = limit,
            Self::Tls(stream) => stream.sock.limit = limit,
        }
    }

    /// A second hold on the socket, by which another thread can end the connection.
    pub(crate) fn try_clone_socket(&self) -> io::Result<TcpStream> {
        self.socket().tcp.try_clone()
    }

    /// Whether the server has neither closed this idle connection nor sent anything unasked.
    pub(crate) fn is_quiet(&self) -> bool {
        let tcp = &self.socket().tcp;
        if tcp.set_nonblocking(true).is_err() {
            return false;
        }
        let peeked = tcp.peek(&mut [0]);
        let would_block =
            matches!(&peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        tcp.set_nonblocking(false).is_ok() && would_block
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// What opening a connection needs to know.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) endpoint: Endpoint,
    pub(crate) bind: Option<IpAddr>,
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Dialer {
    /// Opens a connection, its TLS handshake done.
    pub(crate) fn dial(&self, deadline: Deadline) -> Result<Connection, Error> {
        let addresses = resolve(&self.endpoint, deadline)?;
        let tcp = self.connect_any(&addresses, deadline)?;
        // Requests are small and written in one piece: waiting for more would only add latency.
        let _ = tcp.set_nodelay(true);
        let mut socket = Timed { tcp, limit: Limit::Until(deadline) };
        let Some((config, name)) = &self.tls else {
            return Ok(Connection::Plain(socket));
        };
        let server = self.endpoint.to_string();
        let mut tls = ClientConnection::new(config.clone(), name.clone())
            .map_err(|error| crate::tls::error_of(&error, &server))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)
                .map_err(|error| Error::from_io(error, Step::Handshake, &server))?;
        }
        Ok(Connection::Tls(Box::new(StreamOwned::new(tls, socket))))
    }

    /// Tries each address in turn; a silent one gets its fair share of the time, not all of it.
    fn connect_any(
        &self,
        addresses: &[SocketAddr],
        deadline: Deadline,
    ) -> Result<TcpStream, Error> {
        let mut last = None;
        for (tried, address) in addresses.iter().enumerate() {
            let left = match deadline.left(Step::Connect) {
                Ok(left) => left,
                Err(error) => return Err(last.unwrap_or(error)),
            };
            let share = left / (addresses.len() - tried) as u32;
            match self.connect(*address, share) {
                Ok(tcp) => return Ok(tcp),
                Err(error) => last = Some(connect_fault(error, *address)),
            }
        }
        Err(last.unwrap_or_else(|| Error::Resolve {
            host: self.endpoint.host().to_owned(),
            source: io::Error::new(io::ErrorKind::NotFound, "the name has no usable address"),
        }))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
        let Some(bind) = self.bind else {
            return TcpStream::connect_timeout(&address, limit);
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::new(bind, 0).into())?;
        socket.connect_timeout(&address.into(), limit)?;
        Ok(socket.into())
    }
}

fn connect_fault(error: io::Error, address: SocketAddr) -> Error {
    let address = address.to_string();
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectRefused { address },
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::ConnectTimedOut { address },
        _ => Error::Connect { address, source: error },
    }
}

/// The addresses of the server. A literal address asks nobody.
fn resolve(endpoint: &Endpoint, deadline: Deadline) -> Result<Vec<SocketAddr>, Error> {
    let (host, port) = (endpoint.host().to_owned(), endpoint.port());
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    // The resolver has no time limit of its own that we could set. It gets a thread, and we stop waiting
    // for it when the time is up; the thread ends when the resolver gives up.
    let (sender, receiver) = mpsc::sync_channel(1);
    let fault = |source| Error::Resolve { host: host.clone(), source };
    let name = host.clone();
    thread::Builder::new()
        .name("resolve".to_owned())
        .stack_size(256 * 1024)
        .spawn(move || {
            let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            let _ = sender.send(found);
        })
        .map_err(fault)?;
    match receiver.recv_timeout(deadline.left(Step::Resolve)?) {
        Ok(found) => found.map_err(fault),
        Err(_) => Err(Error::Deadline { step: Step::Resolve }),
    }
}

/// Ends a connection from any thread. A connection that has already ended is no error.
pub(crate) fn shut_down(tcp: &TcpStream) {
    let _ = tcp.shutdown(Shutdown::Both);
}
