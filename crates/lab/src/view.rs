//! How Pacemaker on one node sees the pair.

use roxmltree::Document;

use crate::error::{Error, Result};

/// What `crm_mon` tells, as far as the lab asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// Whether the partition of the node that was asked has quorum.
    pub quorate: bool,
    /// The coordinator.
    pub coordinator: Option<String>,
    /// Nodes that are online and ready.
    pub online: Vec<String>,
    /// Nodes that must be fenced before anything goes on.
    pub unclean: Vec<String>,
    /// Resources that are started, with the node that they run on.
    pub started: Vec<(String, String)>,
    /// Resources that are promoted, with the node that they run on.
    pub promoted: Vec<(String, String)>,
}

impl ClusterView {
    /// Reads the XML output of `crm_mon`.
    pub fn parse(xml: &str) -> Result<Self> {
        let document = Document::parse(xml).map_err(|error| {
            Error::Machine(format!("crm_mon wrote something that is not XML: {error}"))
        })?;
        let mut view = Self::default();
        for element in document.descendants() {
            let is = |name: &str| element.attribute(name) == Some("true");
            let name = || element.attribute("name").unwrap_or_default().to_owned();
            match element.tag_name().name() {
                "current_dc" if is("present") => {
                    view.quorate = is("with_quorum");
                    view.coordinator = Some(name());
                }
                "node" if element.has_attribute("online") => {
                    if is("online") && !is("pending") && !is("unclean") {
                        view.online.push(name());
                    }
                    if is("unclean") {
                        view.unclean.push(name());
                    }
                }
                "resource" if !is("failed") => {
                    let list = match element.attribute("role") {
                        Some("Started") => &mut view.started,
                        // Pacemaker 2.1 may still use the older word.
                        Some("Promoted" | "Master") => &mut view.promoted,
                        _ => continue,
                    };
                    let id = element.attribute("id").unwrap_or_default();
                    let nodes = element.children().filter(|child| child.has_tag_name("node"));
                    for node in nodes.filter_map(|node| node.attribute("name")) {
                        list.push((id.to_owned(), node.to_owned()));
                    }
                }
                _ => {}
            }
        }
        Ok(view)
    }

    /// Where a resource runs.
    pub fn runs_on(&self, resource: &str) -> Option<&str> {
        self.started.iter().find(|(id, _)| id == resource).map(|(_, node)| node.as_str())
    }

    /// The nodes that a resource is promoted on.
    pub fn promoted(&self, resource: &str) -> Vec<&str> {
        let named = self.promoted.iter().filter(|(id, _)| id == resource);
        named.map(|(_, node)| node.as_str()).collect()
    }

    /// Whether a node is online and ready.
    pub fn is_online(&self, node: &str) -> bool {
        self.online.iter().any(|each| each == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Online means ready: a pending node and an unclean one are not.
    #[test]
    fn a_view_is_read_from_crm_mon() {
        let xml = r#"<pacemaker-result><summary>
            <current_dc present="true" name="node1" with_quorum="true"/></summary>
            <nodes><node name="node1" online="true" pending="false" unclean="false"/>
            <node name="node10" online="true" pending="true" unclean="false"/>
            <node name="node2" online="false" pending="false" unclean="true"/></nodes>
            <resources><resource id="service" role="Started" failed="false">
            <node name="node1" id="1"/></resource>
            <resource id="fence-node1" role="Stopped" failed="false"/></resources>
            </pacemaker-result>"#;
        let view = ClusterView::parse(xml).unwrap();
        assert!(view.quorate);
        assert_eq!(view.coordinator.as_deref(), Some("node1"));
        assert_eq!(view.online, ["node1"]);
        assert_eq!(view.unclean, ["node2"]);
        assert_eq!(view.runs_on("service"), Some("node1"));
        assert_eq!(view.runs_on("fence-node1"), None);
    }
}
