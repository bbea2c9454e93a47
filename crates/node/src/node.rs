//! This node of the pair: looks, asks `core`, does the one thing, publishes.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dyad_cluster::pair::{CONTAINER, Node as PairNode, Pair, Runner as RunnerKind};
use dyad_core::decision::{Action, Decision};
use dyad_core::facts::{Facts, Request, Role};
use dyad_core::ids::{BootId, NodeName};
use dyad_core::statement::Statement;
use etcd_peer::client::Client;
use nix::fcntl::Flock;

use crate::act;
use crate::etcd::Endpoints;
use crate::gather::{Gathered, Sources, words};
use crate::journal::{self, Journal};
use crate::memory::Memory;
use crate::place::{BesideData, Place};
use crate::record;
use crate::runner::{Podman, Runner, Systemd};
use crate::vote::Prepared;
use crate::{boot, certificates, lock, pacemaker};

/// The service and the slice that etcd runs in.
pub const ETCD_UNIT: &str = "dyad-etcd.service";
/// See [`ETCD_UNIT`].
pub const ETCD_SLICE: &str = "dyad.slice";
/// An operation decides again after some actions; more often than this is a rule that runs in a circle.
const DECISIONS_MAX: usize = 8;
/// How often a monitor looks at everything, however settled things are.
const FULL_LOOK_MS: u64 = 60_000;

