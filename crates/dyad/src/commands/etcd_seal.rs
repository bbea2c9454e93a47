//! `dyad etcd seal`: keeps the tail of a log for the last resort.

use std::path::Path;

use etcd_disk::{SealError, Sealed};
use serde::Serialize;

use super::etcd_inspect;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    changed: bool,
    commit_before: u64,
    commit: u64,
}

pub(super) fn run(dir: &Path, format: Format) -> anyhow::Result<Exit> {
    let sealed = etcd_disk::seal(dir).map_err(|error| failure(dir, error))?;
    let (changed, before, commit) = match sealed {
        Sealed::Raised { from, to } => (true, from, to),
        Sealed::Already { at } => (false, at, at),
    };
    match format {
        Format::Text if changed => output::print_data(&format!(
            "sealed: the commit mark of {} is now the last entry, {commit} (it was {before})\n",
            dir.display()
        ))?,
        Format::Text => output::print_data(&format!(
            "already sealed: the commit mark of {} is the last entry, {commit}; nothing was written\n",
            dir.display()
        ))?,
        Format::Json => {
            let body = Body { changed, commit_before: before.0, commit: commit.0 };
            output::print_json("Sealed", body)?;
        }
    }
    Ok(Exit::Ok)
}

fn failure(dir: &Path, error: SealError) -> Failure {
    let dir = dir.display();
    let message = match std::error::Error::source(&error) {
        Some(source) => format!("cannot seal {dir}: {error}: {source}"),
        None => format!("cannot seal {dir}: {error}"),
    };
    match error {
        SealError::Read(error) => etcd_inspect::failure(error),
        SealError::Running => Failure::new(Exit::Refused, message).hint("stop etcd first"),
        SealError::Class { .. } => Failure::new(Exit::Refused, message).hint(format!(
            "only a voter's data may be sealed; look at it: dyad etcd inspect {dir}"
        )),
        SealError::Denied { .. } => {
            Failure::new(Exit::Permission, message).hint("run it as root, or as etcd's user")
        }
        SealError::Write { .. } | SealError::NotThere(_) => Failure::new(Exit::Failed, message),
    }
}
