//! The people of a campaign: a sensible one, a careless one, and whoever has to clear up after that.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::act::Side;
use super::report::Violation;
use crate::Lab;
use crate::error::Result;

/// How long a person looks at a status before giving up. That a node cannot be fenced is known after some tries.
const PATIENCE: Duration = Duration::from_secs(75);
/// How long a command of a person may take.
const COMMAND: Duration = Duration::from_mins(1);
/// How long a choice between two histories may take, the join of the other node included.
const RESOLVE: Duration = Duration::from_mins(4);

/// A loss that a person has accepted.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Accepted {
    /// The node that went on.
    pub(super) node: Side,
    /// What was written down, on that node.
    pub(super) record: Value,
}

/// Looks at both nodes until one of them says what to type, and `types` says that this person would.
fn look(lab: &Lab, types: impl Fn(Side, &str) -> bool) -> Result<Option<(Side, String)>> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let nodes = lab.status()?.nodes;
        for side in Side::BOTH {
            let node = &nodes[side.position()];
            if !node.on || node.frozen {
                continue;
            }
            let Some(status) = lab.pair_status(side.name()) else { continue };
            let next = status["next"].as_str().unwrap_or_default().to_owned();
            if status["state"] == "blocked"
                && next.starts_with("dyad confirm")
                && types(side, &next)
            {
                return Ok(Some((side, next)));
            }
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(None)
}

fn type_it(lab: &Lab, side: Side, command: &str, reason: &str) -> String {
    let words = command.split(' ').chain(["--wait", "40", "--reason", reason]);
    let words: Vec<&str> = words.collect();
    match lab.exec(side.name(), &words, COMMAND) {
        Ok(finished) if finished.success() => format!("on {side}: {command}: done"),
        Ok(finished) => {
            let error = finished.stderr.lines().find(|line| line.starts_with("error"));
            let error = error.unwrap_or_default();
            format!("on {side}: {command}: exit code {}: {error}", finished.code)
        }
        Err(error) => format!("on {side}: {command}: {error}"),
    }
}

/// Types what the status says, if nothing can be lost by it and the other node is known to be off. Tells whether
/// anything was typed.
pub(super) fn sensible(lab: &Lab) -> Result<(bool, String)> {
    let is_off = |side: Side| lab.node_status(side.name()).is_some_and(|node| !node.on);
    let types = |side: Side, next: &str| !next.contains("--accept") && is_off(side.other());
    Ok(match look(lab, types)? {
        Some((side, next)) => (true, type_it(lab, side, &next, "it is off, I have looked")),
        None => (false, "nothing to confirm".to_owned()),
    })
}

/// Types whatever it takes. Gives what was accepted by it, if anything was.
pub(super) fn careless(lab: &Lab) -> Result<(Option<Accepted>, String)> {
    let Some((node, _)) = look(lab, |_, _| true)? else {
        return Ok((None, "nothing to confirm".to_owned()));
    };
    let before = confirmations(lab, node).len();
    let command = format!(
        "dyad confirm --yes-peer-is-down {} --accept-possible-loss --although-it-seems-up",
        node.other()
    );
    let text = type_it(lab, node, &command, "it will be fine");
    let record = confirmations(lab, node).into_iter().nth(before);
    Ok((record.map(|record| Accepted { node, record }), text))
}

/// What people have confirmed on a node, as it was written down there.
fn confirmations(lab: &Lab, side: Side) -> Vec<Value> {
    let path = lab.place().node(side.name()).join("upper/var/log/dyad/confirmations.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Chooses between two histories: the copy of the node that was said to be down is kept.
pub(super) fn resolve(lab: &Lab, accepted: &Accepted) -> Result<Result<(), Violation>> {
    let (gives_up, keep) = (accepted.node.name(), accepted.node.other().name());
    let words = ["dyad", "resolve", "--keep", keep, "--yes-give-up", gives_up, "--wait", "200"];
    let finished = lab.exec(gives_up, &words, RESOLVE)?;
    if !finished.success() {
        let what = format!(
            "{} on {gives_up}: exit code {}: {}",
            words.join(" "),
            finished.code,
            finished.stderr.lines().last().unwrap_or_default()
        );
        return Ok(Err(Violation::new("P4", what)));
    }
    Ok(Ok(()))
}

/// What was given up is found in the archive, and put away for good, as nobody wants it any more.
pub(super) fn clear_archive(lab: &Lab, side: Side) -> Result<(), Violation> {
    let node = side.name();
    let lost = |what: &str| Violation::new("P3", format!("{node}: {what}"));
    let list = ["dyad", "archive", "list", "--output", "json"];
    let list = lab.exec(node, &list, COMMAND).map_err(|error| lost(&error.to_string()))?;
    let list: Value = serde_json::from_str(&list.stdout).unwrap_or_default();
    let copies = list["copies"].as_array().cloned().unwrap_or_default();
    let numbers: Vec<String> = copies
        .iter()
        .filter(|copy| copy["worth"] == "diverged")
        .map(|copy| copy["number"].to_string())
        .collect();
    if numbers.is_empty() {
        return Err(lost("a history was given up, and its copy is not in the archive"));
    }
    let mut prune = vec!["dyad", "archive", "prune", "--diverged-too"];
    prune.extend(numbers.iter().map(String::as_str));
    match lab.exec(node, &prune, COMMAND) {
        Ok(finished) if finished.success() => Ok(()),
        Ok(finished) => Err(Violation::new(
            "P4",
            format!("{} on {node}: {}", prune.join(" "), finished.stderr.trim()),
        )),
        Err(error) => Err(Violation::new("P6", error.to_string())),
    }
}
