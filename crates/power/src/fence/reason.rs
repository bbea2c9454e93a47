//! Exit codes: one for each kind of failure.

use std::fmt;

use crate::credentials::CredentialsError;
use crate::error::Error;

/// Why an action failed, as a script sees it.
///
/// 0 is success (for status: On) and 2 is kept for status alone: Off was read. Pacemaker takes every other
/// code as "failed"; the difference is for people and their scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Something else, within the agent itself.
    Other = 1,
    /// A parameter is unknown, wrong, or contradicts another.
    Parameter = 3,
    /// A parameter is missing.
    Missing = 4,
    /// The password was given as a parameter.
    Forbidden = 5,
    /// The credentials file cannot be used.
    Credentials = 6,
    /// The certificate files cannot be used.
    TlsFile = 7,
    /// The action is for another node.
    WrongNode = 8,
    /// The BMC's name cannot be resolved.
    Resolve = 10,
    /// Nobody listens at the BMC's address.
    ConnectRefused = 11,
    /// The BMC's address cannot be reached.
    Unreachable = 12,
    /// The BMC's certificate is not valid.
    Certificate = 13,
    /// The BMC's certificate is not the pinned one.
    PinMismatch = 14,
    /// TLS failed otherwise.
    Tls = 15,
    /// The BMC accepted the connection and did not answer in time.
    NoAnswer = 16,
    /// The BMC closed the connection.
    Closed = 17,
    /// The BMC's answer is not valid HTTP, JSON or Redfish.
    Malformed = 18,
    /// The BMC refused the user name or password.
    Unauthorized = 20,
    /// The BMC answered with another error.
    BmcError = 21,
    /// The BMC has no such System.
    NoSuchSystem = 22,
    /// The BMC has several Systems and none is chosen.
    SeveralSystems = 23,
    /// The power is neither On nor Off.
    Neither = 24,
    /// The System does not offer what is needed.
    NotOffered = 25,
    /// The BMC refused to switch.
    Refused = 26,
    /// Off was not reached in time.
    NotOff = 27,
    /// On was not reached in time.
    NotOn = 28,
}

impl Reason {
    /// Every reason with what it means: the table of the documentation.
    pub const TABLE: &[(Self, &str)] = &[
        (Self::Other, "a failure within the agent itself"),
        (Self::Parameter, "a parameter is unknown, wrong, or contradicts another"),
        (Self::Missing, "a parameter is missing"),
        (Self::Forbidden, "a parameter that is refused, such as a password"),
        (Self::Credentials, "the credentials file cannot be used"),
        (Self::TlsFile, "the certificate file cannot be used"),
        (Self::WrongNode, "the action is for another node than this device's"),
        (Self::Resolve, "the BMC's name cannot be resolved"),
        (Self::ConnectRefused, "nobody listens at the BMC's address"),
        (Self::Unreachable, "the BMC's address cannot be reached"),
        (Self::Certificate, "the BMC's certificate is not valid"),
        (Self::PinMismatch, "the BMC's certificate is not the pinned one"),
        (Self::Tls, "TLS failed otherwise"),
        (Self::NoAnswer, "the BMC did not answer in time"),
        (Self::Closed, "the BMC closed the connection"),
        (Self::Malformed, "the BMC's answer is not valid HTTP, JSON or Redfish"),
        (Self::Unauthorized, "the BMC refused the user name or password"),
        (Self::BmcError, "the BMC answered with another error"),
        (Self::NoSuchSystem, "the BMC has no such System"),
        (Self::SeveralSystems, "the BMC has several Systems and none is chosen"),
        (Self::Neither, "the power is neither On nor Off"),
        (Self::NotOffered, "the System does not offer what is needed"),
        (Self::Refused, "the BMC refused to switch"),
        (Self::NotOff, "Off was not read back in time"),
        (Self::NotOn, "On was not read back in time"),
    ];
}

/// A failed action: the reason, the words, and what a person can do.
#[derive(Debug)]
pub struct Failure {
    /// The kind.
    pub reason: Reason,
    /// What failed, with its causes.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), hint: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<CredentialsError> for Failure {
    fn from(error: CredentialsError) -> Self {
        Self::new(Reason::Credentials, error.to_string())
            .hint("the file needs the lines username=… and password=…, owner root and mode 0600")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(reason_of(&error), error.chain());
        match failure.reason {
            Reason::Certificate => {
                failure.hint("name the right ca_file, or pin the certificate with pin")
            }
            Reason::PinMismatch => failure.hint(
                "if the BMC's certificate was renewed, check it at the BMC and pin the new one",
            ),
            Reason::Unauthorized => failure
                .hint("correct the credentials file; nothing is retried, since BMCs lock accounts"),
            Reason::NoSuchSystem | Reason::SeveralSystems => {
                failure.hint("set system to one of these ids, or to the System's UUID")
            }
            _ => failure,
        }
    }
}

fn reason_of(error: &Error) -> Reason {
    match error {
        Error::Http { source, .. } => reason_of_http(source),
        Error::Unauthorized { .. } => Reason::Unauthorized,
        Error::Status { .. } => Reason::BmcError,
        Error::Malformed { .. } => Reason::Malformed,
        Error::NoSuchSystem { .. } => Reason::NoSuchSystem,
        Error::SeveralSystems { .. } => Reason::SeveralSystems,
        Error::NotOffered { .. } => Reason::NotOffered,
        Error::Refused { .. } => Reason::Refused,
        Error::NotReached { wanted: crate::PowerState::On, .. } => Reason::NotOn,
        Error::NotReached { .. } => Reason::NotOff,
    }
}

fn reason_of_http(error: &dyad_http::Error) -> Reason {
    use dyad_http::Error as Http;
    match error {
        Http::Endpoint { .. } => Reason::Parameter,
        Http::TlsFile { .. } | Http::TlsSetup { .. } => Reason::TlsFile,
        Http::Resolve { .. } | Http::Deadline { step: dyad_http::Step::Resolve } => Reason::Resolve,
        Http::ConnectRefused { .. } => Reason::ConnectRefused,
        Http::ConnectTimedOut { .. } | Http::Connect { .. } => Reason::Unreachable,
        Http::Certificate { .. } => Reason::Certificate,
        Http::PinMismatch { .. } => Reason::PinMismatch,
        Http::Tls { .. } => Reason::Tls,
        Http::Closed { .. } => Reason::Closed,
        Http::Malformed { .. } | Http::TooLarge { .. } | Http::Request { .. } => Reason::Malformed,
        Http::Deadline { .. } => Reason::NoAnswer,
    }
}

impl From<dyad_http::Error> for Failure {
    fn from(error: dyad_http::Error) -> Self {
        Self::new(reason_of_http(&error), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No failure may look like "on" (0) or "off" (2), and each has its own code.
    #[test]
    fn no_failure_looks_like_a_state() {
        let codes: Vec<_> = Reason::TABLE.iter().map(|(reason, _)| *reason as u8).collect();
        assert!(!codes.contains(&0) && !codes.contains(&2));
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }
}
