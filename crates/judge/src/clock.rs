//! The one clock of a history: the kernel's monotonic clock, in nanoseconds since the machine's boot.
//!
//! All processes of a machine read the same one, so the histories of several generators can be judged
//! together, and a fault injected by somebody else can be put in its place. It never jumps.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds since boot.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both parts are never negative on this clock, and their sum fits for 584 years.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
