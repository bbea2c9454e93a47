//! `dyad gate`: may an upgrade or a change of configuration start?

use std::sync::Arc;

use dyad_core::state::State;
use dyad_status::look::{PATIENT, look};
use serde::Serialize;

use super::this_node;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    open: bool,
    state: State,
    reason: String,
    hint: Option<String>,
}

/// Tells, with the reason; the exit code is for scripts.
pub(super) fn run(format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    let seen = look(&node, PATIENT);
    let verdict = seen.judgement.gate(&seen.status.unknown);
    let state = seen.judgement.state;
    if format == Format::Json {
        let (open, reason, hint) = match &verdict {
            Ok(()) => (true, seen.judgement.because.clone(), None),
            Err(shut) => (false, shut.because.clone(), Some(shut.command.clone())),
        };
        output::print_json("Gate", Body { open, state, reason, hint })?;
        return Ok(if open { Exit::Ok } else { Exit::No });
    }
    match verdict {
        Ok(()) => {
            output::print_data(&format!("open: the pair is {state}, either node may go away\n"))?;
            Ok(Exit::Ok)
        }
        Err(shut) => {
            let message = format!("not now: {}", shut.because);
            Err(Failure::new(Exit::No, message).hint(shut.command).into())
        }
    }
}
