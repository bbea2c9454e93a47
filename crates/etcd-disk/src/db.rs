//! etcd's database file: what its buckets say.

use dyad_core::ids::{Index, MemberId, Revision};
use serde::{Deserialize, Deserializer};

use crate::bolt::Bolt;
use crate::fault::{Fault, Result, damage, damage_at};
use crate::files::Source;

/// More members than any cluster has, counting the removed ones of its whole life.
const MEMBERS_MAX: usize = 4096;
/// The newest version of etcd whose directories are known here.
const VERSION_KNOWN: (u64, u64) = (3, 5);
/// etcd's revisions are signed.
const REVISION_MAX: u64 = i64::MAX as u64;

/// What the database file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Db {
    /// The last applied entry.
    pub(crate) consistent_index: Index,
    /// The revision that etcd would start with.
    pub(crate) revision: Revision,
    /// The `members` bucket. Its learner flags are not to be believed: before 3.5.20 a promotion does not
    /// reach it.
    pub(crate) members: Vec<DbMember>,
    /// The `members_removed` bucket.
    pub(crate) removed: Vec<MemberId>,
    pub(crate) size_bytes: u64,
    pub(crate) problems: Vec<String>,
}

/// One member as etcd writes it into bolt, into the v2 store and into configuration changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct DbMember {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(rename = "peerURLs", deserialize_with = "list_or_null")]
    pub(crate) peer_urls: Vec<String>,
    #[serde(rename = "isLearner")]
    pub(crate) learner: bool,
    #[serde(rename = "isPromote")]
    pub(crate) promote: bool,
}

/// Go writes an empty list as `null`, as in the context of a promotion.
fn list_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads the database. `Fault::Changed` if etcd wrote it at the same time.
pub(crate) fn read<S: Source>(source: &S) -> Result<Db> {
    let bolt = Bolt::open(source)?;
    let result = read_buckets(source, &bolt);
    // Pages are written anew, never changed, but freed ones are used again from the second transaction on.
    // If the newest transaction is still the same, everything that was read belongs to it.
    if bolt.has_changed()? {
        return Err(Fault::Changed(format!("{} was written to while it was read", source.label())));
    }
    result
}

fn read_buckets<S: Source>(source: &S, bolt: &Bolt<'_, S>) -> Result<Db> {
    let mut db = Db { size_bytes: source.len(), ..Db::default() };
    if let Some(other_meta) = &bolt.other_meta {
        db.problems.push(format!("{}: {other_meta}; the other one is used", source.label()));
    }
    let mut compacted = 0;
    if let Some(meta) = bolt.bucket("meta")? {
        if let Some(value) = bolt.get(&meta, "consistent_index")? {
            let bytes = <[u8; 8]>::try_from(value).map_err(|_| {
                damage(source.label(), "the consistent index is not eight bytes long")
            })?;
            db.consistent_index = Index(u64::from_be_bytes(bytes));
        }
        // A compaction may delete the very last revision. etcd then goes on from the compaction's.
        for name in ["finishedCompactRev", "scheduledCompactRev"] {
            if let Some(value) = bolt.get(&meta, name)? {
                let Some(revision) = revision_of(&value) else {
                    return Err(damage(source.label(), format!("{name} is not a revision")));
                };
                compacted = compacted.max(revision);
            }
        }
    }
    db.revision = Revision(last_revision(source, bolt)?.max(compacted).max(1));
    if let Some(bucket) = bolt.bucket("members")? {
        for (key, value) in bolt.entries(&bucket, MEMBERS_MAX)? {
            let id = member_id(source, "members", &key)?;
            let mut member: DbMember = serde_json::from_slice(&value).map_err(|error| {
                damage(source.label(), format!("member {id} in the members bucket: {error}"))
            })?;
            member.id = id.0;
            db.members.push(member);
        }
        // Their keys are numbers without leading zeros: bolt's order is not that of the ids.
        db.members.sort_by_key(|member| member.id);
    }
    if let Some(bucket) = bolt.bucket("members_removed")? {
        for (key, _) in bolt.entries(&bucket, MEMBERS_MAX)? {
            db.removed.push(member_id(source, "members_removed", &key)?);
        }
    }
    if let Some(bucket) = bolt.bucket("cluster")?
        && let Some(version) = bolt.get(&bucket, "clusterVersion")?
    {
        db.problems.extend(version_problem(&String::from_utf8_lossy(&version)));
    }
    Ok(db)
}

/// What a cluster of this version may have written differently. A young cluster says 3.0 until all its members
/// have told their versions.
fn version_problem(version: &str) -> Option<String> {
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) <= VERSION_KNOWN => None,
        _ => Some(format!("the cluster is of version {version:?}; up to 3.5 are known here")),
    }
}

fn last_revision<S: Source>(source: &S, bolt: &Bolt<'_, S>) -> Result<u64> {
    let Some(bucket) = bolt.bucket("key")? else { return Ok(0) };
    let Some((key, offset)) = bolt.last_key(&bucket)? else { return Ok(0) };
    revision_of(&key)
        .ok_or_else(|| damage_at(source.label(), offset, "the last key is not a revision"))
}

/// The main part of a revision: eight bytes, `_`, eight bytes, and for a deletion `t`.
fn revision_of(bytes: &[u8]) -> Option<u64> {
    let marked = match bytes.len() {
        17 => true,
        18 => bytes[17] == b't',
        _ => false,
    };
    if !marked || bytes[8] != b'_' {
        return None;
    }
    let main = u64::from_be_bytes(bytes[..8].try_into().ok()?);
    (main <= REVISION_MAX).then_some(main)
}

fn member_id<S: Source>(source: &S, bucket: &str, key: &[u8]) -> Result<MemberId> {
    let text = std::str::from_utf8(key).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        damage(source.label(), format!("the {bucket} bucket has a key that is not a member id"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories of a newer etcd are read as far as they can be, and that is said.
    #[test]
    fn versions() {
        for known in ["3.0.0", "3.4.0", "3.5.0"] {
            assert_eq!(version_problem(known), None, "{known}");
        }
        for unknown in ["3.6.0", "4.0.0", "", "three"] {
            assert!(version_problem(unknown).is_some(), "{unknown}");
        }
    }

    /// Revisions of writes and of deletions are read; anything else is refused.
    #[test]
    fn revisions() {
        let mut write = 7_u64.to_be_bytes().to_vec();
        write.push(b'_');
        write.extend(1_u64.to_be_bytes());
        assert_eq!(revision_of(&write), Some(7));
        let mut deletion = write.clone();
        deletion.push(b't');
        assert_eq!(revision_of(&deletion), Some(7));
        let mut other = write.clone();
        other.push(b'x');
        assert_eq!(revision_of(&other), None);
        assert_eq!(revision_of(&write[..16]), None);
        let mut negative = write;
        negative[0] = 0x80;
        assert_eq!(revision_of(&negative), None);
    }
}
