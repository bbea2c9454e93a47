//! What is wrong with a file, where, and what to do about it.

use std::fmt;

use dyad_core::timing::Severity;
use serde::Serialize;

/// A place in a file; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// A short name that stays the same, for scripts and documentation.
    pub id: &'static str,
    /// Where it is.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
    /// The key, from the top of the file: `nodes[0].bmc.address`. Empty for the file as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// An error: the file is not used.
    pub fn error(
        id: &'static str,
        at: Option<Position>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let (severity, key, message) = (Severity::Error, key.into(), message.into());
        Self { severity, id, at, key: printable(&key), message: printable(&message), hint: None }
    }

    /// A warning: the file is used, but people should know.
    pub fn warning(
        id: &'static str,
        at: Option<Position>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(id, at, key, message) }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the file is refused because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Key and message, without the place.
    pub fn text(&self) -> String {
        if self.key.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.key, self.message)
        }
    }
}

/// A file's own words, fit for a terminal: an escape sequence in a key must not do anything there.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

impl fmt::Display for Problem {
    /// `7:5: nodes[0].adresses: unknown key`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column }) = self.at {
            write!(f, "{line}:{column}: ")?;
        }
        f.write_str(&self.text())
    }
}
