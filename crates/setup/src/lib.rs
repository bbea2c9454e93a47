//! From `pair.yaml` to two nodes that know what they are.
//!
//! [`render`] makes everything that the two nodes need out of one file, the same output for the same input;
//! [`check`] looks before, not after: at the file, at what it names, at the BMCs, and at the machine itself
//! if it is one of the nodes; [`job`] makes a machine one node of the pair, and [`state`] tells how far it has
//! come.

mod account;
pub mod bundle;
pub mod check;
mod error;
pub mod job;
pub mod output;
mod pki;
pub mod render;
mod secrets;
pub mod state;
pub mod units;

pub use account::write_account;
pub use error::Error;
pub use secrets::{SecretsDir, secrets_path};
