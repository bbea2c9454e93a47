//! `dyad init`: the first `pair.yaml`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use dyad_pair_file::install_config::{self, Conversion};
use dyad_pair_file::schema;
use serde::Serialize;

use super::pair_file::{problems_failure, read_bounded};
use crate::cli::InitArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    file: PathBuf,
    /// Everything that was written.
    written: Vec<PathBuf>,
    to_fill_in: Vec<ToFillIn>,
}

#[derive(Serialize)]
struct ToFillIn {
    key: String,
    what: String,
}

/// Writes a starter, or what an install-config becomes.
pub(super) fn run(arguments: InitArguments, format: Format) -> anyhow::Result<Exit> {
    if arguments.schema {
        output::print_data(&schema::schema_text())?;
        return Ok(Exit::Ok);
    }
    let file = arguments.file;
    refuse_existing(&file)?;
    let report = match &arguments.from {
        None => {
            write_new(&file, dyad_pair_file::starter())?;
            Report { written: vec![file.clone()], file, to_fill_in: Vec::new() }
        }
        Some(from) => convert(&file, from)?,
    };
    tell(&report, format)?;
    Ok(Exit::Ok)
}

fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let message = format!("{} exists already; it is left as it is", path.display());
    Err(Failure::new(Exit::Usage, message).hint("move it away, or name another file").into())
}

fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut file = std::fs::File::create_new(path).with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)
}

fn convert(file: &Path, from: &Path) -> anyhow::Result<Report> {
    let bytes = read_bounded(from)?;
    let secrets = dyad_setup::secrets_path(file);
    let secrets_name = secrets.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let converted = install_config::convert(&bytes, &secrets_name);
    let Conversion { yaml, accounts, open, warnings } =
        converted.map_err(|problems| problems_failure(from, &problems))?;
    for warning in &warnings {
        output::print_problem(&from.display().to_string(), warning);
    }
    let mut written = Vec::new();
    for account in &accounts {
        let path = secrets.join(format!("bmc-{}", account.node));
        dyad_setup::write_account(&path, &account.username, &account.password).map_err(
            |error| {
                let message = format!("{:#}", anyhow::Error::new(error));
                Failure::new(Exit::Failed, message)
                    .hint("it holds another account; move it away, or name another file")
            },
        )?;
        written.push(path);
    }
    write_new(file, &yaml)?;
    written.insert(0, file.to_owned());
    let to_fill_in = open.into_iter().map(|(key, what)| ToFillIn { key, what }).collect();
    Ok(Report { file: file.to_owned(), written, to_fill_in })
}

fn tell(report: &Report, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::print_json("InitReport", report);
    }
    let lines: String =
        report.written.iter().map(|path| format!("wrote {}\n", path.display())).collect();
    output::print_data(&lines)?;
    if !report.to_fill_in.is_empty() {
        anstream::eprintln!("\nStill to be filled in:");
        for ToFillIn { key, what } in &report.to_fill_in {
            anstream::eprintln!("  {key}: {what}");
        }
    }
    output::print_hint(&format!(
        "fill in what stands in <...>, then: dyad check {}",
        report.file.display()
    ));
    Ok(())
}
