//! `dyad resolve`: a person chooses between two datasets that both went on alone (R6).

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use dyad_core::decision::Action;
use dyad_core::facts::{EtcdState, Facts, Operation, Request, Role};
use dyad_core::state::{GiveWay, State};
use dyad_core::statement::Statement;
use dyad_node::{Node, pacemaker, record};
use dyad_status::look::{PATIENT, Seen, look};
use serde::{Deserialize, Serialize};

use super::{person, standby, this_node, waiting};
use crate::cli::ResolveArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Through which the two nodes tell each other of their copies.
const ATTRIBUTE: &str = "dyad-dataset";

/// One of two datasets, as a person compares them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    node: String,
    class: String,
    serves: bool,
    member: Option<String>,
    position: Option<String>,
    revision: Option<u64>,
    last_written_ms: Option<u64>,
    /// Keys that were written or deleted since it went on without the other.
    keys_changed: Option<usize>,
    /// Ranges of keys that were deleted since, however many keys were in them.
    ranges_deleted: Option<usize>,
}

/// What a node tells the other of its copy: only it can read its disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Word {
    member: Option<String>,
    revision: u64,
    last_written_ms: Option<u64>,
    keys_changed: Option<usize>,
    ranges_deleted: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    diverged: bool,
    sides: [Side; 2],
}

/// Shows both, or gives this node's up.
pub(super) fn run(arguments: &ResolveArguments, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    let seen = look(&node, PATIENT);
    let diverged = seen.judgement.state == State::Diverged;
    if seen.judgement.state == State::Protected {
        // Nothing is left to be ended.
        record::remove_durable(&node.place.resolving())?;
    }
    let own = own_side(&node, &seen);
    if diverged {
        tell_other(&own);
    }
    let body = Body { diverged, sides: [own, peer_side(&node, &seen)] };
    let Some(keep) = &arguments.keep else {
        match format {
            Format::Json => output::print_json("Datasets", &body)?,
            Format::Text => output::print_data(&told(&node, &body))?,
        }
        return Ok(if body.diverged { Exit::No } else { Exit::Ok });
    };
    anstream::eprint!("{}", told(&node, &body));
    give_up(&node, keep, &seen, arguments)?;
    let (own, peer) = (&node.own().name, &node.peer().name);
    match format {
        Format::Json => output::print_json("Resolution", &body)?,
        Format::Text => output::print_data(&format!(
            "{peer}'s data are kept; {own}'s are aside, whole: dyad archive list\n"
        ))?,
    }
    Ok(Exit::Ok)
}

fn give_up(
    node: &Arc<Node>,
    keep: &str,
    seen: &Seen,
    arguments: &ResolveArguments,
) -> anyhow::Result<()> {
    let own = node.own().name.to_string();
    let kept = &person::named(node, keep)?.name;
    if kept.0 == own {
        let message = format!("it is typed on the node that gives way, and this is {own}");
        let hint = format!("on {}: dyad resolve --keep {own}", node.peer().name);
        return Err(Failure::new(Exit::Usage, message).hint(hint).into());
    }
    let begun = node.place.resolving().exists();
    next(seen, begun)?;
    let again = match &arguments.yes_give_up {
        Some(name) if *name == own => None,
        Some(name) => {
            let message = format!("this is {own}, not {name}");
            let hint = format!(
                "it is typed on the node that gives way: --yes-give-up {own} gives {own}'s data up"
            );
            return Err(Failure::new(Exit::Usage, message).hint(hint).into());
        }
        None => {
            let question = format!(
                "{own}'s data are put aside, and {keep}'s go on. What only {own} wrote is served no \
                 more.\nType {own} to do it"
            );
            person::asks_for(&own, &question, &format!("--yes-give-up {own}"))?;
            // The other one may have gone while the question stood.
            Some(look(node, PATIENT))
        }
    };
    let seen = again.as_ref().unwrap_or(seen);
    next(seen, begun)?;
    let act = format!("gives {own}'s dataset up for {keep}'s");
    person::write_down(node, &act, arguments.reason.as_deref())?;
    let limit = Duration::from_secs(arguments.wait);
    if begun {
        anstream::eprintln!("an earlier resolve was broken off; it is gone on with");
    }
    // Whatever ends this command, the next one knows that there is something to end.
    let mark = node.place.resolving();
    record::write_durable(&mark, &kept.0).context("writing down what was begun")?;
    let joined = give_way(node, seen, limit).and_then(|()| {
        let what = format!("{own} to join {keep}");
        waiting::until(node, limit, &what, |seen| {
            matches!(seen.judgement.state, State::Protected | State::AtRisk)
        })?;
        Ok(())
    });
    joined.map_err(|error| unfinished(error, &own, keep))?;
    Ok(record::remove_durable(&mark)?)
}

