//! Reading `pair.yaml` for a command.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use dyad_cluster::pair::Pair;
use dyad_pair_file::file::PairFile;
use dyad_pair_file::{Loaded, Problem};

use crate::exit::{Exit, Failure};
use crate::output;

/// A file's bytes, no more than a description of a pair may have (and one, so that more is noticed).
pub(super) fn read_bounded(path: &Path) -> anyhow::Result<Vec<u8>> {
    let fail = |error: std::io::Error| {
        let failure = Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display()));
        match error.kind() {
            std::io::ErrorKind::NotFound => failure.hint("`dyad init` writes a first one"),
            _ => failure,
        }
    };
    let file = std::fs::File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    let limit = dyad_pair_file::FILE_BYTES_MAX as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

/// Reads a description, whatever is wrong with it.
pub(super) fn load(path: &Path) -> anyhow::Result<Loaded> {
    Ok(dyad_pair_file::load(&read_bounded(path)?))
}

/// Reads a description that can be used; warnings are told, errors end the command.
pub(super) fn load_usable(path: &Path) -> anyhow::Result<(PairFile, Pair)> {
    let loaded = load(path)?;
    let (Some(file), Some(pair)) = (loaded.file, loaded.pair) else {
        return Err(problems_failure(path, &loaded.problems).into());
    };
    for problem in &loaded.problems {
        output::print_problem(&path.display().to_string(), problem);
    }
    Ok((file, pair))
}

/// Tells every problem, and ends with how many there are.
pub(super) fn problems_failure(path: &Path, problems: &[Problem]) -> Failure {
    let name = path.display().to_string();
    for problem in problems {
        output::print_problem(&name, problem);
    }
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    let plural = if errors == 1 { "" } else { "s" };
    Failure::new(Exit::Usage, format!("{name} has {errors} error{plural}; nothing was done"))
}

/// The directory that relative paths of a file start from.
pub(super) fn base(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(path)
        .with_context(|| format!("cannot tell where {} is", path.display()))?;
    Ok(absolute.parent().unwrap_or(Path::new("/")).to_owned())
}
