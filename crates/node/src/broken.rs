//! Deliberately broken rules on real nodes, for checking the campaign that checks the nodes.
//!
//! Compiled only with the feature `broken-variants`, which no package has (`scripts/package` looks for it). A node
//! of the lab is told which rule to break by a root-only file.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dyad_core::broken::Broken as Rule;
use dyad_core::facts::{EtcdState, Facts};
use serde::{Deserialize, Serialize};

use crate::act::Failure;
use crate::gather::Gathered;
use crate::memory::Memory;
use crate::node::Node;
use crate::{boot, etcd, record};

/// Where a node is told.
pub const FILE: &str = "/etc/dyad/broken";

/// How old facts may be that are taken for new.
const STALE_MS: u64 = 20_000;
/// How long an etcd that was started anew may take to lead.
const LEAD_LIMIT: Duration = Duration::from_secs(20);

/// One rule, left out or turned round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A rule of `core`.
    Rule(Rule),
    /// etcd is restarted with `--force-new-cluster` instead of the stand-in vote.
    ForceNewCluster,
    /// What the cluster said some seconds ago is taken for what it says now.
    StaleFacts,
}

impl Broken {
    /// The rule of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ForceNewCluster" => Some(Self::ForceNewCluster),
            "StaleFacts" => Some(Self::StaleFacts),
            _ => {
                let rule = Rule::ALL.iter().find(|(rule, _)| format!("{rule:?}") == name);
                rule.map(|(rule, _)| Self::Rule(*rule))
            }
        }
    }

    /// The rule that this node was told to break.
    pub fn chosen() -> Option<Self> {
        Self::named(fs::read_to_string(FILE).ok()?.trim())
    }
}

/// The rule of `core` that is broken here.
pub(crate) fn rule() -> Option<Rule> {
    match Broken::chosen() {
        Some(Broken::Rule(rule)) => Some(rule),
        _ => None,
    }
}

/// Whether this rule is broken here.
pub(crate) fn is(broken: Broken) -> bool {
    Broken::chosen() == Some(broken)
}

/// What many do today: a restart that makes this node the only member, and throws the tail of its log away.
pub(crate) fn force_new_cluster(node: &Node) -> Result<(), Failure> {
    node.runner.stop()?;
    let path = node.place.etcd_environment();
    fs::write(&path, fs::read_to_string(&path)? + "ETCD_FORCE_NEW_CLUSTER=true\n")?;
    node.runner.start()?;
    let start = Instant::now();
    while start.elapsed() < LEAD_LIMIT {
        let live = etcd::look(&node.pair, node.own(), &*node.runner, &node.client);
        if live.is_ok_and(|live| live.etcd.state == EtcdState::Leader) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("etcd does not lead".into())
}

/// The data are gone before anything has replaced them (P3).
pub(crate) fn delete_before_join(data_dir: &Path) -> Result<(), Failure> {
    let member = data_dir.join("member");
    if is(Broken::Rule(Rule::DeleteBeforeJoin)) && member.exists() {
        fs::remove_dir_all(member)?;
    }
    Ok(())
}

/// Facts as they were once.
#[derive(Serialize, Deserialize)]
struct Earlier {
    uptime_ms: u64,
    facts: Facts,
}

/// The facts, with what the cluster said up to [`STALE_MS`] ago.
pub(crate) fn stale(memory: &Memory, mut gathered: Gathered) -> Gathered {
    if !is(Broken::StaleFacts) {
        return gathered;
    }
    let path = memory.runtime().join("stale-facts.json");
    let uptime_ms = boot::uptime_ms().unwrap_or_default();
    let earlier: Option<Earlier> = record::read(&path).ok().flatten();
    match earlier.filter(|earlier| uptime_ms.saturating_sub(earlier.uptime_ms) < STALE_MS) {
        Some(Earlier { facts, .. }) => {
            gathered.facts.ring = facts.ring;
            gathered.facts.peer = facts.peer;
            gathered.facts.pacemaker = facts.pacemaker;
        }
        None => {
            let facts = gathered.facts.clone();
            let _ = record::write_volatile(&path, &Earlier { uptime_ms, facts });
        }
    }
    gathered
}
