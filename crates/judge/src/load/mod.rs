//! Clients that write and read through every node while things fail, and record all of it.
//!
//! Each client is a thread with one request at a time to one node, so that a node that hangs holds up its
//! own clients only. Every request has a limit, every error is put down as *failed* (certainly not
//! executed) or *unknown*, and nothing stops the run but its own limit, a full disk, or being told to.

mod client;
mod fill;
mod final_state;
mod report;
mod stop;
mod store;
mod workload;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use etcd_peer::Tls;

pub use fill::fill;
pub use report::{Counts, FirstWrite, Gap, Latency, Report, Slowest, report};
pub use stop::Stop;

use crate::history::Recorder;
use client::Client;
use store::Etcd;
use workload::Shared;

/// One node, as its clients reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What it is called in the history.
    pub name: String,
    /// etcd's client URL.
    pub url: String,
}

/// What to do to whom.
#[derive(Debug, Clone)]
pub struct Config {
    /// The nodes. Clients are dealt out to them in turn.
    pub endpoints: Vec<Endpoint>,
    /// How to trust etcd and be trusted by it.
    pub tls: Option<Tls>,
    /// All keys lie under this prefix, which must be empty at the start.
    pub prefix: String,
    /// Seed of all choices.
    pub seed: u64,
    /// How many clients.
    pub clients: u32,
    /// How many requests a second, all clients together, at most.
    pub rate: u32,
    /// How many keys hold registers; the first two of them get half of the requests.
    pub registers: u32,
    /// How long a client waits for an answer.
    pub request_limit: Duration,
    /// When to end, unless told before.
    pub duration: Option<Duration>,
    /// After how many requests to end, unless told before.
    pub operations: Option<u64>,
}

