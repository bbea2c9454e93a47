//! The findings of the timing arithmetic, put where the file can be changed.

use dyad_cluster::pair::Pair;
use dyad_core::timing::Finding;

use crate::cursor::Cursor;
use crate::problem::Problem;
use crate::yaml::Node;

/// What the arithmetic says about the settings of this file.
pub(crate) fn check(tree: &Node, pair: &Pair) -> Vec<Problem> {
    let top = Cursor::top(tree);
    // A consequence, not a weakness of the file: `dyad check` tells it beside the times.
    let findings =
        pair.timing().findings().into_iter().filter(|finding| finding.id != "watches-end");
    let all = findings.map(|finding| place(&top, pair, finding));
    let mut problems: Vec<Problem> = all.collect();
    // One file sets both nodes' timing: what is wrong with it is said once.
    problems.dedup_by(|next, first| (next.id, next.at) == (first.id, first.at));
    problems
}

/// The key that a finding is about, and advice in the words of this file.
fn place(top: &Cursor<'_>, pair: &Pair, finding: Finding) -> Problem {
    let needed_ms = pair.timing().delay_needed_ms(pair.preferred());
    let (keys, hint): (&[&str], Option<String>) = match finding.id {
        "no-delay" | "delay-too-short" => (
            &["fencing", "delayMs"],
            Some(format!("set it above {needed_ms}, or leave it out: it is then computed")),
        ),
        "bmc-timeout-too-short" => {
            (&["fencing", "bmcTimeoutMs"], Some("set it above bmcOffMs".to_owned()))
        }
        "consensus-too-short" => (&["detection", "consensusMs"], None),
        "link-timeout-too-long" => (
            &["detection", "linkTimeoutMs"],
            Some("set it to half of tokenMs or less, or leave it out".to_owned()),
        ),
        "one-link" | "no-link" | "same-name" => (&["nodes"], None),
        _ => (&[], None),
    };
    let found = (0..=keys.len()).rev().find_map(|length| top.at(&keys[..length]));
    let place = found.unwrap_or_else(|| top.clone());
    Problem {
        severity: finding.severity,
        id: finding.id,
        at: Some(place.node.at).filter(|_| !place.path.is_empty()),
        key: keys.join("."),
        message: finding.message,
        hint: Some(hint.unwrap_or(finding.hint)),
    }
}
