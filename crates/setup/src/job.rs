//! `dyad setup`: the job that makes a machine one node of a pair.
//!
//! It runs on each node by itself, in no order, and needs nothing but its own bundle: what the two nodes have to
//! tell each other goes through the cluster that they build. Every step can be done again: one that finds its
//! work done does nothing. So a job that was cut off is simply started anew.

pub mod apply;
mod bundle;
mod cluster;
mod difference;
mod hand_over;
mod key;
mod live_cib;
mod machine;
mod old_etcd;
mod pair;
pub mod replace;
mod steps;
pub mod uninstall;

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyad_node::{Place, record};
use nix::fcntl::{Flock, FlockArg};

use crate::check::Here;
use crate::state::{FailureKind, SetupFailure, SetupResult, SetupState, StepResult, StepState};
pub(crate) use bundle::NODES;
pub use difference::{Change, Effect};
pub use hand_over::HandOver;
pub use old_etcd::OldEtcd;
use steps::{Clock, Work};
pub use steps::{STEPS, Step};

/// One call of a tool.
const TOOL_LIMIT: Duration = Duration::from_secs(20);

/// What is asked of the job.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The bundle of this node, as a directory laid out like its root; else one is looked for.
    pub bundle: Option<PathBuf>,
    /// An etcd that runs on this node already, to be taken over with its data.
    pub hand_over: Option<HandOver>,
    /// Do nothing if this node is ready, with the same description.
    pub once: bool,
}

/// Why the job could not go on: what a step says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Why. Nothing secret.
    pub why: String,
    /// What to do.
    pub hint: Option<String>,
    /// What kind of failure it is.
    pub kind: FailureKind,
}

impl Trouble {
    fn new(kind: FailureKind, why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None, kind }
    }

    fn failed(error: &dyn std::error::Error) -> Self {
        Self::new(FailureKind::Failed, dyad_node::gather::words(error))
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Runs the job; what it does is said line by line. What it came to is also written down.
pub fn run(options: &Options, here: &Here, place: &Place, say: &dyn Fn(&str)) -> SetupState {
    let mut job = Job::new(here, place, say);
    match lock(place) {
        Ok(_lock) => job.run(options),
        // Whoever holds the lock writes the state.
        Err(trouble) => job.state.failure = Some(failure("start", trouble)),
    }
    if job.state.failure.is_some() {
        job.state.result = SetupResult::Failed;
    }
    job.state
}

/// Keeps a second job on this node out.
fn lock(place: &Place) -> Result<Flock<File>, Trouble> {
    record::create_directory(&place.runtime).map_err(|error| Trouble::failed(&error))?;
    let path = place.runtime.join("setup.lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| {
        Trouble::new(FailureKind::Failed, format!("cannot open {}: {error}", path.display()))
    })?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        Trouble::new(FailureKind::Failed, "another `dyad setup` runs on this node")
            .hint("journalctl -fu dyad-setup shows what it does")
    })
}

fn failure(step: &str, trouble: Trouble) -> SetupFailure {
    let Trouble { why, hint, kind } = trouble;
    SetupFailure { step: step.to_owned(), why, hint, kind }
}

struct Job<'a> {
    here: &'a Here,
    place: &'a Place,
    say: &'a dyn Fn(&str),
    begin: Instant,
    state: SetupState,
}

impl<'a> Job<'a> {
    fn new(here: &'a Here, place: &'a Place, say: &'a dyn Fn(&str)) -> Self {
        let state = SetupState {
            api_version: "dyad/v1".to_owned(),
            kind: "Setup".to_owned(),
            node: here.host_name.clone(),
            pair: None,
            result: SetupResult::Running,
            started_ms: now_ms(),
            updated_ms: now_ms(),
            description: None,
            steps: Vec::new(),
            failure: None,
        };
        Self { here, place, say, begin: Instant::now(), state }
    }

