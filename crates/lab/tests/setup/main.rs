//! From blank nodes to a pair, in the lab: the package, a bundle, `dyad setup`, and everything that can go wrong on
//! the way. Real nodes, real BMC protocol, real power.

mod changed;
mod common;
mod failures;
mod handed_over;
mod interrupted;
mod openshift;
mod over_ssh;
mod removed;
mod together;
