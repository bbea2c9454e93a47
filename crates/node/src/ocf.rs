//! The OCF resource agent `ocf:dyad:etcd`: what Pacemaker asks, as a request; what was decided, as an exit code.

use std::collections::HashMap;

use dyad_core::decision::Outcome as Word;
use dyad_core::facts::{Notification, NotifiedOperation, Operation, Request, Role, When};
use dyad_core::ids::NodeName;

/// OCF exit codes.
pub mod code {
    /// Done.
    pub const SUCCESS: u8 = 0;
    /// It did not work.
    pub const GENERIC: u8 = 1;
    /// The action is not known.
    pub const UNIMPLEMENTED: u8 = 3;
    /// Something that it needs is missing or wrong on this node; the other one is as well as ever. (The code for a wrong
    /// configuration, 6, would end it on both.)
    pub const INSTALLED: u8 = 5;
}

/// What the agent is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Print what the agent is.
    MetaData,
    /// Print how it is called.
    Usage,
    /// Ask for a decision, and do it.
    Operate(Request),
    /// Something else.
    Unknown(String),
}

/// The variables that Pacemaker sets.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: HashMap<String, String>,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        let ours = |(key, _): &(String, String)| key.starts_with("OCF_");
        let variables = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .filter(ours)
            .collect();
        Self { variables }
    }

    /// These variables, for tests.
    pub fn from<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Self { variables: variables.into_iter().map(owned).collect() }
    }

    fn meta(&self, name: &str) -> Option<&str> {
        self.variables.get(&format!("OCF_RESKEY_CRM_meta_{name}")).map(String::as_str)
    }

    /// The node that Pacemaker runs the agent on.
    pub fn node(&self) -> Option<NodeName> {
        self.meta("on_node").map(NodeName::from)
    }

    /// The interval of the operation in milliseconds: 0 for a probe.
    pub fn interval_ms(&self) -> u64 {
        self.meta("interval").and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn unames(&self, what: &str) -> Vec<NodeName> {
        let list = self.meta(&format!("notify_{what}_uname")).unwrap_or_default();
        list.split_whitespace().map(NodeName::from).collect()
    }

    /// What Pacemaker holds the local instance for, as far as it tells: the role of the operation, and the
    /// lists of notifications. `None` if it does not tell.
    pub fn role(&self, own: &NodeName) -> Option<Role> {
        match self.meta("role") {
            Some("Promoted" | "Master") => return Some(Role::Promoted),
            Some("Unpromoted" | "Slave" | "Started") => return Some(Role::Unpromoted),
            _ => {}
        }
        // The older words are those of Pacemaker before 2.1; it still sets them beside the new ones.
        let named = |lists: [&str; 2]| lists.iter().any(|list| self.unames(list).contains(own));
        if named(["promoted", "master"]) {
            Some(Role::Promoted)
        } else if named(["unpromoted", "slave"]) {
            Some(Role::Unpromoted)
        } else {
            None
        }
    }

    /// What is asked for.
    pub fn action(&self, word: &str) -> Action {
        let operation = match word {
            "meta-data" => return Action::MetaData,
            "usage" | "help" | "--help" | "-h" => return Action::Usage,
            "start" => Operation::Start,
            "stop" => Operation::Stop,
            "promote" => Operation::Promote,
            "demote" => Operation::Demote,
            "monitor" => Operation::Monitor,
            "validate-all" => Operation::Validate,
            "notify" => match self.notification() {
                Some(notification) => Operation::Notify(notification),
                None => return Action::Unknown("notify without a type".to_owned()),
            },
            other => return Action::Unknown(other.to_owned()),
        };
        Action::Operate(Request {
            operation,
            start: self.unames("start"),
            stop: self.unames("stop"),
            promote: self.unames("promote"),
            demote: self.unames("demote"),
            recurring: self.interval_ms() > 0,
        })
    }

    fn notification(&self) -> Option<Notification> {
        let when = match self.meta("notify_type")? {
            "pre" => When::Pre,
            "post" => When::Post,
            _ => return None,
        };
        let of = match self.meta("notify_operation")? {
            "start" => NotifiedOperation::Start,
            "stop" => NotifiedOperation::Stop,
            "promote" => NotifiedOperation::Promote,
            "demote" => NotifiedOperation::Demote,
            _ => return None,
        };
        Some(Notification { when, of })
    }
}

