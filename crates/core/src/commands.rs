//! The commands that decisions name: what a person types to supply the missing fact. All of them stand here, so
//! that they can be held against the command line in one place.

use crate::ids::NodeName;

/// The pair at a glance.
pub(crate) const STATUS: &str = "dyad status";
/// What a data directory holds.
pub(crate) const INSPECT: &str = "dyad etcd inspect";
/// What holds a dataset, and how the pair sees it.
pub(crate) const INSPECT_AND_STATUS: &str = "dyad etcd inspect; dyad status";
/// What two unlike datasets hold, then the choice between them.
pub(crate) const INSPECT_AND_RESOLVE: &str = "dyad etcd inspect; dyad resolve";
/// Which of two datasets goes on.
pub(crate) const RESOLVE: &str = "dyad resolve";
/// Older copies of the data on this node, one of which may be put back.
pub(crate) const ARCHIVE: &str = "dyad archive list";
/// Whether the nodes can be switched off.
pub(crate) const DRILL: &str = "dyad drill";
/// Brings a changed description to both nodes, or a change that was cut off to its end.
pub const APPLY: &str = "dyad apply";
/// Makes this node one of a pair.
pub(crate) const SETUP: &str = "dyad setup";
/// Looks at what is left of earlier data, before anybody moves it away.
pub(crate) const FORMER_DATA: &str =
    "dyad etcd inspect DIR; if nobody needs it, move it to another place";
/// Whether the disk is full, or read-only.
pub(crate) const DISK: &str = "df; dmesg";
/// Who is in etcd's membership.
pub(crate) const MEMBERS: &str = "etcdctl member list";
/// Who is in etcd's membership, and how a stranger is put out.
pub(crate) const REMOVE_MEMBER: &str = "etcdctl member list; etcdctl member remove ID";

/// A person states that the peer is down.
pub(crate) fn confirm(peer: &NodeName) -> String {
    format!("dyad confirm --yes-peer-is-down {peer}")
}

/// A person states that the peer is down, and accepts what it alone may hold.
pub(crate) fn confirm_with_loss(peer: &NodeName) -> String {
    format!("dyad confirm --yes-peer-is-down {peer} --accept-possible-loss")
}

/// A person states that the peer is down, though it answers or has power: it is switched off first, if it can be.
pub(crate) fn confirm_despite_signs(peer: &NodeName) -> String {
    format!("dyad confirm --yes-peer-is-down {peer} --although-it-seems-up")
}

/// Takes a node out of service in order.
pub(crate) fn maintenance_start(node: &NodeName) -> String {
    format!("dyad maintenance start {node}")
}

/// Takes a node into service again.
pub(crate) fn maintenance_end(node: &NodeName) -> String {
    format!("dyad maintenance end {node}")
}

/// Gives this node's dataset up for another one's.
pub(crate) fn resolve_keep(node: &NodeName) -> String {
    format!("dyad resolve --keep {node}")
}

/// Why a node holds what it holds, as it says itself.
pub(crate) fn explain_on(node: &NodeName) -> String {
    format!("dyad explain (on {node})")
}

/// Every command of `dyad` that a decision or a judgement may name, each with these names filled in: so that the
/// command line can be held against them.
pub fn examples(node: &NodeName) -> Vec<String> {
    let fixed = [
        STATUS,
        INSPECT,
        INSPECT_AND_STATUS,
        INSPECT_AND_RESOLVE,
        RESOLVE,
        ARCHIVE,
        DRILL,
        APPLY,
        SETUP,
    ];
    let parts = fixed.iter().flat_map(|text| text.split("; ")).map(str::to_owned);
    let named = [
        confirm(node),
        confirm_with_loss(node),
        confirm_despite_signs(node),
        maintenance_start(node),
        maintenance_end(node),
        resolve_keep(node),
    ];
    parts.chain(named).collect()
}
