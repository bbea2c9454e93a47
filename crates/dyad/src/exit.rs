//! Exit codes: one table for all commands.

use std::process::ExitCode;

use dyad_core::state::State;

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
    /// `dyad status`: the data are on both nodes, but a failure may not be survived.
    AtRisk = 10,
    /// `dyad status`: one node serves, the other is on its way back.
    CatchingUp = 11,
    /// `dyad status`: one node serves.
    Alone = 12,
    /// `dyad status`: a person took a node out of service.
    Maintenance = 13,
    /// `dyad status`: a node was lost, the other is about to go on.
    FailingOver = 14,
    /// `dyad status`: the nodes start and find each other.
    Starting = 15,
    /// `dyad status`: there are no data yet.
    SettingUp = 16,
    /// `dyad status`: nothing was told to run here.
    Stopped = 17,
    /// `dyad status`: both nodes run and do not see each other.
    Split = 18,
    /// `dyad status`: nobody serves, and somebody has to act.
    Blocked = 19,
    /// `dyad status`: both nodes wrote alone; a person has to choose.
    Diverged = 20,
    /// `dyad status`: too little could be known.
    Unknown = 21,
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
        (Self::AtRisk, "status: AT RISK, a failure may not be survived"),
        (Self::CatchingUp, "status: CATCHING UP, one node serves, the other is on its way back"),
        (Self::Alone, "status: ALONE, one node serves"),
        (Self::Maintenance, "status: MAINTENANCE, a person took a node out of service"),
        (Self::FailingOver, "status: FAILING OVER, a node was lost, the other is about to go on"),
        (Self::Starting, "status: STARTING, the nodes start and find each other"),
        (Self::SettingUp, "status: SETTING UP, there are no data yet"),
        (Self::Stopped, "status: STOPPED, nothing was told to run here"),
        (Self::Split, "status: SPLIT, both nodes run and do not see each other"),
        (Self::Blocked, "status: BLOCKED, nobody serves, and somebody has to act"),
        (Self::Diverged, "status: DIVERGED, both nodes wrote alone; a person has to choose"),
        (Self::Unknown, "status: UNKNOWN, too little could be known"),
    ];
}

impl From<State> for Exit {
    fn from(state: State) -> Self {
        match state {
            State::Protected => Self::Ok,
            State::AtRisk => Self::AtRisk,
            State::CatchingUp => Self::CatchingUp,
            State::Alone => Self::Alone,
            State::Maintenance => Self::Maintenance,
            State::FailingOver => Self::FailingOver,
            State::Starting => Self::Starting,
            State::SettingUp => Self::SettingUp,
            State::Stopped => Self::Stopped,
            State::Split => Self::Split,
            State::Blocked => Self::Blocked,
            State::Diverged => Self::Diverged,
            State::Unknown => Self::Unknown,
        }
    }
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

    /// The table is the documentation: it lists each code once, in order.
    #[test]
    fn the_table_lists_each_code_in_order() {
        let codes: Vec<u8> = Exit::TABLE.iter().map(|(exit, _)| *exit as u8).collect();
        assert!(codes.is_sorted_by(|one, next| one < next), "{codes:?}");
    }

    /// The exit code of a state is the one that the document of `dyad status` names, and it is in the table.
    #[test]
    fn each_state_has_its_code() {
        for state in State::ALL {
            let exit = Exit::from(state);
            assert_eq!(exit as u8, state.exit_code(), "{state}");
            assert!(Exit::TABLE.iter().any(|(listed, _)| *listed == exit), "{state}");
        }
    }
}
