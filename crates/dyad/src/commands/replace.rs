//! `dyad replace`: another machine takes the place of a node that is gone.

use std::fmt::Write as _;
use std::sync::Arc;

use dyad_core::facts::EtcdState;
use dyad_core::state::State;
use dyad_node::{Node, Place};
use dyad_setup::check::Here;
use dyad_setup::job::replace::{self, Replaced};
use dyad_status::look::{PATIENT, look};

use super::{person, setup, standby, this_node};
use crate::cli::ReplaceArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Prepares this node for the new machine, and says what that one needs.
pub(super) fn run(arguments: &ReplaceArguments, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    let old = person::named(&node, &arguments.node)?.name.clone();
    require_gone(&node, &arguments.node)?;
    person::write_down(&node, &format!("has {old} replaced"), arguments.reason.as_deref())?;
    // Whatever the old one was told, the new one is to serve.
    standby::tell(&node, &old, false)?;
    let replaced = match &arguments.bundle {
        Some(bundle) => {
            let say = |text: &str| anstream::eprintln!("{text}");
            replace::run(bundle, &Here::this_machine(), &Place::default(), &say)
                .map_err(setup::told)?
        }
        None => Replaced { old: old.to_string(), new: old.to_string(), changes: Vec::new() },
    };
    match format {
        Format::Json => output::print_json("Replacement", &replaced)?,
        Format::Text => output::print_data(&told(&replaced))?,
    }
    Ok(Exit::Ok)
}

/// The other node must be gone for good: neither in the cluster nor one of etcd's members; and this one must serve.
fn require_gone(node: &Arc<Node>, name: &str) -> anyhow::Result<()> {
    let (own, peer) = (&node.own().name, &node.peer().name);
    if name == own.0 {
        let message = format!("this is {own}: a node is replaced from the one that stays");
        return Err(Failure::new(Exit::Usage, message)
            .hint(format!("on {peer}: dyad replace {own}"))
            .into());
    }
    let seen = look(node, PATIENT);
    let facts = &seen.gathered.facts;
    let refused = |why: String| {
        let hint = format!(
            "if {peer} still runs: dyad maintenance start {peer}, then shut it down; dyad status tells where the pair stands"
        );
        Err(Failure::new(Exit::Refused, why).hint(hint).into())
    };
    if facts.peer.present {
        return refused(format!("{peer} is in the cluster"));
    }
    if !matches!(seen.judgement.state, State::Alone | State::Maintenance) {
        return refused(format!(
            "the pair is {}: {}",
            seen.judgement.state, seen.judgement.because
        ));
    }
    let voters = facts.etcd.members.iter().filter(|member| !member.learner).count();
    if facts.etcd.state != EtcdState::Leader || voters != 1 {
        return refused(format!("{own} does not serve alone"));
    }
    Ok(())
}

fn told(replaced: &Replaced) -> String {
    let Replaced { old, new, changes } = replaced;
    let mut text = String::new();
    for change in changes {
        if let (Some(from), Some(to)) = (&change.from, &change.to) {
            let _ = writeln!(text, "{}: {from} -> {to}", change.what);
        }
    }
    let who =
        if old == new { format!("the new {new}") } else { format!("{new} in the place of {old}") };
    let _ = write!(
        text,
        "this node is ready for {who}; on that machine:\n  install the package dyad\n  \
         dyad setup --bundle DIR    (its own bundle of the same rendering)\n"
    );
    text
}
