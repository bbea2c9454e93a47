//! A pair as Dyad makes it, in the lab: real nodes, real power, clients that write throughout, and a judge.
//!
//! Starting a pair takes half a minute, so scenarios that want the same pair share one: each begins and ends
//! with a pair that is whole. A scenario that fails takes its pair with it.

mod by_the_book;
mod changes;
mod clients;
mod common;
mod cut_off;
mod day_two;
mod disk;
mod etcd;
mod gather;
mod looked_after;
mod network;
mod node_failure;
mod power;
mod rejoin;
mod states;
mod stops;
mod two_failures;
mod units;
mod variants;
