//! A bundle as a directory, laid out like the root of the node.

use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use super::replace;
use crate::bundle::{Bundle, Item};
use crate::error::{Error, failed};

/// How many files that are not ours are looked for.
const LEFT_OVER_MAX: usize = 1_000;

/// Writes the files; what is there already and is not ours is left alone and named.
pub(super) fn write(bundle: &Bundle, root: &Path) -> Result<Vec<PathBuf>, Error> {
    for (path, item) in &bundle.items {
        let target = place(root, path);
        if let Some(directory) = target.parent() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(directory);
            made.map_err(failed("create", directory))?;
        }
        match item {
            Item::File { mode, content } => replace(&target, *mode, content)?,
            Item::Link(to) => match std::fs::remove_file(&target) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("replace", &target)(error));
                }
                _ => symlink(to, &target).map_err(failed("link", &target))?,
            },
        }
    }
    let mut found = Vec::new();
    walk(root, &mut found).map_err(failed("read", root))?;
    let ours: Vec<_> = bundle.items.keys().map(|path| place(root, path)).collect();
    found.retain(|path| !ours.contains(path));
    found.sort();
    Ok(found)
}

fn place(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), found)?;
        } else if found.len() < LEFT_OVER_MAX {
            found.push(entry.path());
        }
    }
    Ok(())
}
