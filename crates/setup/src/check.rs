//! What can be known before: about the file, about what it names, about the BMCs, and about this machine if
//! it is one of the nodes.
//!
//! Every probe has a limit, they run side by side, and the whole has a limit too: a BMC that does not answer
//! or a disk that hangs is a finding, not a wait.

pub(crate) mod bmc;
mod disk;
mod local;
pub(crate) mod network;
pub(crate) mod probe;
pub(crate) mod version;

use std::path::{Path, PathBuf};

use dyad_cluster::pair::Pair;
use dyad_core::timing::{Severity, WorstCase};
use dyad_pair_file::file::PairFile;
use dyad_pair_file::{Loaded, Position, Problem};
use serde::Serialize;

use crate::secrets::SecretsDir;
use crate::{account, pki};
use probe::Probe;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but people should know.
    Warning,
    /// It will not work, or not safely.
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How good it is.
    pub status: Status,
    /// A short name that stays the same, for scripts and documentation.
    pub id: String,
    /// What was looked at: `file`, `bmc node-a`, `disk`.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where in the file it is.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
}

impl Finding {
    fn new(status: Status, id: &str, subject: &str, message: impl Into<String>) -> Self {
        let (id, subject) = (id.to_owned(), subject.to_owned());
        Self { status, id, subject, message: message.into(), hint: None, at: None }
    }

    pub(crate) fn ok(id: &str, subject: &str, message: impl Into<String>) -> Self {
        Self::new(Status::Ok, id, subject, message)
    }

    pub(crate) fn warning(id: &str, subject: &str, message: impl Into<String>) -> Self {
        Self::new(Status::Warning, id, subject, message)
    }

