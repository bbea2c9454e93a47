//! The supervisor of a lab that a test started. `dyad lab` is its own supervisor.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("error: the lab's name is missing");
        return ExitCode::from(2);
    };
    match dyad_lab::supervise(&name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", dyad_lab::error::chain(&error));
            ExitCode::FAILURE
        }
    }
}
