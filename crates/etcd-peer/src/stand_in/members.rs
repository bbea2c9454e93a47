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

/// Whether this version of etcd keeps what a member that runs alone has acknowledged. Before 3.4.21 and 3.5.5
/// it could answer before the write was on disk. A version that cannot be read is not held against it.
pub(super) fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(3)), Some(Ok(4)), Some(Ok(patch))) => patch < 21,
        (Some(Ok(3)), Some(Ok(5)), Some(Ok(patch))) => patch < 5,
        (Some(Ok(major)), Some(Ok(minor)), _) => (major, minor) < (3, 4),
        _ => false,
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

    /// Exactly the versions that can lose a lone member's acknowledged writes are refused.
    #[test]
    fn old_versions_are_told_from_new() {
        for (version, expected) in [
            ("3.3.27", true),
            ("3.4.20", true),
            ("3.4.21", false),
            ("3.4.23", false),
            ("3.5.4", true),
            ("3.5.5", false),
            ("3.5.16", false),
            ("3.6.0-rc.1", false),
            ("2.3.8", true),
            ("4.0.0", false),
            ("unknown", false),
        ] {
            assert_eq!(is_too_old(version), expected, "{version}");
        }
    }
}
