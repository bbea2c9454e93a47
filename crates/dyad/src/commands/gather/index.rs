//! The first page of a bundle: what is where, and what happened in which order.

use std::fmt::Write as _;

use dyad_node::Node;
use serde_json::Value;

use super::Done;
use dyad_status::words::{bytes, moment};

/// How many lines the timeline has at most: the newest.
const LINES_MAX: usize = 500;

/// Whether a file is one that the timeline is made of.
pub(super) fn is_part_of_the_timeline(file: &str) -> bool {
    file.starts_with("dyad/")
}

/// The page. It needs nothing but itself.
pub(super) fn page(node: &Node, steps: &[Done], files: &[(String, Vec<u8>)]) -> String {
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
    html.push_str("</table><h2>What happened</h2><table>\n");
    for (time_ms, source, text) in timeline(files) {
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code><td>{}<td>{}</tr>",
            moment(time_ms),
            escaped(&source),
            escaped(&text)
        );
    }
    html.push_str("</table></html>\n");
    html
}

/// Decisions and what people did, in one order of time.
fn timeline(files: &[(String, Vec<u8>)]) -> Vec<(u64, String, String)> {
    let mut lines: Vec<(u64, String, String)> = Vec::new();
    for (file, content) in files {
        let text = String::from_utf8_lossy(content);
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.extend(entries.filter_map(|entry| line_of(file, &entry)));
    }
    lines.sort();
    lines.split_off(lines.len().saturating_sub(LINES_MAX))
}

fn line_of(file: &str, entry: &Value) -> Option<(u64, String, String)> {
    let time_ms = entry["timeMs"].as_u64()?;
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
        return Some((time_ms, "decision".to_owned(), text));
    }
    let what = entry["what"]
        .as_str()
        .map_or_else(|| format!("confirms that {} is down", word(&entry["peer"])), str::to_owned);
    let text = format!("{}: {what} ({})", word(&entry["who"]), word(&entry["why"]));
    Some((time_ms, "person".to_owned(), text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What people did and what was decided stand in one order, and markup in a reason stays text.
    #[test]
    fn the_timeline_is_merged_and_harmless() {
        let decisions =
            br#"{"timeMs":2,"decision":{"action":"takeOver","rule":"R2","because":"dead"}}
torn"#;
        let acts = br#"{"timeMs":1,"who":"root","what":"fences node-b","why":"<script>"}"#;
        let files = vec![
            ("dyad/decisions.jsonl".to_owned(), decisions.to_vec()),
            ("dyad/acts.jsonl".to_owned(), acts.to_vec()),
        ];
        let lines = timeline(&files);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].2, "root: fences node-b (<script>)");
        assert_eq!(lines[1].2, "takeOver (R2): dead");
        assert_eq!(escaped("<script>&\""), "&lt;script&gt;&amp;&quot;");
    }
}