/// Says with an error that there is something to go on with.
fn unfinished(error: anyhow::Error, own: &str, keep: &str) -> anyhow::Error {
    let again =
        format!("dyad resolve --keep {keep} goes on; until then {own} may be out of service");
    match error.downcast::<Failure>() {
        Ok(failure) => {
            let before = failure.hint.clone().map(|hint| format!("{hint}; ")).unwrap_or_default();
            failure.hint(format!("{before}{again}")).into()
        }
        Err(error) => error.context(again),
    }
}

/// What is to be done next, as `core` judges it.
fn next(seen: &Seen, begun: bool) -> Result<GiveWay, Failure> {
    seen.judgement
        .give_way(&seen.gathered.facts, begun)
        .map_err(|refused| Failure::new(Exit::Refused, refused.because).hint(refused.command))
}

/// Stops this node's etcd in good order if it runs, gives its data up, and lets it join.
fn give_way(node: &Arc<Node>, seen: &Seen, limit: Duration) -> anyhow::Result<()> {
    let own = &node.own().name;
    let mut step = next(seen, true)?;
    if step == GiveWay::Stop {
        standby::tell(node, own, true)?;
        waiting::until(node, limit, &format!("{own} to stop"), |seen| {
            seen.gathered.facts.etcd.state == EtcdState::Stopped
        })?;
        step = next(&look(node, PATIENT), true)?;
    }
    if step == GiveWay::Stop {
        return Err(Failure::new(Exit::TimedOut, format!("{own} has not stopped yet"))
            .hint("the same command again goes on with it")
            .into());
    }
    // One that was given up already has nothing to give; it has to be let in again.
    let given = if step == GiveWay::GiveUp { yields(node) } else { Ok(()) };
    standby::tell(node, own, false)?;
    given
}

/// Asks the rules, and does what they say.
fn yields(node: &Node) -> anyhow::Result<()> {
    let lock = node.lock().context("waiting for another operation on this node")?;
    let request = Request { operation: Operation::GiveUp, ..Request::default() };
    let outcome = node.operate(&request, Role::Stopped);
    drop(lock);
    if let Some(failure) = outcome.failure {
        return Err(Failure::new(Exit::Failed, failure)
            .hint("the same command again goes on with it; dyad explain tells more")
            .into());
    }
    match &outcome.decision.action {
        Action::Yield => Ok(()),
        Action::Refuse { command, .. } | Action::StayInert { command, .. } => {
            let message = format!("refused: {}", outcome.decision.because);
            Err(Failure::new(Exit::Refused, message).hint(command).into())
        }
        other => anyhow::bail!("an unexpected decision: {other:?}"),
    }
}

fn own_side(node: &Node, seen: &Seen) -> Side {
    let facts: &Facts = &seen.gathered.facts;
    let raft = facts.dataset.raft;
    let parted = etcd_disk::since_parting(&node.pair.etcd.data_dir).ok().flatten();
    Side {
        node: node.own().name.to_string(),
        class: Statement::of(facts, None).class.to_string(),
        serves: matches!(facts.etcd.state, EtcdState::Leader | EtcdState::Follower),
        member: facts.dataset.member_id.map(|id| id.to_string()),
        position: Some(format!("term {} index {}", raft.last_term, raft.last_index)),
        revision: Some(facts.dataset.revision.0),
        last_written_ms: super::archive::last_written_ms(&node.pair.etcd.data_dir.join("member")),
        keys_changed: parted.map(|parted| parted.keys),
        ranges_deleted: parted.map(|parted| parted.ranges),
    }
}

