//! The person at the keyboard: who it is, what was asked and answered, and the record of it.

use std::fs::OpenOptions;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::Context as _;
use dyad_node::{Node, journal};
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Who says so, as far as this machine knows.
pub(super) fn who() -> String {
    let named = ["SUDO_USER", "LOGNAME", "USER"].iter().find_map(|name| std::env::var(name).ok());
    named.unwrap_or_else(|| format!("uid {}", nix::unistd::getuid()))
}

/// One line of the record of what people did.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Act<'a> {
    time_ms: u64,
    who: &'a str,
    what: &'a str,
    why: &'a str,
}

/// Writes down what a person does, before it is done: here and in the system log.
pub(super) fn write_down(node: &Node, what: &str, why: Option<&str>) -> anyhow::Result<()> {
    let (who, why) = (who(), why.unwrap_or("no reason given"));
    let act = Act { time_ms: journal::now_ms(), who: &who, what, why };
    let mut line = serde_json::to_vec(&act)?;
    line.push(b'\n');
    std::fs::create_dir_all(&node.place.log).context("making the log directory")?;
    let path = node.place.log.join("acts.jsonl");
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    file.write_all(&line).and_then(|()| file.sync_all()).context("writing the record")?;
    journal::warn(&format!("{who}: {what} ({why})"));
    Ok(())
}

/// Asks for a name to be typed; anything else ends it. Without a terminal the flag has to say it.
pub(super) fn asks_for(name: &str, question: &str, flag: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "nobody to ask: standard input is not a terminal")
            .hint(format!("{flag} says it in a script"))
            .into());
    }
    anstream::eprint!("{question}: ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    if answer.trim() != name {
        let told = format!("it is done only when {name} is typed; {flag} says it in a script");
        return Err(Failure::new(Exit::Refused, "not confirmed; nothing was done")
            .hint(told)
            .into());
    }
    Ok(())
}

/// The node of the pair with exactly this name, or what is wrong with it.
pub(super) fn named<'a>(
    node: &'a Node,
    name: &str,
) -> Result<&'a dyad_cluster::pair::Node, Failure> {
    let both = [node.own(), node.peer()];
    both.into_iter().find(|each| each.name.0 == name).ok_or_else(|| {
        let message = format!("{name} is neither {} nor {}", node.own().name, node.peer().name);
        Failure::new(Exit::Usage, message).hint("names are exact; dyad status shows them")
    })
}
