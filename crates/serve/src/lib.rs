//! The status page and the metrics of a pair.
//!
//! One thread looks at the pair now and then; everybody who asks gets what it saw last, made once. So a thousand
//! requests a second cost no more looks than one, and nothing here can delay an agent. Everything is bounded:
//! connections, requests, time. Nothing can be changed from here.

pub mod access;
mod answer;
pub mod histogram;
pub mod metrics;
pub mod page;
mod picture;
mod server;
mod timeline;
pub mod watch;

pub use access::Access;
pub use server::{Error, Server};
