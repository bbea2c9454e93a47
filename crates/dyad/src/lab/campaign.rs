//! `dyad lab campaign`: random faults on a pair of its own, and what came of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use dyad_judge::linearizable::Limits;
use dyad_judge::verdict::Answer;
use dyad_judge::{clock, history, verdict};
use dyad_lab::campaign::{Plan, Replayed, Report, Settings};
use dyad_lab::clients::Load;
use dyad_lab::config::{PairStack, Release, Stack};
use dyad_lab::progress::{Progress as _, ToStderr};
use dyad_lab::{LabConfig, Supervision};
use serde::Serialize;

use super::CampaignArgs;
use super::run::{failure, package};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Room for the data and the copies that are kept, whatever is filled: no copy may have to go for want of room.
const DISK_MIB: u32 = 1536;

/// Draws a plan and does it; or only prints it; or replays what an earlier one has kept.
pub(super) fn run(arguments: CampaignArgs, format: Format) -> anyhow::Result<Exit> {
    if let Some(directory) = &arguments.replay {
        return replay(directory, format);
    }
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let plan = Plan::draw(seed, arguments.faults, &arguments.only);
    if arguments.plan {
        match format {
            Format::Json => output::print_json("CampaignPlan", &plan)?,
            Format::Text => output::print_data(&plan.render())?,
        }
        return Ok(Exit::Ok);
    }
    let directory = directory(arguments.keep.as_deref(), seed)?;
    let settings = settings(&arguments, plan, &directory)?;
    let progress = ToStderr::default();
    progress.step(&format!("seed {seed}; again: {}", settings.again));
    let done = dyad_lab::campaign::run(&settings, &progress);
    let mut report = done.map_err(failure).with_context(|| {
        format!("seed {seed}; what there is was kept in {}", directory.display())
    })?;
    if report.passed && arguments.keep.is_none() {
        let _ = std::fs::remove_dir_all(&directory);
    } else {
        report.kept = Some(directory.display().to_string());
    }
    print(&report, format)
}

/// Short enough to be typed.
fn fresh_seed() -> u64 {
    clock::now_ns() / 1_000 % 1_000_000_000
}

fn print(report: &Report, format: Format) -> anyhow::Result<Exit> {
    match format {
        Format::Json => output::print_json("Campaign", report)?,
        Format::Text => output::print_data(&report.render())?,
    }
    Ok(if report.passed { Exit::Ok } else { Exit::No })
}

/// A directory for what is kept: the one that was named, which must be new or empty, or one of its own.
fn directory(named: Option<&Path>, seed: u64) -> anyhow::Result<PathBuf> {
    let path = named.map_or_else(
        || std::env::temp_dir().join(format!("dyad-campaign-{seed}-{}", std::process::id())),
        Path::to_path_buf,
    );
    let full = std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
    if full {
        let message = format!("{} is not empty", path.display());
        return Err(Failure::new(Exit::Usage, message).hint("name a new directory").into());
    }
    std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
    std::path::absolute(&path).with_context(|| format!("finding {}", path.display()))
}

fn settings(arguments: &CampaignArgs, plan: Plan, directory: &Path) -> anyhow::Result<Settings> {
    let own = std::env::current_exe().context("finding this program's own file")?;
    let mut lab = LabConfig::named(&format!("campaign-{}", std::process::id()));
    lab.release = arguments.release.into();
    lab.etcd_disk_mib = DISK_MIB;
    let package = package(arguments.package.clone())?;
    lab.stack = Stack::Pair(PairStack { package, tls: false, by_hand: false, podman: false });
    let command = vec![own.clone().into(), "lab".into(), "supervise".into()];
    let (clients, rate) = (arguments.clients, arguments.rate);
    let load = Load { clients, rate, seed: Some(plan.seed), ..Load::usual(&own) };
    let prepare = broken(arguments)?;
    Ok(Settings {
        again: again(arguments, &plan),
        plan,
        limit: Duration::from_mins(arguments.minutes),
        lab,
        supervision: Supervision { command },
        load,
        directory: directory.to_owned(),
        broken_rules: !prepare.is_empty(),
        prepare,
    })
}

