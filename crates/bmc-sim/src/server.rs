//! Listening, and one thread for each connection.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dyad_http::{Fingerprint, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::auth::Accounts;
use crate::certificate::Certificate;
use crate::events::{Event, Log};
use crate::fault::Fault;
use crate::power::PowerSwitch;
use crate::resources::{self, SystemState};
use crate::wire;

/// Connections at once; further ones are closed at once.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may be idle.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// How long an answer may take to be taken.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// How long starting and stopping wait for the threads to follow.
const FOLLOW_MAX: Duration = Duration::from_secs(5);
/// How often a hanging request looks whether its client is still there.
const HANG_LOOK: Duration = Duration::from_millis(50);

/// A System behind the BMC.
pub struct System {
    /// Its id in Redfish.
    pub id: String,
    /// Its UUID.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// Its power.
    pub switch: Arc<dyn PowerSwitch>,
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System")
            .field("id", &self.id)
            .field("uuid", &self.uuid)
            .finish_non_exhaustive()
    }
}

/// What a BMC is made of.
#[derive(Debug)]
pub struct Config {
    /// The account's name.
    pub user: String,
    /// The account's password.
    pub password: Secret,
    /// The Systems; usually one.
    pub systems: Vec<System>,
    /// The certificate; without one the BMC speaks plain HTTP.
    pub certificate: Option<Certificate>,
}

/// What all threads of a BMC share.
pub(crate) struct Shared {
    pub(crate) accounts: Accounts,
    pub(crate) systems: Vec<SystemState>,
    pub(crate) log: Log,
    tls: Option<Arc<ServerConfig>>,
    control: Mutex<Control>,
    changed: Condvar,
}

#[derive(Default)]
struct Control {
    fault: Fault,
    /// How often the fault was set, and up to which of these the listener has followed.
    number: u64,
    followed: u64,
    stop: bool,
    connections: HashMap<u64, TcpStream>,
    connection_number: u64,
}

