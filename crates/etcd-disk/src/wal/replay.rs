//! The raft log from a snapshot to its end, as etcd itself would read it.

use dyad_core::ids::{Index, MemberId, Term};

use super::frames::{BLOCK_BYTES, Frames, Kind, Next};
use super::{Identity, Segment, parse_identity};
use crate::db::DbMember;
use crate::fault::{Result, damage, damage_at};
use crate::files::Source;
use crate::proto;

/// More changes of the membership than a cluster sees between two snapshots.
const CHANGES_MAX: usize = 100_000;
/// More snapshot records than the segments that etcd keeps can hold.
const SNAPSHOTS_MAX: usize = 1_000_000;

/// A position in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) index: Index,
    pub(crate) term: Term,
}

/// raft's durable state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HardState {
    pub(crate) term: Term,
    pub(crate) vote: Option<MemberId>,
    pub(crate) commit: Index,
}

/// What a configuration change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    AddVoter,
    AddLearner,
    Remove,
    Update,
    /// Not a configuration change: a member has started and says its name.
    Name,
}

/// One entry that changes the membership, or what is known of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) index: Index,
    pub(crate) kind: ChangeKind,
    pub(crate) id: MemberId,
    /// What etcd says of the member. A removal has none.
    pub(crate) context: Option<DbMember>,
}

/// The raft log behind a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) identity: Option<Identity>,
    pub(crate) state: HardState,
    pub(crate) last: Position,
    /// The changes, without those that a later leader overwrote.
    pub(crate) changes: Vec<Change>,
    /// The snapshots that were announced in the segments read.
    pub(crate) snapshots: Vec<Position>,
    pub(crate) end: End,
}

/// Where the log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// The place of the last segment in the list.
    pub(crate) segment: usize,
    /// The end of the last whole record in it.
    pub(crate) offset: u64,
    /// The checksum over everything up to there.
    pub(crate) crc: u32,
    /// What follows it, if it is not the clean end.
    pub(crate) torn: Option<&'static str>,
}

/// Reads the log from `start` on. `open` gives the segments' bytes; the first of them is the one that etcd
/// would start to read at.
pub(crate) fn replay<S: Source>(
    segments: &[Segment],
    first: usize,
    start: Position,
    mut open: impl FnMut(&Segment) -> Result<S>,
) -> Result<Log> {
    let mut log = Log {
        identity: None,
        state: HardState::default(),
        last: start,
        changes: Vec::new(),
        snapshots: Vec::new(),
        end: End { segment: segments.len() - 1, offset: 0, crc: 0, torn: None },
    };
    let (mut crc, mut buffer) = (0, vec![0; BLOCK_BYTES]);
    for (place, segment) in segments.iter().enumerate().skip(first) {
        let source = open(segment)?;
        let mut frames = Frames::new(&source, place + 1 == segments.len(), crc, buffer);
        let torn = read_segment(&mut log, start, source.label(), &mut frames)?;
        crc = frames.crc();
        log.end = End { segment: place, offset: frames.offset(), crc, torn };
        buffer = frames.into_buffer();
    }
    Ok(log)
}

fn read_segment<S: Source>(
    log: &mut Log,
    start: Position,
    label: &str,
    frames: &mut Frames<'_, S>,
) -> Result<Option<&'static str>> {
    // The head (checksum, metadata) was synced before the segment got its name: it cannot be torn.
    let mut head = [Kind::Crc, Kind::Metadata].into_iter();
    loop {
        let at = frames.offset();
        let next = frames.next()?;
        if let Some(wanted) = head.next()
            && !matches!(next, Next::Record { kind, .. } if kind == wanted)
        {
            return Err(damage_at(label, at, "the head of the segment is not whole"));
        }
        match next {
            Next::Record { offset, kind, data } => record(log, start, label, offset, kind, data)?,
            Next::End => return Ok(None),
            Next::Torn(what) => return Ok(Some(what)),
        }
    }
}

