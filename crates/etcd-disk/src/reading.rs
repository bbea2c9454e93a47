//! Reads a data directory as a whole: once if nobody uses it, until it holds still if somebody does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_core::dataset::{Class, Dataset};
use dyad_core::ids::Index;

use crate::assemble::{Parts, assemble};
use crate::db::{self, Db};
use crate::fault::{Error, Fault, Result, damage};
use crate::files::Place;
use crate::live;
use crate::snap::{self, Snapshot};
use crate::wal::replay::{Log, Position, conflict, replay};
use crate::wal::{self, Segment};

/// How often a directory in use is read before it is given up.
const TRIES: u32 = 50;
/// How long to wait for a running etcd to finish what it is writing.
const PAUSE: Duration = Duration::from_millis(5);
/// More snapshots than etcd keeps, counting those that a crash left over.
const CANDIDATES_MAX: usize = 16;

/// A dataset and, if its log could be read, where the log ends.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) dataset: Dataset,
    pub(crate) log: Option<(Log, Vec<Segment>)>,
    /// What is a problem at rest, but only a write under way while etcd runs.
    pub(crate) passing: Vec<String>,
}

impl Reading {
    fn new(dataset: Dataset) -> Self {
        Self { dataset, log: None, passing: Vec::new() }
    }

    fn at_rest(mut self) -> Self {
        self.dataset.problems.append(&mut self.passing);
        self
    }
}

/// Reads the data directory `dir` (the one that has `member` in it) and judges it.
///
/// Nothing is written and nothing is locked. A running etcd is not disturbed; the facts then carry
/// `live: true` and are of one moment, or the read is refused with [`Error::Unsettled`].
///
/// The cost grows with the log behind the newest snapshot (and at most one 64 MB segment before it), not
/// with the database.
pub fn read(dir: &Path) -> std::result::Result<Dataset, Error> {
    read_with_log(dir).map(|reading| reading.dataset)
}

/// The directory without a trailing slash, which would hide that it is itself a link.
fn root_of(dir: &Path) -> Place {
    Place::root(&dir.components().collect::<PathBuf>())
}

pub(crate) fn read_with_log(dir: &Path) -> std::result::Result<Reading, Error> {
    let root = root_of(dir);
    let mut last = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let before = is_live(&root);
        let outcome = read_once(&root);
        let live = before? || is_live(&root)?;
        match outcome {
            Ok(mut reading) => {
                reading.dataset.live = live;
                return Ok(if live { reading } else { reading.at_rest() });
            }
            Err(Fault::Error(error)) => return Err(error),
            Err(Fault::Damage(damage)) if !live => {
                return Ok(Reading::new(broken(&root, damage.to_string())));
            }
            // What looks like damage in a directory in use may be a write under way.
            Err(Fault::Damage(damage)) => last = damage.to_string(),
            Err(Fault::Changed(what)) => last = what,
        }
    }
    Err(Error::Unsettled { path: root.path, tries: TRIES, last })
}

/// Reads a directory that the caller holds etcd's locks on: nobody else writes.
pub(crate) fn read_locked(dir: &Path) -> std::result::Result<Reading, Error> {
    let root = root_of(dir);
    match read_once(&root) {
        Ok(reading) => Ok(reading.at_rest()),
        Err(Fault::Error(error)) => Err(error),
        Err(Fault::Damage(damage)) => Ok(Reading::new(broken(&root, damage.to_string()))),
        Err(Fault::Changed(last)) => Err(Error::Unsettled { path: root.path, tries: 1, last }),
    }
}

fn is_live(root: &Place) -> std::result::Result<bool, Error> {
    let (wal, db) = (root.join("member").join("wal"), root.join("member").join("snap").join("db"));
    match live::in_use(&wal, &db) {
        Ok(live) => Ok(live),
        Err(Fault::Error(error @ Error::Denied { .. })) => Err(error),
        // Whatever is wrong with the files is the reader's to say.
        Err(_) => Ok(false),
    }
}

fn broken(root: &Place, reason: String) -> Dataset {
    let mut dataset = Dataset::empty(Class::Broken, reason);
    // Whose it was helps a person, if all that can be read of it agrees.
    let segments = wal::segments(&root.join("member").join("wal")).unwrap_or_default();
    let mut identities = segments
        .iter()
        .filter_map(|segment| segment.place.open().ok())
        .filter_map(|file| wal::identity(&file).ok());
    if let Some(first) = identities.next()
        && identities.all(|identity| identity == first)
    {
        dataset.cluster_id = Some(first.cluster);
        dataset.member_id = Some(first.member);
    }
    let db = root.join("member").join("snap").join("db").open();
    dataset.db_size_bytes = db.map(|db| db.len).unwrap_or_default();
    dataset
}

fn none(reason: String) -> Reading {
    Reading::new(Dataset::empty(Class::None, reason))
}

