//! The connections to the survivor's peer port, and the threads that serve them.
//!
//! Two threads read a stream each, one sends messages in order, one sends proposals (which etcd does not
//! answer before there is a leader). They tell what they see and decide nothing.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use dyad_http::{Client, Deadline, Error as Http, Request, Stream, StreamHandle};
use prost::Message as _;

use super::Survivor;
use super::error::{Error, Veto};
use super::members::{self, Listed};
use crate::wire::{FrameError, Message, MessageStream, MessageType, MsgAppStream, StreamKind};

/// Between two attempts to connect.
const RETRY: Duration = Duration::from_millis(20);
/// The longest wait for one connection or one answer. A survivor may be slow; the total limit is the limit.
const EXCHANGE_MAX: Duration = Duration::from_secs(5);
/// Right after a start the membership may be behind what is committed: a veto counts when it has lasted.
const VETO_LASTS: Duration = Duration::from_secs(2);
/// A TLS error that comes so often in a row does not go away.
const TLS_ERRORS_MAX: u32 = 5;
/// The version that we speak as: any that etcd 3.4 to 3.6 are compatible with.
const SPOKEN_VERSION: &str = "3.4.0";
/// The oldest cluster that such a member could be part of.
const MIN_CLUSTER_VERSION: &str = "3.0.0";
/// The most that is read of an error answer or a member list.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What the threads tell.
#[derive(Debug)]
pub(super) enum Event {
    /// The survivor's membership does not forbid it.
    Cleared,
    /// A stream is open.
    Attached { kind: StreamKind, handle: StreamHandle, version: Option<String> },
    /// A message came.
    Received(Message),
    /// A stream has ended; `clean` if etcd itself ended it.
    Detached { kind: StreamKind, clean: bool },
    /// The survivor refuses the dead member for good.
    Gone,
    /// A question was sent.
    Asked,
    /// A proposal was answered or has failed.
    ProposalDone,
    /// Whether the survivor has applied all that is committed, or that this cannot be known.
    MayCampaign(bool),
    /// Something failed that may pass.
    Trouble(String),
    /// Something failed that will not.
    Failed(Error),
}

/// How far the threads may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// Connect, and no more: whether there will be a vote at all is not decided yet.
    Connect,
    /// Nothing that the survivor would notice: its membership is not known yet.
    Look,
    /// Everything.
    Speak,
    /// Nothing.
    Stop,
}

/// What the threads share.
#[derive(Debug)]
pub(super) struct Link {
    http: Client,
    pub(super) target: Survivor,
    deadline: Deadline,
    leave: Mutex<Leave>,
    changed: Condvar,
}

impl Link {
    pub(super) fn new(http: Client, target: Survivor, deadline: Deadline) -> Self {
        Self { http, target, deadline, leave: Mutex::new(Leave::Connect), changed: Condvar::new() }
    }

    /// It is decided: the membership is looked at, and if that allows it the threads speak.
    pub(super) fn release(&self) {
        self.set_leave(Leave::Look);
    }

    /// From now on no thread begins anything new.
    pub(super) fn stop(&self) {
        self.set_leave(Leave::Stop);
    }

    fn leave(&self) -> std::sync::MutexGuard<'_, Leave> {
        // It is one word; a thread that panicked while it held it has left a word all the same.
        self.leave.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_leave(&self, leave: Leave) {
        let mut present = self.leave();
        if *present != Leave::Stop {
            *present = leave;
        }
        self.changed.notify_all();
    }

    fn stopped(&self) -> bool {
        *self.leave() == Leave::Stop || self.deadline.passed()
    }

    /// Waits until the survivor's membership is known to allow it. Whether to go on.
    fn wait_for_leave(&self) -> bool {
        self.wait_past(&[Leave::Connect, Leave::Look]) == Leave::Speak
    }

    /// Waits as long as the threads may go no further than this, and opens a connection meanwhile, so that it need
    /// not be opened then. How far they may go now.
    fn wait_past(&self, these: &[Leave]) -> Leave {
        // Whether that works does not matter: what is done with the connection later will tell.
        let _ = self.http.send(&self.request(Request::get("/members")), self.exchange_deadline());
        let (leave, _) = self
            .changed
            .wait_timeout_while(self.leave(), self.deadline.remaining(), |leave| {
                these.contains(leave)
            })
            .unwrap_or_else(PoisonError::into_inner);
        *leave
    }

    fn exchange_deadline(&self) -> Deadline {
        self.deadline.within(EXCHANGE_MAX)
    }

