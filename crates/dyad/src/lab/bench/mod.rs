//! `dyad lab bench`: how long things take, on pairs of its own, with medians and spread; and how others do on the same
//! nodes.

mod cut;
mod facts;
mod monitor;
mod node_lost;
mod pair;
mod plot;
mod results;
mod table;

use std::path::Path;

use anyhow::Context as _;
use dyad_lab::config::{FenceAgent, PairStack, Rival, Stack};
use dyad_lab::progress::{Progress as _, ToStderr};
use dyad_lab::{Lab, LabConfig, Lifetime, Supervision};

use super::BenchArgs;
use super::run::package;
use crate::exit::Exit;
use crate::output::Format;
use facts::Facts;
use pair::Pair;
use results::{Bench, Contestant, Samples};

/// What the JSON is.
const KIND: &str = "LabBench";

/// How much the logs of a dataset and of its copies aside take: etcd reserves 64 MB at a time.
const LOGS_MIB: u32 = 1024;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dyad,
    Rival(Rival),
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Dyad => "Dyad",
            Self::Rival(Rival::ForceNewCluster) => "force-new-cluster",
            Self::Rival(Rival::PodmanEtcd) => "podman-etcd",
        }
    }
}

/// What is done with one pair.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: u32,
    /// Compared with others: only what they can do as well.
    compared: bool,
    /// The first size of the database: what does not depend on it is measured here only.
    first_size: bool,
}

/// Measures, or reads what was measured; prints it, and draws it if that is wanted.
pub(super) fn run(arguments: &BenchArgs, format: Format) -> anyhow::Result<Exit> {
    let bench = match &arguments.from {
        Some(path) => read(path)?,
        None => measure_all(arguments)?,
    };
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot::draw(&bench))
            .with_context(|| format!("writing the picture {}", path.display()))?;
    }
    table::print(&bench, format)?;
    Ok(if bench.failed { Exit::No } else { Exit::Ok })
}

fn read(path: &Path) -> anyhow::Result<Bench> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("reading the benchmark {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not what dyad lab bench -o json prints", path.display()))
}

fn measure_all(arguments: &BenchArgs) -> anyhow::Result<Bench> {
    let progress = ToStderr::default();
    let mut kinds = vec![Kind::Dyad];
    kinds.extend(arguments.against.iter().map(|&rival| Kind::Rival(rival.into())));
    let compared = kinds.len() > 1;
    let usual = LabConfig::named("bench");
    let mut bench = Bench {
        facts: Facts::now(usual.release.name()),
        token_ms: arguments.token_ms,
        rounds: arguments.rounds,
        encrypted: compared,
        contestants: Vec::new(),
        rows: Vec::new(),
        incidents: Vec::new(),
        failed: false,
    };
    let mut all = Vec::new();
    // One size after the other, and everyone at each: what else the machine does meets them alike.
    for (position, &database_mb) in arguments.database_mb.iter().enumerate() {
        let first_size = position == 0;
        for &kind in &kinds {
            progress.step(&format!("{}, {database_mb} MB", kind.name()));
            let plan = Plan { rounds: arguments.rounds, compared, first_size };
            let config = config(kind, arguments.token_ms, database_mb, compared)?;
            let mut samples = Samples::new(kind.name(), database_mb);
            measure(kind, &config, (database_mb, plan), &mut samples, &mut bench, &progress)?;
            all.push(samples);
        }
    }
    bench.rows = results::rows(&all);
    Ok(bench)
}

fn config(
    kind: Kind,
    token_ms: u32,
    database_mb: u32,
    compared: bool,
) -> anyhow::Result<LabConfig> {
    let mut config = LabConfig::named(&format!("bench-{}", std::process::id()));
    config.token_ms = token_ms;
    // Pacemaker starts them before etcd, one after the other: either everyone has them or nobody.
    config.units_before = !compared;
    // The data, a snapshot on its way, a copy aside, and a new one; and the logs of each, which do not shrink with it.
    config.etcd_disk_mib = config.etcd_disk_mib.max(LOGS_MIB + database_mb * 6);
    match kind {
        Kind::Dyad => {
            let package = package(None)?;
            config.stack =
                Stack::Pair(PairStack { package, tls: compared, by_hand: false, podman: false });
        }
        Kind::Rival(rival) => {
            config.stack = Stack::Rival(rival);
            config.fence_agent = FenceAgent::Distribution;
            config.etcd = false;
        }
    }
    Ok(config)
}

/// One pair, from its start to its end. What goes wrong is a result, too: what was measured before it is not lost.
fn measure(
    kind: Kind,
    config: &LabConfig,
    (database_mb, plan): (u32, Plan),
    samples: &mut Samples,
    bench: &mut Bench,
    progress: &ToStderr,
) -> anyhow::Result<()> {
    let mut incidents = Vec::new();
    let own = std::env::current_exe().context("finding this program's own file")?;
    let command = vec![own.clone().into(), "lab".into(), "supervise".into()];
    match Lab::up(config, &Supervision { command }, Lifetime::OfCaller, progress) {
        Err(error) => incidents.push(format!("did not start: {error}")),
        Ok(lab) => {
            let directory = tempfile::tempdir().context("making a directory for the histories")?;
            let mut pair = Pair::new(lab, kind, own, directory.path());
            if bench.contestants.iter().all(|each| each.name != kind.name()) {
                let versions = pair.versions();
                bench.contestants.push(Contestant { name: kind.name().to_owned(), versions });
            }
            let measured = pair.rounds(database_mb, plan, samples, progress);
            if let Err(error) = measured {
                let journals = pair.keep_journals(database_mb);
                incidents.push(format!("ended early: {error:#}; {journals}"));
            }
            let found = std::mem::take(&mut pair.found);
            incidents.extend(found.into_iter().map(|(what, count)| format!("{what}: {count}")));
        }
    }
    bench.failed |= kind == Kind::Dyad && !incidents.is_empty();
    for incident in incidents {
        let incident = format!("{}, {database_mb} MB: {incident}", kind.name());
        progress.step(&incident);
        bench.incidents.push(incident);
    }
    Ok(())
}

impl Pair<'_> {
    fn rounds(
        &mut self,
        database_mb: u32,
        plan: Plan,
        samples: &mut Samples,
        progress: &ToStderr,
    ) -> anyhow::Result<()> {
        self.wait_whole()?;
        if database_mb > 0 {
            progress.step(&format!("filling the database with {database_mb} MB"));
            self.fill(database_mb)?;
        }
        let Plan { rounds, compared, first_size } = plan;
        // (who is lost, who leads)
        let losses: &[(usize, usize)] = match (compared, first_size) {
            (false, _) => &[(0, 0), (1, 0), (1, 1), (0, 1)],
            (true, true) => &[(0, 0), (1, 1)],
            // Without the delay that decides a split.
            (true, false) => &[(1, 1)],
        };
        for round in 1..=rounds {
            for &(victim, leader) in losses {
                progress.step(&format!("round {round} of {rounds}: a node is lost"));
                self.node_lost(victim, leader, samples)?;
            }
            if compared && first_size {
                self.cuts(samples, progress)?;
            }
            if !compared {
                for (leaver, leader) in [(0, 0), (1, 0)] {
                    progress.step(&format!("round {round} of {rounds}: a planned stop"));
                    self.planned_stop(leaver, leader, samples)?;
                }
                self.copy(samples)?;
            }
            if first_size {
                self.monitors(samples)?;
            }
        }
        Ok(())
    }
}
