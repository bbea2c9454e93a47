//! `dyad rotate`: new secrets, tried before they are used.

mod certificates;

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use dyad_node::{Node, Place, power, record};
use dyad_setup::check::Here;
use dyad_setup::job::apply::{self, ApplyOptions};
use serde::Serialize;

use super::{person, setup, this_node};
use crate::cli::{RotateAuthkey, RotateCommand};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    node: &'a str,
    file: String,
}

/// Does it.
pub(super) fn run(command: &RotateCommand, format: Format) -> anyhow::Result<Exit> {
    let node = this_node::open()?;
    match command {
        RotateCommand::Bmc { node: name, from } => bmc(&node, name, from, format),
        RotateCommand::EtcdCerts(arguments) => {
            certificates::run(&Arc::new(node), arguments, format)
        }
        RotateCommand::Authkey(arguments) => authkey(&node, arguments, format),
    }
}

/// The key goes the way of every change that must reach both nodes or none; nothing else comes with it.
fn authkey(node: &Node, arguments: &RotateAuthkey, format: Format) -> anyhow::Result<Exit> {
    let (here, place) = (Here::this_machine(), Place::default());
    let say = |text: &str| anstream::eprintln!("{text}");
    let mut options = ApplyOptions {
        bundle: Some(arguments.from.clone()),
        dry_run: true,
        peer_limit: Duration::from_secs(arguments.wait),
    };
    let differs = apply::run(&options, &here, &place, &|_| ()).map_err(setup::told)?;
    if let Some(other) = differs.changes.iter().find(|change| change.what != apply::AUTHKEY) {
        let message = format!("the bundle changes more than the key: {}", other.what);
        let hint = "dyad apply brings other changes; render the key without them";
        return Err(Failure::new(Exit::Refused, message).hint(hint).into());
    }
    if !differs.changes.is_empty() {
        person::write_down(node, "puts a new key of Corosync into use", None)?;
    }
    options.dry_run = false;
    let applied = apply::run(&options, &here, &place, &say).map_err(setup::told)?;
    match format {
        Format::Json => output::print_json("Rotation", &applied)?,
        Format::Text if applied.applied => {
            output::print_data("both nodes have the new key; nothing was restarted\n")?;
        }
        Format::Text => output::print_data("nothing differs\n")?,
    }
    Ok(Exit::Ok)
}

fn bmc(node: &Node, name: &str, from: &Path, format: Format) -> anyhow::Result<Exit> {
    let target = person::named(node, name)?;
    let from = from.canonicalize().map_err(|error| {
        Failure::new(Exit::Usage, format!("{}: {error}", from.display()))
            .hint("--from takes a root-only file with the lines username= and password=")
    })?;
    tried(&target.bmc, &from, "the BMC does not take the new ones; the old ones stay in use")?;
    person::write_down(node, &format!("puts new BMC credentials of {name} into use"), None)?;
    let file = &target.bmc.credentials_file;
    replace(&from, file)?;
    tried(&target.bmc, file, "the new ones were put in place and do not work any more")?;
    let other = &node.peer().name;
    match format {
        Format::Json => {
            output::print_json("Rotation", Body { node: name, file: file.display().to_string() })?;
        }
        Format::Text => output::print_data(&format!(
            "{name}'s BMC takes the new credentials; they are in use on this node\n\
             now the same on {other}\n"
        ))?,
    }
    Ok(Exit::Ok)
}

/// Asks the BMC with the credentials in a file.
fn tried(bmc: &dyad_cluster::pair::Bmc, file: &Path, otherwise: &str) -> anyhow::Result<()> {
    power::look_at(bmc, file).map(drop).map_err(|error| {
        let message = format!("{otherwise}: {}", dyad_node::gather::words(&*error));
        Failure::new(Exit::Failed, message)
            .hint(
                "the file has the lines username= and password=, for root only (0600); set the \
                 password in the BMC first",
            )
            .into()
    })
}

/// Replaces the file whole: an agent that runs meanwhile reads the old one or the new one.
fn replace(from: &Path, to: &Path) -> anyhow::Result<()> {
    let text = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    let next = to.with_extension("next");
    let _ = fs::remove_file(&next);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&next)
        .with_context(|| format!("creating {}", next.display()))?;
    std::io::Write::write_all(&mut file, &text)
        .and_then(|()| file.sync_all())
        .with_context(|| format!("writing {}", next.display()))?;
    fs::rename(&next, to).with_context(|| format!("replacing {}", to.display()))?;
    Ok(record::sync_directory(to.parent().unwrap_or(Path::new("/")))?)
}
