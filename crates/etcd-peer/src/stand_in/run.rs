//! Runs the protocol over the connections: events in, actions out, until the end or the limit.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyad_http::{Deadline, Endpoint, StreamHandle};

use super::error::{Error, Veto};
use super::link::{Event, Link};
use super::lock::Lock;
use super::machine::{Action, Input, Machine};
use super::members::is_too_old;
use super::report::{Report, Step, TimedStep};
use super::{Limits, StandIn};
use crate::client::Client;
use crate::tls;
use crate::wire::{Message, StreamKind};

/// So many streams taken from us in order, and given back when asked for again, are no accident.
const DISPLACED_MAX: u32 = 3;
/// How often to look at the limit while there is nothing to do.
const IDLE: Duration = Duration::from_millis(50);

/// A stand-in that is connected and has said nothing. Dropped, it never will.
#[derive(Debug)]
pub(super) struct Connected {
    // Dropped in this order: nothing may be under way any more when the lock is given back.
    link: Stopping,
    threads: Threads,
    lock: Lock,
    limits: Limits,
    client: Option<Client>,
}

/// A link whose threads are told to end when it is dropped.
#[derive(Debug)]
struct Stopping(Arc<Link>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.stop();
    }
}

pub(super) fn connect(stand_in: StandIn) -> Result<Connected, Error> {
    let StandIn { target, limits, lock, client } = stand_in;
    let lock = Lock::take(&lock)?;
    let http = tls::builder(&target.peer_url, target.tls.as_ref())
        .and_then(|builder| from_own_address(builder, &target.peer_url)?.build())
        .map_err(|source| Error::Setup { peer_url: target.peer_url.clone(), source })?;
    // The limit counts from the release; whoever holds it back longer than that finds no threads any more.
    let deadline = Deadline::after(2 * limits.total);
    let link = Stopping(Arc::new(Link::new(http, target, deadline)));
    let threads = Threads::start(&link.0)?;
    Ok(Connected { link, threads, lock, limits, client })
}

pub(super) fn run(
    connected: Connected,
    progress: &mut dyn FnMut(&TimedStep),
) -> Result<Report, Error> {
    let Connected { link, mut threads, lock, limits, client } = connected;
    let link = &link.0;
    let began = Instant::now();
    link.release();
    let mut run = Run {
        link,
        limits,
        began,
        machine: Machine::new(link.target.survivor, link.target.dead),
        client,
        cleared: false,
        handles: Vec::new(),
        ended: Vec::new(),
        displaced: 0,
        version: None,
        trouble: None,
        steps: Vec::new(),
        progress,
    };
    let outcome = run.until_done(&mut threads);
    link.stop();
    run.close_streams(&threads);
    // After success there is nothing left that could be said too late: the survivor refuses it. Otherwise
    // nothing may be under way any more when the lock is given back.
    if outcome.is_ok() {
        threads.handles.clear();
    }
    drop(threads);
    drop(lock);
    outcome.map(|()| Report {
        survivor: link.target.survivor,
        dead: link.target.dead,
        server_version: run.version,
        steps: run.steps,
    })
}

/// Comes from the very address that the peer URL names, if it is one of this machine: etcd checks the names in
/// our certificate against the source address, and for a secondary address the kernel would pick another.
fn from_own_address(
    builder: dyad_http::Builder,
    peer_url: &str,
) -> Result<dyad_http::Builder, dyad_http::Error> {
    let own = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
    Ok(match Endpoint::parse(peer_url)?.ip().filter(own) {
        Some(ip) => builder.bind(ip),
        None => builder,
    })
}

/// The threads and the ways to them.
#[derive(Debug)]
struct Threads {
    events: Receiver<Event>,
    report: Sender<Event>,
    messages: Option<Sender<Message>>,
    proposals: Option<Sender<Message>>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    fn start(link: &Arc<Link>) -> Result<Self, Error> {
        let (report, events) = mpsc::channel();
        let (messages, to_send) = mpsc::channel();
        let (proposals, to_propose) = mpsc::channel();
        let mut threads = Self {
            events,
            report,
            messages: Some(messages),
            proposals: Some(proposals),
            handles: Vec::new(),
        };
        for kind in [StreamKind::Message, StreamKind::MsgApp] {
            threads.spawn(link, move |link, events| link.serve_stream(kind, events))?;
        }
        threads.spawn(link, move |link, events| link.serve_messages(&to_send, events))?;
        threads.spawn(link, move |link, events| link.serve_proposals(&to_propose, events))?;
        Ok(threads)
    }

    fn spawn(
        &mut self,
        link: &Arc<Link>,
        work: impl FnOnce(&Link, &Sender<Event>) + Send + 'static,
    ) -> Result<(), Error> {
        let (stopped, link, events) = (link, Arc::clone(link), self.report.clone());
        let handle = std::thread::Builder::new()
            .name("stand-in".into())
            .spawn(move || work(&link, &events))
            .map_err(Error::Thread);
        // Those that run are waited for on the way out: they must not wait for a release that never comes.
        let handle = handle.inspect_err(|_| stopped.stop())?;
        self.handles.push(handle);
        Ok(())
    }
}

