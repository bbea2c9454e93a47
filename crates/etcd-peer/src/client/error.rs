//! What can go wrong with a request to etcd, and what is then known about it.

use std::fmt;
use std::sync::Arc;

/// What is known about a request that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not executed and never will be.
    NotExecuted,
    /// It may have been executed, or may still be.
    Unknown,
}

/// Why a request to etcd failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address or the TLS files cannot be used.
    #[error("cannot set up a client for {endpoint}")]
    Setup {
        /// What was given.
        endpoint: String,
        /// What is wrong.
        source: Arc<dyad_http::Error>,
    },
    /// etcd could not be reached: the request was never sent.
    #[error("{step}: etcd at {endpoint} cannot be reached")]
    Unreachable {
        /// What was asked.
        step: &'static str,
        /// Of whom.
        endpoint: String,
        /// Why not.
        source: dyad_http::Error,
    },
    /// The request was sent and its answer did not come: it may have been executed.
    #[error("{step}: no answer from etcd at {endpoint}")]
    NoAnswer {
        /// What was asked.
        step: &'static str,
        /// Of whom.
        endpoint: String,
        /// Why not.
        source: dyad_http::Error,
    },
    /// etcd answered with an error of its own.
    #[error("{step}: {refusal}")]
    Refused {
        /// What was asked.
        step: &'static str,
        /// What etcd said.
        refusal: Refusal,
    },
    /// The answer is not one that etcd's gateway gives.
    #[error("{step}: the answer of {endpoint} is not one of etcd's: {why}")]
    NotEtcd {
        /// What was asked.
        step: &'static str,
        /// Of whom.
        endpoint: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// What is known about the request.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Setup { .. } | Self::Unreachable { .. } => Outcome::NotExecuted,
            Self::NoAnswer { .. } | Self::NotEtcd { .. } => Outcome::Unknown,
            Self::Refused { refusal, .. } => refusal.outcome(),
        }
    }

    /// etcd's own reason, if it gave one.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal.reason),
            _ => None,
        }
    }

    /// Whether the request was taken and nothing came back in time.
    pub fn is_silence(&self) -> bool {
        use dyad_http::{Error as Http, Step};
        let (Self::NoAnswer { source, .. } | Self::Unreachable { source, .. }) = self else {
            return false;
        };
        matches!(source, Http::Deadline { step } if !matches!(step, Step::Resolve | Step::Connect))
    }

    /// What a failed exchange means for the request.
    pub(super) fn of_exchange(
        step: &'static str,
        endpoint: String,
        source: dyad_http::Error,
    ) -> Self {
        use dyad_http::{Error as Http, Step};
        let before = |step: &Step| matches!(step, Step::Resolve | Step::Connect | Step::Handshake);
        let never_sent = match &source {
            Http::Endpoint { .. }
            | Http::Request { .. }
            | Http::TlsFile { .. }
            | Http::TlsSetup { .. }
            | Http::Resolve { .. }
            | Http::ConnectRefused { .. }
            | Http::ConnectTimedOut { .. }
            | Http::Connect { .. }
            | Http::Certificate { .. }
            | Http::PinMismatch { .. } => true,
            Http::Closed { step, .. } | Http::Deadline { step } => before(step),
            // TLS may also fail in the middle of an answer.
            Http::Tls { .. } | Http::Malformed { .. } | Http::TooLarge { .. } => false,
        };
        if never_sent {
            Self::Unreachable { step, endpoint, source }
        } else {
            Self::NoAnswer { step, endpoint, source }
        }
    }
}

/// An error of etcd's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The gRPC code.
    pub code: u32,
    /// What it means to Dyad.
    pub reason: Reason,
    /// etcd's words.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "etcd says: {} (code {})", self.message, self.code)
    }
}

/// etcd's reasons that a caller may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The learner has not caught up yet.
    LearnerNotReady,
    /// The member to be promoted is no learner: perhaps it was promoted already.
    NotLearner,
    /// There is already a learner.
    TooManyLearners,
    /// The asked member is a learner and does not serve this.
    AskedLearner,
    /// Not enough members are connected for a change of the membership.
    UnhealthyCluster,
    /// The change would leave too few started members.
    TooFewStarted,
    /// There is no such member.
    MemberNotFound,
    /// There is already a member with these peer URLs.
    PeerUrlsExist,
    /// There is no leader.
    NoLeader,
    /// The asked member does not lead.
    NotLeader,
    /// Leadership cannot go there.
    BadTransferee,
    /// The leader changed while the request was under way.
    LeaderChanged,
    /// etcd gave up waiting.
    TimedOut,
    /// etcd is stopping.
    Stopped,
    /// Too much is under way.
    TooManyRequests,
    /// The database is full.
    NoSpace,
    /// The members' data differ.
    Corrupt,
    /// The asked revision is no longer kept.
    Compacted,
    /// Another one; see the message.
    Other,
}

