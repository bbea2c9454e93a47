//! `dyad archive`: datasets that were moved aside on this node.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use dyad_core::dataset::{Class, Dataset};
use dyad_core::facts::EtcdState;
use dyad_core::state::State;
use dyad_core::worth::Worth;
use dyad_node::aside::{self, Copy};
use dyad_node::{Node, gather};
use dyad_status::look::{PATIENT, look};
use serde::Serialize;

use super::{person, this_node};
use crate::cli::ArchiveCommand;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use dyad_status::words::{bytes, moment};

/// One copy, as it is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    number: u64,
    member: String,
    worth: Worth,
    last_written_ms: Option<u64>,
    size_bytes: u64,
    class: String,
    term: u64,
    index: u64,
    revision: u64,
    path: String,
}

/// Lists, restores or deletes.
pub(super) fn run(command: &ArchiveCommand, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    match command {
        ArchiveCommand::List => list(&node, format),
        ArchiveCommand::Restore { number, reason } => {
            restore(&node, *number, reason.as_deref(), format)
        }
        ArchiveCommand::Prune { numbers, diverged_too } => {
            prune(&node, numbers, *diverged_too, format)
        }
    }
}

fn copies(node: &Node) -> anyhow::Result<Vec<Copy>> {
    aside::list(node.memory.beside()).context("listing what was moved aside")
}

fn numbered(copies: &[Copy], number: u64) -> Result<&Copy, Failure> {
    copies.iter().find(|copy| copy.number == number).ok_or_else(|| {
        let message = format!("there is no copy with the number {number}");
        Failure::new(Exit::Usage, message).hint("dyad archive list")
    })
}

fn list(node: &Node, format: Format) -> anyhow::Result<Exit> {
    let kept: Vec<Kept> = copies(node)?.iter().map(|copy| describe(node, copy)).collect();
    match format {
        Format::Json => {
            #[derive(Serialize)]
            struct Body {
                copies: Vec<Kept>,
            }
            output::print_json("Archive", Body { copies: kept })?;
        }
        Format::Text if kept.is_empty() => {
            output::print_data("no dataset was moved aside on this node\n")?;
        }
        Format::Text => output::print_data(&table(&kept))?,
    }
    Ok(Exit::Ok)
}

fn table(kept: &[Kept]) -> String {
    let mut text =
        String::from("NUMBER  LAST WRITTEN (UTC)   CLASS     ENDS AT                 SIZE\n");
    for copy in kept {
        let written = copy.last_written_ms.map_or_else(|| "?".to_owned(), moment);
        let position = format!("term {} index {}", copy.term, copy.index);
        let _ = writeln!(
            text,
            "{:>6}  {written:<19}  {:<8}  {position:<22}  {}",
            copy.number,
            copy.class,
            bytes(copy.size_bytes)
        );
        match copy.worth {
            Worth::Whole => {}
            Worth::Unfinished => text.push_str("        a join that did not end\n"),
            Worth::Diverged => {
                text.push_str("        diverged: it holds writes that exist nowhere else\n");
            }
        }
    }
    text
}

fn describe(node: &Node, copy: &Copy) -> Kept {
    let dataset = read(node, copy);
    Kept {
        number: copy.number,
        member: copy.member.clone(),
        worth: copy.worth,
        last_written_ms: last_written_ms(&copy.path),
        size_bytes: aside::size(&copy.path),
        class: dataset.class.to_string(),
        term: dataset.raft.last_term.0,
        index: dataset.raft.last_index.0,
        revision: dataset.revision.0,
        path: copy.path.display().to_string(),
    }
}

/// Reads a copy as if it were in place: a data directory is one with `member` in it. Its files appear there a
/// second time, as links, for as long as it takes.
fn read(node: &Node, copy: &Copy) -> Dataset {
    let look = node.memory.beside().directory().join("look");
    // What a crash left over.
    let _ = std::fs::remove_dir_all(&look);
    let linked = link_files(&copy.path, &look.join("member"));
    let dataset = match linked {
        Ok(()) => gather::read_dataset(&look),
        Err(error) => Dataset::empty(Class::Broken, format!("{}: {error}", copy.path.display())),
    };
    let _ = std::fs::remove_dir_all(&look);
    dataset
}

