//! Histories known to be good or bad, and what is said about them.

use std::fmt::Write as _;

use super::{Kind, check};
use crate::fixture::history;

#[track_caller]
fn good(text: &str) {
    let lost = check(&history(text));
    assert!(lost.findings.is_empty(), "{:#?}", lost.findings);
    assert_eq!(lost.undecided, None);
}

/// Exactly these kinds are found; the first message of the first kind says this.
#[track_caller]
fn bad(text: &str, kinds: &[Kind], says: &str) {
    let lost = check(&history(text));
    let found: Vec<Kind> = lost.counts.keys().copied().collect();
    assert_eq!(found, kinds, "{:#?}", lost.findings);
    let message = &lost.findings[0].message;
    assert!(message.contains(says), "{message:?} does not say {says:?}");
}

/// Everything that was acknowledged is there, on both nodes, under one revision.
#[test]
fn a_good_run_is_accepted() {
    good(
        "1 a u1 insert x 0-10 ok 2
         1 a k  put y    20-30 ok 3
         2 b k  cas y z  40-50 ok 4
         2 b k  get      60-70 ok 4 z@4
         2 b k  cas y w  80-90 no 4 z@4
         3 a d  insert v 80-90 ok 5
         3 a d  delete   91-95 ok 6 v@5
         final a 6 u1=x@2/2/1 k=z@4/3/2
         final b 6 u1=x@2/2/1 k=z@4/3/2",
    );
}

/// A request of unknown outcome may have been executed, or not, and may explain what nobody acknowledged.
#[test]
fn unknown_outcomes_are_given_the_benefit_of_the_doubt() {
    let run = "1 a k  put x    0-10 ok 2
               2 b k  put y    5- unknown
               2 b u1 insert v 20- unknown
               3 a d  put w    30-40 ok 3
               3 b d  delete   50- unknown\n";
    good(&format!("{run} final a 3 k=x@2/2/1 d=w@3/3/1"));
    good(&format!("{run} final a 6 k=y@4/2/2 u1=v@5/5/1"));
}

/// One node may be a little behind the other while requests of unknown outcome still come through.
#[test]
fn a_node_may_be_behind() {
    good(
        "1 a k  put x    0-10 ok 2
         2 b u1 insert v 5- unknown
         2 b k  put y    5- unknown
         final a 2 k=x@2/2/1
         final b 4 k=y@4/2/2 u1=v@3/3/1",
    );
}

/// An acknowledged insert that one node does not hold is lost, whatever the other holds.
#[test]
fn a_lost_insert_is_caught() {
    bad(
        "1 a u1 insert x 0-10 ok 2
         final a 2 u1=x@2/2/1
         final b 1",
        &[Kind::LostAcknowledgement],
        "u1 does not exist on b (at revision 1), but #1 (insert x via a) was acknowledged at revision 2",
    );
}

/// An acknowledged change that was overwritten by an older state is lost.
#[test]
fn a_lost_change_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         1 a k put y 20-30 ok 3
         final a 2 k=x@2/2/1",
        &[Kind::LostAcknowledgement],
        "k on a was last changed at revision 2, but #2 (put y via a) was acknowledged at 3",
    );
}

/// A removal is an acknowledged change too.
#[test]
fn a_resurrected_key_is_caught() {
    bad(
        "1 a k put x  0-10 ok 2
         1 a k delete 20-30 ok 3 x@2
         final a 2 k=x@2/2/1",
        &[Kind::LostAcknowledgement],
        "#2 (delete via a) was acknowledged at 3",
    );
}

/// A change in the middle that left no trace: the key was changed too seldom.
#[test]
fn a_change_missing_in_the_middle_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         1 a k put y 20-30 ok 3
         1 a k put z 40-50 ok 4
         final a 4 k=z@4/2/2",
        &[Kind::LostAcknowledgement],
        "k on a was changed 2 times since its creation; 3 changes were acknowledged and 0 are unknown",
    );
}

/// A change that was made twice: too often, or found again under another revision.
#[test]
fn a_duplicate_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         1 a k put y 20-30 ok 3
         final a 4 k=y@3/2/3",
        &[Kind::Duplicate],
        "changed 3 times",
    );
    bad(
        "1 a k put x 0-10 ok 2
         2 b k put y 20- unknown
         1 a k get   30-40 ok 4 x@4
         final a 4 k=x@4/2/2",
        &[Kind::Duplicate],
        "saw x as changed at revision 4, but it was acknowledged at 2",
    );
}

