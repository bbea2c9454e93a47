//! `dyad explain`: the last decisions of this node, with rule and reason.

use std::fmt::Write as _;

use dyad_node::Place;
use dyad_node::journal::{Journal, Logged};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Prints the last decisions, oldest first.
pub(super) fn run(count: usize, format: Format) -> anyhow::Result<Exit> {
    let entries = Journal::new(&Place::default().log).last(count);
    if entries.is_empty() {
        return Err(Failure::new(Exit::No, "no decision has been written down on this machine")
            .hint("run it on one of the two nodes, as root")
            .into());
    }
    match format {
        Format::Json => {
            #[derive(Serialize)]
            struct Body {
                decisions: Vec<Logged>,
            }
            output::print_json("Decisions", Body { decisions: entries })?;
        }
        Format::Text => {
            let mut text = String::new();
            for entry in &entries {
                write_entry(&mut text, entry)?;
            }
            output::print_data(&text)?;
        }
    }
    Ok(Exit::Ok)
}

fn write_entry(text: &mut String, entry: &Logged) -> anyhow::Result<()> {
    let word = |key: &str| entry.decision[key].as_str().unwrap_or("?").to_owned();
    let time =
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(entry.time_ms) * 1_000_000)?;
    let format = time::macros::format_description!(
        "[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3]Z"
    );
    writeln!(text, "{}  {} ({})", time.format(&format)?, word("action"), word("rule"))?;
    writeln!(text, "    {}", word("because"))?;
    for key in ["missing", "command"] {
        if let Some(value) = entry.decision[key].as_str() {
            writeln!(text, "    {key}: {value}")?;
        }
    }
    if let Some(failure) = &entry.failure {
        writeln!(text, "    FAILED: {failure}")?;
    }
    for trouble in &entry.troubles {
        writeln!(text, "    could not be read: {trouble}")?;
    }
    Ok(())
}
