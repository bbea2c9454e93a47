//! What Pacemaker holds true now, read leniently from its tools' XML.
//!
//! Pacemaker 2.1 and 3.0 name some things differently (`stonith-` became `fencing-`), and later versions will
//! add more: unknown elements are passed over, but a fact that a proof rests on is never guessed. What cannot
//! be read is `None` or an error, never "clean".

use dyad_core::ids::NodeName;
use roxmltree::{Document, Node as Element};

/// Why an answer of one of Pacemaker's tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not XML at all.
    #[error("the answer of {tool} is not XML")]
    Malformed {
        /// Which tool.
        tool: &'static str,
        /// Where it breaks off.
        source: roxmltree::Error,
    },
    /// XML, but something that must be there is not.
    #[error("the answer of {tool} has no {what}")]
    Missing {
        /// Which tool.
        tool: &'static str,
        /// What was looked for.
        what: &'static str,
    },
}

/// Pacemaker's view of the pair, as `crm_mon --one-shot --output-as=xml` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterState {
    /// Whether this partition has Corosync's quorum, as far as Pacemaker knows.
    pub quorate: bool,
    /// The coordinator.
    pub coordinator: Option<NodeName>,
    /// Whether fencing is switched on.
    pub fencing_enabled: bool,
    /// Whether the whole cluster is in maintenance mode.
    pub maintenance: bool,
    /// Each node.
    pub nodes: Vec<NodeState>,
    /// Each running or failed instance of a resource.
    pub resources: Vec<ResourceState>,
    /// How much each node asks to be promoted, as far as it does.
    pub promotion_scores: Vec<(NodeName, String)>,
}

/// One node, as Pacemaker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Its name.
    pub name: NodeName,
    /// It takes part.
    pub online: bool,
    /// Pacemaker does not know what runs on it: it is not fenced yet.
    pub unclean: bool,
    /// It is joining.
    pub pending: bool,
    /// It is told to run nothing.
    pub standby: bool,
    /// It is in maintenance mode.
    pub maintenance: bool,
    /// It is shutting down in an orderly way.
    pub shutdown: bool,
}

/// One instance of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceState {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub nodes: Vec<NodeName>,
    /// Stopped, Started, Unpromoted, Promoted and so on.
    pub role: String,
    /// Its last action failed.
    pub failed: bool,
    /// Pacemaker will do nothing about it.
    pub blocked: bool,
    /// Pacemaker manages it.
    pub managed: bool,
}

const CRM_MON: &str = "crm_mon";

impl ClusterState {
    /// Reads the answer of `crm_mon --one-shot --output-as=xml`.
    pub fn from_crm_mon(xml: &str) -> Result<Self, ReadError> {
        let document = Document::parse(xml)
            .map_err(|source| ReadError::Malformed { tool: CRM_MON, source })?;
        let root = document.root_element();
        let summary = child(root, "summary").ok_or(missing("summary"))?;
        let coordinator = child(summary, "current_dc").ok_or(missing("current_dc"))?;
        let options = child(summary, "cluster_options").ok_or(missing("cluster_options"))?;
        let nodes = child(root, "nodes").ok_or(missing("nodes"))?;
        let fencing = options
            .attribute("stonith-enabled")
            .or_else(|| options.attribute("fencing-enabled"))
            .ok_or(missing("stonith-enabled"))?;
        Ok(Self {
            // Without a coordinator the attribute is absent: then there is no quorum to speak of.
            quorate: is_true(coordinator.attribute("with_quorum")),
            coordinator: coordinator.attribute("name").map(NodeName::from),
            fencing_enabled: is_true(Some(fencing)),
            maintenance: is_true(options.attribute("maintenance-mode")),
            nodes: children(nodes, "node").map(node_state).collect::<Result<_, _>>()?,
            resources: child(root, "resources").map(resource_states).unwrap_or_default(),
            promotion_scores: child(root, "node_attributes")
                .map(promotion_scores)
                .unwrap_or_default(),
        })
    }

    /// A node by its exact name (R10).
    pub fn node(&self, name: &NodeName) -> Option<&NodeState> {
        self.nodes.iter().find(|node| node.name == *name)
    }
}

/// Whether unseen nodes are fenced at start-up, from `cibadmin --query --scope crm_config`. Pacemaker's own
/// default, where nothing is said, is yes.
pub fn startup_fencing(xml: &str) -> Result<bool, ReadError> {
    let document =
        Document::parse(xml).map_err(|source| ReadError::Malformed { tool: "cibadmin", source })?;
    let mut values = document
        .descendants()
        .filter(|element| element.has_tag_name("nvpair"))
        .filter(|pair| pair.attribute("name") == Some("startup-fencing"))
        .map(|pair| is_true(pair.attribute("value")));
    // Several sets may hold it, by rules that are not evaluated here: all must agree that it is on.
    Ok(values.all(|value| value))
}

