//! `dyad status`: can I lose a node now?

mod text;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use dyad_status::look::{glance, look};

use super::this_node;
use crate::cli::StatusArguments;
use crate::exit::Exit;
use crate::output::{self, Format};

pub use text::text;

/// How often `--watch` looks again.
const INTERVAL: Duration = Duration::from_secs(1);
/// Clears the screen and goes to its first line.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Looks and tells; the exit code is the state.
pub(super) fn run(arguments: &StatusArguments, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
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
