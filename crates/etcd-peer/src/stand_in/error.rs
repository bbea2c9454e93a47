//! Why a stand-in vote was refused or failed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dyad_core::ids::{ClusterId, MemberId};

use super::machine::Foreign;

/// Why a stand-in vote was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another stand-in is under way on this node.
    #[error("another stand-in holds {path}", path = .0.display())]
    Busy(PathBuf),
    /// The lock file cannot be used.
    #[error("cannot lock {path}", path = .path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The peer URL or the TLS files cannot be used.
    #[error("cannot set up a connection to {peer_url}")]
    Setup {
        /// The survivor's peer URL.
        peer_url: String,
        /// What is wrong.
        source: dyad_http::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// What the survivor says of itself forbids it.
    #[error("the survivor must not take over: {0}")]
    Vetoed(#[from] Veto),
    /// Another cluster answers at the peer URL.
    #[error("{peer_url} belongs to cluster {found}, not {expected}")]
    WrongCluster {
        /// The survivor's peer URL.
        peer_url: String,
        /// Which cluster answers.
        found: String,
        /// Which one should.
        expected: ClusterId,
    },
    /// The peer port refuses to speak with us.
    #[error("the survivor's peer port refuses: {text} (HTTP {status})")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// etcd's words.
        text: String,
    },
    /// Somebody else sent or received what only survivor and dead member may.
    #[error("refused to answer for a member that is not the dead one")]
    Foreign(#[from] Foreign),
    /// Somebody else takes the dead member's streams, again and again: it lives, or a stand-in without the
    /// lock is at work.
    #[error("somebody else speaks for member {0}: is it alive?")]
    Displaced(MemberId),
    /// The limit ran out.
    #[error("waited {limit:?} for {waits_for}{}", .trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default())]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// What was waited for.
        waits_for: &'static str,
        /// What went wrong last.
        trouble: Option<String>,
        /// Whether a vote was cast or an entry acknowledged: then the dead identity is burnt, and the
        /// take-over must be completed, by running it again.
        burnt: bool,
    },
}

/// What the survivor says of itself that forbids a stand-in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Veto {
    /// The survivor was still catching up: it may lack acknowledged writes.
    #[error("the survivor {0} is a learner")]
    SurvivorIsLearner(MemberId),
    /// The survivor is not in it.
    #[error("the survivor {0} is not a member")]
    SurvivorUnknown(MemberId),
    /// The other one does not vote: the survivor needs no help.
    #[error("member {0} is a learner and has no vote to cast")]
    DeadIsLearner(MemberId),
    /// Its etcd has a flaw that can lose acknowledged writes of a member that runs alone.
    #[error("its etcd {0} is too old: at least 3.4.21 or 3.5.5 is needed")]
    TooOld(String),
    /// There are more voters than these two.
    #[error("member {0} votes too; this is for exactly two voters")]
    ThirdVoter(MemberId),
}