impl Config {
    /// The usual load on these nodes: 16 clients, 400 requests a second, a limit of 5 s for each.
    pub fn new(endpoints: Vec<Endpoint>, seed: u64) -> Self {
        Self {
            endpoints,
            tls: None,
            prefix: format!("dyad-load/{seed:016x}/"),
            seed,
            clients: 16,
            rate: 400,
            registers: 10,
            request_limit: Duration::from_secs(5),
            duration: None,
            operations: None,
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        let wrong = |what: &str| Err(LoadError::Config(what.to_owned()));
        if self.endpoints.is_empty() {
            return wrong("no endpoint is given");
        }
        for (position, endpoint) in self.endpoints.iter().enumerate() {
            if self.endpoints[..position].iter().any(|other| other.name == endpoint.name) {
                return wrong(&format!("two endpoints are called {}", endpoint.name));
            }
        }
        if self.prefix.is_empty() {
            return wrong("the prefix is empty: the whole store would be taken for the run's own");
        }
        if (self.clients as usize) < self.endpoints.len() {
            return wrong("there are fewer clients than endpoints");
        }
        if self.rate == 0 || self.registers == 0 || self.request_limit.is_zero() {
            return wrong("rate, registers and request limit must be above zero");
        }
        Ok(())
    }
}

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The settings make no sense.
    #[error("cannot start the load: {0}")]
    Config(String),
    /// An endpoint or the TLS files cannot be used.
    #[error("cannot make a client")]
    Client(#[source] etcd_peer::client::Error),
    /// No endpoint answers.
    #[error("no endpoint answers")]
    NoAnswer(#[source] etcd_peer::client::Error),
    /// Somebody else's keys are there.
    #[error("there are already keys under {prefix}")]
    NotEmpty {
        /// Where.
        prefix: String,
    },
    /// The history cannot be written.
    #[error("cannot write history {}", path.display())]
    History {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A client thread panicked: a bug.
    #[error("a client ended by a panic")]
    Panicked,
}

/// A run under way. Dropping it tells the clients to stop.
#[derive(Debug)]
pub struct Run {
    config: Config,
    path: PathBuf,
    recorder: Arc<Recorder>,
    stop: Arc<Stop>,
    /// Acknowledged writes, by endpoint.
    acknowledged: Vec<Arc<AtomicU64>>,
    clients: Vec<JoinHandle<io::Result<()>>>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The nodes whose final state is in the history.
    pub read: Vec<String>,
    /// The nodes that could not be read, and why.
    pub unread: Vec<(String, String)>,
}

/// Starts the clients; the history goes into a new file at `path`.
pub fn start(config: Config, path: &Path) -> Result<Run, LoadError> {
    config.check()?;
    let stores: Vec<Etcd> = (0..config.clients as usize)
        .map(|number| Etcd::new(&config.endpoints[number % config.endpoints.len()], &config))
        .collect::<Result<_, _>>()
        .map_err(LoadError::Client)?;
    require_empty(&config, &stores[..config.endpoints.len()])?;
    let names: Vec<String> = config.endpoints.iter().map(|it| it.name.clone()).collect();
    let recorder = Recorder::create(path, config.seed, &names)
        .map_err(|source| LoadError::History { path: path.to_owned(), source })?;
    let recorder = Arc::new(recorder);
    let stop = Arc::new(Stop::new(config.duration.map(|duration| Instant::now() + duration)));
    let shared = Arc::new(Shared::default());
    let budget = Arc::new(AtomicU64::new(config.operations.unwrap_or(u64::MAX)));
    let acknowledged: Vec<Arc<AtomicU64>> =
        config.endpoints.iter().map(|_| Arc::default()).collect();
    let clients = stores.into_iter().enumerate().map(|(number, store)| {
        let place = number % config.endpoints.len();
        let mut client = Client {
            number: number as u32,
            endpoint: Arc::from(config.endpoints[place].name.as_str()),
            workload: shared.workload(&config, number as u32),
            store,
            recorder: Arc::clone(&recorder),
            stop: Arc::clone(&stop),
            budget: Arc::clone(&budget),
            acknowledged: Arc::clone(&acknowledged[place]),
            pause: Duration::from_secs(1) * config.clients / config.rate,
        };
        thread::spawn(move || client.run())
    });
    let clients = clients.collect();
    Ok(Run { config, path: path.to_owned(), recorder, stop, acknowledged, clients })
}

/// The prefix must be empty: what the judge finds there and cannot explain would be held against the store.
fn require_empty(config: &Config, stores: &[Etcd]) -> Result<(), LoadError> {
    let mut last = None;
    for store in stores {
        match store.is_empty(&config.prefix, config.request_limit) {
            Ok(true) => return Ok(()),
            Ok(false) => return Err(LoadError::NotEmpty { prefix: config.prefix.clone() }),
            Err(error) => last = Some(error),
        }
    }
    Err(LoadError::NoAnswer(last.expect("there is at least one endpoint")))
}

impl Run {
    /// What tells the clients to stop, for another thread to hold.
    pub fn stop_handle(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }

    /// How many writes were acknowledged through this endpoint so far.
    pub fn acknowledged(&self, endpoint: &str) -> u64 {
        let names = self.config.endpoints.iter().map(|endpoint| &endpoint.name);
        let count = names.zip(&self.acknowledged).find(|(name, _)| *name == endpoint);
        count.map_or(0, |(_, count)| count.load(Ordering::Relaxed))
    }

    /// Waits for the run's own limit, or until it is told to stop, then for each client's last answer.
    pub fn wait(&mut self) -> Result<(), LoadError> {
        let mut failed = None;
        for client in self.clients.drain(..) {
            match client.join() {
                Ok(Ok(())) => {}
                Ok(Err(source)) => {
                    failed = Some(LoadError::History { path: self.path.clone(), source });
                }
                Err(_) => failed = Some(LoadError::Panicked),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Tells the clients to stop, waits for their last answers, and reads what each node holds. A node that
    /// cannot be read by a linearizable request within the limit is left out.
    pub fn finish(mut self, limit: Duration) -> Result<Ended, LoadError> {
        self.stop.stop();
        self.wait()?;
        let failed = |source| LoadError::History { path: self.path.clone(), source };
        let until = Instant::now() + limit;
        let mut ended = Ended { read: Vec::new(), unread: Vec::new() };
        for endpoint in &self.config.endpoints {
            let store = Etcd::new(endpoint, &self.config).map_err(LoadError::Client)?;
            match final_state::read(&store, endpoint, &self.config, until) {
                Ok(state) => {
                    self.recorder.final_state(state).map_err(failed)?;
                    ended.read.push(endpoint.name.clone());
                }
                Err(why) => ended.unread.push((endpoint.name.clone(), why)),
            }
        }
        self.recorder.end().map_err(failed)?;
        Ok(ended)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
