//! A pair for a scenario: from the pool or new, with what scenarios ask of it.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyad_lab::config::{PairStack, Stack};
use dyad_lab::events::{Event, EventKind, now_us};
use dyad_lab::progress::ToStderr;
use dyad_lab::protocol::{PowerAction, Request};
use dyad_lab::timeline::{Phase, Timeline};
use dyad_lab::{Lab, LabConfig, Lifetime, Supervision};
use serde_json::Value;

use crate::clients::Clients;

/// How long anything may take that ends with a pair that is whole: a boot, fencing, a join.
pub(crate) const RECOVERY: Duration = Duration::from_secs(150);
/// How long one command in a node may take.
const COMMAND: Duration = Duration::from_secs(30);

/// The pair that the last scenario left.
static POOL: Mutex<Option<Lab>> = Mutex::new(None);

/// A pair that is whole at the start.
pub(crate) struct Pair {
    lab: Option<Lab>,
}

/// The programs of the nodes, built beside this test.
pub(crate) fn programs() -> std::path::PathBuf {
    let programs = std::env::var_os("DYAD_PROGRAMS").expect("scripts/lab-test says where they are");
    programs.into()
}

/// The package that is installed in the nodes: made from those programs, and not before they were.
pub(crate) fn package() -> std::path::PathBuf {
    let package = programs().with_file_name("package").join("dyad.deb");
    let made = |path: &std::path::Path| std::fs::metadata(path).and_then(|found| found.modified());
    let time = made(&package).expect("scripts/package --debug makes it");
    for program in ["dyad", "dyad-node", "fence_dyad_redfish"] {
        let program = programs().join(program);
        assert!(made(&program).unwrap() <= time, "the package is old: scripts/package --debug");
    }
    package
}

/// A pair as most scenarios want it.
pub(crate) fn config() -> LabConfig {
    let mut config = LabConfig::named(&format!("pair-{}", std::process::id()));
    config.stack =
        Stack::Pair(PairStack { package: package(), tls: false, by_hand: false, podman: false });
    config
}

impl Pair {
    /// The usual pair.
    pub(crate) fn usual() -> Self {
        Self::of(&config())
    }

    /// A pair of this kind: the one that the last scenario left, if it fits, else a new one.
    pub(crate) fn of(config: &LabConfig) -> Self {
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lab = pooled.filter(|lab| lab.config() == config).unwrap_or_else(|| {
            let command = vec![env!("CARGO_BIN_EXE_dyad-lab-supervisor").into()];
            let supervision = Supervision { command };
            Lab::up(config, &supervision, Lifetime::OfCaller, &ToStderr::default())
                .unwrap_or_else(|error| panic!("{}", dyad_lab::error::chain(&error)))
        });
        let pair = Self { lab: Some(lab) };
        pair.wait_protected();
        // What the scenario before has done, and what failed in it, is not this one's.
        pair.run(pair.names()[0], &["crm_resource", "--cleanup"]);
        pair.wait_protected();
        let text = "the scenario begins".to_owned();
        let begin = Event { time_us: now_us(), kind: EventKind::Fault, node: None, text };
        pair.record(begin).unwrap();
        pair
    }

    /// Clients that write and read through both nodes from now on.
    pub(crate) fn clients(&self) -> Clients {
        Clients::start(self)
    }

