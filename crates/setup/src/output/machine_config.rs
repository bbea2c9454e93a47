//! Both bundles as one OpenShift `MachineConfig`.
//!
//! The pool of control-plane machines gets one configuration, so it carries the bundles of both nodes, each
//! in a directory of its own; the set-up unit takes the one that bears its host's name.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::ignition;
use super::yaml;
use crate::bundle::{Bundle, Item};
use crate::job::NODES;
use crate::units;

/// The file that is written.
pub(super) const FILE: &str = "99-master-dyad.yaml";
/// The extension of the operating system that brings Corosync, Pacemaker and the fence agents.
const EXTENSION: &str = "two-node-ha";

pub(super) fn render(bundles: &[&Bundle]) -> String {
    let document = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "labels": { "machineconfiguration.openshift.io/role": "master" },
            "name": "99-master-dyad",
        },
        "spec": {
            "config": {
                "ignition": { "version": ignition::VERSION },
                "storage": { "files": files(bundles) },
                "systemd": { "units": [{
                    "name": units::SETUP_UNIT,
                    "enabled": true,
                    "contents": units::setup(),
                }] },
            },
            "extensions": [EXTENSION],
        },
    });
    format!(
        "# Made by `dyad render`. Holds secrets: keep it like a password.\n{}",
        yaml::render(&document)
    )
}

fn files(bundles: &[&Bundle]) -> Vec<Json> {
    let items = bundles.iter().flat_map(|bundle| {
        let root = Path::new(NODES).join(&bundle.node);
        bundle.items.iter().map(move |(path, item)| (root.clone(), path, item))
    });
    items
        .filter_map(|(root, path, item)| match item {
            Item::File { mode, content } => {
                let path = root.join(path.strip_prefix("/").unwrap_or(path));
                Some(ignition::file(&path, *mode, content))
            }
            // The set-up makes the links that its machine takes.
            Item::Link(_) => None,
        })
        .collect()
}
