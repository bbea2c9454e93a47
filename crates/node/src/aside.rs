//! Datasets that were moved aside: whole, fsynced, never deleted before their replacement votes (P3).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dyad_core::ids::MemberId;
use dyad_core::worth::Worth;

use crate::place::BesideData;
use crate::record::{self, Error};

/// One dataset that was moved aside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// Its number: a larger one was moved aside later.
    pub number: u64,
    /// Whose it was.
    pub member: String,
    /// What it is worth.
    pub worth: Worth,
    /// Where it is.
    pub path: PathBuf,
}

/// The ends of the names of copies that are not simply whole.
const DIVERGED: &str = "-diverged";
/// See [`DIVERGED`].
const UNFINISHED: &str = "-unfinished";

/// The beginning of the name of a copy that is being deleted: it is no copy any more, however much of it is left.
const RETIRED: &str = "deleting-";

/// Room that a join leaves free: etcd must not stop for want of space as soon as it serves.
const SPARE_BYTES: u64 = 64 << 20;

/// Moves the whole member directory (WAL included) aside, within the same file system, and returns when
/// that is on the disk. Without one there is nothing to move. A crash in between leaves it in one place.
pub fn move_aside(
    data_dir: &Path,
    beside: &BesideData,
    member: Option<MemberId>,
    worth: Worth,
) -> Result<Option<PathBuf>, Error> {
    let from = data_dir.join("member");
    if !exists(&from)? {
        return Ok(None);
    }
    let number = list(beside)?.last().map_or(1, |copy| copy.number + 1);
    let name = member.map_or_else(|| "unknown".to_owned(), |member| member.to_string());
    let end = match worth {
        Worth::Whole => "",
        Worth::Unfinished => UNFINISHED,
        Worth::Diverged => DIVERGED,
    };
    let to = beside.aside().join(format!("{number:06}-{name}{end}"));
    record::create_directory(&beside.aside())?;
    fs::rename(&from, &to).map_err(|source| Error::Io {
        step: "move aside",
        path: from.clone(),
        source,
    })?;
    record::sync_directory(&beside.aside())?;
    record::sync_directory(data_dir)?;
    Ok(Some(to))
}

/// All datasets that were moved aside, oldest first.
pub fn list(beside: &BesideData) -> Result<Vec<Copy>, Error> {
    let directory = beside.aside();
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => {
            other.map_err(|source| Error::Io { step: "list", path: directory.clone(), source })?
        }
    };
    let mut copies: Vec<Copy> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (number, member) = name.split_once('-')?;
            let (member, worth) =
                match (member.strip_suffix(DIVERGED), member.strip_suffix(UNFINISHED)) {
                    (Some(member), _) => (member, Worth::Diverged),
                    (_, Some(member)) => (member, Worth::Unfinished),
                    _ => (member, Worth::Whole),
                };
            Some(Copy {
                number: number.parse().ok()?,
                member: member.to_owned(),
                worth,
                path: entry.path(),
            })
        })
        .collect();
    copies.sort();
    Ok(copies)
}

/// Retires the oldest copies beyond the last `keep`, and more of them while there is no room for one more
/// join: copies that fill the disk would keep the node from ever being a replica again. Only after the
/// barrier: then two newer ones vote. It takes no time; [`sweep`] does.
pub fn prune(data_dir: &Path, beside: &BesideData, keep: usize) -> Result<(), Error> {
    let mut copies = list(beside)?;
    copies.retain(|copy| copy.worth != Worth::Diverged);
    let mut remaining = copies.len();
    let need = allocated(&data_dir.join("member"));
    for copy in &copies {
        if remaining <= keep && has_room(data_dir, beside, need)? {
            break;
        }
        retire(copy)?;
        remaining -= 1;
    }
    Ok(())
}

/// Retires joins that did not end: all but the last one, and that too if there is no room for the next join.
/// A node that loses its power again and again while it joins would else fill its disk.
pub fn drop_unfinished(data_dir: &Path, beside: &BesideData) -> Result<(), Error> {
    let mut copies = list(beside)?;
    copies.retain(|copy| copy.worth == Worth::Unfinished);
    let Some(last) = copies.pop() else { return Ok(()) };
    copies.iter().try_for_each(|copy| retire(copy).map(drop))?;
    if has_room(data_dir, beside, allocated(&last.path))? {
        Ok(())
    } else {
        retire(&last).map(drop)
    }
}

/// Deletes one copy, for good. Who may ask for that is not decided here.
pub fn delete(copy: &Copy) -> Result<(), Error> {
    remove(&retire(copy)?)
}