fn record(
    log: &mut Log,
    start: Position,
    label: &str,
    offset: u64,
    kind: Kind,
    data: &[u8],
) -> Result<()> {
    let unreadable = |what: &str| damage_at(label, offset, format!("{what} cannot be read"));
    match kind {
        Kind::Crc => {}
        Kind::Metadata => {
            let identity = parse_identity(label, offset, data)?;
            if let Some(before) = log.identity
                && before != identity
            {
                return Err(conflict(label, offset, before, identity));
            }
            log.identity = Some(identity);
        }
        Kind::State => {
            log.state = parse_state(data).ok_or_else(|| unreadable("a hard state"))?;
        }
        Kind::Snapshot => {
            let snapshot = parse_snapshot(data).ok_or_else(|| unreadable("a snapshot record"))?;
            if log.snapshots.len() == SNAPSHOTS_MAX {
                return Err(damage_at(label, offset, "too many snapshot records"));
            }
            log.snapshots.push(snapshot);
        }
        Kind::Entry => {
            let entry = parse_entry(data).ok_or_else(|| unreadable("an entry"))?;
            append(log, start, label, offset, &entry)?;
        }
    }
    Ok(())
}

/// Two segments of different clusters or members.
pub(crate) fn conflict(
    label: &str,
    offset: u64,
    before: Identity,
    found: Identity,
) -> crate::fault::Fault {
    let what = format!(
        "the log is of member {} of cluster {}, this part is of member {} of cluster {}",
        before.member, before.cluster, found.member, found.cluster
    );
    damage_at(label, offset, what)
}

fn append(
    log: &mut Log,
    start: Position,
    label: &str,
    offset: u64,
    entry: &Entry<'_>,
) -> Result<()> {
    if entry.position.index <= start.index {
        return Ok(());
    }
    if entry.position.index.0 > log.last.index.0.saturating_add(1) {
        let what = format!(
            "the log has a gap: entry {} follows entry {}",
            entry.position.index, log.last.index
        );
        return Err(damage_at(label, offset, what));
    }
    // A smaller index than the last: a new leader has overwritten what was never committed.
    while log.changes.last().is_some_and(|change| change.index >= entry.position.index) {
        log.changes.pop();
    }
    log.last = entry.position;
    let changes = match entry.kind {
        0 => parse_name(entry).into_iter().collect(),
        _ => parse_changes(entry).map_err(|what| damage_at(label, offset, what))?,
    };
    if log.changes.len() + changes.len() > CHANGES_MAX {
        return Err(damage_at(label, offset, "too many changes of the membership"));
    }
    log.changes.extend(changes);
    Ok(())
}

/// The name that a starting member announces. Up to 3.5 it travels as a request of the v2 interface,
/// `PUT /0/members/<id>/attributes`, bare or within the envelope of newer requests, and need not reach the
/// database.
fn parse_name(entry: &Entry<'_>) -> Option<Change> {
    let mut request = entry.data;
    // Writes of keys begin with another field: nearly all entries end here.
    let envelope = match *request.first()? {
        0x08 => false,
        0x12 => true,
        _ => return None,
    };
    if envelope {
        request = proto::fields(request).next()??.1.bytes()?;
    }
    let (mut method, mut path, mut value) = (&[][..], &[][..], &[][..]);
    for field in proto::fields(request) {
        match field? {
            (2, field) => method = field.bytes()?,
            (3, field) => path = field.bytes()?,
            (4, field) => value = field.bytes()?,
            // The rest of a request of the v2 interface does not matter.
            _ => {}
        }
    }
    if method != b"PUT" {
        return None;
    }
    let id = path.strip_prefix(b"/0/members/")?.strip_suffix(b"/attributes")?;
    let id = std::str::from_utf8(id).ok()?.parse().ok()?;
    let context = serde_json::from_slice(value).ok();
    Some(Change { index: entry.position.index, kind: ChangeKind::Name, id, context })
}

pub(crate) struct Entry<'a> {
    /// 0 for a request, more for a change of the membership.
    pub(crate) kind: u64,
    pub(crate) position: Position,
    pub(crate) data: &'a [u8],
}

