//! Who is there, as Corosync says.

use std::path::Path;
use std::time::Duration;

use dyad_core::ids::RingId;
use dyad_program::{command, run};

/// Where Corosync keeps the number of its present membership.
const STATE: &str = "/var/lib/corosync";
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

/// Whether this is still the membership, by the number that Corosync writes down before a new one begins. It ends
/// rather than go on without having written it. The tool above makes four connections to say the same, and
/// clients wait meanwhile.
pub fn is_unchanged(ring: &RingId, own_id: u32) -> bool {
    is_unchanged_in(Path::new(STATE), ring, own_id)
}

fn is_unchanged_in(state: &Path, ring: &RingId, own_id: u32) -> bool {
    let Ok(bytes) = std::fs::read(state.join(format!("ringid_{own_id}"))) else { return false };
    let Ok(bytes) = <[u8; 8]>::try_from(bytes) else { return false };
    // As the tool prints it: the number of the representative, a dot, the sequence in hexadecimal.
    let sequence = ring.0.rsplit_once('.').and_then(|(_, hex)| u64::from_str_radix(hex, 16).ok());
    sequence == Some(u64::from_ne_bytes(bytes))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the very number that was seen is the same membership; without a number there is no short cut.
    #[test]
    fn a_new_membership_is_seen_in_the_file() {
        let state = tempfile::tempdir().unwrap();
        let write = |bytes: &[u8]| std::fs::write(state.path().join("ringid_2"), bytes).unwrap();
        let unchanged = |ring: &str, own| is_unchanged_in(state.path(), &RingId::from(ring), own);
        assert!(!unchanged("1.24", 2));
        write(&0x24_u64.to_ne_bytes());
        assert!(unchanged("1.24", 2));
        assert!(!unchanged("1.28", 2) && !unchanged("1.24", 1) && !unchanged("unknown", 2));
        write(&0x28_u64.to_ne_bytes());
        assert!(!unchanged("1.24", 2));
        write(b"short");
        assert!(!unchanged("1.24", 2));
    }
}
