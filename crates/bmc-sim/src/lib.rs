//! A BMC that can be broken on demand.
//!
//! It speaks Redfish over HTTPS, as much of it as fence agents use (`fence_redfish` works against it), in
//! front of any [`PowerSwitch`]: the lab's switch kills real nodes, [`MemorySwitch`] only remembers. Faults
//! are set at run time ([`Bmc::set_fault`]) and every request is kept for a timeline ([`Bmc::events`]).
//!
//! One rule stands above all: **a BMC that cannot see the truth answers 500, never Off.** A fence agent
//! takes Off as the proof that a node is dead.
//!
//! Plain threads, bounded in number. The listening socket can be handed in ready-made, so that a BMC can
//! live in a network namespace of its own.

mod auth;
mod certificate;
mod events;
mod fault;
mod power;
mod resources;
mod server;
mod wire;

pub use certificate::Certificate;
pub use events::Event;
pub use fault::Fault;
pub use power::{MemorySwitch, PowerState, PowerSwitch, ResetType, SwitchError};
pub use server::{Bmc, Config, System};
