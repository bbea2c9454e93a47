//! Entry point of the fence agent.

use std::process::ExitCode;

fn main() -> ExitCode {
    dyad_agent::fence::main(std::env::args().skip(1).collect())
}
