//! Live etcd, spoken to directly: its membership, state and keys over the client port, and the stand-in vote
//! over the peer port.
//!
//! Everything blocks and everything has a limit; there is no runtime. A one-shot agent can use it as it is.

pub mod client;
pub mod stand_in;
mod tls;
pub mod wire;

pub use dyad_http::Identity;
pub use tls::Tls;
