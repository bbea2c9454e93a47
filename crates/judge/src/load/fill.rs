//! Fills an etcd with keys that nobody reads, to see what the size of a database costs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use etcd_peer::Tls;
use etcd_peer::client::{Client, Deadline, Error, Operation, Txn};

/// Keys in one transaction; etcd takes at most 128.
const BATCH: u64 = 100;
/// Transactions under way at once.
const WRITERS: usize = 4;
/// One transaction waits for two disks.
const LIMIT: Duration = Duration::from_secs(30);

/// Writes `keys` keys of `value_bytes` each under `prefix`.
pub fn fill(
    (url, tls): (&str, Option<&Tls>),
    prefix: &str,
    keys: u64,
    value_bytes: usize,
) -> Result<(), Error> {
    let next = AtomicU64::new(0);
    let write = || -> Result<(), Error> {
        let client = Client::new(url, tls)?;
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= keys {
                return Ok(());
            }
            let put = |number: u64| Operation::Put {
                key: format!("{prefix}{number:012}").into_bytes(),
                value: value(number, value_bytes),
            };
            let success = (first..keys.min(first + BATCH)).map(put).collect();
            let txn = Txn { compare: Vec::new(), success, failure: Vec::new() };
            client.txn(&txn, Deadline::after(LIMIT))?;
        }
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        // A writer that panicked has failed the run already.
        writers.into_iter().filter_map(|writer| writer.join().ok()).collect()
    })
}

/// A value that differs from key to key: equal pages would compress where something compresses.
fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}