/// Tells the other node what only this one can read of its copy, so that either shows both. A courtesy: whoever
/// cannot be told reads it there.
fn tell_other(side: &Side) {
    let word = Word {
        member: side.member.clone(),
        revision: side.revision.unwrap_or_default(),
        last_written_ms: side.last_written_ms,
        keys_changed: side.keys_changed,
        ranges_deleted: side.ranges_deleted,
    };
    if let Ok(text) = serde_json::to_string(&word) {
        let _ = pacemaker::publish(ATTRIBUTE, &text);
    }
}

/// What the other node has told of its copy, if it is still about that one.
fn told_by_other(node: &Node, member: Option<&String>) -> Option<Word> {
    let said = pacemaker::published(ATTRIBUTE).ok()?;
    let (_, text) = said.into_iter().find(|(name, _)| *name == node.peer().name)?;
    let word: Word = serde_json::from_str(&text).ok()?;
    (word.member.as_ref() == member).then_some(word)
}

fn peer_side(node: &Node, seen: &Seen) -> Side {
    let peer = seen.status.nodes.iter().find(|each| each.name == node.peer().name.0);
    let said = seen.gathered.facts.peer.statement.as_ref();
    let etcd = peer.map(|peer| &peer.etcd);
    let index = etcd.and_then(|etcd| etcd.raft_index).map(|index| format!("index {index}"));
    let member = said.and_then(|said| said.member_id).map(|id| id.to_string());
    let word = told_by_other(node, member.as_ref());
    Side {
        node: node.peer().name.to_string(),
        class: said.map_or_else(|| "not known".to_owned(), |said| said.class.to_string()),
        serves: etcd.is_some_and(|etcd| etcd.role.as_deref() == Some("leader")),
        member,
        position: said.and_then(|said| said.last).map(|last| last.to_string()).or(index),
        revision: word.as_ref().map(|word| word.revision),
        last_written_ms: word.as_ref().and_then(|word| word.last_written_ms),
        keys_changed: word.as_ref().and_then(|word| word.keys_changed),
        ranges_deleted: word.as_ref().and_then(|word| word.ranges_deleted),
    }
}

fn told(node: &Node, body: &Body) -> String {
    let mut text = String::new();
    for side in &body.sides {
        let serves = if side.serves { "serves" } else { "at rest" };
        let position = side.position.as_deref().unwrap_or("not known");
        let _ = writeln!(text, "{}: {serves}, data: {}, end at {position}", side.node, side.class);
        if let Some(written) = side.last_written_ms {
            let _ = writeln!(text, "    last written {} UTC", dyad_status::words::moment(written));
        }
        if let Some(revision) = side.revision {
            let _ = writeln!(text, "    revision {revision} in the database");
        }
        if let Some(keys) = side.keys_changed {
            let ranges = match side.ranges_deleted.unwrap_or_default() {
                0 => String::new(),
                1 => ", and 1 range of keys deleted".to_owned(),
                many => format!(", and {many} ranges of keys deleted"),
            };
            let noun = if keys == 1 { "key" } else { "keys" };
            let _ = writeln!(text, "    {keys} {noun} changed since it went on alone{ranges}");
        }
    }
    let (own, peer) = (&node.own().name, &node.peer().name);
    if body.diverged {
        let more = match body.sides[1].keys_changed {
            None => format!("\nto see more of {peer}'s:  dyad resolve on {peer}, then here again"),
            Some(_) => String::new(),
        };
        let (here, there) =
            (format!("to keep {peer}'s, here:"), format!("to keep {own}'s, on {peer}:"));
        let width = here.len().max(there.len());
        let _ = writeln!(
            text,
            "the two have diverged{more}\n\
             {here:width$} dyad resolve --keep {peer}\n\
             {there:width$} dyad resolve --keep {own}"
        );
    } else {
        text.push_str("the two have not diverged, as far as both say now\n");
    }
    text
}
