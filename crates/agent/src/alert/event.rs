//! What happened, from what Pacemaker says in the environment.

use serde::{Deserialize, Serialize};

/// No text of Pacemaker is longer.
const TEXT_CHARS_MAX: usize = 400;

/// One event, as it is posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    /// Version of the document.
    pub api_version: String,
    /// Kind of the document.
    pub kind: String,
    /// Names this report of this node; a report that is sent twice has the same.
    pub id: String,
    /// When, in milliseconds since 1970, by the reporting node's clock.
    pub time_ms: u64,
    /// The pair; known to whoever delivers it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pair: String,
    /// The node that saw it. Both report what they see.
    pub reported_by: String,
    /// What kind of event it is.
    pub event: EventKind,
    /// The node that it is about.
    pub node: String,
    /// What happened to it: `member`, `lost`; or what fencing was asked for: `reboot`, `off`, `on`.
    pub what: String,
    /// Whether all is well with it: a fencing that failed and a node that was lost are not.
    pub ok: bool,
    /// The same in words.
    pub text: String,
}

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// A node was switched, or could not be.
    Fencing,
    /// A node came or went.
    Node,
}

impl Event {
    /// The event that Pacemaker's variables (`CRM_alert_…`, the same in 2.1 and 3.0) tell of; nothing if they tell of
    /// something else.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value = |name: &str| variable(&format!("CRM_alert_{name}")).map(|text| clean(&text));
        let node = value("node").filter(|node| !node.is_empty())?;
        let description = value("desc").unwrap_or_default();
        let (event, what, ok, text) = match value("kind")?.as_str() {
            "fencing" => {
                let what = action(&description);
                let ok = value("rc").as_deref() == Some("0");
                let outcome = if ok { "was fenced" } else { "could NOT be fenced" };
                (EventKind::Fencing, what, ok, format!("{node} {outcome}: {description}"))
            }
            "node" => {
                let ok = description != "lost";
                let text = match description.as_str() {
                    "member" => format!("{node} is in the cluster"),
                    "lost" => format!("{node} is not in the cluster any more"),
                    other => format!("{node}: {other}"),
                };
                (EventKind::Node, description, ok, text)
            }
            _ => return None,
        };
        let number = |name: &str| value(name).and_then(|text| text.parse::<u64>().ok());
        let seconds =
            number("timestamp_epoch").unwrap_or_else(|| dyad_node::journal::now_ms() / 1000);
        let micros = number("timestamp_usec").unwrap_or_default();
        let reported_by = dyad_node::boot::host_name().to_string();
        let sequence = number("node_sequence").unwrap_or_default();
        Some(Self {
            api_version: "dyad/v1".to_owned(),
            kind: "Event".to_owned(),
            id: format!("{reported_by}-{seconds}.{micros:06}-{sequence}"),
            time_ms: seconds.saturating_mul(1000).saturating_add(micros / 1000),
            pair: String::new(),
            reported_by,
            event,
            node,
            what,
            ok,
            text,
        })
    }
}

/// What fencing was asked to do: Pacemaker tells it in its sentence only, `Operation reboot of node-b by ...`.
fn action(description: &str) -> String {
    let mut words = description.split(' ').skip_while(|word| *word != "Operation");
    words.nth(1).unwrap_or("fence").to_owned()
}

/// One line, bounded, without anything that a terminal or a log would obey.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(variables: &[(&str, &str)]) -> Option<Event> {
        Event::from_environment(|name| {
            let name = name.strip_prefix("CRM_alert_")?;
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// Fencing that worked, fencing that did not, nodes that come and go; anything else is no event.
    #[test]
    fn pacemakers_words_are_understood() {
        let fenced = event(&[
            ("kind", "fencing"),
            ("node", "node-b"),
            ("task", "st_notify_fence"),
            ("rc", "0"),
            ("desc", "Operation reboot of node-b by node-a for controld.7@node-a: OK\n"),
            ("timestamp_epoch", "1700000000"),
            ("timestamp_usec", "123456"),
            ("node_sequence", "5"),
        ])
        .unwrap();
        assert_eq!(
            (fenced.event, fenced.ok, fenced.what.as_str()),
            (EventKind::Fencing, true, "reboot")
        );
        assert_eq!(fenced.time_ms, 1_700_000_000_123);
        assert!(fenced.id.ends_with("-1700000000.123456-5"), "{}", fenced.id);
        assert_eq!(
            fenced.text,
            "node-b was fenced: Operation reboot of node-b by node-a for controld.7@node-a: OK"
        );
        let failed = event(&[("kind", "fencing"), ("node", "node-b"), ("rc", "-62")]).unwrap();
        assert!(!failed.ok && failed.text.contains("could NOT be fenced"), "{failed:?}");
        for (word, ok) in [("member", true), ("lost", false)] {
            let came = event(&[("kind", "node"), ("node", "node-a"), ("desc", word)]).unwrap();
            assert_eq!((came.event, came.ok, came.what.as_str()), (EventKind::Node, ok, word));
        }
        assert_eq!(event(&[("kind", "resource"), ("node", "node-a")]), None);
        assert_eq!(event(&[("kind", "node")]), None);
        assert_eq!(event(&[]), None);
    }

    /// However long and wild a text is, one short line comes of it.
    #[test]
    fn texts_are_bounded() {
        let wild = "\u{1b}[31m".repeat(1000);
        let event = event(&[("kind", "node"), ("node", "n"), ("desc", &wild)]).unwrap();
        assert!(event.text.len() < 500 && !event.text.contains('\u{1b}'), "{}", event.text);
    }
}
