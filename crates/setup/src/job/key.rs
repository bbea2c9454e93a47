//! Corosync's key, which hides and signs what the two nodes tell each other.
//!
//! A node with another key than its peer's is deaf to it. So the key goes last: when both have the new one on their
//! disks and know it of each other, each puts it in place and says so, and one of them has Corosync change over, which
//! it does on both nodes in step and without losing a message. From the agreement on there is only forward: whoever
//! finds its peer gone, or boots in between, takes the new key by itself, because the peer will.

use std::fs;
use std::path::Path;

use dyad_node::{Place, corosync, record};

use super::Trouble;
use super::bundle;
use super::steps::Work;

/// Where it is.
pub const AUTHKEY: &str = "/etc/corosync/authkey";
/// Both have agreed on the description that waits: there is no way back.
const AGREED: &str = "next-agreed.json";

/// Whether the new bundle has another key than the one in place.
pub(super) fn differs(work: &Work<'_>) -> Result<bool, Trouble> {
    let Some(new) = work.source()?.file(AUTHKEY) else { return Ok(false) };
    Ok(fs::read(work.here.path(Path::new(AUTHKEY))).ok().as_deref() != Some(new))
}

/// What both nodes compare: the key has 2048 random bits, of which a SHA-256 tells nobody anything.
pub(super) fn fingerprint(work: &Work<'_>) -> Result<String, Trouble> {
    let key = work.source()?.file(AUTHKEY).unwrap_or_default();
    Ok(dyad_http::Fingerprint::of(key).to_string())
}

/// Puts the new key in place. A running Corosync goes on with the old one until it is told.
pub(super) fn put(work: &Work<'_>) -> Result<(), Trouble> {
    match work.source()?.file(AUTHKEY) {
        Some(key) => bundle::put(work.here, Path::new(AUTHKEY), key).map(drop),
        None => Ok(()),
    }
}

/// Whether Corosync sees the other node.
pub(super) fn sees_peer() -> Result<bool, Trouble> {
    let membership = corosync::membership().map_err(|error| Trouble::failed(&error))?;
    Ok(membership.nodes.len() > 1)
}

/// Writes down that both have agreed.
pub(super) fn agree(place: &Place, description: &str) -> Result<(), Trouble> {
    record::write_durable(&place.state.join(AGREED), &description)
        .map_err(|error| Trouble::failed(&error))
}

/// Whether both had agreed on this description before this node was cut off.
pub(super) fn is_agreed(place: &Place, description: &str) -> bool {
    let found: Option<String> = record::read(&place.state.join(AGREED)).ok().flatten();
    found.as_deref() == Some(description)
}

/// It is over.
pub(super) fn forget(place: &Place) {
    let _ = fs::remove_file(place.state.join(AGREED));
}
