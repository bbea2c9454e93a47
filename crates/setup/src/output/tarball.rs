//! A bundle as a tar archive: sorted, owned by root, without times.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

use crate::bundle::{Bundle, Item};

pub(super) fn render(bundle: &Bundle) -> std::io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for directory in directories(bundle) {
        archive.append_data(
            &mut header(EntryType::Directory, 0o755, 0),
            format!("{}/", directory.display()),
            std::io::empty(),
        )?;
    }
    for (path, item) in &bundle.items {
        let path = path.strip_prefix("/").unwrap_or(path);
        match item {
            Item::File { mode, content } => archive.append_data(
                &mut header(EntryType::Regular, *mode, content.len()),
                path,
                content.as_slice(),
            )?,
            Item::Link(target) => {
                archive.append_link(&mut header(EntryType::Symlink, 0o777, 0), path, target)?;
            }
        }
    }
    archive.into_inner()
}

/// Directories that are Dyad's own. Those of the system keep their permissions.
fn directories(bundle: &Bundle) -> BTreeSet<PathBuf> {
    let parents = bundle.items.keys().filter_map(|path| path.parent());
    let own = parents.filter(|path| path.starts_with("/etc/dyad"));
    own.map(|path| path.strip_prefix("/").unwrap_or(Path::new("")).to_owned()).collect()
}

fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
