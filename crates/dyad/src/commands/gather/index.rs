//! The first page of a bundle: what is where, and what happened in which order.

use std::fmt::Write as _;
use std::io::Read as _;

use dyad_node::Node;
use serde_json::Value;

use super::Done;
use dyad_status::words::{bytes, moment};

/// How many lines the timeline has at most: the newest.
const LINES_MAX: usize = 1_000;

/// A file that the timeline is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The node that kept it.
    pub(super) node: String,
    /// Its name in that node's bundle.
    pub(super) file: String,
    pub(super) content: Vec<u8>,
}

/// Whether a file is one that the timeline is made of.
pub(super) fn is_part_of_the_timeline(file: &str) -> bool {
    file.starts_with("dyad/")
}

/// The records in the bundle of another node. Its archive has one directory with everything in it.
pub(super) fn records_in(
    node: &str,
    packed: &[u8],
    bytes_max: u64,
) -> std::io::Result<Vec<Record>> {
    let mut tar = Vec::new();
    // No more than a bundle may have: what unpacks without an end is not one of ours.
    zstd::Decoder::new(packed)?.take(bytes_max).read_to_end(&mut tar)?;
    let mut archive = tar::Archive::new(tar.as_slice());
    let mut records = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let Some((_, file)) = path.split_once('/') else { continue };
        if !is_part_of_the_timeline(file) {
            continue;
        }
        let (node, file) = (node.to_owned(), file.to_owned());
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        records.push(Record { node, file, content });
    }
    Ok(records)
}

/// The page. It needs nothing but itself.
pub(super) fn page(node: &Node, steps: &[Done], records: &[Record]) -> String {
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>dyad gather</title>\
         <style>body{font:15px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}\
         table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;\
         border-bottom:1px solid #ccc;vertical-align:top}.bad{font-weight:bold}\
         code{white-space:nowrap}</style>\n",
    );
    let now = moment(dyad_node::journal::now_ms());
    let (pair, own) = (escaped(&node.pair.name), escaped(&node.own().name.0));
    let _ = writeln!(html, "<h1>Pair {pair}, gathered on {own}, {now} UTC</h1>");
    html.push_str("<h2>What is where</h2><table><tr><th>file<th>what<th>size<th>took<th></tr>\n");
    for step in steps {
        let (class, trouble) = match &step.trouble {
            Some(why) => (" class=\"bad\"", format!("missing: {}", escaped(why))),
            None => ("", String::new()),
        };
        let _ = writeln!(
            html,
            "<tr{class}><td><code>{}</code><td>{}<td>{}<td>{} ms<td>{trouble}</tr>",
            escaped(&step.file),
            escaped(step.what),
            bytes(step.bytes as u64),
            step.took_ms
        );
    }
    html.push_str(
        "</table><h2>What happened</h2><table>\
         <tr><th>UTC, by the node's clock<th>node<th>who<th>what</tr>\n",
    );
    for line in timeline(records) {
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code><td>{}<td>{}<td>{}</tr>",
            moment(line.time_ms),
            escaped(&line.node),
            line.source,
            escaped(&line.text)
        );
    }
    html.push_str("</table></html>\n");
    html
}

/// One thing that happened.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    time_ms: u64,
    /// The node that wrote it down.
    node: String,
    /// Who did it: a `decision`, a `person`; or an `event` that Pacemaker told of.
    source: &'static str,
    text: String,
}

/// Decisions, events and what people did, on both nodes, in one order of time: each node's own clock.
fn timeline(records: &[Record]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for record in records {
        let text = String::from_utf8_lossy(&record.content);
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.extend(entries.filter_map(|entry| {
            let (source, text) = told(&record.file, &entry)?;
            let time_ms = entry["timeMs"].as_u64()?;
            Some(Line { time_ms, node: record.node.clone(), source, text })
        }));
    }
    lines.sort();
    lines.split_off(lines.len().saturating_sub(LINES_MAX))
}

/// What one entry of a record tells, and whose word it is.
fn told(file: &str, entry: &Value) -> Option<(&'static str, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if file.contains("decisions") {
        let decision = &entry["decision"];
        let failure = entry["failure"].as_str().map(|why| format!("; FAILED: {why}"));
        let text = format!(
            "{} ({}): {}{}",
            word(&decision["action"]),
            word(&decision["rule"]),
            word(&decision["because"]),
            failure.unwrap_or_default()
        );
        return Some(("decision", text));
    }
    if file.contains("events") {
        return Some(("event", entry["text"].as_str()?.to_owned()));
    }
    let what = entry["what"]
        .as_str()
        .map_or_else(|| format!("confirms that {} is down", word(&entry["peer"])), str::to_owned);
    Some(("person", format!("{}: {what} ({})", word(&entry["who"]), word(&entry["why"]))))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(node: &str, file: &str, content: &str) -> Record {
        Record { node: node.into(), file: file.into(), content: content.into() }
    }

    const DECISION: &str = r#"{"timeMs":2,"decision":{"action":"takeOver","rule":"R2","because":"dead"}}
torn"#;
    const EVENT: &str = r#"{"apiVersion":"dyad/v1","kind":"Event","id":"x","timeMs":3,"reportedBy":"node-a","event":"fencing","node":"node-b","what":"reboot","ok":true,"text":"node-b was fenced"}"#;
    const ACT: &str = r#"{"timeMs":1,"who":"root","what":"fences node-b","why":"<script>"}"#;

    /// What people did, what was decided and what happened stand in one order, each under its own name; markup in a
    /// reason stays text.
    #[test]
    fn the_timeline_is_merged_and_harmless() {
        let records = [
            record("node-a", "dyad/decisions.jsonl", DECISION),
            record("node-a", "dyad/events.jsonl", EVENT),
            record("node-a", "dyad/acts.jsonl", ACT),
        ];
        let lines = timeline(&records);
        let told: Vec<_> = lines.iter().map(|line| (line.source, line.text.as_str())).collect();
        let wanted = [
            ("person", "root: fences node-b (<script>)"),
            ("decision", "takeOver (R2): dead"),
            ("event", "node-b was fenced"),
        ];
        assert_eq!(told, wanted);
        assert_eq!(escaped("<script>&\""), "&lt;script&gt;&amp;&quot;");
    }

    /// The other node's bundle is opened: the lines of both stand in one order, with the node that wrote them. What is no
    /// bundle is an error, and no more is unpacked than a bundle may have.
    #[test]
    fn both_nodes_are_in_the_timeline() {
        let mut other = super::super::Bundle::new("node-b", "dyad-node-b-2026");
        other.add("dyad/decisions.jsonl", DECISION.as_bytes()).unwrap();
        other.add("system/disk.txt", b"plenty").unwrap();
        let packed = other.finish().unwrap();
        let mut records = records_in("node-b", &packed, 1 << 20).unwrap();
        assert_eq!(records, [record("node-b", "dyad/decisions.jsonl", DECISION)]);
        records.push(record("node-a", "dyad/events.jsonl", EVENT));
        let lines = timeline(&records);
        let nodes: Vec<_> = lines.iter().map(|line| (line.node.as_str(), line.source)).collect();
        assert_eq!(nodes, [("node-b", "decision"), ("node-a", "event")]);
        assert!(records_in("node-b", b"not reached", 1 << 20).is_err());
        assert!(records_in("node-b", &packed, 600).is_err());
    }
}
