//! What a new description changes, and what that takes.

use dyad_cluster::pair::Pair;
use serde::Serialize;
use serde_json::Value;

/// One difference between two descriptions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Where in the description, or which file.
    pub what: String,
    /// What it was; nothing for files, which may hold secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it becomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What it takes.
    pub effect: Effect,
}

/// What a change takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It counts at once, and nothing is interrupted.
    Live,
    /// Pacemaker starts or stops what was added or taken out, at once.
    Managed,
    /// It counts when etcd is started the next time, on each node by itself.
    EtcdRestart,
    /// It is changed on one node after the other.
    Rotate,
    /// It cannot be changed on a running pair.
    NewSetup,
}

impl Effect {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Live => "at once",
            Self::Managed => {
                "at once; Pacemaker starts what is new and stops what is not named any more"
            }
            Self::EtcdRestart => {
                "at etcd's next start: dyad maintenance start, then end, on one node after the other"
            }
            Self::Rotate => "not by this: dyad rotate etcd-certs, on one node after the other",
            Self::NewSetup => "not on a running pair: take it down and set it up anew",
        }
    }

    /// Whether a running pair cannot be changed so by `dyad apply`.
    pub fn is_refused(self) -> bool {
        matches!(self, Self::Rotate | Self::NewSetup)
    }
}

/// What a path of the description takes. The first that fits counts; what is not named is not changed live.
const EFFECTS: &[(&str, Effect)] = &[
    ("detection", Effect::Live),
    ("fencing", Effect::Live),
    ("preferredSurvivor", Effect::Live),
    ("nodes.0.bmc", Effect::Live),
    ("nodes.1.bmc", Effect::Live),
    ("virtualIp", Effect::Managed),
    ("unitsBefore", Effect::Managed),
    ("unitsAfter", Effect::Managed),
    ("webhook", Effect::Live),
    ("etcd.keepCopies", Effect::Live),
    ("etcd.heartbeatMs", Effect::EtcdRestart),
    ("etcd.electionMs", Effect::EtcdRestart),
    ("etcd.extraArgs", Effect::EtcdRestart),
];

/// Every difference, in the order of the description.
pub(super) fn differences(old: &Pair, new: &Pair) -> Vec<Change> {
    let value = |pair: &Pair| serde_json::to_value(pair).unwrap_or_default();
    let mut changes = Vec::new();
    compare("", &value(old), &value(new), &mut changes);
    changes
}

fn compare(path: &str, old: &Value, new: &Value, changes: &mut Vec<Change>) {
    if old == new {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (old, new) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let (old, new) = (one.get(key), other.get(key));
                let null = Value::Null;
                compare(&below(key), old.unwrap_or(&null), new.unwrap_or(&null), changes);
            }
        }
        (Value::Array(one), Value::Array(other)) if path == "nodes" && one.len() == other.len() => {
            for (position, (old, new)) in one.iter().zip(other).enumerate() {
                compare(&below(&position.to_string()), old, new, changes);
            }
        }
        _ => changes.push(Change {
            what: path.to_owned(),
            from: Some(told(old)),
            to: Some(told(new)),
            effect: effect(path),
        }),
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn effect(path: &str) -> Effect {
    let fits = |prefix: &str| {
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    EFFECTS.iter().find(|(prefix, _)| fits(prefix)).map_or(Effect::NewSetup, |(_, effect)| *effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Pair {
        let text = include_str!("../../../pair-file/tests/good/usual.yaml");
        dyad_pair_file::load(text.as_bytes()).pair.unwrap()
    }

    fn changed(change: impl FnOnce(&mut Pair)) -> Vec<(String, Effect)> {
        let old = pair();
        let mut new = old.clone();
        change(&mut new);
        let found = differences(&old, &new).into_iter();
        found.map(|change| (change.what, change.effect)).collect()
    }

    /// Each kind of change is named by its place, with what it takes; what is not known to be safe is not live.
    #[test]
    fn changes_are_named_with_what_they_take() {
        assert_eq!(changed(|_| ()), []);
        let one = |what: &str, effect| vec![(what.to_owned(), effect)];
        let tolerant = dyad_cluster::pair::Detection::Tolerant;
        assert_eq!(changed(|pair| pair.detection = tolerant), one("detection", Effect::Live));
        let delay = changed(|pair| pair.fencing.delay_ms = Some(60_000));
        assert_eq!(delay, one("fencing.delayMs", Effect::Live));
        let survivor = changed(|pair| pair.preferred_survivor = Some("node-b".into()));
        assert_eq!(survivor, one("preferredSurvivor", Effect::Live));
        let bmc = changed(|pair| pair.nodes[1].bmc.address = "https://10.9.0.9".into());
        assert_eq!(bmc, one("nodes.1.bmc.address", Effect::Live));
        let election = changed(|pair| pair.etcd.election_ms = 5_000);
        assert_eq!(election, one("etcd.electionMs", Effect::EtcdRestart));
        let units = changed(|pair| pair.units_after = vec!["app.service".into()]);
        assert_eq!(units, one("unitsAfter", Effect::Managed));
        let data = changed(|pair| pair.etcd.data_dir = "/srv/etcd".into());
        assert_eq!(data, one("etcd.dataDir", Effect::NewSetup));
        let address = changed(|pair| pair.nodes[0].addresses[0] = "10.1.0.9".parse().unwrap());
        assert_eq!(address, one("nodes.0.addresses", Effect::NewSetup));
        assert_eq!(changed(|pair| pair.name = "other".into()), one("name", Effect::NewSetup));
    }
}
