//! `dyad confirm`: a person states that the peer is down.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};

use anyhow::Context as _;
use dyad_core::decision::Action;
use dyad_core::facts::Power;
use dyad_node::Node;
use dyad_node::confirm::{self, Known};
use serde::Serialize;

use super::this_node;
use crate::cli::ConfirmArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    peer: &'a str,
    peer_power: String,
    accepted_loss: bool,
    because: &'a str,
}

/// Shows what is known, asks, and does it; or says why it is refused.
pub(super) fn run(arguments: &ConfirmArguments, format: Format) -> anyhow::Result<Exit> {
    let node = this_node::open()?;
    let peer = node.peer().name.to_string();
    if let Some(name) = &arguments.yes_peer_is_down
        && *name != peer
    {
        let message = format!("the peer of this node is {peer}, not {name}");
        return Err(Failure::new(Exit::Usage, message).into());
    }
    let lock = node.lock().context("waiting for another operation on this node")?;
    let known = confirm::look(&node, arguments.accept_possible_loss);
    anstream::eprint!("{}", in_words(&node, &known)?);
    if let Action::Refuse { command, .. } | Action::StayInert { command, .. } =
        &known.decision.action
    {
        let message = format!("refused: {}", known.decision.because);
        return Err(Failure::new(Exit::Refused, message).hint(command).into());
    }
    if arguments.yes_peer_is_down.is_none() {
        ask(&peer)?;
    }
    let who = who();
    let why = arguments.reason.as_deref().unwrap_or("no reason given");
    confirm::act(&node, &known, &who, why)
        .map_err(|error| Failure::new(Exit::Failed, dyad_node::gather::words(&*error)))?;
    drop(lock);
    match format {
        Format::Json => output::print_json(
            "Confirmation",
            Report {
                peer: &peer,
                peer_power: power(&known),
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

fn power(known: &Known) -> String {
    match &known.power {
        Ok(Power::On) => "on".to_owned(),
        Ok(Power::Off) => "off".to_owned(),
        Ok(Power::Unknown) => "not known".to_owned(),
        Err(why) => format!("not known ({why})"),
    }
}

fn in_words(node: &Node, known: &Known) -> anyhow::Result<String> {
    let facts = &known.gathered.facts;
    let peer = &node.peer().name;
    let mut text = String::new();
    let seen = if facts.peer.present {
        "yes".to_owned()
    } else {
        format!("no, for {} s", facts.peer.absent_ms / 1_000)
    };
    writeln!(text, "{peer} in the cluster   {seen}")?;
    let paths = &facts.peer.paths;
    let answers = if paths.is_empty() { "on no address".to_owned() } else { paths.join(", ") };
    writeln!(text, "{peer} answers          {answers}")?;
    writeln!(text, "{peer}'s BMC says       {}", power(known))?;
    writeln!(text, "own data               {}: {}", facts.dataset.class, facts.dataset.reason)?;
    writeln!(text, "what follows           {}", known.decision.because)?;
    Ok(text)
}

fn ask(peer: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "nobody to ask: standard input is not a terminal")
            .hint(format!("--yes-peer-is-down {peer} says it in a script"))
            .into());
    }
    anstream::eprint!(
        "If {peer} runs all the same, two histories begin.\nType its name if you know that it is down: "
    );
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    if answer.trim() != peer {
        return Err(Failure::new(Exit::Refused, "not confirmed; nothing was done").into());
    }
    Ok(())
}

/// Who says so, as far as this machine knows.
fn who() -> String {
    let named = ["SUDO_USER", "LOGNAME", "USER"].iter().find_map(|name| std::env::var(name).ok());
    named.unwrap_or_else(|| format!("uid {}", nix::unistd::getuid()))
}
