//! How the command talks: stdout is data, stderr is talk.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use dyad_pair_file::Problem;
use serde::Serialize;

use crate::exit::Failure;

/// The version of everything that is printed with `-o json`.
pub const API_VERSION: &str = "dyad/v1";

/// How data is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document with `apiVersion` and `kind`.
    Json,
}

/// A document for machines: what it is and in which version, then its own keys.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'a, T> {
    api_version: &'static str,
    kind: &'a str,
    #[serde(flatten)]
    body: T,
}

impl<'a, T: Serialize> Document<'a, T> {
    /// A document of this kind.
    pub fn new(kind: &'a str, body: T) -> Self {
        Self { api_version: API_VERSION, kind, body }
    }
}

/// Prints a document as JSON on stdout.
pub fn print_json<T: Serialize>(kind: &str, body: T) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(&Document::new(kind, body))?;
    text.push('\n');
    print_data(&text)
}

/// Prints data on stdout. A reader that went away early (`| head`) is no error.
pub fn print_data(text: &str) -> anyhow::Result<()> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints an error with its chain, once, and its hint.
pub fn print_error(error: &anyhow::Error) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    anstream::eprintln!("{red}error:{red:#} {error:#}");
    if let Some(hint) = error.downcast_ref::<Failure>().and_then(|f| f.hint.as_ref()) {
        print_hint(hint);
    }
}

/// Prints a hint by itself.
pub fn print_hint(hint: &str) {
    let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
    anstream::eprintln!("{cyan}hint:{cyan:#} {hint}");
}

/// Prints a warning.
pub fn print_warning(message: &str) {
    let yellow = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    anstream::eprintln!("{yellow}warning:{yellow:#} {message}");
}

/// Prints what is wrong with a file, with its place and its hint.
pub fn print_problem(file: &str, problem: &Problem) {
    let (word, colour) =
        if problem.is_error() { ("error", AnsiColor::Red) } else { ("warning", AnsiColor::Yellow) };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let separator = if problem.at.is_some() { ":" } else { ": " };
    anstream::eprintln!("{style}{word}:{style:#} {file}{separator}{problem}");
    if let Some(hint) = &problem.hint {
        anstream::eprintln!("  hint: {hint}");
    }
}
