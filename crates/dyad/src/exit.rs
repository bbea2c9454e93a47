//! Exit codes: one table for all commands.

use std::process::ExitCode;

/// What a command's exit code tells a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or the answer is yes.
    Ok = 0,
    /// It was tried and failed.
    Failed = 1,
    /// The command or its input is wrong; nothing was tried.
    Usage = 2,
    /// The answer is no: a check found errors, a dataset is broken.
    No = 3,
    /// Refused, because it could lose or fork data. The message says what would make it possible.
    Refused = 4,
    /// Permission is missing.
    Permission = 5,
    /// A time limit ran out.
    TimedOut = 6,
}

impl Exit {
    /// Every code, in order, with what it means to a script: the table of the documentation.
    pub const TABLE: &[(Self, &str)] = &[
        (Self::Ok, "done, or the answer is yes"),
        (Self::Failed, "it was tried and failed"),
        (Self::Usage, "the command or its input is wrong; nothing was tried"),
        (Self::No, "the answer is no (a check found errors, a dataset is broken)"),
        (Self::Refused, "refused because it could lose or fork data"),
        (Self::Permission, "permission is missing"),
        (Self::TimedOut, "a time limit ran out"),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that knows its exit code and, where a person can do something, what.
#[derive(Debug)]
pub struct Failure {
    /// What the script is told.
    pub exit: Exit,
    /// What failed, on which object.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with this exit code and message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit code of an error: its own if it carries one, else "failed".
pub fn code_of(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Failure>().map_or(Exit::Failed, |failure| failure.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is the documentation: it lists each code once, in order, without a gap.
    #[test]
    fn the_table_lists_each_code_in_order() {
        for (position, (exit, _)) in Exit::TABLE.iter().enumerate() {
            assert_eq!(*exit as usize, position);
        }
    }
}
