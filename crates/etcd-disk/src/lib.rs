//! Reads an etcd data directory without starting etcd.
//!
//! Every safety decision of Dyad rests on one question: what does this node's copy of the data hold, and was
//! its owner alone when it was last written? [`read`] answers it in milliseconds, from the write-ahead log,
//! the newest usable snapshot and the bolt file, and writes nothing. [`seal()`] is the one exception, for the
//! last resort: it appends one record.
//!
//! - The membership comes from the snapshot's `ConfState` and the configuration changes in the log, never
//!   from bolt's `members` bucket, which before etcd 3.5.20 still says learner after a promotion.
//! - The class is the worst over every prefix of the log from the commit mark to the last entry; the rule
//!   itself lives in [`dyad_core::dataset`].
//! - Damage is an answer (class `Broken`, with file and byte), not an error. Errors are what says nothing
//!   about the data: no permission, or a running etcd that never held still.
//!
//! The formats and the decisions are described in `docs/internals/etcd-disk.md`.

mod assemble;
mod bolt;
mod db;
mod fault;
mod files;
mod live;
mod parted;
mod proto;
mod reading;
mod roster;
mod seal;
mod snap;
mod wal;

pub use fault::Error;
pub use parted::{Parted, since_parting};
pub use reading::read;
pub use seal::{SealError, Sealed, seal};

#[cfg(test)]
mod mutation;