impl Shared {
    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; true if the BMC stops before.
    pub(crate) fn wait_for_stop(&self, time: Duration) -> bool {
        let wait = self.changed.wait_timeout_while(self.control(), time, |control| !control.stop);
        wait.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    /// Lets a request pass as the fault allows, with the fault that applies to it; `None`: no answer at all.
    fn gate(&self, client: &TcpStream) -> Option<Fault> {
        let started = Instant::now();
        loop {
            let control = self.control();
            match control.fault {
                _ if control.stop => return None,
                Fault::Refuse => return None,
                Fault::Hang => {
                    let number = control.number;
                    let wait = self.changed.wait_timeout_while(control, HANG_LOOK, |control| {
                        !control.stop && control.number == number
                    });
                    drop(wait.unwrap_or_else(PoisonError::into_inner));
                    if has_gone(client) {
                        return None;
                    }
                }
                Fault::Slow(by) if started.elapsed() < by => {
                    let (number, left) = (control.number, by.saturating_sub(started.elapsed()));
                    let wait = self.changed.wait_timeout_while(control, left, |control| {
                        !control.stop && control.number == number
                    });
                    drop(wait.unwrap_or_else(PoisonError::into_inner));
                }
                fault => return Some(fault),
            }
        }
    }
}

/// Whether the client has closed its side.
fn has_gone(client: &TcpStream) -> bool {
    let mut ends = [PollFd::new(client, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut ends, Some(&now)) {
        Ok(count) => count > 0,
        Err(_) => true,
    }
}

/// A running BMC. Dropping it stops it.
pub struct Bmc {
    shared: Arc<Shared>,
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
    waker: UnixStream,
    listening: Option<JoinHandle<()>>,
}

impl fmt::Debug for Bmc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmc").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Bmc {
    /// Starts a BMC on this listening socket.
    ///
    /// It runs in the network namespace of the calling thread: after [`Fault::Refuse`] it binds the same
    /// address again, and the socket must belong there.
    pub fn start(config: Config, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let fingerprint = config.certificate.as_ref().map(Certificate::fingerprint);
        let tls = config.certificate.as_ref().map(Certificate::server_config).transpose();
        let systems = config
            .systems
            .into_iter()
            .map(|system| SystemState::new(system.id, system.uuid, system.name, system.switch))
            .collect();
        let shared = Arc::new(Shared {
            accounts: Accounts::new(config.user, config.password),
            systems,
            log: Log::default(),
            tls: tls.map_err(io::Error::other)?,
            control: Mutex::default(),
            changed: Condvar::new(),
        });
        let (waker, wakened) = UnixStream::pair()?;
        wakened.set_nonblocking(true)?;
        let thread_shared = shared.clone();
        let listening = thread::Builder::new()
            .name("bmc".to_owned())
            .spawn(move || listen(&thread_shared, address, listener, wakened))?;
        Ok(Self { shared, address, fingerprint, waker, listening: Some(listening) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        let scheme = if self.fingerprint.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The fingerprint of its certificate.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Breaks it, or heals it with [`Fault::None`]. When this returns, the fault is in force.
    pub fn set_fault(&self, fault: Fault) {
        let mut event = Event::now("fault", Duration::ZERO);
        event.fault = Some(fault.to_string());
        self.shared.log.push(event);
        for system in &self.shared.systems {
            if fault != Fault::StuckPoweringOff && self.fault() == Fault::StuckPoweringOff {
                system.unstick();
            }
        }
        let number = {
            let mut control = self.shared.control();
            control.fault = fault;
            control.number += 1;
            control.number
        };
        self.shared.changed.notify_all();
        self.wake();
        // Closing or opening the socket is the listener's work: wait until it has followed.
        let wait =
            self.shared.changed.wait_timeout_while(self.shared.control(), FOLLOW_MAX, |control| {
                control.followed < number && !control.stop
            });
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// The fault in force.
    pub fn fault(&self) -> Fault {
        self.shared.control().fault
    }

    /// Closes all sessions, as a BMC that restarts does.
    pub fn forget_sessions(&self) {
        self.shared.accounts.forget();
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.shared.accounts.open().len()
    }

    /// What happened after the event with this number (0: all that is kept).
    pub fn events(&self, after: u64) -> Vec<Event> {
        self.shared.log.after(after)
    }

    fn wake(&self) {
        let _ = (&self.waker).write(&[1]);
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        self.shared.control().stop = true;
        self.shared.changed.notify_all();
        self.wake();
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        let wait =
            self.shared.changed.wait_timeout_while(self.shared.control(), FOLLOW_MAX, |control| {
                !control.connections.is_empty()
            });
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The listener's thread: opens and closes the socket as the fault says, accepts, and ends with the BMC.
fn listen(shared: &Arc<Shared>, address: SocketAddr, first: TcpListener, wakened: UnixStream) {
    let mut listener = Some(first);
    loop {
        let (stop, refuse) = follow(shared, &mut listener, address);
        if stop {
            drop(listener);
            cut_all(shared);
            return;
        }
        if refuse {
            cut_all(shared);
        }
        let mut ends = vec![PollFd::new(&wakened, PollFlags::IN)];
        ends.extend(listener.as_ref().map(|listener| PollFd::new(listener, PollFlags::IN)));
        // A socket that could not be opened again is tried once more after a while.
        let retry = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let limit = (listener.is_none() && !refuse).then_some(&retry);
        let _ = poll(&mut ends, limit);
        let _ = (&wakened).read(&mut [0; 64]);
        while let Some((stream, peer)) = listener.as_ref().and_then(|found| found.accept().ok()) {
            start_connection(shared, stream, peer);
        }
    }
}

/// Brings the socket in line with the fault, and says so. Returns whether to stop and whether to refuse.
fn follow(
    shared: &Shared,
    listener: &mut Option<TcpListener>,
    address: SocketAddr,
) -> (bool, bool) {
    let (stop, refuse, number) = {
        let control = shared.control();
        (control.stop, control.fault == Fault::Refuse, control.number)
    };
    if refuse {
        *listener = None;
    } else if listener.is_none() && !stop {
        *listener = TcpListener::bind(address)
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .inspect_err(|error| {
                let mut event = Event::now("listen again", Duration::ZERO);
                event.error = Some(error.to_string());
                shared.log.push(event);
            })
            .ok();
    }
    if refuse || listener.is_some() {
        shared.control().followed = number;
        shared.changed.notify_all();
    }
    (stop, refuse)
}

fn cut_all(shared: &Shared) {
    for stream in shared.control().connections.values() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn start_connection(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let prepared = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| stream.set_read_timeout(Some(IDLE_MAX)))
        .and_then(|()| stream.set_write_timeout(Some(WRITE_MAX)))
        .and_then(|()| stream.try_clone());
    let Ok(handle) = prepared else { return };
    let number = {
        let mut control = shared.control();
        if control.connections.len() >= CONNECTIONS_MAX {
            return;
        }
        control.connection_number += 1;
        let number = control.connection_number;
        control.connections.insert(number, handle);
        number
    };
    let thread_shared = shared.clone();
    let started = thread::Builder::new().name("bmc-connection".to_owned()).spawn(move || {
        serve(&thread_shared, stream, peer);
        end_connection(&thread_shared, number);
    });
    if started.is_err() {
        end_connection(shared, number);
    }
}

fn end_connection(shared: &Shared, number: u64) {
    shared.control().connections.remove(&number);
    shared.changed.notify_all();
}

/// Serves one connection. How it ends is the client's business; the log has what was asked.
fn serve(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let Ok(watch) = stream.try_clone() else { return };
    // A BMC that hangs does not do the handshake either.
    if matches!(shared.control().fault, Fault::Hang) && shared.gate(&watch).is_none() {
        return;
    }
    let result = match &shared.tls {
        None => talk(shared, &mut (&stream), &watch, peer),
        Some(config) => match ServerConnection::new(config.clone()) {
            Ok(tls) => {
                let mut tls = StreamOwned::new(tls, stream);
                let result = talk(shared, &mut tls, &watch, peer);
                tls.conn.send_close_notify();
                let _ = tls.flush();
                result
            }
            Err(error) => Err(io::Error::other(error)),
        },
    };
    if let Err(error) = result {
        let mut event = Event::now("connection", Duration::ZERO);
        event.peer = Some(peer);
        event.error = Some(error.to_string());
        shared.log.push(event);
    }
}

fn talk(
    shared: &Arc<Shared>,
    stream: &mut (impl Read + Write),
    watch: &TcpStream,
    peer: SocketAddr,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = wire::read_request(stream, &mut buffer)? {
        let started = Instant::now();
        let fault = shared.gate(watch);
        let mut event = Event::now(format!("{} {}", request.method, request.path), Duration::ZERO);
        event.peer = Some(peer);
        let answer = fault.map(|fault| resources::answer(shared, fault, &request, &mut event));
        event.status = answer.as_ref().map(|answer| answer.status);
        let done = Event::now("", started.elapsed());
        (event.at_us, event.took_us) = (done.at_us, done.took_us);
        shared.log.push(event);
        let (Some(answer), Some(fault)) = (answer, fault) else { return Ok(()) };
        answer.write(stream, request.keep_alive, fault == Fault::MalformedJson)?;
        if !request.keep_alive {
            return Ok(());
        }
    }
    Ok(())
}
