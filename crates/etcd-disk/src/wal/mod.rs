//! The write-ahead log: its segments, and what the raft log in them says.

pub(crate) mod frames;
pub(crate) mod replay;
#[cfg(test)]
mod tests;

use dyad_core::ids::{ClusterId, Index, MemberId};

use crate::fault::{Result, damage, damage_at};
use crate::files::{Place, Source};
use crate::proto;
use frames::{Frames, HEAD_BYTES, Kind, Next};

/// One segment: `<sequence>-<first index>.wal`, both in hexadecimal.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) place: Place,
    pub(crate) sequence: u64,
    /// The first entry that was to be written into it.
    pub(crate) first: u64,
}

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) member: MemberId,
    pub(crate) cluster: ClusterId,
}

/// The segments, oldest first, without a gap.
pub(crate) fn segments(wal: &Place) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for name in wal.names()? {
        // Anything else in there (`0.tmp`, `*.broken`) etcd ignores as well.
        let Some((sequence, first)) = parse_name(&name) else { continue };
        if let Some(before) = segments.last()
            && (before.sequence.checked_add(1) != Some(sequence) || before.first > first)
        {
            let what = format!("the log has a gap: {name} does not follow {}", before.place.label);
            return Err(damage(&wal.label, what));
        }
        segments.push(Segment { place: wal.join(&name), sequence, first });
    }
    if segments.is_empty() {
        return Err(damage(&wal.label, "it holds no segment (*.wal)"));
    }
    Ok(segments)
}

/// Whether etcd takes a file of this name for a segment.
pub(crate) fn is_segment(name: &str) -> bool {
    parse_name(name).is_some()
}

fn parse_name(name: &str) -> Option<(u64, u64)> {
    let (sequence, first) = name.strip_suffix(".wal")?.split_once('-')?;
    let hex = |text: &str| {
        let wide = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        wide.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    };
    Some((hex(sequence)?, hex(first)?))
}

/// The place of the segment that etcd starts to read at for this snapshot.
pub(crate) fn starting_at(segments: &[Segment], snapshot: Index) -> Option<usize> {
    segments.iter().rposition(|segment| segment.first <= snapshot.0)
}

/// Who a segment says it belongs to. Its head is synced before the segment gets its name, so an incomplete
/// one is damage, never a torn write.
pub(crate) fn identity<S: Source>(source: &S) -> Result<Identity> {
    if source.len() == 0 {
        return Err(damage(source.label(), "it is empty"));
    }
    let mut frames = Frames::new(source, false, 0, vec![0; HEAD_BYTES]);
    for (wanted, name) in [(Kind::Crc, "checksum"), (Kind::Metadata, "metadata")] {
        let offset = frames.offset();
        match frames.next()? {
            Next::Record { kind, data, .. } if kind == wanted => {
                if wanted == Kind::Metadata {
                    return parse_identity(source.label(), offset, data);
                }
            }
            _ => {
                let what = format!("a segment's head has its {name} record here");
                return Err(damage_at(source.label(), offset, what));
            }
        }
    }
    Err(damage(source.label(), "it has no metadata"))
}

pub(crate) fn parse_identity(label: &str, offset: u64, data: &[u8]) -> Result<Identity> {
    let (mut member, mut cluster) = (None, None);
    for field in proto::fields(data) {
        match field {
            Some((1, value)) => member = value.number(),
            Some((2, value)) => cluster = value.number(),
            Some(_) => {}
            None => return Err(damage_at(label, offset, "the metadata cannot be read")),
        }
    }
    match (member, cluster) {
        (Some(member), Some(cluster)) if member != 0 => {
            Ok(Identity { member: MemberId(member), cluster: ClusterId(cluster) })
        }
        _ => Err(damage_at(label, offset, "the metadata names no member or no cluster")),
    }
}
