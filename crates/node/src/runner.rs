//! What runs etcd: a small trait with two implementations, a systemd service and a podman container.

mod podman;
mod systemd;

use std::time::Duration;

pub use podman::Podman;
pub use systemd::Systemd;

/// A start returns when the process exists; it does not wait for a leader.
const START_LIMIT: Duration = Duration::from_secs(20);
/// etcd is given this long to end by itself; then it is killed.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(30);
/// A process that is killed is gone within this time, or its disk holds it.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// A container that its service has left behind is killed within this.
pub(crate) const REMOVE_LIMIT: Duration = Duration::from_secs(10);
/// Looking at the state.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// Why etcd could not be started, stopped or looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool failed.
    #[error("cannot {step} etcd")]
    Tool {
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: dyad_program::Error,
    },
    /// It was killed and is still there.
    #[error("etcd was killed and is still there: its disk may hold it")]
    Held,
    /// It was told to stop and still runs.
    #[error("etcd was told to stop and still runs")]
    StillRuns,
    /// The look at it ended before it had an answer.
    #[error("cannot tell whether etcd runs")]
    Lost,
}

/// Something that runs etcd on this node. Its arguments are in an environment file that is written before
/// each start.
pub trait Runner: Send + Sync {
    /// Starts it, if it does not run. Returns when the process exists.
    fn start(&self) -> Result<(), Error>;
    /// Stops it, if it runs. Returns when the process is gone for certain: a stop that cannot be confirmed
    /// is an error.
    fn stop(&self) -> Result<(), Error>;
    /// Ends it at once, without a word. Returns when the process is gone for certain, and soon if it does not go: then
    /// something holds it that no signal reaches.
    fn kill(&self) -> Result<(), Error>;
    /// Whether a process exists. What cannot be seen is an error, never "no".
    fn is_running(&self) -> Result<bool, Error>;
}
