//! A model of the pair that drives `dyad_core::decide` through every reachable state.
//!
//! Two disks with their logs and marks, two etcd processes with raft, the stand-in vote, Corosync's sight,
//! fencing, reboots at any step, cuts, joins that fail half-way, planned stops and people. Every decision of a
//! node is asked of `core` with the facts that the node would have; what `core` says is done. The search visits
//! every state within its bounds and checks what Dyad promises in each.

mod act;
pub mod check;
mod raft;
pub mod reduce;
pub mod scenario;
pub mod search;
pub mod step;
pub mod variant;
pub mod view;
pub mod world;

use std::cell::RefCell;
use std::collections::HashMap;

use dyad_core::Action;

pub use reduce::Reductions;
pub use step::{Scope, Step};
pub use variant::Variant;
pub use world::World;

use crate::search::hash::Mix;
use crate::view::View;
use crate::world::Said;

/// What was decided for a view, and what the node has to say.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The action; nothing, if the node stays inert or refuses.
    pub action: Action,
    /// Whether the node stays inert or refuses.
    pub gives_up: bool,
    /// Whether Pacemaker is told that the resource has failed.
    pub failed: bool,
    /// The statement.
    pub said: Said,
}

/// The model: what may happen, and which rule is broken, if any.
pub struct Model {
    /// What may happen.
    pub scope: Scope,
    /// The broken rule.
    pub variant: Variant,
    /// Which states are taken for one.
    pub reductions: Reductions,
    cache: RefCell<HashMap<View, Judged, Mix>>,
}

impl Model {
    /// A model in which this may happen.
    pub fn new(scope: Scope, variant: Variant) -> Self {
        Self {
            scope,
            variant,
            reductions: Reductions::sound_for(variant),
            cache: RefCell::default(),
        }
    }

    /// How many different sets of facts were decided on.
    pub fn decisions(&self) -> usize {
        self.cache.borrow().len()
    }
}
