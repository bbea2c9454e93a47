//! Running other programs from the lab: always with a limit.

use std::process::Command;
use std::time::Duration;

pub(crate) use dyad_program::{command, last_lines, output, run};

/// The limit of programs that only talk to the kernel.
pub(crate) const QUICK: Duration = Duration::from_secs(20);

/// Splits on spaces: for fixed command lines without blanks in their words.
pub(crate) fn words(line: &str) -> Command {
    let mut words = line.split_whitespace();
    command(words.next().unwrap_or_default(), words)
}