/// Deletes what was retired. Gigabytes take their time: nobody who holds the node does this.
pub fn sweep(beside: &BesideData) -> Result<(), Error> {
    retired(beside)?.iter().try_for_each(|path| remove(path))
}

/// Takes a copy out of the list, in one step that is on the disk before anything of it goes: half a copy must not be taken
/// for a whole one.
fn retire(copy: &Copy) -> Result<PathBuf, Error> {
    let name = copy.path.file_name().unwrap_or_default().to_string_lossy();
    let to = copy.path.with_file_name(format!("{RETIRED}{name}"));
    // An earlier one of the same name has not gone yet.
    remove(&to)?;
    let failed = |source| Error::Io { step: "retire", path: copy.path.clone(), source };
    fs::rename(&copy.path, &to).map_err(failed)?;
    record::sync_directory(to.parent().unwrap_or(Path::new("/")))?;
    Ok(to)
}

fn retired(beside: &BesideData) -> Result<Vec<PathBuf>, Error> {
    let directory = beside.aside();
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(record::failed("list", &directory))?,
    };
    let is_retired =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(RETIRED);
    Ok(entries.flatten().filter(is_retired).map(|entry| entry.path()).collect())
}

/// Somebody else may be faster.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(record::failed("delete", path)),
    }
}

/// Puts a copy back as the dataset. What is there now is moved aside first, as a copy with a history of its own.
pub fn restore(
    data_dir: &Path,
    beside: &BesideData,
    present: Option<MemberId>,
    copy: &Copy,
) -> Result<Option<PathBuf>, Error> {
    let aside = move_aside(data_dir, beside, present, Worth::Diverged)?;
    let to = data_dir.join("member");
    fs::rename(&copy.path, &to).map_err(|source| Error::Io {
        step: "restore",
        path: copy.path.clone(),
        source,
    })?;
    record::sync_directory(data_dir)?;
    record::sync_directory(&beside.aside())?;
    Ok(aside)
}

/// What a directory takes on the disk, in bytes.
pub fn size(path: &Path) -> u64 {
    allocated(path)
}

/// Whether a new dataset as large as `need` fits, with something to spare, once what was retired is gone.
fn has_room(data_dir: &Path, beside: &BesideData, need: u64) -> Result<bool, Error> {
    let stat = nix::sys::statvfs::statvfs(data_dir).map_err(|error| Error::Io {
        step: "look at",
        path: data_dir.to_owned(),
        source: error.into(),
    })?;
    let going: u64 = retired(beside)?.iter().map(|path| allocated(path)).sum();
    let free = stat.blocks_available() * stat.fragment_size() + going;
    Ok(free >= need / 4 * 5 + SPARE_BYTES)
}