fn link_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link_files(&entry.path(), &target)?;
        } else {
            std::fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}

/// When its log was written last.
pub(super) fn last_written_ms(member: &Path) -> Option<u64> {
    let files = std::fs::read_dir(member.join("wal")).ok()?;
    let times = files.filter_map(|file| file.ok()?.metadata().ok()?.modified().ok());
    let newest = times.max()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(newest.as_millis()).ok()
}

/// Puts a copy back, on a node that is out of service.
fn restore(
    node: &Arc<Node>,
    number: u64,
    reason: Option<&str>,
    format: Format,
) -> anyhow::Result<Exit> {
    let lock = node.lock().context("waiting for another operation on this node")?;
    let copies = copies(node)?;
    let copy = numbered(&copies, number)?;
    let seen = look(node, PATIENT);
    let own = &node.own().name;
    let facts = &seen.gathered.facts;
    let out = seen.judgement.state == State::Maintenance && seen.judgement.on.as_ref() == Some(own);
    if !out || facts.etcd.state != EtcdState::Stopped {
        let message = format!("{own} is not out of service: a dataset in use is not replaced");
        let hint = format!("dyad maintenance start {own}");
        return Err(Failure::new(Exit::Refused, message).hint(hint).into());
    }
    let data_dir = &node.pair.etcd.data_dir;
    person::write_down(node, &format!("restores copy {number} on {own}"), reason)?;
    let present = facts.dataset.member_id;
    let aside = aside::restore(data_dir, node.memory.beside(), present, copy)?;
    drop(lock);
    let aside = aside.map(|path| path.display().to_string());
    match format {
        Format::Json => {
            #[derive(Serialize)]
            struct Body {
                restored: u64,
                aside: Option<String>,
            }
            output::print_json("Restoration", Body { restored: number, aside })?;
        }
        Format::Text => {
            let before = aside.unwrap_or_else(|| "nothing was there before".to_owned());
            output::print_data(&format!(
                "copy {number} is this node's dataset; before: {before}\n\
                 the rules decide on it when the maintenance ends: dyad maintenance end {own}\n"
            ))?;
        }
    }
    Ok(Exit::Ok)
}

/// Deletes copies, if two newer ones serve.
fn prune(
    node: &Arc<Node>,
    numbers: &[u64],
    diverged_too: bool,
    format: Format,
) -> anyhow::Result<Exit> {
    let copies = copies(node)?;
    let chosen: Vec<&Copy> =
        numbers.iter().map(|number| numbered(&copies, *number)).collect::<Result<_, _>>()?;
    if let Some(copy) = chosen.iter().find(|copy| copy.worth == Worth::Diverged && !diverged_too) {
        let message = format!("copy {} holds writes that exist nowhere else", copy.number);
        let hint = format!("dyad archive prune {} --diverged-too", copy.number);
        return Err(Failure::new(Exit::Refused, message).hint(hint).into());
    }
    let seen = look(node, PATIENT);
    if seen.judgement.state != State::Protected {
        let message = format!(
            "copies are deleted only while two newer ones serve; the pair is {}: {}",
            seen.judgement.state, seen.judgement.because
        );
        return Err(Failure::new(Exit::Refused, message).hint("dyad status").into());
    }
    person::write_down(node, &format!("deletes copies {numbers:?}"), None)?;
    for copy in &chosen {
        aside::delete(copy)?;
    }
    match format {
        Format::Json => {
            #[derive(Serialize)]
            struct Body<'a> {
                deleted: &'a [u64],
            }
            output::print_json("Pruning", Body { deleted: numbers })?;
        }
        Format::Text => output::print_data(&format!("deleted: {}\n", chosen.len()))?,
    }
    Ok(Exit::Ok)
}
