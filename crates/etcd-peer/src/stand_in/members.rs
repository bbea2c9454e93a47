//! The membership as the survivor's peer port tells it, and what in it forbids a stand-in.
//!
//! It needs no leader and no client port. It is looked at as a brake only: what it does not say is no
//! permission, and right after a start it may still be behind.

use dyad_core::ids::MemberId;
use serde::Deserialize;

use super::error::Veto;

/// One member in the answer to `GET /members` on a peer port. Ids are plain numbers there.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Listed {
    id: u64,
    #[serde(default, rename = "isLearner")]
    is_learner: bool,
}

/// What forbids a stand-in, if anything does.
pub(super) fn veto(listed: &[Listed], survivor: MemberId, dead: MemberId) -> Option<Veto> {
    let learner = |id: MemberId| listed.iter().find(|m| m.id == id.0).map(|m| m.is_learner);
    let third = listed
        .iter()
        .find(|member| !member.is_learner && ![survivor.0, dead.0].contains(&member.id));
    match (learner(survivor), learner(dead), third) {
        (None, _, _) => Some(Veto::SurvivorUnknown(survivor)),
        (Some(true), _, _) => Some(Veto::SurvivorIsLearner(survivor)),
        (_, Some(true), _) => Some(Veto::DeadIsLearner(dead)),
        (_, _, Some(third)) => Some(Veto::ThirdVoter(MemberId(third.id))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R2: exactly survivor and dead member vote; learners beside them do no harm.
    #[test]
    fn only_exactly_two_voters_are_accepted() {
        let (me, dead) = (MemberId(1), MemberId(2));
        for (json, expected) in [
            (r#"[{"id":1},{"id":2}]"#, None),
            (r#"[{"id":1},{"id":2},{"id":3,"isLearner":true}]"#, None),
            // Removed already, or not yet applied after a start: the stream itself will tell.
            (r#"[{"id":1}]"#, None),
            (r#"[{"id":1,"isLearner":true},{"id":2}]"#, Some(Veto::SurvivorIsLearner(me))),
            (r#"[{"id":1},{"id":2,"isLearner":true}]"#, Some(Veto::DeadIsLearner(dead))),
            (r#"[{"id":1},{"id":2},{"id":3}]"#, Some(Veto::ThirdVoter(MemberId(3)))),
            (r#"[{"id":2}]"#, Some(Veto::SurvivorUnknown(me))),
            ("[]", Some(Veto::SurvivorUnknown(me))),
        ] {
            let listed: Vec<Listed> = serde_json::from_str(json).unwrap();
            assert_eq!(veto(&listed, me, dead), expected, "{json}");
        }
    }
}
