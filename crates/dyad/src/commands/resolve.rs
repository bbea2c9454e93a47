//! `dyad resolve`: a person chooses between two datasets that both went on alone (R6).

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use dyad_core::decision::Action;
use dyad_core::facts::{EtcdState, Facts, Operation, Request, Role};
use dyad_core::state::State;
use dyad_core::statement::Statement;
use dyad_node::{Node, pacemaker};
use dyad_status::look::{PATIENT, Seen, look};
use serde::Serialize;

use super::{person, this_node, waiting};
use crate::cli::ResolveArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

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
    let body = Body {
        diverged: seen.judgement.state == State::Diverged,
        sides: [own_side(&node, &seen), peer_side(&node, &seen)],
    };
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
    if seen.judgement.state != State::Diverged {
        let message = format!(
            "the two have not diverged: the pair is {}: {}",
            seen.judgement.state, seen.judgement.because
        );
        return Err(Failure::new(Exit::Refused, message).hint("dyad status").into());
    }
    match &arguments.yes_give_up {
        Some(name) if *name == own => {}
        Some(name) => {
            let message = format!("this is {own}, not {name}");
            return Err(Failure::new(Exit::Usage, message).into());
        }
        None => {
            let question = format!(
                "{own}'s data are put aside, and {keep}'s go on. What only {own} wrote is served no \
                 more.\nType {own} to do it"
            );
            person::asks_for(&own, &question, &format!("--yes-give-up {own}"))?;
        }
    }
    let act = format!("gives {own}'s dataset up for {keep}'s");
    person::write_down(node, &act, arguments.reason.as_deref())?;
    let limit = Duration::from_secs(arguments.wait);
    let serves = seen.gathered.facts.etcd.state != EtcdState::Stopped;
    if serves {
        // What runs is not given up: it is stopped in good order first.
        pacemaker::set_standby(&node.own().name, true).context("telling Pacemaker")?;
        waiting::until(node, limit, &format!("{own} to stop"), |seen| {
            seen.gathered.facts.etcd.state == EtcdState::Stopped
        })?;
    }
    let given = yields(node);
    if serves {
        pacemaker::set_standby(&node.own().name, false).context("telling Pacemaker")?;
    }
    given?;
    waiting::until(node, limit, &format!("{own} to join {keep}"), |seen| {
        matches!(seen.judgement.state, State::Protected | State::AtRisk)
    })?;
    Ok(())
}

/// Asks the rules, and does what they say.
fn yields(node: &Node) -> anyhow::Result<()> {
    let lock = node.lock().context("waiting for another operation on this node")?;
    let request = Request { operation: Operation::GiveUp, ..Request::default() };
    let outcome = node.operate(&request, Role::Stopped);
    drop(lock);
    if let Some(failure) = outcome.failure {
        return Err(Failure::new(Exit::Failed, failure).into());
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
    Side {
        node: node.own().name.to_string(),
        class: Statement::of(facts, None).class.to_string(),
        serves: matches!(facts.etcd.state, EtcdState::Leader | EtcdState::Follower),
        member: facts.dataset.member_id.map(|id| id.to_string()),
        position: Some(format!("term {} index {}", raft.last_term, raft.last_index)),
        revision: Some(facts.dataset.revision.0),
        last_written_ms: super::archive::last_written_ms(&node.pair.etcd.data_dir.join("member")),
    }
}

fn peer_side(node: &Node, seen: &Seen) -> Side {
    let peer = seen.status.nodes.iter().find(|each| each.name == node.peer().name.0);
    let said = seen.gathered.facts.peer.statement.as_ref();
    let etcd = peer.map(|peer| &peer.etcd);
    let index = etcd.and_then(|etcd| etcd.raft_index).map(|index| format!("index {index}"));
    Side {
        node: node.peer().name.to_string(),
        class: said.map_or_else(|| "not known".to_owned(), |said| said.class.to_string()),
        serves: etcd.is_some_and(|etcd| etcd.role.as_deref() == Some("leader")),
        member: said.and_then(|said| said.member_id).map(|id| id.to_string()),
        position: said.and_then(|said| said.last).map(|last| last.to_string()).or(index),
        revision: None,
        last_written_ms: None,
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
    }
    let (own, peer) = (&node.own().name, &node.peer().name);
    if body.diverged {
        let _ = writeln!(
            text,
            "the two have diverged; more of {peer}'s is seen by dyad resolve on {peer}\n\
             to keep {peer}'s, here:     dyad resolve --keep {peer}\n\
             to keep {own}'s, on {peer}: dyad resolve --keep {own}"
        );
    } else {
        text.push_str("the two have not diverged, as far as both say now\n");
    }
    text
}
