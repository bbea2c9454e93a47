//! `fence_dyad_redfish`: switches a node's power, and says only what the BMC has said.

mod actions;
mod power_on;
mod syslog;
mod turn;

use std::process::ExitCode;

use dyad_power::fence::{AGENT, Action, Failure, Input, Settings, metadata, read_stdin, usage};

/// What an action comes to when it does not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done; for status: the BMC said On.
    Done,
    /// Only for status: the BMC said Off.
    Off,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Off => Self::from(2),
        }
    }
}

/// Runs the agent with these arguments (without the program's name).
pub fn main(arguments: Vec<String>) -> ExitCode {
    match run(arguments) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            eprintln!("error: {failure}");
            if let Some(hint) = &failure.hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(failure.reason as u8)
        }
    }
}

fn run(arguments: Vec<String>) -> Result<Outcome, Failure> {
    let mut words = arguments.iter().map(String::as_str);
    match words.next() {
        Some("-h" | "--help") => return Ok(print(&usage())),
        Some("-V" | "--version") => {
            return Ok(print(&format!("{AGENT} {}\n", env!("CARGO_PKG_VERSION"))));
        }
        Some(power_on::OPTION) => return power_on::run(words.next().unwrap_or_default()),
        _ => {}
    }
    let input = if arguments.is_empty() {
        Input::from_lines(&read_stdin()?)?
    } else {
        Input::from_arguments(arguments)?
    };
    let action = Settings::action(&input)?;
    if action == Action::Metadata {
        return Ok(print(&metadata()));
    }
    let settings = Settings::new(&input, action)?;
    for name in &input.unknown {
        eprintln!("warning: there is no parameter {name:?}; it is ignored");
    }
    actions::run(action, &settings, &input)
}

/// Prints data. A reader that went away is no failure: what was asked for has been done.
pub(crate) fn print(text: &str) -> Outcome {
    use std::io::Write as _;
    let _ = std::io::stdout().write_all(text.as_bytes());
    Outcome::Done
}
