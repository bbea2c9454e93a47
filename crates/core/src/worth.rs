//! What a dataset is worth that makes way for a new one (P3).

use serde::{Deserialize, Serialize};

use crate::dataset::{Class, Dataset};
use crate::facts::Marks;
use crate::ids::MemberId;

/// What is kept of a dataset that was moved aside, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Worth {
    /// It has passed a barrier: should the peer be lost, it is the newest whole copy. Kept until another one
    /// has passed it.
    Whole,
    /// A join that did not end. All that it holds and that was acknowledged is on the voter that it was copied
    /// from; the whole copy that it was to replace is still aside. Only the last one is kept, and only while
    /// there is room.
    Unfinished,
    /// It holds writes of its own, made alone while the peer went on too (R6). Only a person deletes it.
    Diverged,
}

impl Worth {
    /// The worth of a dataset, with its marks and the last member of this node that has passed a barrier.
    pub fn of(dataset: &Dataset, marks: &Marks, passed: Option<MemberId>) -> Self {
        // A node that had gone on alone and now makes way was told to by a person.
        if dataset.class == Class::Alone || marks.take_over.is_some() {
            return Self::Diverged;
        }
        match (dataset.class, dataset.member_id) {
            (Class::Learner, _) => Self::Unfinished,
            // Ids are not used twice: another one's barrier says that this member's never came.
            (Class::Pair, Some(own)) if passed.is_some_and(|passed| passed != own) => {
                Self::Unfinished
            }
            _ => Self::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::TakeOverMark;
    use crate::ids::ClusterId;

    fn dataset(class: Class) -> Dataset {
        Dataset { member_id: Some(MemberId(7)), ..Dataset::empty(class, "a test") }
    }

    fn worth(class: Class, passed: Option<u64>) -> Worth {
        Worth::of(&dataset(class), &Marks::default(), passed.map(MemberId))
    }

    /// Without a word about a barrier a copy that voted counts as whole: what is not known is kept.
    #[test]
    fn a_voter_is_whole_unless_it_never_passed() {
        assert_eq!(worth(Class::Pair, Some(7)), Worth::Whole);
        assert_eq!(worth(Class::Pair, None), Worth::Whole);
        assert_eq!(worth(Class::Pair, Some(6)), Worth::Unfinished);
        assert_eq!(worth(Class::Learner, None), Worth::Unfinished);
        assert_eq!(worth(Class::Broken, Some(6)), Worth::Whole);
    }

    /// Whatever it has passed, writes made alone are kept.
    #[test]
    fn what_went_on_alone_has_diverged() {
        assert_eq!(worth(Class::Alone, Some(6)), Worth::Diverged);
        let mark = TakeOverMark {
            cluster: ClusterId(1),
            member: MemberId(7),
            without: Vec::new(),
            promoting: None,
        };
        let marks = Marks { take_over: Some(mark), yielded: None };
        assert_eq!(Worth::of(&dataset(Class::Pair), &marks, Some(MemberId(6))), Worth::Diverged);
    }
}