/// Why a node cannot be looked at at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description of the pair cannot be read.
    #[error("cannot read the description of the pair")]
    Record(#[from] record::Error),
    /// There is none.
    #[error("there is no {}", .0.display())]
    NoPair(PathBuf),
    /// This node is not in it.
    #[error("{node} is neither {first} nor {second}")]
    Stranger {
        /// Who asked.
        node: NodeName,
        /// One node of the pair.
        first: NodeName,
        /// The other.
        second: NodeName,
    },
    /// The boot cannot be told.
    #[error("cannot read this boot's id")]
    Boot(#[source] std::io::Error),
    /// The certificates cannot be used.
    #[error("cannot set up a client of etcd")]
    Client(#[source] etcd_peer::client::Error),
    /// New certificates are half in place, and cannot be brought there.
    #[error("cannot bring new certificates into their place")]
    Certificates(#[source] record::Error),
    /// Another operation holds the node.
    #[error("another operation on this node did not end within {0:?}")]
    Busy(Duration),
}

/// This node of the pair.
pub struct Node {
    /// The pair.
    pub pair: Pair,
    own: usize,
    /// Where things are kept.
    pub place: Place,
    /// What is remembered.
    pub memory: Memory,
    /// What runs etcd.
    pub runner: Box<dyn Runner>,
    /// The local etcd.
    pub client: Client,
    /// Why it cannot be asked, if it cannot.
    fault: Option<Error>,
    /// This boot.
    pub boot: BootId,
    /// Since when this process is at work here.
    pub(crate) opened: Instant,
    journal: Journal,
    /// A vote that is connected while its announcement is under way; never longer than one operation.
    prepared: Mutex<Option<Prepared>>,
}

/// What an operation came to.
#[derive(Debug)]
pub struct Outcome {
    /// The last decision.
    pub decision: Decision,
    /// The facts it rested on.
    pub gathered: Gathered,
    /// What failed, if its action did.
    pub failure: Option<String>,
    /// It differs from the decision before.
    pub news: bool,
}

impl Node {
    /// The node with this name, of the pair that is described in its configuration.
    pub fn open(place: Place, name: &NodeName) -> Result<Self, Error> {
        let mut node = Self::open_with_faults(place, name)?;
        node.fault.take().map_or(Ok(node), Err)
    }

    /// The same, even if the certificates are no good: whatever asks etcd fails then, and all else is as ever. Without
    /// them nothing should be started, but what is there can be seen, stopped, and said.
    pub fn open_with_faults(place: Place, name: &NodeName) -> Result<Self, Error> {
        let file = place.pair_file();
        let pair: Pair = record::read(&file)?.ok_or(Error::NoPair(file))?;
        let stranger = |pair: &Pair| Error::Stranger {
            node: name.clone(),
            first: pair.nodes[0].name.clone(),
            second: pair.nodes[1].name.clone(),
        };
        // R10: the whole name.
        let own = pair.nodes.iter().position(|node| node.name == *name);
        let own = own.ok_or_else(|| stranger(&pair))?;
        let boot = boot::boot_id().map_err(Error::Boot)?;
        // A disk that takes no writes is no reason to stay blind, as long as the files fit each other.
        let finished = certificates::finish(&place);
        let endpoints = Endpoints::new(&pair);
        let url = endpoints.client(&pair.nodes[own]);
        let client = Client::even_if_unusable(&url, endpoints.client_tls().as_ref());
        let fault = client
            .fault()
            .map(|error| finished.err().map_or_else(|| Error::Client(error), Error::Certificates));
        let beside = BesideData::new(&pair.etcd.data_dir);
        Ok(Self {
            memory: Memory::new(&place, beside, boot.clone()),
            runner: runner(&pair),
            journal: Journal::new(&place.log),
            prepared: Mutex::new(None),
            opened: Instant::now(),
            client,
            fault,
            own,
            place,
            boot,
            pair,
        })
    }

    /// This node.
    pub fn own(&self) -> &PairNode {
        &self.pair.nodes[self.own]
    }

    /// The other one.
    pub fn peer(&self) -> &PairNode {
        &self.pair.nodes[self.own ^ 1]
    }

    /// One more client of the local etcd.
    pub fn own_client(&self) -> Result<Client, etcd_peer::client::Error> {
        client_of(&self.pair, self.own())
    }

    /// A client of the peer's etcd.
    pub fn peer_client(&self) -> Result<Client, etcd_peer::client::Error> {
        Endpoints::new(&self.pair).reachable(self.peer())
    }

    /// The decision log.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Why the local etcd cannot be asked, if it cannot.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// Keeps every other operation on this node out until the result is dropped.
    pub fn lock(&self) -> Result<Flock<File>, Error> {
        self.lock_within(lock::LIMIT)
    }

    /// The same, with another patience.
    pub fn lock_within(&self, limit: Duration) -> Result<Flock<File>, Error> {
        lock::hold(&self.place, limit)
    }

    /// Gathers facts, without doing anything.
    pub fn look(&self, request: Request, role: Role) -> Gathered {
        self.sources().gather(request, role)
    }

    fn sources(&self) -> Sources<'_> {
        self.sources_with(&self.memory)
    }

    /// Where facts come from, with these records.
    pub fn sources_with<'a>(&'a self, memory: &'a Memory) -> Sources<'a> {
        Sources {
            pair: &self.pair,
            own: self.own(),
            peer: self.peer(),
            memory,
            runner: self.runner.as_ref(),
            client: &self.client,
            boot: &self.boot,
        }
    }

    /// Whether a glance shows that nothing is due. A full look comes at least once a minute all the same:
    /// what was published may have been forgotten by whoever keeps it.
    pub fn is_settled(&self, role: Role) -> bool {
        let path = self.place.runtime.join("full-look.json");
        let last: Option<u64> = record::read(&path).ok().flatten();
        let now = boot::uptime_ms().unwrap_or_default();
        let recent = last.is_some_and(|last| last <= now && now - last < FULL_LOOK_MS);
        let settled = recent && self.sources().glance(role);
        if !settled {
            let _ = record::write_volatile(&path, &now);
        }
        settled
    }

    /// One operation: look, decide, do the one thing, publish; again where the action says so.
    pub fn operate(&self, request: &Request, role: Role) -> Outcome {
        let mut outcome = self.step(self.look(request.clone(), role));
        for _ in 1..DECISIONS_MAX {
            if outcome.failure.is_some() || !outcome.decision.action.decide_again() {
                break;
            }
            let again = match outcome.decision.action {
                Action::AnnounceTakeOver { .. } => self.sources().look_again(&outcome.gathered),
                _ => None,
            };
            let news = outcome.news;
            outcome = self.step(again.unwrap_or_else(|| self.look(request.clone(), role)));
            outcome.news |= news;
        }
        drop(self.exchange_prepared(None));
        self.bring_to_rest(outcome)
    }

    /// A stop has succeeded when etcd is at rest, whatever else became of it.
    fn bring_to_rest(&self, last: Outcome) -> Outcome {
        let Outcome { decision, gathered, failure, .. } = &last;
        let failed = failure.is_some();
        match dyad_core::decide_at_last(&gathered.facts, decision, failed) {
            Some(decision) => self.carry_out(gathered.clone(), decision),
            None => last,
        }
    }

    /// Keeps a vote for the next decision of this operation, and gives the one that was kept.
    pub(crate) fn exchange_prepared(&self, vote: Option<Prepared>) -> Option<Prepared> {
        // Whoever panicked while it held it has left a vote or none all the same.
        let mut kept = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut kept, vote)
    }

    fn step(&self, gathered: Gathered) -> Outcome {
        let decision = dyad_core::decide(&gathered.facts);
        if let Action::AnnounceTakeOver { .. } = decision.action {
            // The instant from which all that is left is this node's to do.
            journal::tell(&format!("take-over: proven: {}", decision.because));
        }
        self.carry_out(gathered, decision)
    }

    /// The last decision of an operation, for tests.
    #[cfg(test)]
    pub(crate) fn carry_out_at_last(&self, gathered: Gathered, decision: Decision) -> Outcome {
        self.bring_to_rest(self.carry_out(gathered, decision))
    }

    fn carry_out(&self, gathered: Gathered, decision: Decision) -> Outcome {
        let failure =
            act::perform(self, &gathered, &decision.action).err().map(|error| words(&*error));
        let news = self.is_news(&decision, failure.as_deref());
        if news {
            let facts = &gathered.facts;
            self.journal.write(facts, &decision, failure.as_deref(), &gathered.troubles);
        }
        Outcome { decision, gathered, failure, news }
    }

    /// Whether a decision differs from the last one that was written down: a monitor that finds nothing to
    /// do twelve times a minute says so once.
    fn is_news(&self, decision: &Decision, failure: Option<&str>) -> bool {
        let path = self.place.runtime.join("last-decision.json");
        let mut action = serde_json::to_value(&decision.action).unwrap_or_default();
        // That a wait has become shorter is no news.
        if let Some(fields) = action.as_object_mut() {
            fields.remove("untilMs");
        }
        let now = (action, decision.rule.to_string(), failure);
        let now = serde_json::json!(now);
        let last: Option<serde_json::Value> = record::read(&path).ok().flatten();
        if last.as_ref() == Some(&now) {
            return false;
        }
        let _ = record::write_volatile(&path, &now);
        true
    }

    /// Publishes what the node of these facts has to say, if that has changed.
    pub fn publish(&self, facts: &Facts) -> Result<(), act::Failure> {
        let statement = Statement::of(facts, self.memory.stopped_at());
        if self.memory.published().is_some_and(|last| same(&last, &statement)) {
            return Ok(());
        }
        let text = serde_json::to_string(&statement)?;
        pacemaker::publish_statement(&text)?;
        self.memory.set_published(&statement)?;
        Ok(())
    }
}

fn client_of(pair: &Pair, node: &PairNode) -> Result<Client, etcd_peer::client::Error> {
    let endpoints = Endpoints::new(pair);
    Client::new(&endpoints.client(node), endpoints.client_tls().as_ref())
}

/// Whether two statements say the same. A log that grows while etcd serves is no news: positions count only
/// at rest.
fn same(last: &Statement, next: &Statement) -> bool {
    use dyad_core::statement::EtcdWord;
    let serving = last.etcd == EtcdWord::Serving && next.etcd == EtcdWord::Serving;
    let mut next = next.clone();
    if serving {
        next.last = last.last;
    }
    *last == next
}

/// etcd's service, of whatever pair.
pub(crate) fn service() -> Systemd {
    Systemd::new(ETCD_UNIT, ETCD_SLICE)
}

fn runner(pair: &Pair) -> Box<dyn Runner> {
    let service = service();
    match &pair.etcd.runner {
        RunnerKind::Systemd => Box::new(service),
        RunnerKind::Podman { .. } => Box::new(Podman::new(service, CONTAINER)),
    }
}

/// Whether an action that failed may be tried again by the next monitor without telling Pacemaker of a
/// failure: everything but what Pacemaker itself asked for.
pub fn is_retried(action: &Action) -> bool {
    !matches!(action, Action::StartPlain | Action::Stop | Action::Leave)
}
