//! Real etcd members on the loopback, for tests.
//!
//! A dev-dependency only: nothing that is shipped links it. It starts Debian's unmodified etcd of either
//! series, on addresses of its own, in a directory of its own, and leaves nothing behind.
//!
//! ```no_run
//! use etcd_fixture::{Cluster, Release};
//!
//! # fn main() -> anyhow::Result<()> {
//! for release in Release::ALL {
//!     let mut pair = Cluster::pair(release)?; // two voters, both ready
//!     pair.members[0].put("key", "value")?;
//!     let third = pair.add_learner()?; // added, started, ready
//!     pair.promote(third)?; // waits until etcd lets it
//!     pair.remove(third)?;
//!     pair.members[1].kill()?; // SIGKILL; `stop` is SIGTERM, `pause` SIGSTOP
//!     println!("{}", pair.members[0].data_dir().display()); // what a reader of disks wants
//!     pair.members[1].start()?;
//!     pair.members[1].wait_ready()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - **Limits.** Every wait ends after [`LIMIT`] with an error that says what was not yet true and shows the
//!   end of the member's log. Every call of `etcdctl` has a limit of its own.
//! - **Addresses.** Each member listens on its own address in 127.0.0.0/8, derived from the process id, with
//!   ports that the kernel picked: tests that run side by side do not meet, nor do outgoing connections.
//! - **Clean-up.** Dropping a [`Member`] kills it, dropping a [`Cluster`] deletes its directory. Members also
//!   die with the *thread* that started them (`PR_SET_PDEATHSIG`), so that a killed test run leaves no etcd
//!   behind: start members from the test's own thread.
//! - **Faults.** [`Member::kill`] is a crash. [`Member::lose_power`] sends no goodbye on the network: for that each
//!   member has a machine of its own ([`Options::machines`]), in a test that runs [`in_own_network`].
//!   [`Member::slow_disk`] delays every sync.
//! - **TLS.** [`Options::tls`] gives every member a certificate for both ports and asks one of everybody.
//! - **Binaries** are what `scripts/fetch-etcd` put into `$DYAD_CACHE`; it is called if they are missing.

mod cluster;
mod gateway;
mod member;
mod network;
mod release;
mod slow;
mod tls;
mod wait;

pub use cluster::{Cluster, Options};
pub use gateway::Gateway;
pub use member::{ListedMember, Member, Status};
pub use network::{in_own_network, is_own_network, own_network_command, set_up_switch};
pub use release::{Release, cache_dir};
pub use slow::SlowDisk;
pub use tls::TlsFiles;
pub use wait::{LIMIT, wait_for};
