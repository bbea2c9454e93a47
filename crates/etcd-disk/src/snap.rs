//! Raft snapshots: `<term>-<index>.snap`, a checksum over a raft snapshot whose data is etcd's v2 store.

use std::collections::{BTreeMap, BTreeSet};

use dyad_core::dataset::Membership;
use dyad_core::ids::{Index, MemberId, Term};
use serde::Deserialize;

use crate::db::DbMember;
use crate::fault::{Result, damage, damage_at};
use crate::files::{Place, Source};
use crate::proto;
use crate::wal::replay::Position;

/// The v2 store of a cluster that uses the v3 interface is a few kilobytes.
const SNAPSHOT_BYTES_MAX: u64 = 64 << 20;

/// A snapshot file by its name.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) place: Place,
    pub(crate) position: Position,
}

/// The membership as of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) position: Position,
    /// Who votes and who listens, from the `ConfState`, and who was removed, from the v2 store.
    pub(crate) membership: Membership,
    /// Names and addresses, from the v2 store; the same that etcd judges later changes by.
    pub(crate) details: BTreeMap<MemberId, DbMember>,
    pub(crate) problems: Vec<String>,
}

/// The snapshot files, newest first, as etcd orders them: by name.
pub(crate) fn candidates(snap: &Place) -> Result<Vec<Candidate>> {
    let mut found: Vec<_> = snap
        .names()?
        .into_iter()
        .filter_map(|name| {
            let (term, index) = name.strip_suffix(".snap")?.split_once('-')?;
            let hex = |text: &str| {
                (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten()
            };
            let position = Position { term: Term(hex(term)?), index: Index(hex(index)?) };
            Some(Candidate { place: snap.join(&name), position })
        })
        .collect();
    found.reverse();
    Ok(found)
}

/// Reads and checks a snapshot.
pub(crate) fn read<S: Source>(source: &S, named: Position) -> Result<Snapshot> {
    let label = source.label();
    if source.len() == 0 {
        return Err(damage(label, "it is empty"));
    }
    if source.len() > SNAPSHOT_BYTES_MAX {
        let what = format!("it is larger than {SNAPSHOT_BYTES_MAX} bytes");
        return Err(damage_at(label, SNAPSHOT_BYTES_MAX, what));
    }
    let mut bytes = vec![0; source.len() as usize];
    source.read_exact_at(&mut bytes, 0)?;
    let snapshot = parse(&bytes).map_err(|what| damage_at(label, 0, what))?;
    if snapshot.position != named {
        let what = format!(
            "it is the snapshot of entry {} in term {}, not what its name says",
            snapshot.position.index, snapshot.position.term
        );
        return Err(damage_at(label, 0, what));
    }
    Ok(snapshot)
}

fn parse(bytes: &[u8]) -> std::result::Result<Snapshot, &'static str> {
    let (mut crc, mut data) = (0, &[][..]);
    for field in proto::fields(bytes) {
        match field.ok_or("this is not a snapshot")? {
            (1, value) => crc = value.number().ok_or("this is not a snapshot")?,
            (2, value) => data = value.bytes().ok_or("this is not a snapshot")?,
            _ => {}
        }
    }
    if data.is_empty() {
        return Err("the snapshot is empty");
    }
    if u64::from(crc32c::crc32c(data)) != crc {
        return Err("the checksum fails");
    }
    parse_raft_snapshot(data).ok_or("the raft snapshot cannot be read")?
}

fn parse_raft_snapshot(message: &[u8]) -> Option<std::result::Result<Snapshot, &'static str>> {
    let (mut store, mut snapshot) = (&[][..], Snapshot::default());
    for field in proto::fields(message) {
        match field? {
            (1, value) => store = value.bytes()?,
            (2, value) => {
                for field in proto::fields(value.bytes()?) {
                    match field? {
                        (1, value) => match parse_conf_state(value.bytes()?)? {
                            Ok(membership) => snapshot.membership = membership,
                            Err(what) => return Some(Err(what)),
                        },
                        (2, value) => snapshot.position.index = Index(value.number()?),
                        (3, value) => snapshot.position.term = Term(value.number()?),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    add_store(&mut snapshot, store);
    Some(Ok(snapshot))
}

fn parse_conf_state(message: &[u8]) -> Option<std::result::Result<Membership, &'static str>> {
    let (mut voters, mut learners) = (Vec::new(), Vec::new());
    for field in proto::fields(message) {
        let (number, value) = field?;
        let ids: Vec<MemberId> = match value {
            proto::Value::Number(id) => vec![MemberId(id)],
            // Packed, as no etcd writes them so far, but every protobuf reader takes them.
            proto::Value::Bytes(mut packed) => {
                let mut ids = Vec::new();
                while !packed.is_empty() {
                    ids.push(MemberId(proto::varint(&mut packed)?));
                }
                ids
            }
            proto::Value::Fixed => return None,
        };
        match number {
            1 => voters.extend(ids),
            2 => learners.extend(ids),
            3 | 4 if !ids.is_empty() => {
                return Some(Err("the membership is in a joint change, which etcd never writes"));
            }
            _ => {}
        }
    }
    Some(Ok(Membership::new(voters, learners)))
}

/// A node of the v2 store: `/0/members/<id>/{raftAttributes,attributes}` and `/0/removed_members/<id>`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Node {
    value: String,
    children: Option<BTreeMap<String, Node>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Store {
    root: Node,
}

impl Node {
    fn children(&self, path: &[&str]) -> impl Iterator<Item = (&String, &Self)> {
        let node = path.iter().try_fold(self, |node, name| node.children.as_ref()?.get(*name));
        node.and_then(|node| node.children.as_ref()).into_iter().flatten()
    }

    fn json<T: for<'de> Deserialize<'de> + Default>(&self, name: &str) -> T {
        let child = self.children.as_ref().and_then(|children| children.get(name));
        child.and_then(|child| serde_json::from_str(&child.value).ok()).unwrap_or_default()
    }
}

fn add_store(snapshot: &mut Snapshot, store: &[u8]) {
    let Ok(store) = serde_json::from_slice::<Store>(store) else {
        snapshot.problems.push("its store of members cannot be read; only the ids are used".into());
        return;
    };
    let mut learners = BTreeSet::new();
    for (id, node) in store.root.children(&["0", "members"]) {
        let Ok(id) = id.parse::<MemberId>() else { continue };
        let raft: DbMember = node.json("raftAttributes");
        let named: DbMember = node.json("attributes");
        if raft.learner {
            learners.insert(id);
        }
        let details = DbMember { id: id.0, name: named.name, promote: false, ..raft };
        snapshot.details.insert(id, details);
    }
    let removed = store.root.children(&["0", "removed_members"]);
    let removed: Vec<MemberId> = removed.filter_map(|(id, _)| id.parse().ok()).collect();
    snapshot.membership = std::mem::take(&mut snapshot.membership).with_removed(removed);
    let flags_agree = snapshot.membership.iter().all(|(id, learner)| {
        !snapshot.details.contains_key(&id) || learners.contains(&id) == learner
    });
    if !flags_agree {
        let what = "its store and its raft state disagree on who is a learner; raft's is used";
        snapshot.problems.push(what.into());
    }
}
