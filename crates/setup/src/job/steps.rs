//! The steps of a set-up: names, limits, order; and how a step waits.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dyad_cluster::pair::Pair;
use dyad_core::ids::NodeName;
use dyad_node::{Node, Place};

use super::bundle::Source;
use super::hand_over::HandOver;
use super::{Trouble, bundle, cluster, hand_over, machine, pair};
use crate::check::Here;
use crate::state::FailureKind;

/// How often a step looks again.
const PAUSE: Duration = Duration::from_millis(300);
/// A wait says again what it waits for after this time.
const REMINDER: Duration = Duration::from_secs(20);

/// One step.
pub struct Step {
    /// Its name, which stays the same.
    pub name: &'static str,
    /// What it does, in words.
    pub what: &'static str,
    /// How long it may take.
    pub limit: Duration,
    pub(super) run: fn(&mut Work<'_>, &mut Clock<'_>) -> Result<String, Trouble>,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step").field("name", &self.name).finish_non_exhaustive()
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The steps, in order. All that can be known before comes before anything is started.
pub const STEPS: &[Step] = &[
    Step {
        name: "bundle",
        what: "read the bundle of this node",
        limit: seconds(10),
        run: bundle::read,
    },
    Step {
        name: "machine",
        what: "look at this machine: programs, addresses, disk",
        limit: seconds(30),
        run: machine::look,
    },
    Step {
        name: "files",
        what: "put description, credentials, certificates and units in place",
        limit: seconds(30),
        run: bundle::install,
    },
    Step {
        name: "bmc",
        what: "ask both BMCs for the power state",
        limit: seconds(30),
        run: machine::bmcs,
    },
    Step {
        name: "cluster",
        what: "start Corosync and Pacemaker",
        limit: seconds(90),
        run: cluster::start,
    },
    Step {
        name: "peer",
        what: "wait until the other node is in the cluster",
        limit: seconds(600),
        run: pair::peer,
    },
    Step {
        name: "hand-over",
        what: "take over an etcd that runs here already, if that was asked for",
        limit: seconds(300),
        run: hand_over::run,
    },
    Step {
        name: "data",
        what: "begin the data of the pair, once and on one node",
        limit: seconds(120),
        run: pair::data,
    },
    Step {
        name: "voters",
        what: "wait until both nodes vote and may each go on alone",
        limit: seconds(180),
        run: pair::voters,
    },
    Step {
        name: "fencing",
        what: "wait until both fencing devices answer Pacemaker",
        limit: seconds(90),
        run: pair::fencing,
    },
    Step {
        name: "write",
        what: "write through this node and read it from the other",
        limit: seconds(30),
        run: pair::write,
    },
];

/// What the steps work on.
pub(super) struct Work<'a> {
    pub(super) here: &'a Here,
    pub(super) place: &'a Place,
    pub(super) given: Option<PathBuf>,
    /// The etcd that runs here already.
    pub(super) hand_over: Option<HandOver>,
    /// Which description this node was set up with before.
    pub(super) before: Option<String>,
    /// What was read in the first step.
    pub(super) source: Option<Source>,
    node: Option<Node>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        here: &'a Here,
        place: &'a Place,
        given: Option<PathBuf>,
        before: Option<String>,
    ) -> Self {
        Self { here, place, given, hand_over: None, before, source: None, node: None }
    }

    pub(super) fn pair_name(&self) -> Option<String> {
        self.source.as_ref().map(|source| source.pair.name.clone())
    }

    pub(super) fn description(&self) -> Option<String> {
        self.source.as_ref().map(Source::fingerprint)
    }

    /// The bundle that was read.
    pub(super) fn source(&self) -> Result<&Source, Trouble> {
        self.source.as_ref().ok_or_else(|| {
            Trouble::new(FailureKind::Failed, "the bundle was not read before it was needed")
        })
    }

    pub(super) fn pair(&self) -> Result<&Pair, Trouble> {
        Ok(&self.source()?.pair)
    }

    /// This node, by its installed description.
    pub(super) fn node(&mut self) -> Result<&Node, Trouble> {
        if self.node.is_none() {
            let name = NodeName::from(self.here.host_name.as_str());
            let node = Node::open(self.place.clone(), &name);
            self.node = Some(node.map_err(|error| Trouble::failed(&error))?);
        }
        self.node.as_ref().ok_or_else(|| Trouble::new(FailureKind::Failed, "no node"))
    }
}

/// What a look has found.
pub(super) enum Look<T> {
    /// What was waited for.
    Done(T),
    /// What is not yet true.
    NotYet(String),
}

/// A step's time, and its voice.
pub(super) struct Clock<'a> {
    begin: Instant,
    limit: Duration,
    say: &'a dyn Fn(&str),
}

impl<'a> Clock<'a> {
    pub(super) fn new(limit: Duration, say: &'a dyn Fn(&str)) -> Self {
        Self { begin: Instant::now(), limit, say }
    }

    /// What is left of the limit, at most so much: for a call to something outside.
    pub(super) fn left(&self, at_most: Duration) -> Duration {
        self.limit.saturating_sub(self.begin.elapsed()).min(at_most)
    }

    /// The same, for a part of it that may not take as long.
    pub(super) fn within(&self, limit: Duration) -> Clock<'a> {
        Self::new(self.left(limit), self.say)
    }

    /// Looks until it is done; says what it waits for whenever that changes, and now and then.
    pub(super) fn wait<T>(
        &mut self,
        mut look: impl FnMut() -> Result<Look<T>, Trouble>,
    ) -> Result<T, Trouble> {
        let mut said: Option<(String, Instant)> = None;
        loop {
            let missing = match look()? {
                Look::Done(found) => return Ok(found),
                Look::NotYet(missing) => missing,
            };
            if self.begin.elapsed() >= self.limit {
                let limit = self.limit.as_secs();
                let why = format!("still not after {limit} s: {missing}");
                return Err(Trouble::new(FailureKind::TimedOut, why));
            }
            let is_news =
                said.as_ref().is_none_or(|(text, at)| *text != missing || at.elapsed() > REMINDER);
            if is_news {
                let left = self.left(self.limit).as_secs();
                (self.say)(&format!("waiting, at most {left} s more: {missing}"));
                said = Some((missing, Instant::now()));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// P6: a wait ends at its limit and names what is not yet true; it says so once, not at every look.
    #[test]
    fn a_wait_ends_and_says_what_for() {
        let said = RefCell::new(Vec::new());
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        let mut clock = Clock::new(Duration::from_millis(700), &say);
        let result = clock.wait::<()>(|| Ok(Look::NotYet("node-b is not there".into())));
        let trouble = result.unwrap_err();
        assert_eq!(trouble.kind, FailureKind::TimedOut);
        assert!(trouble.why.contains("node-b is not there"), "{}", trouble.why);
        assert_eq!(said.borrow().len(), 1, "{said:?}");
    }

    /// The names are the interface to people and scripts: they differ, and each step has a limit.
    #[test]
    fn steps_are_named_and_limited() {
        let mut names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
        let total: Duration = STEPS.iter().map(|step| step.limit).sum();
        assert!(total < Duration::from_mins(29), "the unit's own limit must lie above: {total:?}");
    }
}
