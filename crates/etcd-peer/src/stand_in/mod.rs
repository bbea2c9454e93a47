//! The stand-in vote: a survivor of two voters takes over without a restart.
//!
//! When one of two voters is proven dead and the other holds every acknowledged write, a vote is missing, not
//! data. [`StandIn`] casts that one vote at the survivor's own peer port, acknowledges what the survivor then
//! appends, and has the dead member removed through raft. `docs/concepts/stand-in-vote.md` says why that is
//! safe and when it is not.
//!
//! **It does not check that the dead member is dead, nor that the survivor may go on alone.** Proof and
//! eligibility (R2) are the caller's. Once it has acknowledged anything, the dead member's identity is burnt:
//! the removal must be completed, and that identity must never start again.

mod error;
mod link;
mod lock;
mod machine;
mod members;
mod report;
mod run;

use std::path::PathBuf;
use std::time::Duration;

use dyad_core::ids::{ClusterId, MemberId};

pub use error::{Error, Veto};
pub use machine::Foreign;
pub use report::{Report, Role, Step, TimedStep};

use crate::client::Client;
use crate::tls::Tls;

/// Who is to be helped, by facts that are known without its client port: from disk, or from a member list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// The cluster.
    pub cluster: ClusterId,
    /// The survivor. It must be a voter.
    pub survivor: MemberId,
    /// The other voter, proven dead.
    pub dead: MemberId,
    /// The survivor's own advertised peer URL: etcd checks a certificate's names against the source address.
    pub peer_url: String,
    /// The node's own peer certificate, where the peer port wants one.
    pub tls: Option<Tls>,
}

/// How long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the start to the removal.
    pub total: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: Duration::from_secs(30) }
    }
}

/// One stand-in vote, ready to be cast.
#[derive(Debug)]
pub struct StandIn {
    target: Survivor,
    limits: Limits,
    lock: PathBuf,
    client: Option<Client>,
}

impl StandIn {
    /// A stand-in for this survivor's dead peer. `lock` is a file that everybody on this node uses who might
    /// cast the same vote: two stand-ins at once would take each other's streams.
    pub fn new(target: Survivor, lock: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { target, limits, lock: lock.into(), client: None }
    }

    /// Also a client of the survivor, if its client port answers. On etcd 3.4 a forced election does not
    /// look whether a committed change of the membership is still unapplied; with this it is waited for.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Takes the lock and connects to the survivor, which takes part of the time, and says nothing yet: for
    /// somebody who has something else to do before the vote may be cast.
    pub fn connect(self) -> Result<Connected, Error> {
        run::connect(self).map(Connected)
    }

    /// Casts the vote. Returns when the survivor refuses the dead member for good, at the latest at the
    /// limit. `progress` hears each step when it happens.
    pub fn run(self, progress: &mut dyn FnMut(&TimedStep)) -> Result<Report, Error> {
        self.connect()?.run(progress)
    }
}

/// A stand-in vote that is connected to the survivor. Until it is run nothing is said in anybody's name; dropped, it
/// never is.
#[derive(Debug)]
pub struct Connected(run::Connected);

impl Connected {
    /// Casts the vote, as [`StandIn::run`] does. The limit counts from here.
    pub fn run(self, progress: &mut dyn FnMut(&TimedStep)) -> Result<Report, Error> {
        run::run(self.0, progress)
    }
}