/// etcd's words and what they mean. The first that is contained in the message counts.
const REASONS: &[(&str, Reason)] = &[
    ("can only promote a learner member which is in sync with leader", Reason::LearnerNotReady),
    ("can only promote a learner member", Reason::NotLearner),
    ("too many learner members in cluster", Reason::TooManyLearners),
    ("rpc not supported for learner", Reason::AskedLearner),
    ("unhealthy cluster", Reason::UnhealthyCluster),
    ("not enough started members", Reason::TooFewStarted),
    ("member not found", Reason::MemberNotFound),
    ("Peer URLs already exists", Reason::PeerUrlsExist),
    // The id of a new member is made from its URLs: the same URLs collide here first on etcd 3.4 and 3.5.
    ("member ID already exist", Reason::PeerUrlsExist),
    ("no leader", Reason::NoLeader),
    ("not leader", Reason::NotLeader),
    ("bad leader transferee", Reason::BadTransferee),
    ("leader changed", Reason::LeaderChanged),
    ("timed out", Reason::TimedOut),
    ("deadline exceeded", Reason::TimedOut),
    ("server stopped", Reason::Stopped),
    ("too many requests", Reason::TooManyRequests),
    ("database space exceeded", Reason::NoSpace),
    ("corrupt", Reason::Corrupt),
    ("required revision has been compacted", Reason::Compacted),
];

/// gRPC's code for "the request is at odds with the state of things".
const FAILED_PRECONDITION: u32 = 9;
/// gRPC's code for "there is no such thing".
const NOT_FOUND: u32 = 5;
/// gRPC's code for "the request makes no sense".
const INVALID_ARGUMENT: u32 = 3;
/// gRPC's code for "not supported".
const UNIMPLEMENTED: u32 = 12;
/// gRPC's codes for "you may not".
const PERMISSION: [u32; 2] = [7, 16];

impl Refusal {
    pub(super) fn new(code: u32, message: String) -> Self {
        let reason = REASONS
            .iter()
            .find(|(words, _)| message.contains(words))
            .map_or(Reason::Other, |(_, reason)| *reason);
        Self { code, reason, message }
    }

    fn outcome(&self) -> Outcome {
        let unknown = match self.reason {
            Reason::LeaderChanged | Reason::TimedOut | Reason::Stopped | Reason::Corrupt => true,
            Reason::Other => {
                let certain = [FAILED_PRECONDITION, NOT_FOUND, INVALID_ARGUMENT, UNIMPLEMENTED];
                !certain.contains(&self.code) && !PERMISSION.contains(&self.code)
            }
            _ => false,
        };
        if unknown { Outcome::Unknown } else { Outcome::NotExecuted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longer of two similar messages of etcd is not taken for the shorter.
    #[test]
    fn etcds_words_are_told_apart() {
        let reason = |message: &str| Refusal::new(9, message.to_owned()).reason;
        assert_eq!(
            reason("etcdserver: can only promote a learner member which is in sync with leader"),
            Reason::LearnerNotReady
        );
        assert_eq!(reason("etcdserver: can only promote a learner member"), Reason::NotLearner);
        assert_eq!(reason("etcdserver: something new"), Reason::Other);
    }

    /// What may still be executed is never called "not executed".
    #[test]
    fn a_time_out_leaves_the_outcome_open() {
        for (code, message, outcome) in [
            (14, "etcdserver: request timed out", Outcome::Unknown),
            (
                14,
                "etcdserver: request timed out, possibly due to connection lost",
                Outcome::Unknown,
            ),
            (14, "transport is closing", Outcome::Unknown),
            (4, "context deadline exceeded", Outcome::Unknown),
            (2, "etcdserver: something new", Outcome::Unknown),
            (14, "etcdserver: unhealthy cluster", Outcome::NotExecuted),
            (5, "etcdserver: member not found", Outcome::NotExecuted),
            (3, "etcdserver: key is not provided", Outcome::NotExecuted),
        ] {
            assert_eq!(Refusal::new(code, message.to_owned()).outcome(), outcome, "{message}");
        }
    }

    /// Only what failed before the request was on its way is certain not to have been executed.
    #[test]
    fn a_broken_exchange_is_certain_only_before_it_is_sent() {
        use dyad_http::{Error as Http, Step};
        let outcome = |source| Error::of_exchange("put", "x".into(), source).outcome();
        assert_eq!(outcome(Http::ConnectRefused { address: "x".into() }), Outcome::NotExecuted);
        for (step, expected) in [
            (Step::Connect, Outcome::NotExecuted),
            (Step::Handshake, Outcome::NotExecuted),
            (Step::Send, Outcome::Unknown),
            (Step::Head, Outcome::Unknown),
            (Step::Body, Outcome::Unknown),
        ] {
            assert_eq!(outcome(Http::Deadline { step }), expected, "{step}");
            assert_eq!(outcome(Http::Closed { step, source: None }), expected, "{step}");
        }
    }
}