    /// The headers by which etcd's peers know each other.
    fn request(&self, request: Request) -> Request {
        request
            .header("X-Server-From", self.target.dead.to_string())
            .header("X-Raft-To", self.target.survivor.to_string())
            .header("X-Etcd-Cluster-ID", self.target.cluster.to_string())
            .header("X-Server-Version", SPOKEN_VERSION)
            .header("X-Min-Cluster-Version", MIN_CLUSTER_VERSION)
    }

    /// The answer must come from the cluster that is meant; every answer of a peer port says which it is.
    fn check_cluster(&self, headers: &dyad_http::Headers) -> Result<(), Error> {
        let found = headers.get("X-Etcd-Cluster-ID").unwrap_or("none");
        if found == self.target.cluster.to_string() {
            return Ok(());
        }
        Err(Error::WrongCluster {
            peer_url: self.target.peer_url.clone(),
            found: found.to_owned(),
            expected: self.target.cluster,
        })
    }

    fn setup_error(&self, source: Http) -> Error {
        Error::Setup { peer_url: self.target.peer_url.clone(), source }
    }

    /// Reads one stream, opening it anew when it breaks, until the survivor refuses it.
    pub(super) fn serve_stream(&self, kind: StreamKind, events: &Sender<Event>) {
        let mut tls_errors = 0;
        if !self.wait_for_leave() {
            return;
        }
        while !self.stopped() {
            let request = self.request(Request::get(kind.path(self.target.dead)));
            let event = match self.http.open_stream(&request, self.exchange_deadline()) {
                Ok(stream) if stream.status == 200 => self.read_stream(kind, stream, events),
                Ok(stream) => self.refusal(kind, stream),
                Err(error) => {
                    tls_errors = if is_tls(&error) { tls_errors + 1 } else { 0 };
                    if tls_errors >= TLS_ERRORS_MAX {
                        Event::Failed(self.setup_error(error))
                    } else {
                        Event::Trouble(format!("{kind}: {}", chain(&error)))
                    }
                }
            };
            let last = matches!(event, Event::Gone | Event::Failed(_));
            let detached = matches!(event, Event::Detached { .. });
            if events.send(event).is_err() || last {
                return;
            }
            // A stream that ended is asked for again at once: the answer tells whether we are done.
            if !detached {
                std::thread::sleep(RETRY);
            }
        }
    }

    /// What it means that a stream is refused.
    fn refusal(&self, kind: StreamKind, stream: Stream) -> Event {
        let status = stream.status;
        let cluster = self.check_cluster(&stream.headers);
        let body = stream.read_rest(self.exchange_deadline(), ANSWER_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&body).trim().to_owned();
        match (cluster, status) {
            (Err(error), _) => Event::Failed(error),
            (Ok(()), 410) => Event::Gone,
            // Right after a start, or while it stops, etcd does not know its peers.
            (Ok(()), 404) => Event::Trouble(format!("{kind}: {text}")),
            (Ok(()), 500..) => Event::Trouble(format!("{kind}: {text} (HTTP {status})")),
            (Ok(()), _) => Event::Failed(Error::Rejected { status, text }),
        }
    }

    fn read_stream(&self, kind: StreamKind, stream: Stream, events: &Sender<Event>) -> Event {
        if let Err(error) = self.check_cluster(&stream.headers) {
            return Event::Failed(error);
        }
        let version = stream.headers.get("X-Server-Version").map(str::to_owned);
        let handle = stream.handle();
        if events.send(Event::Attached { kind, handle, version }).is_err() || self.stopped() {
            return Event::Detached { kind, clean: false };
        }
        let error = match kind {
            StreamKind::Message => {
                let mut reader = MessageStream::new(stream);
                pump(events, || reader.next_message())
            }
            StreamKind::MsgApp => {
                let mut reader = MsgAppStream::new(stream, self.target.survivor, self.target.dead);
                pump(events, || reader.next_message())
            }
        };
        Event::Detached { kind, clean: matches!(error, FrameError::Ended) }
    }

    /// Looks at the membership, then sends messages in order until there are no more.
    pub(super) fn serve_messages(&self, messages: &Receiver<Message>, events: &Sender<Event>) {
        if !self.clear(events) {
            return;
        }
        for message in messages {
            if self.stopped() {
                return;
            }
            // Raft expects messages twice or not at all; only proposals must not come twice.
            let event = match self.post(&message, true) {
                None if message.kind() == MessageType::PreVote => Event::Asked,
                None => continue,
                Some(event) => event,
            };
            if events.send(event).is_err() {
                return;
            }
        }
    }

