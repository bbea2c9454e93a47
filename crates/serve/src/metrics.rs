//! What a status is worth in numbers, for Prometheus.

use std::fmt::Write as _;

use dyad_core::state::State;
use dyad_status::Status;

use crate::histogram::{FENCING_SECONDS, Histogram, TAKE_OVER_SECONDS};
use crate::watch::Counts;

/// One metric: its name, what it means, its type, and its values by labels.
struct Metric<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    values: Vec<(String, f64)>,
}

/// Every metric with its meaning: the table of the reference.
pub const TABLE: &[(&str, &str, &str)] = &[
    ("dyad_state", "gauge", "1 for the state that the pair is in, 0 for the others"),
    ("dyad_redundant", "gauge", "1 if either node may fail now"),
    ("dyad_state_since_timestamp_seconds", "gauge", "since when the pair is in its state"),
    ("dyad_incident_active", "gauge", "1 while the pair is not protected"),
    ("dyad_incident_duration_seconds", "gauge", "how long the last incident lasted, or has lasted"),
    ("dyad_pair_info", "gauge", "1, with the names of the pair and of the node that looks"),
    ("dyad_failovers_total", "counter", "nodes lost and survived since this process began"),
    (
        "dyad_alone_seconds_total",
        "counter",
        "time that one node served alone since this process began",
    ),
    (
        "dyad_detection_margin_seconds",
        "gauge",
        "what was left of Corosync's token time-out at the longest silence of the token that a look met in the last five \
         minutes (mean of the last rounds, or since the last token); shorter peaks between looks are not seen",
    ),
    ("dyad_detection_token_timeout_seconds", "gauge", "silence after which a node is lost"),
    (
        "dyad_tokens_lost_total",
        "counter",
        "times that Corosync lost its token since it started on this node",
    ),
    (
        "dyad_fencings_total",
        "counter",
        "attempts to switch a node off that ended, by result, since this process began",
    ),
    (
        "dyad_fencing_duration_seconds",
        "histogram",
        "from the loss of a node to the end of its fencing, since this process began",
    ),
    (
        "dyad_take_over_duration_seconds",
        "histogram",
        "from the proof of the other's death to the end of the take-over, since this process began",
    ),
    (
        "dyad_certificate_expiry_timestamp_seconds",
        "gauge",
        "when the certificate of this node's etcd expires",
    ),
    ("dyad_node_in_cluster", "gauge", "1 if Corosync sees the node"),
    ("dyad_link_up", "gauge", "1 if the cluster link is connected"),
    ("dyad_fencing_enabled", "gauge", "1 if fencing and start-up fencing are on"),
    ("dyad_fence_device_up", "gauge", "1 if the node's BMC passed its last test"),
    ("dyad_etcd_role", "gauge", "1 for the role of the node's etcd"),
    ("dyad_etcd_db_size_bytes", "gauge", "size of the database"),
    ("dyad_etcd_db_in_use_bytes", "gauge", "used part of the database"),
    ("dyad_etcd_behind_entries", "gauge", "log entries behind the further of the two nodes"),
    ("dyad_etcd_caught_up_ratio", "gauge", "how much of the log a learner has"),
    ("dyad_etcd_alarms", "gauge", "alarms that etcd has raised"),
    ("dyad_disk_writable", "gauge", "1 if the data's disk takes writes and has room"),
    ("dyad_unit_up", "gauge", "1 if the unit runs on the node"),
    ("dyad_unknown_sources", "gauge", "sources that did not answer the last look"),
    ("dyad_look_duration_seconds", "gauge", "how long the last look took"),
    ("dyad_look_timestamp_seconds", "gauge", "when the last look was"),
];

/// The text that Prometheus reads.
pub fn metrics(status: &Status, counts: Counts) -> String {
    let mut text = String::new();
    for (name, kind, help) in TABLE {
        match *name {
            "dyad_fencing_duration_seconds" => {
                add_histogram(name, help, &FENCING_SECONDS, &counts.fencing, &mut text);
            }
            "dyad_take_over_duration_seconds" => {
                add_histogram(name, help, &TAKE_OVER_SECONDS, &counts.take_over, &mut text);
            }
            _ => {
                let values = values(name, status, counts);
                add(&Metric { name, help, kind, values }, &mut text);
            }
        }
    }
    text
}

