//! `dyad confirm`: a person states that the peer is down.

use std::fmt::Write as _;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use dyad_core::dataset::Class;
use dyad_core::decision::Action;
use dyad_core::facts::{EtcdState, Facts, Power};
use dyad_node::Node;
use dyad_node::confirm::{self, Answered, Known};
use dyad_status::words::moment;
use nix::fcntl::Flock;
use serde::Serialize;

use super::archive::last_written_ms;
use super::{person, this_node, waiting};
use crate::cli::ConfirmArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::wrap::wrap;

/// The width of what is shown.
const WIDTH: usize = 80;
/// Where the text behind a label begins.
const INDENT: usize = 18;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    peer: &'a str,
    peer_power: String,
    forced_off: bool,
    accepted_loss: bool,
    because: &'a str,
}

/// Shows what is known, asks, and does it; or says why it is refused.
pub(super) fn run(arguments: &ConfirmArguments, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    let peer = node.peer().name.to_string();
    check_name(&node, arguments)?;
    let (lock, known) = agreed(&node, arguments)?;
    let forced = confirm::force_off(&node, &known);
    let forced_off = forced == Ok(Power::Off);
    match &forced {
        Ok(Power::Off) => anstream::eprintln!("{peer} was switched off through its BMC"),
        Ok(_) => anstream::eprintln!("{peer}'s BMC took the order and does not say Off"),
        Err(why) => anstream::eprintln!("{peer} could not be switched off: {why}"),
    }
    let why = arguments.reason.as_deref().unwrap_or("no reason given");
    confirm::act(&node, &known, &person::who(), why).map_err(|error| {
        Failure::new(Exit::Failed, dyad_node::gather::words(&*error))
            .hint("dyad status tells what is so now; the same command may be typed again")
    })?;
    drop(lock);
    serve(&node, arguments)?;
    match format {
        Format::Json => output::print_json(
            "Confirmation",
            Report {
                peer: &peer,
                peer_power: power(&known),
                forced_off,
                accepted_loss: arguments.accept_possible_loss,
                because: &known.decision.because,
            },
        )?,
        Format::Text => {
            output::print_data(&format!("confirmed: {peer} is down; this node goes on alone\n"))?;
        }
    }
    Ok(Exit::Ok)
}

/// What is known and was agreed to, with the node held for what follows.
fn agreed(node: &Node, arguments: &ConfirmArguments) -> anyhow::Result<(Flock<File>, Known)> {
    let lock = node.lock().context("waiting for another operation on this node")?;
    let (loss, seems_up) = (arguments.accept_possible_loss, arguments.although_it_seems_up);
    let known = confirm::look(node, loss, seems_up);
    anstream::eprint!("{}", in_words(node, &known));
    if let Action::Refuse { command, .. } | Action::StayInert { command, .. } =
        &known.decision.action
    {
        let message = format!("refused: {}", known.decision.because);
        return Err(Failure::new(Exit::Refused, message).hint(command).into());
    }
    if arguments.yes_peer_is_down.is_some() {
        return Ok((lock, known));
    }
    let peer = &node.peer().name.0;
    let question = format!(
        "If {peer} runs all the same, two histories begin.\nType its name if you know that it is down"
    );
    let flag = format!("--yes-peer-is-down {peer}");
    match confirm::ask(node, lock, &known, || person::asks_for(peer, &question, &flag))? {
        Answered::Unchanged(lock, known) => Ok((lock, known)),
        Answered::Changed(now, what) => {
            anstream::eprint!("{}", in_words(node, &now));
            let message = format!("refused: it is not as it was when you were asked: {what}");
            Err(Failure::new(Exit::Refused, message).hint("dyad confirm").into())
        }
    }
}

/// A name that is not the peer's is a mistake: the wrong node, or the wrong name.
fn check_name(node: &Node, arguments: &ConfirmArguments) -> Result<(), Failure> {
    let (own, peer) = (&node.own().name, &node.peer().name);
    let Some(name) = &arguments.yes_peer_is_down else { return Ok(()) };
    if *name == peer.0 {
        return Ok(());
    }
    let message = format!("this is {own}; its peer is {peer}, not {name}");
    let failure = Failure::new(Exit::Usage, message);
    Err(if *name == own.0 {
        failure.hint(format!("it is typed on the node that goes on: if {own} is down, on {peer}"))
    } else {
        failure.hint(format!("names are exact; if {peer} is down: --yes-peer-is-down {peer}"))
    })
}

/// Waits until this node serves, as it was asked to.
fn serve(node: &Arc<Node>, arguments: &ConfirmArguments) -> anyhow::Result<()> {
    let limit = Duration::from_secs(arguments.wait);
    waiting::until(node, limit, "this node to serve", |seen| {
        matches!(seen.gathered.facts.etcd.state, EtcdState::Leader)
    })?;
    Ok(())
}

fn power(known: &Known) -> String {
    match &known.power {
        Ok(Power::On) => "on".to_owned(),
        Ok(Power::Off) => "off".to_owned(),
        Ok(Power::Unknown) => "not known".to_owned(),
        Err(why) => format!("not known ({why})"),
    }
}

/// What is known, for somebody who has to decide.
fn in_words(node: &Node, known: &Known) -> String {
    let facts = &known.gathered.facts;
    let peer = &node.peer().name;
    let mut text = String::new();
    let mut row = |label: &str, words: &str| {
        let _ = writeln!(text, "{label:<INDENT$}{}", wrap(words, WIDTH, INDENT));
    };
    row("the other node", &peer.0);
    row("in the cluster", if facts.peer.present { "yes" } else { "no" });
    row("last seen", &last_seen(node, facts));
    let paths = &facts.peer.paths;
    let answers = if paths.is_empty() { "on no address".to_owned() } else { paths.join(", ") };
    row("answers", &answers);
    row("its BMC says", &power(known));
    row("data here", &format!("{}: {}", facts.dataset.class, facts.dataset.reason));
    let last = facts.dataset.raft;
    row("data end at", &format!("term {} index {}", last.last_term, last.last_index));
    if let Some(memory) = &facts.peer.memory {
        row("known of there", &memory.last.to_string());
    }
    for trouble in &known.gathered.troubles {
        row("not known", trouble);
    }
    row("what follows", &known.decision.because);
    text
}

/// When this node last decided anything with the peer in sight.
fn last_seen(node: &Node, facts: &Facts) -> String {
    if facts.peer.present {
        return "now".to_owned();
    }
    let entries = node.journal().last(500);
    let sighting = entries.iter().rev().find(|entry| entry.facts["peer"]["present"] == true);
    // A quiet pair decides nothing for days. But what was written to a dataset with two voters needed both.
    let needed_both = facts.dataset.class == Class::Pair;
    let written =
        needed_both.then(|| last_written_ms(&node.pair.etcd.data_dir.join("member"))).flatten();
    match sighting.map(|entry| entry.time_ms).max(written) {
        Some(time_ms) => format!("not since {} UTC", moment(time_ms)),
        None => "never, as far as the decision log tells".to_owned(),
    }
}
