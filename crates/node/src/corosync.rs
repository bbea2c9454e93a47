//! Who is there, as Corosync says.

use std::time::Duration;

use dyad_program::{command, run};

/// Corosync answers from memory; longer means that it is not well.
const LIMIT: Duration = Duration::from_secs(3);

/// Why Corosync's view is not known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tool gave no answer.
    #[error("cannot ask Corosync")]
    Tool(#[source] dyad_program::Error),
    /// It answered something else.
    #[error("Corosync's answer has no {what}")]
    Incomplete {
        /// What was looked for.
        what: &'static str,
    },
}

/// The membership of this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Its number. It changes whenever a node comes or goes.
    pub ring: String,
    /// Whether this partition has Corosync's quorum.
    pub quorate: bool,
    /// A node that has not seen its peer since it booted waits for it.
    pub waits_for_all: bool,
    /// The ids of the nodes in it.
    pub nodes: Vec<u32>,
}

/// Asks Corosync on this node.
pub fn membership() -> Result<Membership, Error> {
    // Without quorum the tool answers all the same, but with a code of its own.
    let finished = run(&mut command("corosync-quorumtool", ["-s", "-p", "-i"]), "", LIMIT)
        .map_err(Error::Tool)?;
    parse(&finished.stdout)
}

/// Releases a node that waits for its peer since it booted. Only on proof that the peer is off (R5).
pub fn cancel_wait_for_all() -> Result<(), dyad_program::Error> {
    let arguments = ["-s", "quorum.cancel_wait_for_all", "u8", "1"];
    dyad_program::output(&mut command("corosync-cmapctl", arguments), "", LIMIT).map(drop)
}

fn parse(text: &str) -> Result<Membership, Error> {
    let value = |key: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim())
    };
    let ring = value("Ring ID").ok_or(Error::Incomplete { what: "ring id" })?;
    let quorate = value("Quorate").ok_or(Error::Incomplete { what: "quorum" })?;
    let flags = value("Flags").unwrap_or_default();
    let table = text
        .split_once("Membership information")
        .ok_or(Error::Incomplete { what: "membership" })?
        .1;
    let nodes: Vec<u32> =
        table.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    if nodes.is_empty() {
        return Err(Error::Incomplete { what: "node" });
    }
    Ok(Membership {
        ring: ring.to_owned(),
        quorate: quorate == "Yes",
        waits_for_all: flags.contains("WaitForAll") && quorate != "Yes",
        nodes,
    })
}