    fn run(&mut self, options: &Options) {
        let before: Option<SetupState> =
            record::read(&SetupState::path(&self.place.state)).ok().flatten();
        // What a pair was proven with stays known, whatever this run comes to.
        self.state.description = before.as_ref().and_then(|before| before.description.clone());
        let description = self.state.description.clone();
        let mut work = Work::new(self.here, self.place, options.bundle.clone(), description);
        work.hand_over.clone_from(&options.hand_over);
        for step in STEPS {
            if let Err(trouble) = self.step(step, &mut work) {
                self.state.failure = Some(failure(step.name, trouble));
                break;
            }
            self.state.pair = work.pair_name();
            if let Some(before) = before.as_ref().filter(|_| options.once)
                && before.is_ready()
                && before.description == work.description()
            {
                (self.say)("this node is set up already");
                self.state = before.clone();
                return;
            }
        }
        if self.state.failure.is_none() {
            self.state.result = SetupResult::Ready;
            self.state.description = work.description();
        } else {
            self.state.result = SetupResult::Failed;
        }
        if let Err(error) = self.write() {
            (self.say)(&format!("cannot write down what became of it: {error}"));
        }
        self.tell();
    }

    fn step(&mut self, step: &Step, work: &mut Work<'_>) -> Result<(), Trouble> {
        let begin = Instant::now();
        let number = format!("[{}/{}]", self.state.steps.len() + 1, STEPS.len());
        let entry = |result, detail: &str, took: Duration| StepState {
            name: step.name.to_owned(),
            result,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            detail: detail.to_owned(),
        };
        self.state.steps.push(entry(StepResult::Running, step.what, Duration::ZERO));
        // A look at what is there must leave no trace: the first step changes nothing.
        if self.state.steps.len() > 1 {
            self.write().map_err(|error| Trouble::failed(&error))?;
        }
        let say = self.say;
        let progress = |text: &str| say(&format!("{number} {}: {text}", step.name));
        progress(step.what);
        let mut clock = Clock::new(step.limit, &progress);
        let result = (step.run)(work, &mut clock);
        let took = begin.elapsed();
        let (outcome, detail) = match &result {
            Ok(detail) => (StepResult::Done, detail.as_str()),
            Err(trouble) => (StepResult::Failed, trouble.why.as_str()),
        };
        if let Ok(detail) = &result {
            progress(&format!("done in {:.1} s: {detail}", took.as_secs_f64()));
        }
        if let Some(last) = self.state.steps.last_mut() {
            *last = entry(outcome, detail, took);
        }
        result.map(drop)
    }

    fn write(&mut self) -> Result<(), record::Error> {
        self.state.updated_ms = now_ms();
        record::write_durable(&SetupState::path(&self.place.state), &self.state)
    }

    fn tell(&self) {
        let seconds = self.begin.elapsed().as_secs_f64();
        let text = match &self.state.failure {
            None => format!(
                "{} is one of the pair {}: both nodes vote, fencing answers, writes go through both; \
                 set up in {seconds:.1} s",
                self.state.node,
                self.state.pair.as_deref().unwrap_or_default()
            ),
            Some(failure) => {
                let hint = failure.hint.as_ref().map(|hint| format!("; {hint}"));
                format!(
                    "set-up failed in step {} after {seconds:.1} s: {}{}",
                    failure.step,
                    failure.why,
                    hint.unwrap_or_default()
                )
            }
        };
        if self.state.failure.is_none() {
            (self.say)(&text);
        }
        // Run as a service, what is said goes to the journal anyway.
        if std::env::var_os("JOURNAL_STREAM").is_none() {
            match self.state.failure {
                None => dyad_node::journal::tell(&text),
                Some(_) => dyad_node::journal::warn(&text),
            }
        }
    }
}

fn tool(program: &str, arguments: &[&str], input: &str) -> Result<String, Trouble> {
    let mut command = dyad_program::command(program, arguments);
    dyad_program::output(&mut command, input, TOOL_LIMIT).map_err(|error| Trouble::failed(&error))
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
