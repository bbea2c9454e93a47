//! No power cut at any step of a change leaves two nodes that never find each other.

use std::collections::BTreeSet;

use super::*;

/// What a node's disk says of a change of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Disk {
    /// Nothing, and the old key.
    Nothing,
    /// The new bundle waits.
    Staged,
    /// And it is agreed on. Either key may be in place.
    Agreed,
    /// Nothing waits, and the new key.
    Done,
}

/// One node: its disk, and how far it is in this boot. A power cut leaves the disk alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Half {
    disk: Disk,
    /// What it has said, in the order of the steps: 0 nothing, 1 staged, 2 installed, 3 keyed, 4 done.
    said: u8,
    /// The most that it has seen of the other's words in this boot.
    seen: u8,
    up: bool,
}

const START: Half = Half { disk: Disk::Nothing, said: 0, seen: 0, up: true };

/// What may happen next on one node, with the other one so.
fn steps(own: Half, other: Half) -> Vec<Half> {
    let mut next = Vec::new();
    if !own.up {
        // A boot says nothing by itself; one that has ended answers.
        let said = if own.disk == Disk::Done { 4 } else { 0 };
        return vec![Half { up: true, said, seen: 0, ..own }];
    }
    next.push(Half { up: false, said: 0, seen: 0, ..own });
    if other.up && other.said > own.seen {
        next.push(Half { seen: other.said, ..own });
    }
    let gone = !other.up;
    match own.disk {
        Disk::Nothing => next.push(Half { disk: Disk::Staged, ..own }),
        Disk::Staged if own.said == 0 => next.push(Half { said: 1, ..own }),
        Disk::Staged => {
            if own.seen >= 1 {
                next.push(Half { disk: Disk::Agreed, ..own });
            } else {
                // Time ran out; or it is taken back at the very moment in which the other one sees it.
                next.push(Half { disk: Disk::Nothing, said: 0, ..own });
            }
        }
        // After a boot it says again that it has it.
        Disk::Agreed if own.said < 2 => next.push(Half { said: 2, ..own }),
        Disk::Agreed if own.said == 2 && own.seen >= 2 => next.push(Half { said: 3, ..own }),
        Disk::Agreed if own.said == 3 && (own.seen >= 3 || gone) => {
            next.push(Half { disk: Disk::Done, said: 4, ..own });
        }
        Disk::Agreed | Disk::Done => {}
    }
    next
}

fn reachable() -> BTreeSet<[Half; 2]> {
    let mut found = BTreeSet::from([[START, START]]);
    let mut open = vec![[START, START]];
    while let Some([first, second]) = open.pop() {
        let mut next: Vec<_> =
            steps(first, second).into_iter().map(|half| [half, second]).collect();
        next.extend(steps(second, first).into_iter().map(|half| [first, half]));
        open.extend(next.into_iter().filter(|state| found.insert(*state)));
    }
    found
}

/// Which keys a node may have for good, and whether it looks under both.
fn keys(disk: Disk) -> &'static [bool] {
    match disk {
        Disk::Nothing | Disk::Staged => &[false],
        Disk::Agreed => &[false, true],
        Disk::Done => &[true],
    }
}

/// Wherever the power goes, on one node or on both: what their disks then say lets them find each other. And both ends
/// are among what can happen, so that the search has seen the whole change.
#[test]
fn a_power_cut_at_each_step_leaves_a_common_key() {
    let states = reachable();
    for [first, second] in &states {
        let common = keys(first.disk).iter().any(|key| keys(second.disk).contains(key));
        assert!(common, "{first:?} and {second:?} never meet");
    }
    let ends = |disk| states.iter().any(|state| state.iter().all(|half| half.disk == disk));
    assert!(ends(Disk::Done) && ends(Disk::Agreed) && ends(Disk::Nothing));
}

/// Two that look under both keys, and one that looks for another that does not, are under the same key for long enough
/// to see each other, whenever each of them began and with whichever key.
#[test]
fn by_turns_they_meet() {
    const NEEDED_S: u64 = 10;
    const WITHIN_S: u64 = 200;
    let key = |first: bool, starts_with: bool, second: u64, began: u64| {
        let elapsed = Duration::from_secs(second.saturating_sub(began));
        starts_with ^ is_turn_of_other(stay(first), elapsed)
    };
    let longest = |same: &dyn Fn(u64) -> bool| {
        let (mut now, mut longest) = (0, 0);
        for second in 0..WITHIN_S {
            now = if same(second) { now + 1 } else { 0 };
            longest = longest.max(now);
        }
        longest
    };
    for began in 0..=150 {
        for (one, other) in [(false, false), (false, true), (true, false), (true, true)] {
            let both = |second: u64| {
                key(true, one, second + 150, 150 - began) == key(false, other, second + 150, 150)
            };
            assert!(longest(&both) >= NEEDED_S, "{began} {one} {other}");
        }
    }
    for first in [true, false] {
        for fixed in [true, false] {
            let met = |second: u64| key(first, !fixed, second, 0) == fixed;
            assert!(longest(&met) >= NEEDED_S, "{first} {fixed}");
        }
    }
}

struct Site {
    root: tempfile::TempDir,
}

impl Site {
    fn new(key: &str) -> Self {
        let site = Self { root: tempfile::tempdir().unwrap() };
        put_this(&site.here(), key.as_bytes()).unwrap();
        site
    }

    fn here(&self) -> Here {
        Here { host_name: "node-a".into(), root: self.root.path().to_owned() }
    }

    fn place(&self) -> Place {
        let below = |name: &str| self.root.path().join(name);
        Place {
            config: below("etc/dyad"),
            runtime: below("run"),
            log: below("log"),
            state: below("state"),
        }
    }
}

/// The old key is kept before a new one can be in place, and only once: after a cut both are still to be had, and the one
/// in place is tried first. When it is over nothing of it is left.
#[test]
fn both_keys_are_kept_until_it_is_over() {
    let site = Site::new("old");
    let (here, place) = (site.here(), site.place());
    let work = bundle::tests::work_with(&here, &place, &[(AUTHKEY, "new")]);
    agree(&work, "D").unwrap();
    assert!(is_agreed(&place, "D") && !is_agreed(&place, "E"));
    assert_eq!(Search::new(&work, true).unwrap().keys, [b"old".to_vec(), b"new".to_vec()]);
    put(&work).unwrap();
    assert_eq!(in_place(&here).unwrap(), b"new");
    agree(&work, "D").unwrap();
    assert_eq!(Search::new(&work, true).unwrap().keys, [b"new".to_vec(), b"old".to_vec()]);
    forget(&place).unwrap();
    assert!(!is_agreed(&place, "D") && !place.state.join(BEFORE).exists());
}

/// A cut between the agreement and the keeping of the old key: it is still the one in place.
#[test]
fn a_cut_right_after_the_agreement_has_the_old_key() {
    let site = Site::new("old");
    let (here, place) = (site.here(), site.place());
    let work = bundle::tests::work_with(&here, &place, &[(AUTHKEY, "new")]);
    record::write_durable(&place.state.join(AGREED), &"D").unwrap();
    assert_eq!(Search::new(&work, false).unwrap().keys, [b"old".to_vec(), b"new".to_vec()]);
}