fn add_histogram(name: &str, help: &str, ends: &[f64; 9], seen: &Histogram, text: &mut String) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
    for (end, class) in ends.iter().zip(seen.classes) {
        let _ = writeln!(text, "{name}_bucket{{le=\"{end}\"}} {class}");
    }
    let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {}", seen.count);
    let _ = writeln!(text, "{name}_sum {}\n{name}_count {}", seen.sum, seen.count);
}

fn add(metric: &Metric<'_>, text: &mut String) {
    if metric.values.is_empty() {
        return;
    }
    let _ = writeln!(text, "# HELP {} {}", metric.name, metric.help);
    let _ = writeln!(text, "# TYPE {} {}", metric.name, metric.kind);
    for (labels, value) in &metric.values {
        let _ = writeln!(text, "{}{labels} {value}", metric.name);
    }
}

fn one(value: impl Into<f64>) -> Vec<(String, f64)> {
    vec![(String::new(), value.into())]
}

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn seconds(ms: u64) -> f64 {
    number(ms) / 1_000.0
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus has no other number")]
fn number(value: u64) -> f64 {
    value as f64
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let list: Vec<_> =
        pairs.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", list.join(","))
}

/// The values of one metric. What is not known has none: a gap is honest, a zero is not.
fn values(name: &str, status: &Status, counts: Counts) -> Vec<(String, f64)> {
    let by_node = |value: &dyn Fn(&dyad_status::document::Node) -> Option<f64>| {
        let nodes = status.nodes.iter();
        nodes.filter_map(|node| Some((labels(&[("node", &node.name)]), value(node)?))).collect()
    };
    match name {
        "dyad_state" => State::ALL
            .iter()
            .map(|state| {
                let word = state.word().to_lowercase().replace(' ', "_");
                (labels(&[("state", &word)]), flag(*state == status.state))
            })
            .collect(),
        "dyad_redundant" => one(flag(status.state == State::Protected)),
        "dyad_state_since_timestamp_seconds" => {
            status.since_ms.map(|ms| one(seconds(ms))).unwrap_or_default()
        }
        "dyad_incident_active" => {
            one(flag(status.incident.as_ref().is_some_and(|incident| incident.end_ms.is_none())))
        }
        "dyad_incident_duration_seconds" => {
            let incident = status.incident.as_ref();
            incident.map(|incident| one(seconds(incident.duration_ms))).unwrap_or_default()
        }
        "dyad_pair_info" => {
            vec![(labels(&[("pair", &status.pair), ("node", &status.seen_by)]), 1.0)]
        }
        "dyad_fencings_total" => vec![
            (labels(&[("result", "success")]), number(counts.fenced)),
            (labels(&[("result", "failed")]), number(counts.fencings_failed)),
        ],
        "dyad_failovers_total" => one(number(counts.failovers)),
        "dyad_alone_seconds_total" => one(counts.alone.as_secs_f64()),
        "dyad_node_in_cluster" => by_node(&|node| node.in_cluster.map(flag)),
        "dyad_disk_writable" => by_node(&|node| node.etcd.disk_writable.map(flag)),
        "dyad_etcd_db_size_bytes" => by_node(&|node| node.etcd.db_size_bytes.map(number)),
        "dyad_etcd_db_in_use_bytes" => by_node(&|node| node.etcd.db_in_use_bytes.map(number)),
        "dyad_etcd_behind_entries" => by_node(&|node| node.etcd.behind_entries.map(number)),
        "dyad_etcd_caught_up_ratio" => {
            by_node(&|node| node.etcd.caught_up_percent.map(|percent| number(percent) / 100.0))
        }
        "dyad_etcd_alarms" => {
            one(number(status.nodes.iter().map(|node| node.etcd.alarms.len() as u64).sum()))
        }
        "dyad_unknown_sources" => one(number(status.unknown.len() as u64)),
        "dyad_look_duration_seconds" => one(seconds(status.took_ms)),
        "dyad_look_timestamp_seconds" => one(seconds(status.time_ms)),
        "dyad_fencing_enabled" => {
            status.fencing.enabled.map(|on| one(flag(on))).unwrap_or_default()
        }
        name if name.starts_with("dyad_detection") || name == "dyad_tokens_lost_total" => {
            of_detection(name, status, counts).map(one).unwrap_or_default()
        }
        _ => of_parts(name, status),
    }
}

/// How near the nodes come to being taken for lost.
fn of_detection(name: &str, status: &Status, counts: Counts) -> Option<f64> {
    let detection = status.detection.as_ref()?;
    let timeout = seconds(detection.token_timeout_ms);
    match name {
        "dyad_detection_margin_seconds" => Some(timeout - seconds(counts.silence_ms?)),
        "dyad_detection_token_timeout_seconds" => Some(timeout),
        "dyad_tokens_lost_total" => Some(number(detection.tokens_lost)),
        _ => None,
    }
}

/// Metrics of what a pair has several of.
fn of_parts(name: &str, status: &Status) -> Vec<(String, f64)> {
    let name_of = |position: usize| status.nodes.get(position).map_or("", |node| &node.name);
    match name {
        "dyad_etcd_role" => {
            let role = |node: &dyad_status::document::Node| {
                let role = node.etcd.role.as_deref()?;
                Some((labels(&[("node", &node.name), ("role", role)]), 1.0))
            };
            status.nodes.iter().filter_map(role).collect()
        }
        "dyad_link_up" => {
            let link = |link: &dyad_status::document::Link| {
                Some((labels(&[("link", &link.number.to_string())]), flag(link.connected?)))
            };
            status.links.iter().filter_map(link).collect()
        }
        "dyad_fence_device_up" => {
            let device = |device: &dyad_status::document::FenceDevice| {
                Some((labels(&[("node", &device.node)]), flag(device.works?)))
            };
            status.fencing.devices.iter().filter_map(device).collect()
        }
        "dyad_certificate_expiry_timestamp_seconds" => {
            let expiry = |certificate: &dyad_status::document::Certificate| {
                let ms = certificate.not_after_ms?;
                Some((
                    labels(&[("certificate", &certificate.name), ("node", name_of(0))]),
                    seconds(ms),
                ))
            };
            status.certificates.iter().filter_map(expiry).collect()
        }
        "dyad_unit_up" => {
            let unit = |unit: &dyad_status::document::Unit| {
                let both = [(0, unit.runs_here), (1, unit.runs_on_peer)];
                let known = both.into_iter().filter_map(|(at, runs)| Some((at, runs?)));
                let named = known.map(|(at, runs)| {
                    (labels(&[("unit", &unit.name), ("node", name_of(at))]), flag(runs))
                });
                named.collect::<Vec<_>>()
            };
            status.units.iter().flat_map(unit).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A label's value cannot end the label, whatever is in it.
    #[test]
    fn labels_are_escaped() {
        assert_eq!(labels(&[("unit", "a\"b\\c\nd")]), "{unit=\"a\\\"b\\\\c\\nd\"}");
    }

    /// The margin is what the longest silence has left of the time-out; unknown without Corosync. Fencings have both their
    /// results from the beginning, so that the first failure is an increase.
    #[test]
    fn margin_and_fencings_are_told() {
        let mut status: Status =
            serde_json::from_str(include_str!("../tests/data/protected.json")).unwrap();
        status.detection = Some(dyad_status::document::Detection {
            token_timeout_ms: 1_000,
            token_silence_ms: 180,
            tokens_lost: 3,
        });
        let counts = Counts { silence_ms: Some(750), fencings_failed: 2, ..Counts::default() };
        let text = metrics(&status, counts);
        for line in [
            "\ndyad_detection_margin_seconds 0.25\n",
            "\ndyad_detection_token_timeout_seconds 1\n",
            "\ndyad_tokens_lost_total 3\n",
            "\ndyad_fencings_total{result=\"success\"} 0\n",
            "\ndyad_fencings_total{result=\"failed\"} 2\n",
            "\ndyad_pair_info{pair=\"shop-17\",node=\"node-a\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        status.detection = None;
        let text = metrics(&status, counts);
        assert!(!text.contains("dyad_detection") && !text.contains("dyad_tokens"), "{text}");
    }

    /// Names carry their unit last, and counters end in `_total`, as Prometheus wants it.
    #[test]
    fn names_follow_the_custom() {
        for (name, kind, help) in TABLE {
            assert!(name.starts_with("dyad_") && !help.is_empty(), "{name}");
            assert_eq!(*kind == "counter", name.ends_with("_total"), "{name}");
        }
    }
}
