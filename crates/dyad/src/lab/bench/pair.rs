//! A pair that is measured, and what is asked of it. Nothing here is done more often for one contestant than for another,
//! and nothing at a time that is measured costs more than a glance.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use dyad_judge::clock::now_ns;
use dyad_judge::history::History;
use dyad_judge::load::{self, Report};
use dyad_judge::lost;
use dyad_judge::verdict::{self, Answer};
use dyad_lab::Lab;
use dyad_lab::clients::{self, Clients, Load};

use super::Kind;
use crate::exit::{Exit, Failure};
use crate::lab::run::failure;

/// How long a lost node may take to be a replica again.
const RECOVERY: Duration = Duration::from_mins(8);
/// How often the pair is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(250);
/// How long one command in a node may take.
pub(super) const COMMAND: Duration = Duration::from_mins(2);
/// The packages whose versions are told.
const PACKAGES: [&str; 6] =
    ["corosync", "pacemaker", "etcd-server", "fence-agents-redfish", "resource-agents", "podman"];

/// A pair that is measured.
pub(super) struct Pair<'a> {
    pub(super) lab: Lab,
    pub(super) kind: Kind,
    /// What its clients found wrong, other than lost writes, and how often.
    pub(super) found: BTreeMap<&'static str, usize>,
    load: Load,
    directory: &'a Path,
}

/// What clients saw.
pub(super) struct Seen {
    pub(super) report: Report,
    /// How many acknowledged writes are gone.
    pub(super) lost: f64,
}

impl<'a> Pair<'a> {
    pub(super) fn new(lab: Lab, kind: Kind, program: PathBuf, directory: &'a Path) -> Self {
        let load = Load { program, clients: 32, rate: 300, seed: None, prefix: None };
        Self { lab, kind, found: BTreeMap::new(), load, directory }
    }

    pub(super) fn name(&self, position: usize) -> &str {
        &self.lab.config().nodes[position].name
    }

    pub(super) fn run(&self, node: &str, command: &[&str]) -> anyhow::Result<String> {
        let finished = self.lab.exec(node, command, COMMAND).map_err(failure)?;
        anyhow::ensure!(finished.success(), "{command:?} on {node}: {}", finished.stderr);
        Ok(finished.stdout)
    }

    /// What it is made of.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let ask = |package: &str| {
            let words = ["dpkg-query", "--show", "--showformat=${Version}", package];
            self.run(self.name(0), &words).ok().filter(|version| !version.is_empty())
        };
        let mut versions: BTreeMap<_, _> = PACKAGES
            .iter()
            .filter_map(|package| Some(((*package).to_owned(), ask(package)?)))
            .collect();
        let newest = self.run(self.name(0), &["cat", dyad_lab::image::NEWEST_AGENTS_VERSION]);
        if let Ok(version) = newest {
            versions.insert("resource-agents".to_owned(), version.trim().to_owned());
        }
        if self.kind == Kind::Dyad {
            versions.insert("dyad".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        }
        versions
    }

    /// Keeps the journals of a rival that did not come back; says where.
    pub(super) fn keep_journals(&self, database_mb: u32) -> String {
        let name = format!("dyad-bench-{}-{database_mb}.journal", self.kind.name());
        self.lab.keep_journals_in(&std::env::temp_dir().join(name))
    }

    /// What is missing until either node could be lost (again): Pacemaker has started all, and both etcds know two voters
    /// and answer.
    fn missing(&self) -> Option<String> {
        let status = match self.lab.status() {
            Ok(status) => status,
            Err(error) => return Some(error.to_string()),
        };
        // A node that is off is seen without asking anything of the other one, which is busy taking over.
        if let Some(off) = status.nodes.iter().find(|node| node.init.is_none()) {
            return Some(format!("{} is off", off.name));
        }
        let names = self.lab.names();
        names.iter().find_map(|name| self.lab.missing_of_pair(name)).or_else(|| {
            names.iter().find_map(|name| {
                let voters = self.lab.voters(name);
                (voters != 2).then(|| format!("{name} answers with {voters} voters"))
            })
        })
    }

    pub(super) fn wait_whole(&self) -> anyhow::Result<()> {
        wait("the pair to be whole", || self.missing())
    }

    /// Makes a node's etcd the leader.
    pub(super) fn lead(&self, position: usize) -> anyhow::Result<()> {
        let names = self.lab.names();
        let status = self.lab.etcd_status(names[position]).context("etcd tells no status")?;
        let own = status["header"]["member_id"].as_u64().context("etcd tells no id")?;
        if status["leader"].as_u64() != Some(own) {
            let words = ["move-leader", &format!("{own:x}")];
            let moved = self.lab.etcdctl(names[1 - position], &words);
            moved.with_context(|| format!("{} did not become the leader", names[position]))?;
        }
        Ok(())
    }

    pub(super) fn fill(&self, megabytes: u32) -> anyhow::Result<()> {
        let beside = self.directory.join("fill");
        clients::fill(&self.lab, &self.load.program, megabytes, &beside).map_err(failure)?;
        Ok(())
    }

    /// Starts the clients; their history grows in this file.
    pub(super) fn clients(&self) -> anyhow::Result<(Clients, PathBuf)> {
        let path = self.directory.join(format!("{}.jsonl", now_ns()));
        let clients = Clients::start(&self.lab, &self.load, &path).map_err(failure)?;
        Ok((clients, path))
    }

    /// Ends the clients. What they saw of Dyad must be good, or no number counts; what they saw of a rival is told.
    pub(super) fn judge(&mut self, clients: Clients, since_ns: u64) -> anyhow::Result<Seen> {
        let history = clients.end(&self.lab).map_err(failure)?;
        let verdict = verdict::judge(&history, dyad_judge::linearizable::Limits::default());
        if verdict.answer != Answer::Good && self.kind == Kind::Dyad {
            return Err(Failure::new(Exit::No, verdict.render()).into());
        }
        let counts = &verdict.lost.counts;
        for (kind, count) in counts.iter().filter(|it| *it.0 != lost::Kind::LostAcknowledgement) {
            *self.found.entry(kind.describe()).or_default() += count;
        }
        let lost = counts.get(&lost::Kind::LostAcknowledgement).copied().unwrap_or(0);
        let report = load::report(&history, Some(since_ns));
        Ok(Seen { report, lost: f64::from(u32::try_from(lost).unwrap_or(u32::MAX)) })
    }
}

/// Looks again and again until nothing is missing.
pub(super) fn wait(what: &str, mut missing: impl FnMut() -> Option<String>) -> anyhow::Result<()> {
    let start = Instant::now();
    while let Some(still) = missing() {
        anyhow::ensure!(
            start.elapsed() < RECOVERY,
            "{what} took longer than {} s; still missing: {still}",
            RECOVERY.as_secs()
        );
        sleep(LOOK);
    }
    Ok(())
}

/// Through whom a write was accepted that was sent after an instant, as far as the clients' history goes.
pub(super) fn accepted_since(path: &Path, since_ns: u64) -> Option<String> {
    let history: History = dyad_judge::history::read(path).ok()?;
    let first = load::report(&history, Some(since_ns)).first_write_after;
    first.into_iter().next().map(|(endpoint, _)| endpoint)
}
