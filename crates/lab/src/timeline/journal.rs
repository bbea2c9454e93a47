//! The journals of both nodes, read from their disks whether they run or not.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::config::LabConfig;
use crate::error::Result;
use crate::place::Place;
use crate::program;

/// How long reading may take.
const LIMIT: Duration = Duration::from_mins(1);

/// One message of a node's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// When it was written, in microseconds since 1970.
    pub time_us: u64,
    /// On which node.
    pub node: String,
    /// The program that wrote it.
    pub program: String,
    /// The unit that the program belongs to.
    pub unit: Option<String>,
    /// The program's process id in the node.
    pub pid: Option<String>,
    /// What it says.
    pub text: String,
}

/// Reads both journals from a time on, in order.
pub fn read(place: &Place, config: &LabConfig, since_us: u64) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    for node in &config.nodes {
        let journal = place.journal(&node.name);
        if !journal.is_dir() {
            continue;
        }
        let mut command =
            program::command("journalctl", ["--quiet", "--no-pager", "--output=json"]);
        command.arg(format!("--since=@{}.{:06}", since_us / 1_000_000, since_us % 1_000_000));
        command.arg("--output-fields=MESSAGE,SYSLOG_IDENTIFIER,_COMM,_PID,_SYSTEMD_UNIT,_SOURCE_REALTIME_TIMESTAMP");
        command.arg("--directory").arg(&journal);
        let text = program::output(&mut command, "", LIMIT)?;
        messages.extend(text.lines().filter_map(|line| parse(&node.name, line)));
    }
    messages.sort_by_key(|message| message.time_us);
    Ok(messages)
}

/// One line of `journalctl --output=json`. A message that is not text comes as an array and is passed over.
fn parse(node: &str, line: &str) -> Option<Message> {
    let value: Value = serde_json::from_str(line).ok()?;
    let field = |name: &str| value.get(name).and_then(Value::as_str);
    // The sender's own time where it is known: the journal's is when it came to read it.
    let time = field("_SOURCE_REALTIME_TIMESTAMP").or_else(|| field("__REALTIME_TIMESTAMP"))?;
    Some(Message {
        time_us: time.parse().ok()?,
        node: node.into(),
        program: field("SYSLOG_IDENTIFIER").or_else(|| field("_COMM")).unwrap_or("?").into(),
        unit: field("_SYSTEMD_UNIT").map(Into::into),
        pid: field("_PID").map(Into::into),
        text: field("MESSAGE")?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sender's time wins over the journal's; bytes that are not text are passed over.
    #[test]
    fn a_line_is_read() {
        let line = r#"{"__REALTIME_TIMESTAMP":"20","_SOURCE_REALTIME_TIMESTAMP":"10",
            "SYSLOG_IDENTIFIER":"corosync","_PID":"38","MESSAGE":"hello"}"#;
        let message = parse("node-a", line).unwrap();
        assert_eq!((message.time_us, message.program.as_str()), (10, "corosync"));
        assert_eq!(parse("node-a", r#"{"__REALTIME_TIMESTAMP":"20","MESSAGE":[1,2]}"#), None);
    }
}
