//! `dyad status`: can I lose a node now?

mod text;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use dyad_core::state::State;
use dyad_status::look::{glance, look};
use dyad_status::setup;

use super::this_node;
use crate::cli::StatusArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

pub use text::text;

/// How often `--watch` looks again.
const INTERVAL: Duration = Duration::from_secs(1);
/// Clears the screen and goes to its first line.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Looks and tells; the exit code is the state.
pub(super) fn run(arguments: &StatusArguments, format: Format) -> anyhow::Result<Exit> {
    let node = match this_node::open() {
        Ok(node) => Arc::new(node),
        Err(failure) => return not_yet(failure),
    };
    loop {
        let limit = arguments.limit_ms.map_or_else(glance, Duration::from_millis);
        let status = look(&node, limit).status;
        match format {
            Format::Json => output::print_json("Status", &status)?,
            Format::Text => {
                if arguments.watch {
                    output::print_data(CLEAR)?;
                }
                output::print_data(&text(&status))?;
            }
        }
        if !arguments.watch {
            return Ok(status.state.into());
        }
        std::io::stdout().flush()?;
        std::thread::sleep(INTERVAL);
    }
}

/// A machine that is no node of a pair yet may be about to become one.
fn not_yet(failure: Failure) -> anyhow::Result<Exit> {
    let Some(setup) = setup::unfinished(&dyad_node::Place::default().state) else {
        return Err(failure.into());
    };
    let state = if setup.failed { State::Blocked } else { State::SettingUp };
    output::print_data(&format!("{state} - {}\n", setup::words(&setup)))?;
    if let Some(hint) = &setup.hint {
        output::print_hint(hint);
    }
    Ok(state.into())
}