/// Two nodes that acknowledged different changes under one revision have two histories.
#[test]
fn two_histories_are_caught() {
    bad(
        "1 a k1 put x 0-10 ok 2
         2 b k2 put y 0-10 ok 2
         final a 2 k1=x@2/2/1
         final b 2 k2=y@2/2/1",
        &[Kind::LostAcknowledgement, Kind::TwoHistories],
        "does not exist",
    );
    // Even if nobody asks the nodes in the end, and the reads were allowed to be old.
    let lost = check(&history(
        "1 a k put x   0-10 unknown
         2 b k put y   0-10 unknown
         1 a k old-get 20-30 ok 2 x@2
         2 b k old-get 20-30 ok 2 y@2",
    ));
    assert_eq!(lost.findings[0].kind, Kind::TwoHistories);
    assert!(lost.findings[0].message.starts_with("revision 2 is k = x according to what #3"));
}

/// Nodes that hold different things at the same revision, though nobody saw it.
#[test]
fn diverged_nodes_are_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         1 a d put w 0-10 ok 3
         2 b d delete 20- unknown
         final a 4 k=x@2/2/1
         final b 4 k=x@2/2/1 d=w@3/3/1",
        &[Kind::TwoHistories],
        "d is",
    );
}

/// A linearizable answer from the past.
#[test]
fn a_revision_that_goes_back_is_caught() {
    bad(
        "1 a k1 put x 0-10 ok 5
         2 b k2 get   20-30 ok 4
         final a 5 k1=x@5/5/1",
        &[Kind::RevisionWentBack],
        "#2 (get via b) was answered at revision 4, though #1 (put x via a) was already over at revision 5",
    );
}

/// A linearizable read of an old value, though the store claims to be at the newest revision.
#[test]
fn a_stale_read_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         1 a k put y 20-30 ok 3
         2 b k get   40-50 ok 3 x@2
         final a 3 k=y@3/2/2",
        &[Kind::StaleRead],
        "#3 (get via b) saw the change of revision 2, though #2 (put y via a) had been acknowledged at revision 3",
    );
}

/// A linearizable read that finds nothing where something was acknowledged.
#[test]
fn a_vanished_key_is_caught() {
    bad(
        "1 a k put x 0-10 ok 2
         2 b k get   20-30 ok 2
         final a 2 k=x@2/2/1",
        &[Kind::LostAcknowledgement],
        "#2 (get via b) saw nothing",
    );
}

/// What certainly failed, or was refused by its comparison, or was never written, must not be seen.
#[test]
fn values_out_of_nowhere_are_caught() {
    bad(
        "1 a k put x 0-10 failed
         2 b k get   20-30 ok 2 x@2
         final a 2 k=x@2/2/1",
        &[Kind::DirtyRead, Kind::Duplicate],
        "saw x, whose write certainly failed",
    );
    bad(
        "1 a k put x   0-10 ok 2
         1 a k cas w y 20-30 no 2 x@2
         2 b k put z   20- unknown
         2 b k get     40-50 ok 3 y@3
         final a 3 k=y@3/2/2",
        &[Kind::DirtyRead],
        "answered with \"comparison failed\"",
    );
    bad(
        "1 a k put x 0-10 ok 2
         final a 3 k=x@2/2/1 other=v@3/3/1",
        &[Kind::Unwritten],
        "other on a holds v, which nobody wrote",
    );
}

/// Old serializable reads are counted, not condemned.
#[test]
fn old_serializable_reads_are_allowed() {
    let text = "1 a k put x   0-10 ok 2
                1 a k old-get 20-30 ok 1
                final a 2 k=x@2/2/1";
    good(text);
    assert_eq!(check(&history(text)).old_serializable_reads, 1);
}

/// Without a final state nothing can be said about what is left: never "good".
#[test]
fn without_a_final_state_it_is_undecided() {
    let lost = check(&history("1 a k put x 0-10 ok 2"));
    assert_eq!(lost.undecided.as_deref(), Some("the history holds no final state of any node"));
}

/// Of many findings of one kind the first are kept and all are counted.
#[test]
fn many_findings_are_counted() {
    let mut text = String::new();
    for number in 0..50 {
        let (from, revision) = (number * 10, number + 2);
        let _ = writeln!(text, "1 a u{number} insert x {from}-{} ok {revision}", from + 5);
    }
    let lost = check(&history(&format!("{text} final a 60")));
    assert_eq!(lost.counts[&Kind::LostAcknowledgement], 50);
    assert_eq!(lost.findings.len(), super::KEPT_MAX);
}
