//! `dyad check`: told before, not after.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use dyad_setup::check::{self, Finding, Here, Loss, Report, Status, Subject};
use serde::Serialize;

use super::pair_file;
use crate::cli::CheckArguments;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::wrap::wrap;

/// The width of a report: it is read in tickets and mails as often as on a screen.
const WIDTH: usize = 80;
/// Where the text of a finding begins.
const INDENT: usize = 9;

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    report: &'a Report,
    ok: usize,
    warnings: usize,
    errors: usize,
}

/// Checks and reports; the answer is no if there is an error.
pub(super) fn run(arguments: CheckArguments, format: Format) -> anyhow::Result<Exit> {
    let loaded = pair_file::load(&arguments.file)?;
    let base = pair_file::base(&arguments.file)?;
    let name = arguments.file.display().to_string();
    let secrets = dyad_setup::secrets_path(&arguments.file);
    let subject = Subject { name: &name, base: &base, secrets: &secrets, loaded: &loaded };
    let report = check::run(&subject, &Here::this_machine(), arguments.offline);
    let errors = report.count(Status::Error);
    match format {
        Format::Json => {
            let (ok, warnings) = (report.count(Status::Ok), report.count(Status::Warning));
            output::print_json("CheckReport", Body { report: &report, ok, warnings, errors })?;
        }
        Format::Text => output::print_data(&table(&report))?,
    }
    Ok(if errors == 0 { Exit::Ok } else { Exit::No })
}

/// The report for people.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        add_finding(&report.file, finding, &mut text);
    }
    if !report.losses.is_empty() {
        text.push_str("\nIf a node is lost, at worst (seconds):\n\n");
        text.push_str("  lost                  noticed   fenced  take-over   first write\n");
        for loss in &report.losses {
            add_loss(loss, &mut text);
        }
    }
    let (ok, warnings) = (report.count(Status::Ok), report.count(Status::Warning));
    let errors = report.count(Status::Error);
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let _ = writeln!(
        text,
        "\n{errors} error{}, {warnings} warning{}, {ok} ok",
        plural(errors),
        plural(warnings)
    );
    text
}

fn add_finding(file: &str, finding: &Finding, text: &mut String) {
    let (word, colour) = match finding.status {
        Status::Ok => ("ok", AnsiColor::Green),
        Status::Warning => ("warning", AnsiColor::Yellow),
        Status::Error => ("error", AnsiColor::Red),
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    // What is wrong with the file is named by its place, which editors and people can jump to.
    let place = match finding.at {
        Some(at) => format!("{file}:{}:{}", at.line, at.column),
        None if finding.subject == "file" => file.to_owned(),
        None => finding.subject.clone(),
    };
    let message = wrap(&format!("{place}: {}", finding.message), WIDTH, INDENT);
    let _ = writeln!(text, "{style}{word:<8}{style:#} {message}");
    if let Some(hint) = &finding.hint {
        let _ = writeln!(text, "{:INDENT$}{}", "", wrap(&format!("hint: {hint}"), WIDTH, INDENT));
    }
}

fn add_loss(loss: &Loss, text: &mut String) {
    // Rounded up: nobody complains about a recovery that is faster than promised.
    let seconds = |ms: u64| format!("{}.{}", ms.div_ceil(100) / 10, ms.div_ceil(100) % 10);
    let worst = &loss.worst_case;
    let _ = writeln!(
        text,
        "  {:<20} {:>8} {:>8} {:>10} {:>13}",
        loss.lost,
        seconds(worst.detection_ms),
        seconds(worst.fencing_ms),
        seconds(worst.take_over_ms),
        seconds(worst.total_ms)
    );
    if loss.fence_delay_ms > 0 {
        let note = format!(
            "{} is the preferred survivor: {} s of its fencing are the delay, skipped if its BMC already says Off",
            loss.lost,
            seconds(loss.fence_delay_ms)
        );
        let _ = writeln!(text, "    {}", wrap(&note, WIDTH, 4));
    }
}