fn read_once(root: &Place) -> Result<Reading> {
    if !root.is_directory()? {
        return Ok(none(format!("{} does not exist", root.path.display())));
    }
    let member = root.join("member");
    if !member.is_directory()? {
        return Ok(none(format!("{} holds no etcd data: it has no `member`", root.path.display())));
    }
    let (wal, snap) = (member.join("wal"), member.join("snap"));
    // The database first: what it has applied is in the log that is read after it, also if etcd runs.
    let db_place = snap.join("db");
    let mut db = read_db(&db_place)?;
    let segments = wal::segments(&wal)?;
    check_heads(&segments)?;
    let Chosen { snapshot, log, mut passing } = choose(&wal, &snap, &segments)?;
    let last_label = &segments[log.end.segment].place.label;
    log.check_commit(last_label)?;
    let mut problems = snapshot.problems.clone();
    if db.consistent_index < snapshot.position.index {
        let index = snapshot.position.index;
        db = read_received_db(&snap, &db, index)?;
        let what = format!(
            "member/snap/db is older than the snapshot; etcd takes {:016x}.snap.db",
            index.0
        );
        problems.push(what);
    }
    if db.consistent_index > log.last.index {
        let what = format!(
            "the database has applied entry {}, but the log ends at entry {}: the log has lost its end",
            db.consistent_index, log.last.index
        );
        return Err(damage(last_label, what));
    }
    if let Some(torn) = log.end.torn {
        let offset = log.end.offset;
        passing
            .push(format!("{last_label} at byte {offset}: {torn}; etcd cuts it off at its start"));
    }
    let dataset = assemble(Parts { snapshot: &snapshot, log: &log, db: &db, problems })?;
    Ok(Reading { dataset, log: Some((log, segments)), passing })
}

fn read_db(place: &Place) -> Result<Db> {
    let file = place.open()?;
    let db = db::read(&file)?;
    // A defragmentation puts a new file in the place of the old one.
    let now = place.open().map_err(|_| Fault::Changed(format!("{} was replaced", place.label)))?;
    if now.inode != file.inode {
        return Err(Fault::Changed(format!("{} was replaced", place.label)));
    }
    Ok(db)
}

/// A follower that received a snapshot has its database beside it until it has taken it over.
fn read_received_db(snap: &Place, db: &Db, index: Index) -> Result<Db> {
    let place = snap.join(&format!("{:016x}.snap.db", index.0));
    match place.open() {
        Ok(_) => read_db(&place),
        Err(Fault::Damage(_)) => {
            let what = format!(
                "it has applied entry {}, the snapshot is of entry {index}, and {} cannot be opened",
                db.consistent_index, place.label
            );
            Err(damage(&snap.join("db").label, what))
        }
        Err(other) => Err(other),
    }
}

/// Every segment is of the same member of the same cluster, also those too old to be read in full.
fn check_heads(segments: &[Segment]) -> Result<()> {
    let mut before = None;
    for segment in segments {
        let file = segment.place.open()?;
        let identity = wal::identity(&file)?;
        if let Some(before) = before
            && before != identity
        {
            return Err(conflict(&segment.place.label, 0, before, identity));
        }
        before = Some(identity);
    }
    Ok(())
}

struct Chosen {
    snapshot: Snapshot,
    log: Log,
    passing: Vec<String>,
}

/// The newest snapshot that is whole and that the log knows as committed, as etcd chooses it, with the log
/// from there on.
fn choose(wal: &Place, snap: &Place, segments: &[Segment]) -> Result<Chosen> {
    let mut passing = Vec::new();
    for candidate in snap::candidates(snap)?.into_iter().take(CANDIDATES_MAX) {
        let label = &candidate.place.label;
        let file = candidate.place.open();
        let mut snapshot = match file.and_then(|file| snap::read(&file, candidate.position)) {
            Ok(snapshot) => snapshot,
            Err(Fault::Damage(damage)) => {
                passing.push(format!("{damage}; etcd goes on from the snapshot before it"));
                continue;
            }
            Err(other) => return Err(other),
        };
        let position = snapshot.position;
        let Some(first) = wal::starting_at(segments, position.index) else {
            passing.push(format!("{label}: no segment of the log reaches back to it"));
            continue;
        };
        let log = read_log(segments, first, position)?;
        if log.snapshots.contains(&position) && position.index <= log.state.commit {
            snapshot
                .problems
                .iter_mut()
                .for_each(|problem| *problem = format!("{label}: {problem}"));
            let newer = log.snapshots.iter().map(|named| named.index);
            let newer =
                newer.filter(|index| (position.index..=log.state.commit).contains(index)).max();
            if let Some(newer) = newer.filter(|newer| *newer > position.index) {
                passing.push(format!(
                    "the snapshot of entry {newer}, named by the log, is not usable"
                ));
            }
            return Ok(Chosen { snapshot, log, passing });
        }
        // A crash between writing the file and announcing it in the log leaves this.
        passing.push(format!("{label}: the log does not name it as committed; etcd ignores it"));
    }
    let Some(first) = wal::starting_at(segments, Index(0)) else {
        let what = format!(
            "the log begins with entry {}, and no usable snapshot reaches up to there",
            segments[0].first
        );
        return Err(damage(&wal.label, what));
    };
    let log = read_log(segments, first, Position::default())?;
    let named =
        log.snapshots.iter().map(|named| named.index).filter(|i| *i <= log.state.commit).max();
    match named {
        Some(Index(0)) => Ok(Chosen { snapshot: Snapshot::default(), log, passing }),
        // etcd would build everything anew from the first entry of the log. We do not vouch for that.
        Some(index) => {
            let what =
                format!("the log names the snapshot of entry {index}, but no usable one is there");
            let what = passing.into_iter().fold(what, |what, problem| format!("{what}; {problem}"));
            Err(damage(&snap.label, what))
        }
        None => Err(damage(&wal.label, "the log has no beginning")),
    }
}

fn read_log(segments: &[Segment], first: usize, start: Position) -> Result<Log> {
    replay(segments, first, start, |segment| segment.place.open()).map_err(|fault| match fault {
        // etcd deletes its oldest segments now and then.
        Fault::Damage(damage) if !segments.iter().all(|segment| segment.place.path.exists()) => {
            Fault::Changed(damage.to_string())
        }
        other => other,
    })
}
