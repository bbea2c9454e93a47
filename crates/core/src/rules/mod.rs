//! The rules. Each stands here once, with its number from `docs/concepts/rules.md`.

pub(crate) mod begin;
pub(crate) mod gate;
pub(crate) mod live;
pub(crate) mod lone;
pub(crate) mod rest;
pub(crate) mod stop;
pub(crate) mod table;
pub(crate) mod take_over;

use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Awaited, Refusal, Rule};
use crate::facts::Facts;
use crate::standing::Standing;

/// A decision before its outcome is known.
pub(crate) struct Verdict {
    pub(crate) action: Action,
    pub(crate) rule: Rule,
    pub(crate) because: String,
}

impl Verdict {
    pub(crate) fn new(action: Action, rule: Rule, because: impl Into<String>) -> Self {
        Self { action, rule, because: because.into() }
    }

    pub(crate) fn nothing(rule: Rule, because: impl Into<String>) -> Self {
        Self::new(Action::Nothing, rule, because)
    }

    pub(crate) fn wait(what: Awaited, rule: Rule, because: impl Into<String>) -> Self {
        Self::new(Action::Wait { what, until_ms: None }, rule, because)
    }

    pub(crate) fn inert(
        missing: impl Into<String>,
        command: impl Into<String>,
        rule: Rule,
        because: impl Into<String>,
    ) -> Self {
        let action = Action::StayInert { missing: missing.into(), command: command.into() };
        Self::new(action, rule, because)
    }

    pub(crate) fn refuse(
        reason: Refusal,
        command: impl Into<String>,
        rule: Rule,
        because: impl Into<String>,
    ) -> Self {
        Self::new(Action::Refuse { reason, command: command.into() }, rule, because)
    }
}

/// R11: facts that cannot be true together decide nothing.
pub(crate) fn contradiction(facts: &Facts, standing: &Standing) -> Option<Verdict> {
    let dataset = &facts.dataset;
    let says = |what: String| {
        let command = commands::INSPECT_AND_STATUS;
        Some(Verdict::inert("facts that fit together", command, Rule::R11, what))
    };
    if facts.node == facts.peer.name {
        return says(format!("{} is named as its own peer", facts.node));
    }
    let has_log = !matches!(dataset.class, Class::None | Class::Broken);
    if has_log && (dataset.member_id.is_none() || dataset.cluster_id.is_none()) {
        return says(format!("a dataset of class {} names no member or no cluster", dataset.class));
    }
    if has_log && dataset.prefixes.is_empty() {
        return says(format!("a dataset of class {} has no membership", dataset.class));
    }
    if dataset.class == Class::Pair && standing.other.is_none() && !standing.third {
        return says("a pair dataset has no second voter".to_owned());
    }
    if let Some(heard) = facts.heard() {
        let same = heard.member_id.is_some() && heard.member_id == dataset.member_id;
        if same && has_log && heard.cluster_id == dataset.cluster_id {
            return says(format!(
                "{} and {} both hold the dataset of the same member: one disk is a copy of the other",
                facts.node, facts.peer.name
            ));
        }
    }
    None
}

/// R11 and R10: somebody votes who is neither node.
pub(crate) fn third_member(facts: &Facts, standing: &Standing) -> Option<Verdict> {
    let stranger = facts.etcd.members.iter().find(|member| {
        let own = Some(member.id) == facts.dataset.member_id;
        let nodes = [Some(&facts.node), Some(&facts.peer.name)];
        !own && !nodes.contains(&member.node.as_ref())
    });
    if standing.third || stranger.is_some() {
        let who = stranger.map_or_else(String::new, |member| format!(" ({})", member.id));
        let because = format!(
            "a member that is neither {} nor {} is in the membership{who}",
            facts.node, facts.peer.name
        );
        let command = commands::REMOVE_MEMBER;
        return Some(Verdict::refuse(Refusal::ThirdMember, command, Rule::R11, because));
    }
    None
}
