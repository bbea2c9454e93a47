//! The node of a pair that this command runs on.

use dyad_node::{Node, Place};

use crate::exit::{Exit, Failure};

/// Opens it, or says why this machine is none.
pub(super) fn open() -> Result<Node, Failure> {
    Node::open(Place::default(), &dyad_node::boot::host_name()).map_err(|error| {
        let message = dyad_node::gather::words(&error);
        Failure::new(Exit::Failed, message).hint("run it on one of the two nodes, as root")
    })
}
