//! Entry point of the `dyad` command.

use std::process::ExitCode;

use clap::Parser as _;
use dyad::{cli::Cli, commands, exit, output};

fn main() -> ExitCode {
    // clap answers --help and --version on stdout with 0, and bad usage on stderr with 2, as our table says.
    let cli = Cli::parse();
    match commands::run(cli) {
        Ok(code) => code.into(),
        Err(error) => {
            output::print_error(&error);
            exit::code_of(&error).into()
        }
    }
}