    /// Waits until a condition holds; what is missing at the end fails the scenario.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, missing: impl FnMut() -> Option<String>) {
        if let Err(error) = self.wait_until(what, RECOVERY, missing) {
            panic!("{error}");
        }
    }

    /// Waits until either node may fail: both vote, and both have passed the barrier in this boot.
    #[track_caller]
    pub(crate) fn wait_protected(&self) {
        self.wait("the pair to be protected", || self.missing_of_protection());
    }

    /// Runs a command in a node that must succeed, and gives what it wrote.
    #[track_caller]
    pub(crate) fn run(&self, node: &str, command: &[&str]) -> String {
        let finished = self.exec(node, command, COMMAND).unwrap();
        assert!(finished.success(), "{command:?} on {node}: {finished:?}");
        finished.stdout
    }

    /// Runs a command that may take as long as a recovery, and must succeed.
    #[track_caller]
    pub(crate) fn run_patiently(&self, node: &str, command: &[&str]) -> String {
        let finished = self.exec(node, command, RECOVERY).unwrap();
        assert!(finished.success(), "{command:?} on {node}: {finished:?}");
        eprintln!("{node}: {}\n{}{}", command.join(" "), finished.stderr, finished.stdout);
        finished.stdout
    }

    /// Makes this node's etcd the leader.
    pub(crate) fn lead(&self, node: &str) {
        self.wait(&format!("{node} to lead"), || {
            let Some(status) = self.etcd_status(node) else { return Some("no answer".into()) };
            let own = status["header"]["member_id"].as_u64()?;
            if status["leader"].as_u64() == Some(own) {
                return None;
            }
            self.etcdctl(self.peer_of(node), &["move-leader", &format!("{own:x}")]);
            Some("the other one leads".into())
        });
    }

    /// Waits until a node's etcd accepts a write.
    #[track_caller]
    pub(crate) fn wait_writable(&self, node: &str) {
        self.wait(&format!("writes through {node}"), || {
            self.etcdctl(node, &["put", "scenario", "writable"])
                .is_none()
                .then(|| "no write is accepted".into())
        });
    }

    /// Waits until a node has decided on this action by this rule, after the first `seen` decisions.
    #[track_caller]
    pub(crate) fn wait_decision(&self, node: &str, seen: usize, action: &str, rule: &str) -> Value {
        let mut found = None;
        self.wait(&format!("{node} to decide {action} by {rule}"), || {
            found = self.decision(node, seen, action, rule);
            found.is_none().then(|| {
                let last = self.decisions(node).pop().unwrap_or_default();
                format!("its last decision: {}", last["decision"])
            })
        });
        found.unwrap()
    }

    /// The first decision on this action by this rule, after the first `seen` decisions.
    pub(crate) fn decision(
        &self,
        node: &str,
        seen: usize,
        action: &str,
        rule: &str,
    ) -> Option<Value> {
        let decisions = self.decisions(node).into_iter().skip(seen);
        decisions.into_iter().find(|entry| {
            entry["decision"]["action"] == action
                && entry["decision"]["rule"].as_str().is_some_and(|found| found.starts_with(rule))
        })
    }

    /// How many decisions a node has written down.
    pub(crate) fn seen(&self, node: &str) -> usize {
        self.decisions(node).len()
    }

    /// Waits until a step of a kind has happened since the last fault, and gives the timeline.
    #[track_caller]
    pub(crate) fn wait_for(&self, phase: Phase, text: &str) -> Timeline {
        let mut timeline = None;
        self.wait(&format!("{}: {text}", phase.name()), || {
            timeline = Some(self.timeline(false).unwrap());
            let steps = &timeline.as_ref()?.entries;
            let found = steps.iter().any(|step| step.phase == phase && step.text.contains(text));
            (!found).then(|| "it is not in the timeline".into())
        });
        timeline.unwrap()
    }

    /// Nodes that have lost their power since the last fault.
    pub(crate) fn powered_off(&self) -> Vec<String> {
        let timeline = self.timeline(false).unwrap();
        let off = timeline.entries.iter().filter(|step| step.phase == Phase::PowerOff);
        off.map(|step| step.place.clone()).collect()
    }

    /// Pulls a node's plug.
    pub(crate) fn pull_plug(&self, node: &str) {
        self.power(node, PowerAction::Off).unwrap();
    }

    /// Pulls a node's plug for good: its BMC takes the order to power on and does nothing until the lab is
    /// healed. Returns when the other one goes on alone.
    #[track_caller]
    pub(crate) fn lose(&self, victim: &str) {
        let survivor = self.peer_of(victim);
        let seen = self.seen(survivor);
        self.bmc(victim, "do-nothing".parse().unwrap()).unwrap();
        self.pull_plug(victim);
        self.wait_decision(survivor, seen, "takeOver", "R2");
        self.wait_writable(survivor);
    }

    /// Gives a node power.
    pub(crate) fn power_on(&self, node: &str) {
        self.power(node, PowerAction::On).unwrap();
    }

    /// Shuts a node down in good order, and gives it power again when it is off.
    #[track_caller]
    pub(crate) fn reboot(&self, node: &str) {
        self.run(node, &["systemctl", "poweroff", "--no-block"]);
        let position = self.config().position(node).unwrap();
        self.wait(&format!("{node} to shut down"), || {
            let init = self.status().unwrap().nodes[position].init;
            init.map(|process| format!("its first process {process} still runs"))
        });
        self.power_on(node);
    }

    /// Ends a pair that is not whole any more.
    pub(crate) fn end(mut self) {
        self.lab = None;
    }

    /// Does one thing to the lab.
    #[track_caller]
    pub(crate) fn ask(&self, request: &Request) {
        self.request(request).unwrap();
    }
}

impl Deref for Pair {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        self.lab.as_ref().unwrap()
    }
}

impl Drop for Pair {
    /// A pair that is whole is left to the next scenario. One that failed tells what happened, and ends.
    fn drop(&mut self) {
        let Some(lab) = self.lab.take() else { return };
        if let Ok(timeline) = lab.timeline(false) {
            eprintln!("{}", timeline.table());
        }
        if std::thread::panicking() {
            eprintln!("{}", lab.keep_journals());
            for node in &lab.config().nodes {
                let journal =
                    lab.place().node(&node.name).join("upper/var/log/dyad/decisions.jsonl");
                let text = std::fs::read_to_string(journal).unwrap_or_default();
                for line in text.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev() {
                    let entry: Value = serde_json::from_str(line).unwrap_or_default();
                    eprintln!("{}: {} {}", node.name, entry["decision"], entry["failure"]);
                }
            }
            return;
        }
        *POOL.lock().unwrap_or_else(PoisonError::into_inner) = Some(lab);
    }
}
