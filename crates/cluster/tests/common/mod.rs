//! Pairs that the tests of this crate render.
#![allow(dead_code, missing_docs, unreachable_pub)] // each test file uses some of them

use dyad_cluster::pair::Pair;

/// A pair as most sites have it.
pub fn usual() -> Pair {
    from(include_str!("../pairs/usual.json"))
}

/// Names and addresses that begin alike (R10), one link, nothing but etcd.
pub fn alike() -> Pair {
    from(include_str!("../pairs/alike.json"))
}

/// IPv6, the second node preferred, mutual TLS, explicit timings.
pub fn ipv6() -> Pair {
    from(include_str!("../pairs/ipv6.json"))
}

fn from(text: &str) -> Pair {
    serde_json::from_str(text).expect("the test's own pair is valid")
}