/// What is done to both nodes so that a rule is broken there.
#[cfg(feature = "broken-variants")]
fn broken(arguments: &CampaignArgs) -> anyhow::Result<Vec<Vec<String>>> {
    use dyad_node::broken::{Broken, FILE};
    let Some(rule) = &arguments.broken else { return Ok(Vec::new()) };
    let script = if rule == "NoFencingDelay" {
        "crm_resource --resource fence-node-a --set-parameter split_delay_ms --parameter-value 0"
            .to_owned()
    } else if Broken::named(rule).is_some() {
        format!("umask 077; echo {rule} > {FILE}")
    } else {
        return Err(Failure::new(Exit::Usage, format!("there is no rule {rule:?}"))
            .hint("docs/internals/campaign.md lists them")
            .into());
    };
    Ok(vec![vec!["sh".to_owned(), "-c".to_owned(), script]])
}

/// No rule can be broken in this build.
#[cfg(not(feature = "broken-variants"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "a build that can break rules may be told a wrong name"
)]
fn broken(_: &CampaignArgs) -> anyhow::Result<Vec<Vec<String>>> {
    Ok(Vec::new())
}

/// The command that does the same again.
fn again(arguments: &CampaignArgs, plan: &Plan) -> String {
    let mut text = format!("dyad lab campaign --seed {} --faults {}", plan.seed, arguments.faults);
    let release = Release::from(arguments.release);
    if release != Release::default() {
        let _ = write!(text, " --release {}", release.name());
    }
    if !arguments.only.is_empty() {
        let kinds: Vec<_> = arguments.only.iter().map(ToString::to_string).collect();
        let _ = write!(text, " --only {}", kinds.join(","));
    }
    let _ = write!(text, " --clients {} --rate {}", arguments.clients, arguments.rate);
    #[cfg(feature = "broken-variants")]
    if let Some(rule) = &arguments.broken {
        let _ = write!(text, " --broken {rule}");
    }
    text
}

/// What a replay of a kept directory came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Again {
    #[serde(flatten)]
    replayed: Replayed,
    histories: Vec<Judged>,
}

/// A history that was judged again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Judged {
    file: String,
    answer: Answer,
    operations: usize,
}

fn replay(directory: &Path, format: Format) -> anyhow::Result<Exit> {
    let replayed = dyad_lab::campaign::replay(directory).map_err(failure)?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .with_context(|| format!("reading {}", directory.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let is_history = path.extension().is_some_and(|extension| extension == "jsonl");
            is_history && name.starts_with("history-")
        })
        .collect();
    files.sort();
    let mut histories = Vec::new();
    for path in files {
        let verdict = verdict::judge(&history::read(&path)?, Limits::default());
        if verdict.answer != Answer::Good && format == Format::Text {
            output::print_data(&format!("{}: {}\n", path.display(), verdict.render()))?;
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        histories.push(Judged { file, answer: verdict.answer, operations: verdict.operations });
    }
    let again = Again { replayed, histories };
    let same = again.replayed.different.is_empty();
    match format {
        Format::Json => output::print_json("CampaignReplay", &again)?,
        Format::Text => output::print_data(&in_words(&again))?,
    }
    let good = again.histories.iter().all(|judged| judged.answer == Answer::Good);
    Ok(if same && good { Exit::Ok } else { Exit::No })
}

fn in_words(again: &Again) -> String {
    let Replayed { decisions, different } = &again.replayed;
    let mut text = format!("{decisions} decisions replayed, {} differ\n", different.len());
    for each in different {
        let _ = writeln!(
            text,
            "  {} at {}: logged {}, now {}",
            each.node,
            each.time_ms,
            each.logged,
            each.replayed.as_ref().map_or_else(|| "unreadable facts".into(), ToString::to_string)
        );
    }
    for judged in &again.histories {
        let _ = writeln!(
            text,
            "{}: {:?}, {} operations",
            judged.file, judged.answer, judged.operations
        );
    }
    text
}