fn missing(what: &'static str) -> ReadError {
    ReadError::Missing { tool: CRM_MON, what }
}

fn child<'a, 'input>(parent: Element<'a, 'input>, name: &str) -> Option<Element<'a, 'input>> {
    parent.children().find(|child| child.has_tag_name(name))
}

fn children<'a, 'input>(
    parent: Element<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Element<'a, 'input>> {
    parent.children().filter(move |child| child.has_tag_name(name))
}

/// Pacemaker's words for yes.
fn is_true(value: Option<&str>) -> bool {
    value.is_some_and(|value| {
        ["true", "yes", "on", "y", "1"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
    })
}

fn node_state(node: Element<'_, '_>) -> Result<NodeState, ReadError> {
    // The two attributes that a proof rests on must be there; an absent one is not "false".
    let needed = |name: &'static str| match node.attribute(name) {
        Some(value) => Ok(is_true(Some(value))),
        None => Err(missing(name)),
    };
    Ok(NodeState {
        name: node.attribute("name").map(NodeName::from).ok_or(missing("node name"))?,
        online: needed("online")?,
        unclean: needed("unclean")?,
        pending: is_true(node.attribute("pending")),
        standby: is_true(node.attribute("standby")),
        maintenance: is_true(node.attribute("maintenance")),
        shutdown: is_true(node.attribute("shutdown")),
    })
}

fn resource_states(resources: Element<'_, '_>) -> Vec<ResourceState> {
    resources
        .descendants()
        .filter(|element| element.has_tag_name("resource"))
        .map(|resource| ResourceState {
            id: resource.attribute("id").unwrap_or_default().to_owned(),
            nodes: children(resource, "node")
                .filter_map(|node| node.attribute("name").map(NodeName::from))
                .collect(),
            role: resource.attribute("role").unwrap_or_default().to_owned(),
            failed: is_true(resource.attribute("failed")),
            blocked: is_true(resource.attribute("blocked")),
            managed: is_true(resource.attribute("managed")),
        })
        .collect()
}

/// Pacemaker keeps the score in a node attribute that is named after the resource.
fn promotion_scores(attributes: Element<'_, '_>) -> Vec<(NodeName, String)> {
    let name = format!("master-{}", crate::cib::ETCD);
    let of_node = |node: Element<'_, '_>| {
        let score = children(node, "attribute")
            .find(|attribute| attribute.attribute("name") == Some(name.as_str()))?;
        Some((NodeName::from(node.attribute("name")?), score.attribute("value")?.to_owned()))
    };
    children(attributes, "node").filter_map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fact that a proof rests on is never guessed: without `unclean` there is no answer.
    #[test]
    fn a_missing_fact_is_an_error_not_clean() {
        let xml = "<pacemaker-result><summary><current_dc present='true' name='a' with_quorum='true'/><cluster_options stonith-enabled='true' maintenance-mode='false'/></summary><nodes><node name='b' online='false'/></nodes></pacemaker-result>";
        let error = ClusterState::from_crm_mon(xml).unwrap_err();
        assert_eq!(error.to_string(), "the answer of crm_mon has no unclean");
    }

    /// Newer Pacemaker calls it fencing-enabled; both are read.
    #[test]
    fn both_spellings_of_fencing_are_read() {
        for key in ["stonith-enabled", "fencing-enabled"] {
            let xml = format!(
                "<r><summary><current_dc present='false'/><cluster_options {key}='true'/></summary><nodes/></r>"
            );
            assert!(ClusterState::from_crm_mon(&xml).unwrap().fencing_enabled, "{key}");
        }
    }

    /// Cut-off and foreign answers are errors.
    #[test]
    fn garbage_is_an_error() {
        for xml in ["", "crm_mon: Connection to cluster failed", "<pacemaker-result><summ", "<a/>"]
        {
            assert!(ClusterState::from_crm_mon(xml).is_err(), "{xml:?}");
        }
    }

    /// Start-up fencing is on by default, and off as soon as one set says so.
    #[test]
    fn startup_fencing_is_on_unless_switched_off() {
        let with = |values: &[&str]| {
            let pairs: String = values
                .iter()
                .map(|value| format!("<nvpair name='startup-fencing' value='{value}'/>"))
                .collect();
            startup_fencing(&format!("<crm_config>{pairs}</crm_config>")).unwrap()
        };
        assert!(with(&[]));
        assert!(with(&["true"]));
        assert!(!with(&["false"]));
        assert!(!with(&["true", "0"]));
    }
}
