//! Clients that write and read through both nodes during a scenario, and the judge of what they saw.

use dyad_judge::linearizable::Limits;
use dyad_judge::load::{Report, report};
use dyad_judge::verdict::{self, Answer};
use dyad_lab::clients::{Clients as Process, Load};
use dyad_lab::error::chain;
use tempfile::TempDir;

use crate::common::{Pair, programs};

/// Clients at work. They end when the scenario does.
pub(crate) struct Clients {
    process: Process,
    // What the clients write into; gone with them.
    _directory: TempDir,
}

/// What the clients saw.
pub(crate) struct Seen {
    /// Times and counts.
    pub(crate) report: Report,
    /// The nodes whose data were read in the end.
    pub(crate) read: Vec<String>,
}

impl Clients {
    /// Starts them.
    #[track_caller]
    pub(crate) fn start(pair: &Pair) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let load = Load::usual(&programs().join("dyad"));
        let process = Process::start(pair, &load, &directory.path().join("history.jsonl"))
            .unwrap_or_else(|error| panic!("{}", chain(&error)));
        Self { process, _directory: directory }
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
    #[track_caller]
    pub(crate) fn end(self, pair: &Pair) -> (Seen, Answer, String) {
        let history = self.process.end(pair).unwrap_or_else(|error| panic!("{}", chain(&error)));
        let verdict = verdict::judge(&history, Limits::default());
        let read = verdict.lost.nodes.clone();
        let report = report(&history, None);
        (Seen { report, read }, verdict.answer, verdict.render())
    }
}
