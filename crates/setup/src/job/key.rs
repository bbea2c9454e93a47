//! Corosync's key, which hides and signs what the two nodes tell each other.
//!
//! A node with another key than its peer's is deaf to it. So the key goes last: when both have the new one on their
//! disks and know it of each other, each puts it in place and says so, and one of them has Corosync change over, which
//! it does on both nodes in step and without losing a message.
//!
//! From its agreement on a node cannot know how far the other one went: it may have been left with the old key, or have
//! gone on with the new one. So a node that has agreed and does not see the other looks for it under both keys, by
//! turns, until they have met. One that has not agreed has the old key, and one that has ended the new one; the rules of
//! the agreement keep these two from ever facing each other.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use dyad_node::gather::words;
use dyad_node::{Place, corosync, record};

use super::steps::Work;
use super::{Trouble, bundle, tool};
use crate::check::Here;
use crate::output::replace;

/// Where it is.
pub const AUTHKEY: &str = "/etc/corosync/authkey";
/// Both have agreed on the description that waits: there is no way back.
const AGREED: &str = "next-agreed.json";
/// The key that was in use before, until it is over.
const BEFORE: &str = "authkey-before";
/// How long one of the nodes stays with a key, in seconds, and how long the other: they must not change by turns, each
/// to what the other has just left. Corosync needs some seconds to see a node.
const STAY_S: [u64; 2] = [20, 50];

/// What both nodes compare: the key has 2048 random bits, of which a SHA-256 tells nobody anything.
pub(super) fn fingerprint(key: &[u8]) -> String {
    dyad_http::Fingerprint::of(key).to_string()
}

/// The key on this node's disk.
pub(super) fn in_place(here: &Here) -> Option<Vec<u8>> {
    fs::read(here.path(Path::new(AUTHKEY))).ok()
}

/// Puts the new key in place. A running Corosync goes on with the old one until it is told.
pub(super) fn put(work: &Work<'_>) -> Result<(), Trouble> {
    match work.source()?.file(AUTHKEY) {
        Some(key) => put_this(work.here, key),
        None => Ok(()),
    }
}

fn put_this(here: &Here, key: &[u8]) -> Result<(), Trouble> {
    if bundle::put(here, Path::new(AUTHKEY), key)? {
        bundle::sync_above(&here.path(Path::new(AUTHKEY)))?;
    }
    Ok(())
}

/// Whether Corosync sees the other node.
pub(super) fn sees_peer() -> Result<bool, Trouble> {
    let membership = corosync::membership().map_err(|error| Trouble::failed(&error))?;
    Ok(membership.nodes.len() > 1)
}

/// Writes down that both have agreed, and which key was in use until then.
pub(super) fn agree(work: &Work<'_>, description: &str) -> Result<(), Trouble> {
    let failed = |error: record::Error| Trouble::failed(&error);
    record::write_durable(&work.place.state.join(AGREED), &description).map_err(failed)?;
    keep_before(work)
}

/// A new key is put in place only after this: until it is there, the one in place is the old one.
fn keep_before(work: &Work<'_>) -> Result<(), Trouble> {
    let path = work.place.state.join(BEFORE);
    let Some(key) = in_place(work.here).filter(|_| !path.exists()) else { return Ok(()) };
    replace(&path, 0o600, &key).map_err(|error| Trouble::failed(&error))?;
    bundle::sync_above(&path)
}

/// Whether both had agreed on this description before this node was cut off.
pub(super) fn is_agreed(place: &Place, description: &str) -> bool {
    let found: Option<String> = record::read(&place.state.join(AGREED)).ok().flatten();
    found.as_deref() == Some(description)
}

/// It is over, or another one begins.
pub(super) fn forget(place: &Place) -> Result<(), Trouble> {
    for name in [AGREED, BEFORE] {
        record::remove_durable(&place.state.join(name)).map_err(|error| Trouble::failed(&error))?;
    }
    Ok(())
}

/// Looks for the other node, under both keys if need be.
pub(super) struct Search {
    keys: [Vec<u8>; 2],
    stay: Duration,
    /// Since when it is not seen, and whether the other key has its turn.
    unseen: Option<(Instant, bool)>,
}

impl Search {
    /// With the key in place first; `first` is true on one of the two nodes.
    pub(super) fn new(work: &Work<'_>, first: bool) -> Result<Self, Trouble> {
        keep_before(work)?;
        let before = work.place.state.join(BEFORE);
        let before = fs::read(&before).map_err(bundle::io("read", &before))?;
        let new = work.source()?.file(AUTHKEY).unwrap_or(&before).to_owned();
        let mut keys = [before, new];
        if in_place(work.here).as_ref() == Some(&keys[1]) {
            keys.reverse();
        }
        Ok(Self { keys, stay: stay(first), unseen: None })
    }

    /// One look: what is missing, or nothing once the other node is seen.
    pub(super) fn look(&mut self, work: &Work<'_>) -> Result<Option<String>, Trouble> {
        match corosync::membership() {
            // It may have been started a moment ago.
            Err(error) => return Ok(Some(words(&error))),
            Ok(membership) if membership.nodes.len() > 1 => {
                self.unseen = None;
                return Ok(None);
            }
            Ok(_) if self.keys[0] == self.keys[1] => {
                return Ok(Some("the other node is not seen".to_owned()));
            }
            Ok(_) => {}
        }
        let (since, had) = *self.unseen.get_or_insert((Instant::now(), false));
        let other = is_turn_of_other(self.stay, since.elapsed());
        if other != had {
            put_this(work.here, &self.keys[usize::from(other)])?;
            tool("corosync-cfgtool", &["-R"], "")?;
            self.unseen = Some((since, other));
        }
        let new = work.source()?.file(AUTHKEY) == Some(self.keys[usize::from(other)].as_slice());
        let name = if new { "new" } else { "old" };
        Ok(Some(format!(
            "the other node is not seen; Corosync's key in force here is the {name} one, and each is tried in turn"
        )))
    }
}

fn stay(first: bool) -> Duration {
    Duration::from_secs(STAY_S[usize::from(!first)])
}

fn is_turn_of_other(stay: Duration, elapsed: Duration) -> bool {
    (elapsed.as_secs() / stay.as_secs()) % 2 == 1
}

#[cfg(test)]
mod tests;