/// What a directory takes on the disk. A file that goes away meanwhile takes nothing.
fn allocated(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => allocated(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(|source| Error::Io { step: "look at", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_dir_with(content: &str) -> (tempfile::TempDir, BesideData) {
        let directory = tempfile::tempdir().unwrap();
        let beside = BesideData::new(directory.path());
        fill(directory.path(), content);
        (directory, beside)
    }

    fn fill(data_dir: &Path, content: &str) {
        fs::create_dir_all(data_dir.join("member/wal")).unwrap();
        fs::write(data_dir.join("member/wal/0.wal"), content).unwrap();
    }

    /// P3, FIELD 22: the whole directory moves, WAL included; a second move finds nothing to do.
    #[test]
    fn the_whole_dataset_moves() {
        let (directory, beside) = data_dir_with("one");
        let to = move_aside(directory.path(), &beside, Some(MemberId(0xab)), Worth::Whole)
            .unwrap()
            .unwrap();
        assert!(to.ends_with("000001-ab"));
        assert_eq!(fs::read_to_string(to.join("wal/0.wal")).unwrap(), "one");
        assert!(!directory.path().join("member").exists());
        assert_eq!(move_aside(directory.path(), &beside, None, Worth::Whole).unwrap(), None);
    }

    /// Copies never overwrite each other, also after older ones were pruned; pruning keeps the newest.
    #[test]
    fn copies_are_numbered_and_pruned_oldest_first() {
        let (directory, beside) = data_dir_with("1");
        for round in 2..=5 {
            move_aside(directory.path(), &beside, None, Worth::Whole).unwrap().unwrap();
            fill(directory.path(), &round.to_string());
        }
        prune(directory.path(), &beside, 2).unwrap();
        let numbers = || list(&beside).unwrap().iter().map(|copy| copy.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [3, 4]);
        assert_eq!(fs::read_dir(beside.aside()).unwrap().count(), 4, "deleting is not done here");
        sweep(&beside).unwrap();
        assert_eq!(numbers(), [3, 4]);
        assert_eq!(fs::read_dir(beside.aside()).unwrap().count(), 2);
        move_aside(directory.path(), &beside, None, Worth::Whole).unwrap().unwrap();
        let last = list(&beside).unwrap().pop().unwrap();
        assert_eq!(last.number, 5);
        assert_eq!(fs::read_to_string(last.path.join("wal/0.wal")).unwrap(), "5");
    }

    /// A copy with writes of its own is never pruned: a person chose between two histories, and may be wrong.
    #[test]
    fn a_diverged_copy_stays() {
        let (directory, beside) = data_dir_with("mine");
        move_aside(directory.path(), &beside, Some(MemberId(0xab)), Worth::Diverged)
            .unwrap()
            .unwrap();
        for _ in 0..3 {
            fill(directory.path(), "old");
            move_aside(directory.path(), &beside, None, Worth::Whole).unwrap().unwrap();
        }
        prune(directory.path(), &beside, 1).unwrap();
        let copies = list(&beside).unwrap();
        let kept: Vec<_> = copies.iter().map(|copy| (copy.number, copy.worth)).collect();
        assert_eq!(kept, [(1, Worth::Diverged), (4, Worth::Whole)]);
        assert_eq!(copies[0].member, "ab");
    }

    /// Of joins that did not end only the last one stays, and nothing else is touched.
    #[test]
    fn unfinished_joins_do_not_pile_up() {
        let (directory, beside) = data_dir_with("whole");
        move_aside(directory.path(), &beside, Some(MemberId(1)), Worth::Whole).unwrap();
        for member in 2..=4 {
            fill(directory.path(), "part");
            let member = Some(MemberId(member));
            move_aside(directory.path(), &beside, member, Worth::Unfinished).unwrap();
            drop_unfinished(directory.path(), &beside).unwrap();
        }
        let copies = list(&beside).unwrap();
        let kept: Vec<_> = copies.iter().map(|copy| (copy.member.as_str(), copy.worth)).collect();
        assert_eq!(kept, [("1", Worth::Whole), ("4", Worth::Unfinished)]);
    }

    /// A deletion that is cut off at any point leaves no copy, not half of one that is taken for whole; the next one ends it,
    /// also if a new copy has got the same name meanwhile.
    #[test]
    fn half_a_copy_is_none() {
        let (directory, beside) = data_dir_with("1");
        let aside = || move_aside(directory.path(), &beside, None, Worth::Whole).unwrap().unwrap();
        aside();
        let copy = list(&beside).unwrap().pop().unwrap();
        let half = retire(&copy).unwrap();
        fs::remove_file(half.join("wal/0.wal")).unwrap();
        assert_eq!(list(&beside).unwrap(), []);
        fill(directory.path(), "2");
        assert_eq!(aside(), copy.path);
        delete(&list(&beside).unwrap().pop().unwrap()).unwrap();
        assert_eq!(fs::read_dir(beside.aside()).unwrap().count(), 0);
        sweep(&beside).unwrap();
    }

    /// A copy that is put back changes places with what is there: nothing is overwritten, nothing is lost.
    #[test]
    fn a_copy_changes_places_with_the_present() {
        let (directory, beside) = data_dir_with("old");
        move_aside(directory.path(), &beside, Some(MemberId(0xab)), Worth::Whole).unwrap().unwrap();
        fill(directory.path(), "new");
        let copy = list(&beside).unwrap().pop().unwrap();
        let aside =
            restore(directory.path(), &beside, Some(MemberId(0xcd)), &copy).unwrap().unwrap();
        let read = |path: &Path| fs::read_to_string(path.join("wal/0.wal")).unwrap();
        assert_eq!(read(&directory.path().join("member")), "old");
        assert_eq!(read(&aside), "new");
        let copies = list(&beside).unwrap();
        assert_eq!(copies.len(), 1);
        assert_eq!(copies[0].worth, Worth::Diverged);
        assert!(copies[0].number == 2 && copies[0].member == "cd");
    }

    /// What is deleted for want of room is the oldest copy, and the live data are never among it.
    #[test]
    fn what_a_directory_takes_is_counted() {
        let (directory, _) = data_dir_with("x");
        let size = allocated(directory.path());
        assert!(size > 0 && size < 1 << 20, "{size}");
        assert_eq!(allocated(&directory.path().join("nowhere")), 0);
    }
}
