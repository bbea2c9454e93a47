//! `dyad apply`: a changed description, on a running pair.

use std::fmt::Write as _;
use std::time::Duration;

use dyad_node::Place;
use dyad_setup::check::Here;
use dyad_setup::job::Effect;
use dyad_setup::job::apply::{self, Applied, ApplyOptions};

use super::setup;
use crate::cli::ApplyArguments;
use crate::exit::Exit;
use crate::output::{self, Format};

/// Applies; progress is talk, what differs is data.
pub(super) fn run(arguments: ApplyArguments, format: Format) -> anyhow::Result<Exit> {
    let options = ApplyOptions {
        bundle: arguments.bundle,
        dry_run: arguments.dry_run,
        peer_limit: Duration::from_secs(arguments.wait),
    };
    let say = |text: &str| anstream::eprintln!("{text}");
    let applied = apply::run(&options, &Here::this_machine(), &Place::default(), &say);
    let applied = applied.map_err(setup::told)?;
    match format {
        Format::Json => output::print_json("ApplyReport", &applied)?,
        Format::Text => output::print_data(&summary(&applied))?,
    }
    Ok(Exit::Ok)
}

fn summary(applied: &Applied) -> String {
    let count = applied.changes.len();
    let noun = if count == 1 { "difference" } else { "differences" };
    let mut text = match (applied.applied, count) {
        (false, 0) => format!("{}: nothing differs\n", applied.node),
        (false, _) => format!("{}: {count} {noun}, nothing was changed\n", applied.node),
        (true, _) => format!("{}: {count} {noun} applied\n", applied.node),
    };
    let restarts = applied.changes.iter().filter(|change| change.effect == Effect::EtcdRestart);
    for change in restarts {
        let _ = writeln!(text, "{} counts {}", change.what, change.effect.words());
    }
    text
}