    /// Sends proposals, each once.
    pub(super) fn serve_proposals(&self, proposals: &Receiver<Message>, events: &Sender<Event>) {
        if !self.wait_for_leave() {
            return;
        }
        for proposal in proposals {
            if self.stopped() {
                return;
            }
            let failed = self.post(&proposal, false);
            if failed.is_some_and(|event| events.send(event).is_err())
                || events.send(Event::ProposalDone).is_err()
            {
                return;
            }
        }
    }

    /// Sends one message. What went wrong, if anything did.
    fn post(&self, message: &Message, repeatable: bool) -> Option<Event> {
        let request = Request::post("/raft", message.encode_to_vec())
            .header("Content-Type", "application/protobuf");
        let mut request = self.request(request);
        if repeatable {
            request = request.retry_safe();
        }
        match self.http.send(&request, self.exchange_deadline()) {
            Ok(response) if response.status == 204 => None,
            Ok(response) => {
                let text = String::from_utf8_lossy(&response.body).trim().to_owned();
                let status = response.status;
                Some(match self.check_cluster(&response.headers) {
                    Err(error) => Event::Failed(error),
                    Ok(()) if status == 412 => Event::Failed(Error::Rejected { status, text }),
                    Ok(()) => Event::Trouble(format!("sending: {text} (HTTP {status})")),
                })
            }
            Err(error) => Some(Event::Trouble(format!("sending: {}", chain(&error)))),
        }
    }

    /// Looks at the survivor's membership until it is clear what it says; only then may anybody speak.
    fn clear(&self, events: &Sender<Event>) -> bool {
        self.wait_past(&[Leave::Connect]);
        let mut vetoed_since = None;
        while !self.stopped() {
            let event = match self.veto() {
                Ok(None) => {
                    let sent = events.send(Event::Cleared).is_ok();
                    self.set_leave(Leave::Speak);
                    return sent;
                }
                Ok(Some(veto)) => {
                    let since = *vetoed_since.get_or_insert_with(std::time::Instant::now);
                    if since.elapsed() >= VETO_LASTS {
                        let _ = events.send(Event::Failed(veto.into()));
                        return false;
                    }
                    Event::Trouble(veto.to_string())
                }
                Err(event) => event,
            };
            let last = matches!(event, Event::Failed(_));
            if events.send(event).is_err() || last {
                return false;
            }
            std::thread::sleep(RETRY);
        }
        false
    }

    fn veto(&self) -> Result<Option<Veto>, Event> {
        let request = self.request(Request::get("/members"));
        let trouble = |why: String| Event::Trouble(format!("reading the membership: {why}"));
        let response = self
            .http
            .send(&request, self.exchange_deadline())
            .map_err(|error| trouble(chain(&error)))?;
        self.check_cluster(&response.headers).map_err(Event::Failed)?;
        if response.status != 200 {
            return Err(trouble(format!("HTTP {}", response.status)));
        }
        let listed: Vec<Listed> =
            serde_json::from_slice(&response.body).map_err(|error| trouble(error.to_string()))?;
        Ok(members::veto(&listed, self.target.survivor, self.target.dead))
    }

    /// Waits until the survivor has applied all that is committed; says at once if that cannot be known.
    pub(super) fn watch_applied(&self, client: &crate::client::Client, events: &Sender<Event>) {
        const STATUS_MAX: Duration = Duration::from_millis(200);
        while !self.stopped() {
            let behind = client
                .status(self.deadline.within(STATUS_MAX))
                .is_ok_and(|status| status.applied_index < status.raft_index);
            if events.send(Event::MayCampaign(!behind)).is_err() || !behind {
                return;
            }
            std::thread::sleep(RETRY);
        }
    }
}

/// Passes messages on until the stream ends.
fn pump(
    events: &Sender<Event>,
    mut next: impl FnMut() -> Result<Option<Message>, FrameError>,
) -> FrameError {
    loop {
        match next() {
            Ok(None) => {}
            Ok(Some(message)) => {
                if events.send(Event::Received(message)).is_err() {
                    return FrameError::Ended;
                }
            }
            Err(error) => return error,
        }
    }
}

fn is_tls(error: &Http) -> bool {
    matches!(error, Http::Tls { .. } | Http::Certificate { .. } | Http::PinMismatch { .. })
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
