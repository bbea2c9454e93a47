//! Nodes that are to become a pair, and what their set-up says of itself.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use dyad_lab::config::{PairStack, Stack};
use dyad_lab::pair::BUNDLES_BY_HAND;
use dyad_lab::progress::ToStderr;
use dyad_lab::{ExecTarget, Lab, LabConfig, Lifetime, Supervision};
use dyad_program::Finished;
use dyad_setup::state::SetupState;

/// How long a set-up may take.
pub(crate) const SETUP: Duration = Duration::from_secs(150);
/// How long one command in a node may take.
pub(crate) const COMMAND: Duration = Duration::from_mins(1);

/// Two nodes of a lab.
pub(crate) struct Nodes {
    lab: Option<Lab>,
}

/// The programs on this machine.
pub(crate) fn programs() -> PathBuf {
    std::env::var_os("DYAD_PROGRAMS").expect("scripts/lab-test says where they are").into()
}

fn package() -> PathBuf {
    programs().with_file_name("package").join("dyad.deb")
}

/// Two nodes with the package; each is set up at its boot, or by hand.
pub(crate) fn config(name: &str, tls: bool, by_hand: bool) -> LabConfig {
    let mut config = LabConfig::named(&format!("setup-{name}-{}", std::process::id()));
    config.stack = Stack::Pair(PairStack { package: package(), tls, by_hand, podman: false });
    config
}

impl Nodes {
    /// Starts them; without `by_hand` it returns when they are a pair.
    pub(crate) fn start(config: &LabConfig) -> Self {
        let command = vec![env!("CARGO_BIN_EXE_dyad-lab-supervisor").into()];
        let supervision = Supervision { command };
        let lab = Lab::up(config, &supervision, Lifetime::OfCaller, &ToStderr::default());
        Self { lab: Some(lab.unwrap_or_else(|error| panic!("{}", dyad_lab::error::chain(&error)))) }
    }

    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.config().nodes[0].name, &self.config().nodes[1].name].map(String::as_str)
    }

    /// Runs a shell script in a node that must succeed, and gives what it wrote.
    #[track_caller]
    pub(crate) fn shell(&self, node: &str, script: &str) -> String {
        let finished = self.exec(node, &["sh", "-ec", script], COMMAND).unwrap();
        assert!(finished.success(), "{script} on {node}: {finished:?}");
        finished.stdout
    }

    /// The same, with something to read.
    #[track_caller]
    pub(crate) fn shell_with(&self, node: &str, script: &str, input: &str) -> String {
        let words = ["sh", "-ec", script].map(Into::into);
        let mut command = self.exec_command(&ExecTarget::Node(node.into()), &words).unwrap();
        let finished = dyad_program::run(&mut command, input, COMMAND).unwrap();
        assert!(finished.success(), "{script} on {node}: {finished:?}");
        finished.stdout
    }

    /// Waits until a node takes commands: it may still be booting.
    pub(crate) fn wait_booted(&self, node: &str) {
        self.wait(&format!("the boot of {node}"), || {
            let answer = self.exec(node, &["systemctl", "is-active", "basic.target"], COMMAND);
            (!answer.is_ok_and(|answer| answer.success())).then(|| "not up yet".into())
        });
    }

    fn words(node: &str) -> [String; 4] {
        ["dyad".into(), "setup".into(), "--bundle".into(), format!("{BUNDLES_BY_HAND}/{node}")]
    }

    /// Runs the set-up of a node by hand, to its end.
    pub(crate) fn setup(&self, node: &str) -> Finished {
        let words = Self::words(node);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.exec(node, &words, SETUP).unwrap()
    }

    /// Begins the set-up of a node by hand.
    pub(crate) fn begin_setup(&self, node: &str) -> Child {
        let words = Self::words(node);
        self.begin(node, &words.each_ref().map(String::as_str))
    }

    /// Begins a command in a node.
    pub(crate) fn begin(&self, node: &str, words: &[&str]) -> Child {
        let words: Vec<_> = words.iter().map(Into::into).collect();
        let target = ExecTarget::Node(node.into());
        let mut command = self.exec_command(&target, &words).unwrap();
        command.stdin(Stdio::null()).spawn().unwrap()
    }

    /// What a node's set-up has come to; readable whether the node runs or not.
    pub(crate) fn state(&self, node: &str) -> Option<SetupState> {
        let state = self.place().node(node).join("upper/var/lib/dyad");
        let text = std::fs::read_to_string(SetupState::path(&state)).ok()?;
        serde_json::from_str(&text).ok()
    }

    #[track_caller]
    pub(crate) fn wait(&self, what: &str, missing: impl FnMut() -> Option<String>) {
        if let Err(error) = self.wait_until(what, SETUP, missing) {
            panic!("{error}");
        }
    }

    /// Both are ready, and what they say is true: etcd has two voters and takes a write.
    #[track_caller]
    pub(crate) fn assert_pair(&self) {
        self.wait("both nodes to be ready", || {
            self.names().iter().find_map(|node| {
                let state = self.state(node)?;
                (!state.is_ready())
                    .then(|| format!("{node}: {:?} {:?}", state.result, state.failure))
            })
        });
        self.wait_for_pair(&ToStderr::default()).unwrap();
        for node in self.names() {
            let state = self.state(node).unwrap();
            assert!(state.failure.is_none() && state.current().is_none(), "{state:?}");
            let took = state.updated_ms - state.started_ms;
            eprintln!("{node}: set up in {}.{} s", took / 1000, took % 1000 / 100);
        }
    }
}

impl Deref for Nodes {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        self.lab.as_ref().unwrap()
    }
}

impl Drop for Nodes {
    /// A scenario that failed tells what the set-up said on both nodes.
    fn drop(&mut self) {
        let Some(lab) = self.lab.take() else { return };
        if std::thread::panicking() {
            eprintln!("{}", lab.keep_journals());
            for message in lab.journals(0).unwrap_or_default() {
                if message.program.starts_with("dyad") {
                    eprintln!("{} {}: {}", message.time_us, message.node, message.text);
                }
            }
        }
    }
}
