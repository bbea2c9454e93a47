//! `dyad lab load` and `dyad lab judge`: clients that write during faults, and the judge of what they saw.

use std::sync::Arc;
use std::thread;

use anyhow::Context as _;
use dyad_judge::cli::{FillArgs, JudgeArgs, LoadArgs};
use dyad_judge::history::{self, History, HistoryError};
use dyad_judge::load::{self, LoadError, Report, Stop};
use dyad_judge::verdict::{self, Answer, Verdict};
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Fills an etcd.
pub(super) fn fill(args: &FillArgs) -> anyhow::Result<Exit> {
    let tls = args.tls.config();
    load::fill((&args.endpoint, tls.as_ref()), &args.prefix, args.keys, args.value_bytes)
        .with_context(|| format!("filling {}", args.endpoint))?;
    Ok(Exit::Ok)
}

/// Judges histories. Good is yes, bad is no, undecided is a failure to answer.
pub(super) fn judge(args: &JudgeArgs, format: Format) -> anyhow::Result<Exit> {
    let histories: Result<Vec<History>, HistoryError> =
        args.histories.iter().map(|path| history::read(path)).collect();
    let history = History::merge(histories.map_err(unreadable)?);
    let verdict = verdict::judge(&history, args.limits());
    let report = load::report(&history, args.since);
    match format {
        Format::Text => {
            output::print_data(&format!("{}\n{}", verdict.render(), report.render()))?;
        }
        Format::Json => {
            #[derive(Serialize)]
            struct Body<'a> {
                #[serde(flatten)]
                verdict: &'a Verdict,
                report: Report,
            }
            output::print_json("Judgement", Body { verdict: &verdict, report })?;
        }
    }
    Ok(match verdict.answer {
        Answer::Good => Exit::Ok,
        Answer::Bad => Exit::No,
        Answer::Undecided => Exit::Failed,
    })
}

fn unreadable(error: HistoryError) -> anyhow::Error {
    let exit = match &error {
        HistoryError::Read { .. } => Exit::Failed,
        HistoryError::Line { .. } => Exit::Usage,
    };
    let failure = Failure::new(exit, full(&error));
    failure.hint("a history is what `dyad lab load` writes").into()
}

/// An error with its causes: a failure is printed by its message alone.
fn full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Puts load on nodes until the limit, or until interrupted, and reports.
pub(super) fn load(args: &LoadArgs, format: Format) -> anyhow::Result<Exit> {
    // Before any thread is started: they inherit it, so that signals come to the one that waits for them.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.thread_block().context("cannot block signals")?;

    let config = args.config(dyad_judge::clock::now_ns());
    anstream::eprintln!("seed {}, keys under {}", config.seed, config.prefix);
    let mut run = load::start(config, &args.history).map_err(not_started)?;
    stop_on_signal(signals, run.stop_handle());
    run.wait()?;
    anstream::eprintln!("reading what each node holds (at most {:?})", args.final_limit);
    let ended = run.finish(args.final_limit)?;
    for (node, why) in &ended.unread {
        anstream::eprintln!("{node} was not read: {why}");
    }
    let report = load::report(&history::read(&args.history)?, None);
    match format {
        Format::Text => output::print_data(&report.render())?,
        Format::Json => output::print_json("LoadReport", report)?,
    }
    Ok(Exit::Ok)
}

fn not_started(error: LoadError) -> anyhow::Error {
    let (exit, hint) = match &error {
        LoadError::Config(_) | LoadError::Client(_) => (Exit::Usage, None),
        LoadError::NotEmpty { .. } => {
            (Exit::Refused, Some("take another --prefix, or none: then it is a new one each time"))
        }
        LoadError::NoAnswer(_) => {
            (Exit::Failed, Some("at least one node must answer at the start"))
        }
        LoadError::History { .. } => (Exit::Failed, Some("the history must be a new file")),
        LoadError::Panicked => (Exit::Failed, None),
    };
    let failure = Failure::new(exit, full(&error));
    match hint {
        Some(hint) => failure.hint(hint).into(),
        None => failure.into(),
    }
}

/// The first signal ends the load in good order, the second at once.
fn stop_on_signal(signals: SigSet, stop: Arc<Stop>) {
    thread::spawn(move || {
        if signals.wait().is_ok() {
            anstream::eprintln!("ending; interrupt again to end at once");
            stop.stop();
        }
        if signals.wait().is_ok() {
            std::process::exit(Exit::Failed as i32);
        }
    });
}
