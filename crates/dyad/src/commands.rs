//! What each command does. A command gathers, asks, prints; what it asks lives in the libraries.

mod apply;
mod archive;
pub mod check;
mod confirm;
mod decide;
mod drill;
mod etcd_inspect;
mod etcd_seal;
mod etcd_take_over;
mod explain;
mod gate;
mod gather;
mod init;
mod maintenance;
mod over_ssh;
mod pair_file;
mod person;
mod render;
mod replace;
mod resolve;
mod rotate;
mod serve;
mod setup;
mod standby;
pub mod status;
mod this_node;
mod uninstall;
mod waiting;

use serde::Serialize;

use crate::cli::{Cli, Command, EtcdCommand};
use crate::exit::Exit;
use crate::output::{self, Format};

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Init(arguments) => init::run(arguments, cli.output),
        Command::Check(arguments) => check::run(arguments, cli.output),
        Command::Render(arguments) => render::run(arguments, cli.output),
        Command::Apply(arguments) => apply::run(arguments, cli.output),
        Command::Uninstall(arguments) => uninstall::run(&arguments, cli.output),
        Command::Setup(arguments) => setup::run(arguments, cli.output),
        Command::Lab(arguments) => crate::lab::run(arguments, cli.output),
        Command::Etcd { command } => match command {
            EtcdCommand::Inspect { dir } => etcd_inspect::run(&dir, cli.output),
            EtcdCommand::Seal { dir } => etcd_seal::run(&dir, cli.output),
            EtcdCommand::TakeOver(arguments) => etcd_take_over::run(&arguments, cli.output),
        },
        Command::Status(arguments) => status::run(&arguments, cli.output),
        Command::Gate => gate::run(cli.output),
        Command::Maintenance { command } => maintenance::run(command, cli.output),
        Command::Resolve(arguments) => resolve::run(&arguments, cli.output),
        Command::Archive { command } => archive::run(&command, cli.output),
        Command::Drill(arguments) => drill::run(&arguments, cli.output),
        Command::Rotate { command } => rotate::run(&command, cli.output),
        Command::Replace(arguments) => replace::run(&arguments, cli.output),
        Command::Gather(arguments) => gather::run(&arguments, cli.output),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Explain { last } => explain::run(last, cli.output),
        Command::Confirm(arguments) => confirm::run(&arguments, cli.output),
        Command::Decide { facts } => decide::run(&facts, cli.output),
        Command::ExitCodes => exit_codes(cli.output),
        Command::Completions { shell } => {
            output::print_data(&crate::generate::completion(shell))?;
            Ok(Exit::Ok)
        }
    }
}

#[derive(Serialize)]
struct ExitCodeRow {
    code: u8,
    meaning: &'static str,
}

fn exit_codes(format: Format) -> anyhow::Result<Exit> {
    let rows: Vec<_> = Exit::TABLE
        .iter()
        .map(|(exit, meaning)| ExitCodeRow { code: *exit as u8, meaning })
        .collect();
    match format {
        Format::Text => {
            let lines: String =
                rows.iter().map(|row| format!("{:>3}  {}\n", row.code, row.meaning)).collect();
            output::print_data(&lines)?;
        }
        Format::Json => {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Body {
                exit_codes: Vec<ExitCodeRow>,
            }
            output::print_json("ExitCodes", Body { exit_codes: rows })?;
        }
    }
    Ok(Exit::Ok)
}
