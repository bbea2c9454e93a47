//! What the nodes hold in the end, against what was acknowledged and against each other.

use super::{Facts, KeyFacts, Kind, Lost, name};
use crate::history::{FinalItem, FinalState, History};

pub(super) fn check(history: &History, facts: &Facts, lost: &mut Lost) {
    let mut judged = 0;
    for (key, facts) in &facts.keys {
        let states = history.finals.iter().filter(|state| key.starts_with(&state.prefix));
        for state in states {
            judged += 1;
            match state.items.get(*key) {
                Some(item) => present(key, item, state, facts, lost),
                None => absent(key, state, facts, lost),
            }
        }
    }
    for state in &history.finals {
        unknown_keys(state, facts, lost);
        if !lost.nodes.contains(&state.endpoint) {
            lost.nodes.push(state.endpoint.clone());
        }
    }
    let endpoints = history.header.endpoints.iter();
    lost.unread = endpoints.filter(|endpoint| !lost.nodes.contains(endpoint)).cloned().collect();
    for (position, one) in history.finals.iter().enumerate() {
        for other in &history.finals[position + 1..] {
            if one.prefix == other.prefix {
                compare(one, other, lost);
            }
        }
    }
    if judged == 0 && lost.acknowledged > 0 {
        let why = "the history holds no final state of any node".to_owned();
        lost.undecided = Some(why);
    }
}

/// A key that exists: it holds the last acknowledged change or a later one, and was changed neither too
/// seldom nor too often.
fn present(key: &str, item: &FinalItem, state: &FinalState, facts: &KeyFacts, lost: &mut Lost) {
    let node = &state.endpoint;
    if let Err((kind, writers, what)) = facts.origin(&item.value, item.mod_revision) {
        lost.add(kind, key, writers, format!("{key} on {node} holds {what}"));
    }
    if let Some((revision, last)) = facts.acknowledged.last_key_value()
        && item.mod_revision < *revision
    {
        let message = format!(
            "{key} on {node} was last changed at revision {}, but {} was acknowledged at {revision}",
            item.mod_revision,
            name(last),
        );
        lost.add(Kind::LostAcknowledgement, key, [last.id], message);
    }
    count(key, item, state, facts, lost);
}

fn count(key: &str, item: &FinalItem, state: &FinalState, facts: &KeyFacts, lost: &mut Lost) {
    if item.create_revision > item.mod_revision {
        return; // A nonsense that no store makes; a range of it would not even be a range.
    }
    let counted = facts.acknowledged.range(item.create_revision..=item.mod_revision);
    let ids: Vec<u64> = counted.map(|(_, operation)| operation.id).collect();
    let (least, most) = (ids.len() as u64, (ids.len() + facts.unknown.len()) as u64);
    let kind = if item.version < least {
        Kind::LostAcknowledgement
    } else if item.version > most {
        Kind::Duplicate
    } else {
        return;
    };
    let message = format!(
        "{key} on {} was changed {} times since its creation; {least} changes were acknowledged and {} are unknown",
        state.endpoint,
        item.version,
        facts.unknown.len(),
    );
    lost.add(kind, key, ids, message);
}

/// A key that does not exist: the last acknowledged change removed it, or a removal is unknown.
fn absent(key: &str, state: &FinalState, facts: &KeyFacts, lost: &mut Lost) {
    let Some((revision, last)) = facts.acknowledged.last_key_value() else { return };
    if last.action.value().is_some() && !facts.perhaps_removed() {
        let message = format!(
            "{key} does not exist on {} (at revision {}), but {} was acknowledged at revision {revision}",
            state.endpoint,
            state.revision,
            name(last),
        );
        lost.add(Kind::LostAcknowledgement, key, [last.id], message);
    }
}

/// A key that nobody touched exists.
fn unknown_keys(state: &FinalState, facts: &Facts, lost: &mut Lost) {
    for (key, item) in &state.items {
        if !facts.keys.contains_key(key.as_str()) {
            let message =
                format!("{key} on {} holds {}, which nobody wrote", state.endpoint, item.value);
            lost.add(Kind::Unwritten, key, [], message);
        }
    }
}

/// Two nodes. What the older one has seen, the newer one must have seen the same way.
fn compare(one: &FinalState, other: &FinalState, lost: &mut Lost) {
    if let (Some(first), Some(second)) = (&one.cluster_id, &other.cluster_id)
        && first != second
    {
        let message = format!(
            "{} belongs to cluster {first}, {} to cluster {second}",
            one.endpoint, other.endpoint
        );
        lost.add(Kind::TwoHistories, "", [], message);
    }
    let (older, newer) = if one.revision <= other.revision { (one, other) } else { (other, one) };
    for (key, item) in &newer.items {
        if item.mod_revision <= older.revision && older.items.get(key) != Some(item) {
            disagree(key, older, newer, lost);
        }
    }
    for (key, item) in &older.items {
        // It may have been removed since, if there was a since.
        let fits = match newer.items.get(key) {
            Some(newer) => newer.mod_revision >= item.mod_revision,
            None => newer.revision > older.revision,
        };
        if !fits {
            disagree(key, older, newer, lost);
        }
    }
}

fn disagree(key: &str, older: &FinalState, newer: &FinalState, lost: &mut Lost) {
    let show = |state: &FinalState| {
        let item = match state.items.get(key) {
            Some(item) => format!("{} (changed at {})", item.value, item.mod_revision),
            None => "nothing".to_owned(),
        };
        format!("{item} on {} at revision {}", state.endpoint, state.revision)
    };
    let message = format!("{key} is {}, but {}", show(older), show(newer));
    lost.add(Kind::TwoHistories, key, [], message);
}
