//! What the scenarios share: a lab of their own that tells its timeline and leaves nothing behind.

use std::ops::Deref;
use std::time::Duration;

use dyad_lab::config::{FenceAgent, Release};
use dyad_lab::progress::ToStderr;
use dyad_lab::protocol::PowerAction;
use dyad_lab::timeline::{Entry, Phase, Timeline};
use dyad_lab::{Lab, LabConfig, Lifetime, Supervision, residue};

/// How long the pair may take for anything that ends in fencing.
pub(crate) const FENCING: Duration = Duration::from_secs(90);

/// A lab for one scenario.
pub(crate) struct Scenario {
    lab: Option<Lab>,
}

/// The program that becomes the lab's supervisor.
pub(crate) fn supervision() -> Supervision {
    Supervision { command: vec![env!("CARGO_BIN_EXE_dyad-lab-supervisor").into()] }
}

/// A configuration for a scenario. The process id keeps scenarios of several trees apart.
pub(crate) fn config(name: &str) -> LabConfig {
    let mut config = LabConfig::named(&format!("{name}-{}", std::process::id()));
    if let Some(agent) = std::env::var_os("DYAD_FENCE_AGENT") {
        config.fence_agent = FenceAgent::Dyad(agent.into());
    }
    config
}

/// The same on Debian 12: Pacemaker 2.1, Corosync 3.1.7, etcd 3.4. With the distribution's fence agent, because
/// ours is built on this machine, and may want a newer C library than that release has.
pub(crate) fn bookworm(name: &str) -> LabConfig {
    let mut config = config(name);
    config.release = Release::Bookworm;
    config.fence_agent = FenceAgent::Distribution;
    config
}

impl Scenario {
    /// Starts a lab whose pair is complete.
    pub(crate) fn start(config: &LabConfig) -> Self {
        let lab = Lab::up(config, &supervision(), Lifetime::OfCaller, &ToStderr::default());
        Self { lab: Some(lab.unwrap_or_else(|error| panic!("{}", dyad_lab::error::chain(&error)))) }
    }

    /// Waits until a condition holds; what is missing at the end fails the scenario.
    #[track_caller]
    pub(crate) fn wait(
        &self,
        what: &str,
        limit: Duration,
        missing: impl FnMut() -> Option<String>,
    ) {
        if let Err(error) = self.wait_until(what, limit, missing) {
            panic!("{error}");
        }
    }

    /// Waits until a step of a kind has happened since the last fault, and gives the timeline.
    #[track_caller]
    pub(crate) fn wait_for(&self, phase: Phase, text: &str) -> Timeline {
        let mut timeline = None;
        self.wait(&format!("{}: {text}", phase.name()), FENCING, || {
            timeline = Some(self.timeline(false).unwrap());
            let found =
                steps(timeline.as_ref()?, phase).iter().any(|step| step.text.contains(text));
            (!found).then(|| "it is not in the timeline".into())
        });
        timeline.unwrap()
    }

    /// Waits until both nodes are members again and every resource runs.
    #[track_caller]
    pub(crate) fn wait_complete(&self) {
        self.wait("the pair to be complete", FENCING, || {
            self.config().nodes.iter().find_map(|node| self.missing_of_pair(&node.name))
        });
    }

    /// Waits until both links are connected on both nodes.
    #[track_caller]
    pub(crate) fn wait_for_links(&self) {
        self.wait("both links on both nodes", FENCING, || {
            self.config().nodes.iter().find_map(|node| {
                let links = self.run(&node.name, &["corosync-cfgtool", "-n"]);
                let connected = links.matches("enabled connected").count();
                (connected != 2).then(|| links.replace('\n', " "))
            })
        });
    }

    /// Pulls a node's plug.
    pub(crate) fn pull_plug(&self, node: &str) {
        self.power(node, PowerAction::Off).unwrap();
    }

    /// Runs a command in a node that must succeed, and gives what it wrote.
    #[track_caller]
    pub(crate) fn run(&self, node: &str, command: &[&str]) -> String {
        let finished = self.exec(node, command, Duration::from_secs(20)).unwrap();
        assert!(finished.success(), "{command:?} on {node}: {finished:?}");
        finished.stdout
    }

    /// Prints the timeline and ends the lab; nothing may be left of it.
    pub(crate) fn finish(mut self) {
        let lab = self.lab.take().unwrap();
        eprintln!("{}", lab.timeline(false).unwrap().table());
        let place = lab.place().clone();
        drop(lab);
        assert_eq!(residue(&place).unwrap(), Vec::<String>::new());
    }
}

impl Deref for Scenario {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        self.lab.as_ref().unwrap()
    }
}

impl Drop for Scenario {
    /// A scenario that failed tells what happened before its lab ends.
    fn drop(&mut self) {
        if let Some(lab) = &self.lab {
            match lab.timeline(true) {
                Ok(timeline) => eprintln!("{}", timeline.table()),
                Err(error) => eprintln!("no timeline: {error}"),
            }
        }
    }
}

/// The steps of one kind.
pub(crate) fn steps(timeline: &Timeline, phase: Phase) -> Vec<&Entry> {
    timeline.entries.iter().filter(|entry| entry.phase == phase).collect()
}

/// The nodes that lost their power since the fault, in order.
pub(crate) fn powered_off(timeline: &Timeline) -> Vec<&str> {
    steps(timeline, Phase::PowerOff).iter().map(|step| step.place.as_str()).collect()
}
