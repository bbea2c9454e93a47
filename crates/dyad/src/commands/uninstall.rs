//! `dyad uninstall`: a machine that is no node any more.

use std::fmt::Write as _;

use dyad_core::dataset::Class;
use dyad_core::facts::{Request, Role};
use dyad_core::statement::EtcdWord;
use dyad_node::{Node, Place};
use dyad_setup::check::Here;
use dyad_setup::job::uninstall::{self, Uninstalled};

use super::{person, setup, this_node};
use crate::cli::UninstallArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Asks, leaves, removes; says what is left.
pub(super) fn run(arguments: &UninstallArguments, format: Format) -> anyhow::Result<Exit> {
    let here = Here::this_machine();
    // A set-up that never got far has no description: then there is nothing to leave, only to remove.
    let node = this_node::open().ok();
    let own = &here.host_name;
    if let Some(named) = arguments.yes_uninstall.as_ref().filter(|named| *named != own) {
        let message = format!("this machine is {own}, not {named}");
        let hint = format!("on {named}: dyad uninstall --yes-uninstall {named}");
        return Err(Failure::new(Exit::Usage, message).hint(hint).into());
    }
    if let Some(node) = &node {
        refuse_the_last(node, arguments.although_nobody_serves)?;
    }
    if arguments.yes_uninstall.is_none() {
        let question = format!("Type {own} if it is to be no node any more");
        person::asks_for(own, &question, &format!("--yes-uninstall {own}"))?;
    }
    if let Some(node) = &node {
        // The other one may have gone while the question stood.
        refuse_the_last(node, arguments.although_nobody_serves)?;
        person::write_down(node, &format!("uninstall {own}"), None)?;
    }
    let say = |text: &str| anstream::eprintln!("{text}");
    let data_dir = node.as_ref().map(|node| node.pair.etcd.data_dir.clone());
    let done = uninstall::run(data_dir.as_deref(), &here, &Place::default(), &say);
    let done = done.map_err(setup::told)?;
    match format {
        Format::Json => output::print_json("UninstallReport", &done)?,
        Format::Text => output::print_data(&summary(own, node.as_ref(), &done))?,
    }
    Ok(Exit::Ok)
}

/// Data are safe on the disk, but whoever uses them would find nobody.
fn refuse_the_last(node: &Node, meant: bool) -> anyhow::Result<()> {
    let facts = node.look(Request::default(), Role::Promoted).facts;
    let peer = &node.peer().name;
    let goes_on = facts.peer.present
        && facts.peer.statement.as_ref().is_some_and(|said| {
            matches!(said.class, Class::Pair | Class::Alone) && said.etcd == EtcdWord::Serving
        });
    if goes_on || meant {
        return Ok(());
    }
    let message = format!("{peer} does not vote: nobody would serve any more");
    Err(Failure::new(Exit::Refused, message)
        .hint("--although-nobody-serves if that is meant; dyad status tells why it does not")
        .into())
}

fn summary(own: &str, node: Option<&Node>, done: &Uninstalled) -> String {
    let mut text = format!("{own} is no node any more; removed {} files\n", done.removed.len());
    for path in &done.kept {
        let _ = writeln!(text, "kept {}", path.display());
    }
    if let Some(node) = node {
        let peer = &node.peer().name;
        let _ = writeln!(
            text,
            "{peer} still counts on {own}, and would switch it off if it booted alone: uninstall it too, or \
             set {own} up again"
        );
    }
    text
}
