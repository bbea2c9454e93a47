//! `dyad decide`: the replay of a logged decision.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use dyad_core::{Action, Decision, Facts};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// The largest document that is read: logged facts have a few kilobytes.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

/// Prints what follows from a document of facts. The exit code tells a script whether the node may act.
pub(crate) fn run(path: &Path, format: Format) -> anyhow::Result<Exit> {
    let text = read(path)?;
    let facts = parse(path, &text)?;
    let decision = dyad_core::decide(&facts);
    match format {
        Format::Json => output::print_json("Decision", &decision)?,
        Format::Text => output::print_data(&in_words(&facts, &decision)?)?,
    }
    Ok(match decision.action {
        Action::StayInert { .. } => Exit::No,
        Action::Refuse { .. } => Exit::Refused,
        _ => Exit::Ok,
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(DOCUMENT_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(DOCUMENT_BYTES_MAX).read_to_string(&mut text))
    }
    .with_context(|| format!("read {}", name(path)))?;
    Ok(text)
}

/// An error names the file, the line, and the key or value that is wrong.
fn parse(path: &Path, text: &str) -> Result<Facts, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::new(Exit::Usage, format!("{}: {error}", name(path)))
            .hint("facts are a JSON document of kind Facts, as the agent logs them")
    })
}

fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

fn in_words(facts: &Facts, decision: &Decision) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Only<'a> {
        #[serde(flatten)]
        action: &'a Action,
    }
    let serde_json::Value::Object(mut fields) =
        serde_json::to_value(Only { action: &decision.action })?
    else {
        anyhow::bail!("an action is not an object");
    };
    let action = fields.remove("action").unwrap_or_default();
    let outcome = serde_json::to_value(decision.outcome)?;
    let mut text = String::new();
    writeln!(text, "node      {}", facts.node)?;
    writeln!(text, "action    {}", plain(&action))?;
    for (key, value) in &fields {
        writeln!(text, "          {key}: {}", plain(value))?;
    }
    writeln!(text, "outcome   {} ({})", plain(&outcome), decision.outcome as u8)?;
    writeln!(text, "rule      {}", decision.rule)?;
    writeln!(text, "because   {}", decision.because)?;
    Ok(text)
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
