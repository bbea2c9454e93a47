//! Pacemaker on this node: its state, and the attributes through which the two nodes talk.

use std::time::Duration;

use dyad_cluster::state::{ClusterState, ReadError, startup_fencing};
use dyad_core::ids::NodeName;
use dyad_program::{command, output};

/// The tools answer from the local daemons; longer means that one is not well.
const LIMIT: Duration = Duration::from_secs(5);
/// The tool waits until every daemon has done its part.
const CLEANUP_LIMIT: Duration = Duration::from_secs(30);
/// The attribute that holds a node's statement. It is private: it never enters the CIB, whose updates at
/// the wrong moment cost Pacemaker a second, and Pacemaker forgets it when the node leaves.
const STATEMENT: &str = "dyad-statement";

/// Why Pacemaker's view is not known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool gave no answer.
    #[error("cannot ask Pacemaker")]
    Tool(#[from] dyad_program::Error),
    /// A tool answered something else.
    #[error("cannot use Pacemaker's answer")]
    Answer(#[from] ReadError),
    /// A tool's answer is not XML.
    #[error("the answer of attrd_updater is not XML")]
    Malformed(#[from] roxmltree::Error),
}

/// The state of the cluster.
pub fn state() -> Result<ClusterState, Error> {
    let xml = output(&mut command("crm_mon", ["--one-shot", "--output-as=xml"]), "", LIMIT)?;
    Ok(ClusterState::from_crm_mon(&xml)?)
}

/// Whether unseen nodes are fenced at start-up.
pub fn has_startup_fencing() -> Result<bool, Error> {
    let arguments = ["--query", "--scope", "crm_config"];
    let xml = output(&mut command("cibadmin", arguments), "", LIMIT)?;
    Ok(startup_fencing(&xml)?)
}

/// Publishes this node's statement. When it returns, the local daemon has it and sends it to the peer in
/// Corosync's total order, the same order in which nodes come and go.
pub fn publish_statement(text: &str) -> Result<(), Error> {
    publish(STATEMENT, text)
}

/// What each node has published, as this node's daemon knows it.
pub fn statements() -> Result<Vec<(NodeName, String)>, Error> {
    published(STATEMENT)
}

/// Publishes a private attribute of this node. Pacemaker forgets it when the node leaves.
pub fn publish(name: &str, text: &str) -> Result<(), Error> {
    let arguments = ["--private", "--name", name, "--update", text];
    output(&mut command("attrd_updater", arguments), "", LIMIT)?;
    Ok(())
}

/// The values of a private attribute on both nodes.
pub fn published(name: &str) -> Result<Vec<(NodeName, String)>, Error> {
    let arguments = ["--query", "--all", "--name", name, "--output-as=xml"];
    let mut query = command("attrd_updater", arguments);
    // Pacemaker 2.1 takes the node from an agent's environment and then forgets that all were asked for.
    for variable in ["on_node", "on_node_uuid", "physical_host"] {
        query.env_remove(format!("OCF_RESKEY_CRM_meta_{variable}"));
    }
    let finished = dyad_program::run(&mut query, "", LIMIT)?;
    // A name that nobody has set yet is an error to the tool and an empty list to us.
    if !finished.success() && !finished.stdout.contains("<pacemaker-result") {
        return Ok(Vec::new());
    }
    parse_attributes(&finished.stdout, name)
}

fn parse_attributes(xml: &str, name: &str) -> Result<Vec<(NodeName, String)>, Error> {
    let document = roxmltree::Document::parse(xml)?;
    let values = document
        .descendants()
        .filter(|element| element.has_tag_name("attribute"))
        .filter(|element| element.attribute("name") == Some(name))
        .filter_map(|element| Some((element.attribute("host")?, element.attribute("value")?)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(host, value)| (NodeName::from(host), value.to_owned()))
        .collect();
    Ok(values)
}

/// How much this node wants to be promoted; `None` withdraws it.
pub fn set_promotion_score(score: Option<u32>) -> Result<(), Error> {
    let score = score.map(|score| score.to_string());
    // By its name: not only the agent says so, and only that has the resource in its environment.
    let promotion = format!("--promotion={}", dyad_cluster::cib::ETCD);
    let arguments: Vec<&str> = match &score {
        Some(score) => vec![&promotion, "--lifetime", "reboot", "--update", score],
        None => vec![&promotion, "--lifetime", "reboot", "--delete"],
    };
    output(&mut command("crm_attribute", arguments), "", LIMIT)?;
    Ok(())
}

/// Has Pacemaker's daemon write every attribute that it knows into the CIB again.
pub fn write_attributes_again() -> Result<(), Error> {
    output(&mut command("attrd_updater", ["--refresh"]), "", LIMIT)?;
    Ok(())
}

/// Whether this node takes part in the cluster. Before it does, what is written into its CIB makes that one newer than
/// the CIB of those who run: it would replace theirs, with all that Pacemaker knows of them.
pub fn has_joined(own: &NodeName) -> Result<bool, Error> {
    let state = state()?;
    let online = state.node(own).is_some_and(|node| node.online && !node.pending);
    Ok(state.coordinator.is_some() && online)
}

/// Tells Pacemaker to run nothing on a node, over reboots too, or to run things there again.
pub fn set_standby(node: &NodeName, standby: bool) -> Result<(), Error> {
    let mut arguments = vec!["--node", &node.0, "--name", "standby", "--lifetime", "forever"];
    arguments.extend(if standby { vec!["--update", "on"] } else { vec!["--delete"] });
    output(&mut command("crm_attribute", arguments), "", LIMIT)?;
    Ok(())
}

/// Has a node fenced: switched off and on again. Returns when Pacemaker says that it was.
pub fn fence(node: &NodeName, limit: Duration) -> Result<(), Error> {
    let seconds = limit.as_secs().to_string();
    let arguments = ["--reboot", &node.0, "--timeout", &seconds];
    output(&mut command("stonith_admin", arguments), "", limit + LIMIT)?;
    Ok(())
}

/// Has Pacemaker forget that etcd failed on a node, so that it tries again.
pub fn forget_failures(node: &NodeName) -> Result<(), Error> {
    let arguments = ["--cleanup", "--resource", dyad_cluster::cib::ETCD, "--node", &node.0];
    output(&mut command("crm_resource", arguments), "", CLEANUP_LIMIT)?;
    Ok(())
}

/// Tells Pacemaker that a node is down, on a person's word.
pub fn confirm_down(node: &NodeName) -> Result<(), Error> {
    output(&mut command("stonith_admin", ["--confirm", &node.0]), "", LIMIT)?;
    Ok(())
}
