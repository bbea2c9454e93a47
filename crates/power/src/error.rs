//! What can go wrong with a BMC.

use crate::system::PowerState;

/// Why a BMC could not be asked, or did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request did not get through.
    #[error("cannot {what}")]
    Http {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: dyad_http::Error,
    },
    /// The BMC does not accept the user name and password.
    #[error("the BMC refused the user name or password (HTTP {status}) on the attempt to {what}")]
    Unauthorized {
        /// What was tried.
        what: String,
        /// 401 or 403.
        status: u16,
    },
    /// The BMC answered with an error.
    #[error("the BMC answered HTTP {status} on the attempt to {what}{}", told(.message))]
    Status {
        /// What was tried.
        what: String,
        /// The status.
        status: u16,
        /// What the BMC said about it.
        message: String,
    },
    /// The BMC's answer is not what Redfish prescribes.
    #[error("the BMC's answer on the attempt to {what} is not valid: {why}")]
    Malformed {
        /// What was tried.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The BMC has no System of that name.
    #[error("the BMC has no System {wanted:?}; it has: {}", list(.found))]
    NoSuchSystem {
        /// What was asked for.
        wanted: String,
        /// The ids of those that there are.
        found: Vec<String>,
    },
    /// The BMC has several Systems and nothing says which one is meant.
    #[error("the BMC has several Systems and none is chosen; it has: {}", list(.found))]
    SeveralSystems {
        /// Their ids.
        found: Vec<String>,
    },
    /// The System does not offer what is needed.
    #[error("the System does not offer {wanted}; it offers: {}", list(.offered))]
    NotOffered {
        /// The reset type that is needed.
        wanted: &'static str,
        /// Those that it offers.
        offered: Vec<String>,
    },
    /// The BMC refused to switch.
    #[error("the BMC refused {wanted} with HTTP {status}{}", told(.message))]
    Refused {
        /// The reset type that was asked for.
        wanted: &'static str,
        /// The status.
        status: u16,
        /// What the BMC said about it.
        message: String,
    },
    /// The power did not change in time.
    #[error(
        "timed out waiting for power {wanted}: {waited_ms} ms after the request the BMC says {last}"
    )]
    NotReached {
        /// The state that was waited for.
        wanted: PowerState,
        /// How long was waited.
        waited_ms: u128,
        /// What the BMC said last.
        last: String,
    },
}

fn told(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

impl Error {
    /// Whether trying again in a moment makes sense: the BMC restarts or is busy. A time-out is not among
    /// these: it has cost its time already. Nor is a refused password: BMCs lock accounts.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Http { source, .. } => matches!(
                source,
                dyad_http::Error::ConnectRefused { .. } | dyad_http::Error::Closed { .. }
            ),
            Self::Status { status, .. } | Self::Refused { status, .. } => {
                matches!(status, 409 | 423 | 429 | 500..600)
            }
            _ => false,
        }
    }

    /// The error and its causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}