/// The exit code of an operation.
pub fn exit_code(word: Word) -> u8 {
    word as u8
}

/// What the agent is, for Pacemaker and its tools.
pub const META_DATA: &str = r#"<?xml version="1.0"?>
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">
<resource-agent name="etcd" version="1.0">
<version>1.1</version>
<longdesc lang="en">
One etcd member of a pair. A promoted instance is a voter; an unpromoted one has read and published its dataset,
or is a learner that catches up. What it may do is decided from facts and rules; `dyad explain` shows the last
decisions. Everything about the pair is described in /etc/dyad/pair.json.
</longdesc>
<shortdesc lang="en">One etcd member of a pair of nodes</shortdesc>
<parameters/>
<actions>
<action name="start" timeout="60s"/>
<action name="stop" timeout="90s"/>
<action name="promote" timeout="60s"/>
<action name="demote" timeout="90s"/>
<action name="notify" timeout="60s"/>
<action name="monitor" depth="0" timeout="60s" interval="5s" role="Promoted"/>
<action name="monitor" depth="0" timeout="60s" interval="3s" role="Unpromoted"/>
<action name="meta-data" timeout="5s"/>
<action name="validate-all" timeout="20s"/>
</actions>
</resource-agent>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// The notification that ends fencing is told apart from the one that comes before it: both carry the
    /// same names.
    #[test]
    fn pre_and_post_are_told_apart() {
        let of = |kind| {
            let environment = Environment::from([
                ("OCF_RESKEY_CRM_meta_notify_type", kind),
                ("OCF_RESKEY_CRM_meta_notify_operation", "demote"),
                ("OCF_RESKEY_CRM_meta_notify_demote_uname", "node10 "),
            ]);
            match environment.action("notify") {
                Action::Operate(request) => request,
                other => panic!("{other:?}"),
            }
        };
        let operation =
            |when| Operation::Notify(Notification { when, of: NotifiedOperation::Demote });
        assert_eq!(of("pre").operation, operation(When::Pre));
        assert_eq!(of("post").operation, operation(When::Post));
        // R10: the whole name.
        assert_eq!(of("post").demote, [NodeName::from("node10")]);
    }

    /// A role is taken from what Pacemaker says, by either of its vocabularies, and from whole names.
    #[test]
    fn roles_are_read() {
        let node1 = NodeName::from("node1");
        let role = |key, value| Environment::from([(key, value)]).role(&node1);
        assert_eq!(role("OCF_RESKEY_CRM_meta_role", "Promoted"), Some(Role::Promoted));
        assert_eq!(role("OCF_RESKEY_CRM_meta_role", "Slave"), Some(Role::Unpromoted));
        let promoted = "OCF_RESKEY_CRM_meta_notify_promoted_uname";
        assert_eq!(role(promoted, "node10 node1"), Some(Role::Promoted));
        assert_eq!(role(promoted, "node10"), None);
    }

    /// What the agent does not know it says so, instead of doing something.
    #[test]
    fn unknown_actions_are_unknown() {
        let environment = Environment::default();
        for word in ["", "restart", "notify"] {
            assert!(matches!(environment.action(word), Action::Unknown(_)), "{word}");
        }
        assert_eq!(environment.action("meta-data"), Action::MetaData);
    }

    /// The description is well-formed XML with all the actions of a promotable clone.
    #[test]
    fn meta_data_lists_every_action() {
        let text = META_DATA.split_once("]>").map_or(META_DATA, |(_, rest)| rest);
        let text = text.replace("<!DOCTYPE resource-agent SYSTEM \"ra-api-1.dtd\">", "");
        let document = roxmltree::Document::parse(&text).unwrap();
        // Whoever sets one expects that it has an effect.
        assert!(!document.descendants().any(|element| element.has_tag_name("parameter")));
        let names: Vec<_> = document
            .descendants()
            .filter(|element| element.has_tag_name("action"))
            .filter_map(|element| element.attribute("name"))
            .collect();
        for name in
            ["start", "stop", "promote", "demote", "notify", "monitor", "meta-data", "validate-all"]
        {
            assert!(names.contains(&name), "{name}");
        }
    }
}