    pub(crate) fn error(id: &str, subject: &str, message: impl Into<String>) -> Self {
        Self::new(Status::Error, id, subject, message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// How long the loss of one node takes at worst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Loss {
    /// The node that is lost.
    pub lost: String,
    /// The delay that its peer waits out first, unless its BMC already says Off.
    pub fence_delay_ms: u64,
    /// The phases.
    #[serde(flatten)]
    pub worst_case: WorstCase,
}

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The file.
    pub file: String,
    /// The pair's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    /// Which of the nodes this machine is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The findings: the file first, then the outside, then this machine.
    pub findings: Vec<Finding>,
    /// How long the loss of each node takes at worst.
    pub losses: Vec<Loss>,
}

impl Report {
    /// How many findings are of this kind.
    pub fn count(&self, status: Status) -> usize {
        self.findings.iter().filter(|finding| finding.status == status).count()
    }
}

/// Where the checks run. Tests put it elsewhere.
#[derive(Debug, Clone)]
pub struct Here {
    /// This machine's name.
    pub host_name: String,
    /// Where its root is.
    pub root: PathBuf,
}

impl Here {
    /// This machine.
    pub fn this_machine() -> Self {
        let host_name = nix::unistd::gethostname().unwrap_or_default();
        Self { host_name: host_name.to_string_lossy().into_owned(), root: "/".into() }
    }

    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// What is to be checked.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The file's name, as a person would write it.
    pub name: &'a str,
    /// The directory that relative paths of the file start from.
    pub base: &'a Path,
    /// Where secrets are kept.
    pub secrets: &'a Path,
    /// What was read.
    pub loaded: &'a Loaded,
}

/// Runs every check that can be run here.
pub fn run(subject: &Subject<'_>, here: &Here, offline: bool) -> Report {
    let loaded = subject.loaded;
    let mut findings: Vec<_> = loaded.problems.iter().map(from_problem).collect();
    let mut report = Report {
        file: subject.name.to_owned(),
        pair: None,
        node: None,
        findings: Vec::new(),
        losses: Vec::new(),
    };
    if let (Some(file), Some(pair)) = (&loaded.file, &loaded.pair) {
        let keys = "every key is known and fits the others";
        findings.insert(0, Finding::ok("file", "file", keys));
        report.pair = Some(pair.name.clone());
        report.losses = losses(pair);
        report.node = own_node(pair, here).map(|position| pair.nodes[position].name.0.clone());
        findings.extend(watches(pair));
        findings.extend(files(subject, file, pair));
        findings.extend(probe::run_all(probes(subject, file, pair, here, offline)));
    }
    report.findings = findings;
    report
}

fn own_node(pair: &Pair, here: &Here) -> Option<usize> {
    pair.nodes.iter().position(|node| node.name.0 == here.host_name)
}

fn from_problem(problem: &Problem) -> Finding {
    let status = match problem.severity {
        Severity::Warning => Status::Warning,
        Severity::Error => Status::Error,
    };
    let mut finding = Finding::new(status, problem.id, "file", problem.text());
    finding.hint.clone_from(&problem.hint);
    finding.at = problem.at;
    finding
}

fn losses(pair: &Pair) -> Vec<Loss> {
    let timing = pair.timing();
    let loss = |lost: usize| Loss {
        lost: pair.nodes[lost].name.0.clone(),
        fence_delay_ms: pair.fence_delay_ms(lost),
        worst_case: timing.worst_case(lost, false),
    };
    vec![loss(0), loss(1)]
}

/// What a take-over means for clients that watch: told, but nothing is wrong with it.
fn watches(pair: &Pair) -> Option<Finding> {
    let found = pair.timing().findings().into_iter().find(|finding| finding.id == "watches-end")?;
    Some(Finding::ok(found.id, "timing", found.message))
}

/// What the file names on this machine: credentials, authorities, kept secrets.
fn files(subject: &Subject<'_>, file: &PairFile, pair: &Pair) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in &file.nodes {
        let name = format!("bmc {}", node.name);
        match account::account(node, subject.base) {
            Ok(Some(_)) => {}
            Ok(None) => findings.push(Finding::ok(
                "credentials",
                &name,
                "the credentials are kept on the nodes; they are not checked here",
            )),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let hint = error.hint();
                let finding =
                    Finding::error("credentials", &name, cause.unwrap_or(error.to_string()));
                findings.push(Finding { hint, ..finding });
            }
        }
        if let Some(path) = node.bmc.tls.as_ref().and_then(|tls| tls.ca_file.as_ref()) {
            let path = account::resolve(subject.base, path);
            if let Err(error) = std::fs::metadata(&path) {
                let message = format!("cannot read {}: {error}", path.display());
                let hint = "put the authority's certificate there, or use `pin`";
                findings.push(Finding::error("bmc-ca", &name, message).hint(hint));
            }
        }
    }
    if subject.secrets.is_dir() {
        findings.extend(match SecretsDir::open(subject.secrets) {
            Ok(secrets) => pki::first_expiry(&secrets, pair).and_then(expiry),
            Err(error) => {
                let hint = error.hint();
                Some(Finding { hint, ..Finding::error("secrets", "secrets", error.to_string()) })
            }
        });
    }
    findings
}

/// Certificates that end within this time are worth a warning.
const EXPIRY_DAYS: i64 = 30;

fn expiry(not_after: i64) -> Option<Finding> {
    let days = (not_after - time::OffsetDateTime::now_utc().unix_timestamp()) / 86_400;
    (days < EXPIRY_DAYS).then(|| {
        let message = format!("the first of etcd's certificates ends in {days} days");
        let hint = "move the peer-*.json, server-*.json and client-*.json files out of the secrets \
                    directory and render again";
        if days < 0 {
            Finding::error("certificates", "certificates", message).hint(hint)
        } else {
            Finding::warning("certificates", "certificates", message).hint(hint)
        }
    })
}

fn probes(
    subject: &Subject<'_>,
    file: &PairFile,
    pair: &Pair,
    here: &Here,
    offline: bool,
) -> Vec<Probe> {
    let own = own_node(pair, here);
    let mut probes = Vec::new();
    if !offline {
        probes.push(bmc::probe(file, pair, subject.base, here, own));
        probes.push(network::names(pair));
    }
    if let Some(own) = own {
        probes.push(network::links(pair, own));
        probes.push(network::ports(pair));
        probes.extend(version::probes(pair));
        probes.push(disk::space(pair, here));
        probes.push(disk::latency(pair, here));
    }
    probes
}