impl Drop for Threads {
    /// Waits for them: each has been told to end.
    fn drop(&mut self) {
        (self.messages, self.proposals) = (None, None);
        for handle in self.handles.drain(..) {
            // A thread that panicked has ended, which is all that matters here.
            let _ = handle.join();
        }
    }
}

struct Run<'a> {
    link: &'a Arc<Link>,
    limits: Limits,
    began: Instant,
    machine: Machine,
    client: Option<Client>,
    cleared: bool,
    handles: Vec<(StreamKind, StreamHandle)>,
    /// Streams that etcd ended in order, as long as nothing has failed since.
    ended: Vec<StreamKind>,
    displaced: u32,
    version: Option<String>,
    trouble: Option<String>,
    steps: Vec<TimedStep>,
    progress: &'a mut dyn FnMut(&TimedStep),
}

impl Run<'_> {
    fn until_done(&mut self, threads: &mut Threads) -> Result<(), Error> {
        loop {
            let now = self.began.elapsed();
            let left = self.limits.total.saturating_sub(now);
            if left.is_zero() {
                return Err(Error::TimedOut {
                    limit: self.limits.total,
                    waits_for: self.machine.waits_for(),
                    trouble: self.trouble.take(),
                    burnt: self.machine.is_committed_to(),
                });
            }
            let wait = if self.cleared { self.machine.wake_at().saturating_sub(now) } else { IDLE };
            // The limit has the last word, and a wake-up in the past must not spin.
            let wait = wait.clamp(Duration::from_micros(100), left.max(Duration::from_micros(100)));
            match threads.events.recv_timeout(wait) {
                Ok(Event::Gone) => {
                    self.report(Step::Removed);
                    return Ok(());
                }
                Ok(event) => self.handle(event, threads)?,
                Err(RecvTimeoutError::Timeout) => self.step(Input::Tick, threads)?,
                // Cannot be: we hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            }
        }
    }

    /// Ends the streams, so that their threads end. A stream that was opened while the end was being decided
    /// has told so before it looked whether to stop: its handle is among the events.
    fn close_streams(&self, threads: &Threads) {
        for (_, handle) in &self.handles {
            handle.close();
        }
        while let Ok(event) = threads.events.try_recv() {
            if let Event::Attached { handle, .. } = event {
                handle.close();
            }
        }
    }

    fn handle(&mut self, event: Event, threads: &mut Threads) -> Result<(), Error> {
        match event {
            Event::Cleared => {
                self.cleared = true;
                Ok(())
            }
            Event::Attached { kind, handle, version } => {
                self.attach(kind, handle, version, threads)
            }
            Event::Detached { kind, clean } => self.detach(kind, clean, threads),
            Event::Received(message) => self.step(Input::Received(message), threads),
            Event::Asked => self.step(Input::Asked, threads),
            Event::ProposalDone => self.step(Input::ProposalDone, threads),
            Event::MayCampaign(may) => self.step(Input::MayCampaign(may), threads),
            Event::Trouble(why) => {
                // It stops or restarts: that ends streams too.
                self.ended.clear();
                self.trouble = Some(why);
                Ok(())
            }
            Event::Failed(error) => Err(error),
            Event::Gone => Ok(()),
        }
    }

    fn attach(
        &mut self,
        kind: StreamKind,
        handle: StreamHandle,
        version: Option<String>,
        threads: &mut Threads,
    ) -> Result<(), Error> {
        if self.ended.contains(&kind) {
            self.ended.retain(|ended| *ended != kind);
            self.displaced += 1;
            if self.displaced > DISPLACED_MAX {
                return Err(Error::Displaced(self.link.target.dead));
            }
        }
        self.handles.retain(|(known, _)| *known != kind);
        self.handles.push((kind, handle));
        self.version = version.or(self.version.take());
        if let Some(version) = self.version.as_ref().filter(|version| is_too_old(version)) {
            return Err(Veto::TooOld(version.clone()).into());
        }
        if self.version.as_deref().is_some_and(|version| version.starts_with("3.4."))
            && let Some(client) = self.client.take()
        {
            self.step(Input::MayCampaign(false), threads)?;
            threads.spawn(self.link, move |link, events| link.watch_applied(&client, events))?;
        }
        self.step(Input::Attached(kind), threads)
    }

    fn detach(
        &mut self,
        kind: StreamKind,
        clean: bool,
        threads: &mut Threads,
    ) -> Result<(), Error> {
        if clean {
            self.ended.push(kind);
        }
        self.step(Input::Detached(kind), threads)
    }

    fn step(&mut self, input: Input, threads: &mut Threads) -> Result<(), Error> {
        for action in self.machine.step(self.began.elapsed(), input)? {
            // A thread that is gone has said why; a message to it is lost like one on the wire.
            match action {
                Action::Send(message) => {
                    let _ = threads.messages.as_ref().map(|sender| sender.send(message));
                }
                Action::Propose(message) => {
                    let _ = threads.proposals.as_ref().map(|sender| sender.send(message));
                }
                Action::Report(step) => self.report(step),
            }
        }
        Ok(())
    }

    fn report(&mut self, step: Step) {
        let step = TimedStep::new(self.began.elapsed(), step);
        (self.progress)(&step);
        self.steps.push(step);
    }
}