pub(crate) fn parse_entry(message: &[u8]) -> Option<Entry<'_>> {
    let mut entry = Entry { kind: 0, position: Position::default(), data: &[] };
    for field in proto::fields(message) {
        match field? {
            (1, value) => entry.kind = value.number()?,
            (2, value) => entry.position.term = Term(value.number()?),
            (3, value) => entry.position.index = Index(value.number()?),
            (4, value) => entry.data = value.bytes()?,
            _ => {}
        }
    }
    Some(entry)
}

fn parse_state(message: &[u8]) -> Option<HardState> {
    let mut state = HardState::default();
    for field in proto::fields(message) {
        match field? {
            (1, value) => state.term = Term(value.number()?),
            (2, value) => state.vote = Some(MemberId(value.number()?)).filter(|id| id.0 != 0),
            (3, value) => state.commit = Index(value.number()?),
            _ => {}
        }
    }
    Some(state)
}

fn parse_snapshot(message: &[u8]) -> Option<Position> {
    let mut position = Position::default();
    for field in proto::fields(message) {
        match field? {
            (1, value) => position.index = Index(value.number()?),
            (2, value) => position.term = Term(value.number()?),
            _ => {}
        }
    }
    Some(position)
}

pub(crate) fn parse_changes(entry: &Entry<'_>) -> std::result::Result<Vec<Change>, String> {
    let unreadable = || "a change of the membership cannot be read".to_owned();
    match entry.kind {
        1 => parse_change(entry).map(|change| vec![change]).ok_or_else(unreadable),
        2 => parse_change_v2(entry),
        other => Err(format!("an entry of the unknown type {other}")),
    }
}

fn change_kind(number: u64) -> Option<ChangeKind> {
    Some(match number {
        0 => ChangeKind::AddVoter,
        1 => ChangeKind::Remove,
        2 => ChangeKind::Update,
        3 => ChangeKind::AddLearner,
        _ => return None,
    })
}

fn parse_change(entry: &Entry<'_>) -> Option<Change> {
    let (mut kind, mut id, mut context) = (0, 0, &[][..]);
    for field in proto::fields(entry.data) {
        match field? {
            (2, value) => kind = value.number()?,
            (3, value) => id = value.number()?,
            (4, value) => context = value.bytes()?,
            _ => {}
        }
    }
    Some(Change {
        index: entry.position.index,
        kind: change_kind(kind)?,
        id: MemberId(id),
        context: serde_json::from_slice(context).ok(),
    })
}

/// etcd never writes this kind. One change at a time means the same as the old kind; several at once
/// would need the rules of joint consensus, and what is not understood is refused.
fn parse_change_v2(entry: &Entry<'_>) -> std::result::Result<Vec<Change>, String> {
    let unreadable = || "a change of the membership (v2) cannot be read".to_owned();
    let (mut transition, mut singles, mut context) = (0, Vec::new(), &[][..]);
    for field in proto::fields(entry.data) {
        match field.ok_or_else(unreadable)? {
            (1, value) => transition = value.number().ok_or_else(unreadable)?,
            (2, value) => singles.push(value.bytes().ok_or_else(unreadable)?),
            (3, value) => context = value.bytes().ok_or_else(unreadable)?,
            _ => {}
        }
    }
    if transition != 0 || singles.len() > 1 {
        return Err("a joint change of the membership, which etcd never writes".into());
    }
    let context: Option<DbMember> = serde_json::from_slice(context).ok();
    singles
        .into_iter()
        .map(|single| {
            let (mut kind, mut id) = (0, 0);
            for field in proto::fields(single) {
                match field? {
                    (1, value) => kind = value.number()?,
                    (2, value) => id = value.number()?,
                    _ => {}
                }
            }
            let index = entry.position.index;
            Some(Change {
                index,
                kind: change_kind(kind)?,
                id: MemberId(id),
                context: context.clone(),
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(unreadable)
}

impl Log {
    /// What raft itself checks when it starts: the commit mark lies within the log.
    pub(crate) fn check_commit(&self, label: &str) -> Result<()> {
        if self.state.commit > self.last.index {
            let what = format!(
                "the commit mark is {}, but the log ends at entry {}",
                self.state.commit, self.last.index
            );
            return Err(damage(label, what));
        }
        Ok(())
    }
}
