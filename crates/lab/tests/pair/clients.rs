//! Clients that write and read through both nodes during a scenario, and the judge of what they saw.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use dyad_judge::history;
use dyad_judge::linearizable::Limits;
use dyad_judge::load::{Report, report};
use dyad_judge::verdict::{self, Answer};
use dyad_lab::ExecTarget;
use dyad_lab::config::{Stack, reserved};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::common::{Pair, programs};

/// Clients at work. They end when the scenario does.
pub(crate) struct Clients {
    child: Child,
    directory: TempDir,
}

/// What the clients saw.
pub(crate) struct Seen {
    /// Times and counts.
    pub(crate) report: Report,
    /// The nodes whose data were read in the end.
    pub(crate) read: Vec<String>,
}

impl Clients {
    /// Starts them, on the network that cuts of the cluster links do not reach.
    pub(crate) fn start(pair: &Pair) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut words: Vec<OsString> = vec![programs().join("dyad").into()];
        words.extend(["lab", "load", "--clients", "8", "--rate", "150"].map(OsString::from));
        words.extend(["--request-limit", "5s", "--final-limit", "60s"].map(OsString::from));
        let Stack::Pair(stack) = &pair.config().stack else { panic!("not a pair") };
        for (position, node) in pair.config().nodes.iter().enumerate() {
            let scheme = if stack.tls { "https" } else { "http" };
            let address = reserved::node_for_clients(position);
            let endpoint = format!("{}={scheme}://{address}:2379", node.name);
            words.extend(["--endpoint".into(), endpoint.into()]);
        }
        words.push(directory.path().join("history.jsonl").into());
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let child = pair
            .exec_command(&ExecTarget::Client, &words)
            .unwrap()
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut clients = Self { child, directory };
        // Not before they have begun is there anything to lose.
        pair.wait("the clients to write", || {
            if let Ok(Some(status)) = clients.child.try_wait() {
                panic!("the clients ended with {status}: {}", clients.log());
            }
            let written = std::fs::metadata(clients.history()).map_or(0, |file| file.len());
            (written < 20_000).then(|| format!("{written} bytes of history"))
        });
        clients
    }

    fn history(&self) -> PathBuf {
        self.directory.path().join("history.jsonl")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Ends them and judges: linearizable, nothing acknowledged lost, or the scenario fails.
    #[track_caller]
    pub(crate) fn judge(self, pair: &Pair) -> Seen {
        let seen = self.end(pair);
        assert_eq!(seen.1, Answer::Good, "{}", seen.2);
        eprintln!("{}\n{}", seen.2, seen.0.report.render());
        seen.0
    }

    /// Ends them and tells what the judge says.
    pub(crate) fn end(mut self, pair: &Pair) -> (Seen, Answer, String) {
        let id = Pid::from_raw(self.child.id().cast_signed());
        kill(id, Signal::SIGINT).unwrap();
        pair.wait_until("the clients to end", Duration::from_secs(90), || {
            self.child.try_wait().unwrap().is_none().then(|| "they still run".into())
        })
        .unwrap();
        let history = history::read(&self.history())
            .unwrap_or_else(|error| panic!("{error:?}\n{}", self.log()));
        let verdict = verdict::judge(&history, Limits::default());
        let read = verdict.lost.nodes.clone();
        let report = report(&history, None);
        (Seen { report, read }, verdict.answer, verdict.render())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
