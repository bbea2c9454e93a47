//! From an OpenShift `install-config.yaml` with two control-plane replicas to a description of a pair.
//!
//! Takes both forms in which such a file names the BMCs: `controlPlane.fencing.credentials[]` and the older
//! `platform.baremetal.hosts[].bmc`. What an install-config cannot say (the second link, the node addresses
//! in most cases) is left to be filled in and listed.

mod hosts;
mod write;

use dyad_http::Secret;

use crate::cursor::Cursor;
use crate::problem::Problem;
use crate::yaml::{self, Value};

/// What became of an install-config.
#[derive(Debug)]
pub struct Conversion {
    /// The text of `pair.yaml`. Holds no password.
    pub yaml: String,
    /// The accounts of the BMCs, one per node, for files of their own.
    pub accounts: Vec<Account>,
    /// What is still to be filled in: key and meaning.
    pub open: Vec<(String, String)>,
    /// What people should know.
    pub warnings: Vec<Problem>,
}

/// A BMC account.
#[derive(Debug, Clone)]
pub struct Account {
    /// The node.
    pub node: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// One control-plane host, as the install-config describes it.
#[derive(Debug)]
struct Host {
    account: Account,
    bmc_address: String,
    system: Option<String>,
    checks_certificate: bool,
    address: Option<String>,
}

/// Converts an install-config. `secrets` is where the accounts will lie, seen from `pair.yaml`.
pub fn convert(bytes: &[u8], secrets: &str) -> Result<Conversion, Vec<Problem>> {
    let (tree, mut problems) = yaml::parse(bytes);
    let Some(tree) = tree else { return Err(problems) };
    let top = Cursor::top(&tree);
    problems.extend(topology(&top));
    problems.extend(features(&top));
    let (hosts, found) = hosts::read(&top);
    problems.extend(found);
    let name = top.at(&["metadata", "name"]).and_then(|name| name.text());
    if name.is_none() {
        problems.push(
            Problem::error("missing-key", None, "metadata.name", "the cluster has no name")
                .hint("is this an install-config.yaml?"),
        );
    }
    problems.sort_by_key(|problem| problem.at);
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(Problem::is_error);
    match (name, errors.is_empty()) {
        (Some(name), true) => {
            let network = machine_network(&top);
            let (yaml, open) = write::pair_yaml(name, &hosts, network, secrets);
            let accounts = hosts.into_iter().map(|host| host.account).collect();
            Ok(Conversion { yaml, accounts, open, warnings })
        }
        _ => Err(errors.into_iter().chain(warnings).collect()),
    }
}

fn machine_network<'a>(top: &Cursor<'a>) -> Option<&'a str> {
    let networks = top.at(&["networking", "machineNetwork"])?;
    networks.items().first()?.get("cidr")?.text()
}

/// Two control-plane replicas, no arbiter, no workers, on bare metal.
fn topology(top: &Cursor<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    match top.at(&["controlPlane", "replicas"]) {
        None => problems.push(
            Problem::error("missing-key", None, "controlPlane.replicas", "the key is missing")
                .hint("a pair has `replicas: 2`"),
        ),
        Some(replicas) if replicas.integer() != Some(2) => {
            let found = replicas.integer().map_or_else(|| "no number".into(), |n| n.to_string());
            problems.push(
                replicas
                    .error(
                        "not-a-pair",
                        format!("the control plane has {found} replicas, a pair has 2"),
                    )
                    .hint("Dyad is for exactly two control-plane nodes"),
            );
        }
        Some(_) => {}
    }
    if let Some(arbiter) = top.get("arbiter") {
        problems.push(
            arbiter
                .error("arbiter", "an arbiter node makes this another topology")
                .hint("remove `arbiter`: a pair needs no third node"),
        );
    }
    for pool in top.list("compute") {
        if let Some(replicas) = pool.get("replicas")
            && replicas.integer().is_some_and(|number| number > 0)
        {
            problems.push(
                replicas.warning("workers", "worker nodes are not part of a pair").hint(
                    "they are left alone; a two-node control plane usually has `replicas: 0`",
                ),
            );
        }
    }
    problems.extend(platform(top));
    problems
}

fn platform(top: &Cursor<'_>) -> Option<Problem> {
    let Some(platform) = top.get("platform") else {
        return Some(Problem::error("missing-key", None, "platform", "the key is missing"));
    };
    let Value::Map(entries) = &platform.node.value else {
        return Some(platform.error("wrong-type", "a mapping is wanted here"));
    };
    let name = entries.first().map(|entry| entry.key.as_str()).unwrap_or_default();
    (!matches!(name, "baremetal" | "none" | "external")).then(|| {
        platform
            .error("platform", format!("the platform is `{name}`"))
            .hint("a pair with fencing runs on `baremetal` or `none`: both nodes need a BMC")
    })
}

/// The feature gate of the two-node topology, where the release still has it.
fn features(top: &Cursor<'_>) -> Option<Problem> {
    let gates = top.get("featureGates");
    let named = gates.as_ref().map(Cursor::items).unwrap_or_default();
    let dual =
        named.iter().filter_map(|gate| Some((gate, gate.text()?))).find_map(|(gate, text)| {
            let (name, value) = text.split_once('=').unwrap_or((text, "true"));
            matches!(name, "DualReplica" | "DualReplicaTopology")
                .then(|| (gate.clone(), value == "true"))
        });
    match (top.get("featureSet"), dual) {
        (_, Some((gate, false))) => Some(
            gate.error("dual-replica-off", "the two-node topology is switched off")
                .hint("write `DualReplica=true`"),
        ),
        (Some(set), None) if set.text() == Some("CustomNoUpgrade") => Some(
            set.error("no-dual-replica", "a custom feature set without the two-node topology")
                .hint("add `DualReplica=true` to `featureGates`"),
        ),
        (Some(set), Some(_)) if set.text() != Some("CustomNoUpgrade") => Some(
            set.error("feature-set", "feature gates are read only from the set CustomNoUpgrade")
                .hint("write `featureSet: CustomNoUpgrade`, or remove `featureGates`"),
        ),
        (None, Some((gate, true))) => Some(
            gate.error("feature-set", "feature gates need a feature set")
                .hint("add `featureSet: CustomNoUpgrade`"),
        ),
        _ => None,
    }
}
