//! The forms in which a bundle leaves: a directory, a tar archive, Ignition, a `MachineConfig`.
//!
//! Each form is the same bytes for the same bundle. Whatever holds a secret is for its owner's eyes only.

mod directory;
mod ignition;
mod machine_config;
mod tarball;
mod yaml;

use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::bundle::Bundle;
use crate::error::{Error, failed};

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A directory per node, laid out like its root.
    Directory,
    /// A tar archive per node, to be unpacked at its root.
    Tar,
    /// An Ignition 3.4 file per node.
    Ignition,
    /// One OpenShift `MachineConfig` for both nodes.
    MachineConfig,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// The files and directories, in order.
    pub paths: Vec<PathBuf>,
    /// Files that were there already and are not part of this rendering.
    pub left_over: Vec<PathBuf>,
}

/// Writes the bundles into a directory, in this form.
pub fn write(bundles: &[&Bundle], form: Form, out: &Path) -> Result<Written, Error> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(out);
    made.map_err(failed("create", out))?;
    let mut written = Written::default();
    if form == Form::MachineConfig {
        let path = out.join(machine_config::FILE);
        replace(&path, 0o600, machine_config::render(bundles).as_bytes())?;
        written.paths.push(path);
        return Ok(written);
    }
    for bundle in bundles {
        match form {
            Form::Directory => {
                let path = out.join(&bundle.node);
                written.left_over.extend(directory::write(bundle, &path)?);
                written.paths.push(path);
            }
            Form::Tar => {
                let path = out.join(format!("{}.tar", bundle.node));
                let archive = tarball::render(bundle).map_err(failed("pack", &path))?;
                replace(&path, 0o600, &archive)?;
                written.paths.push(path);
            }
            Form::Ignition | Form::MachineConfig => {
                let path = out.join(format!("{}.ign", bundle.node));
                replace(&path, 0o600, ignition::render(bundle).as_bytes())?;
                written.paths.push(path);
            }
        }
    }
    Ok(written)
}

/// Puts a file in the place of what was there, whole or not at all. It never has more permissions than asked
/// for, not even for a moment.
pub(crate) fn replace(path: &Path, mode: u32, content: &[u8]) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed("write", path))?;
    file.write_all(content).map_err(failed("write", path))?;
    let permissions = std::fs::Permissions::from_mode(mode);
    file.as_file().set_permissions(permissions).map_err(failed("write", path))?;
    // On the disk before it is in its place: a power cut must not leave an empty file there.
    file.as_file().sync_all().map_err(failed("write", path))?;
    file.persist(path).map(drop).map_err(|lost| failed("write", path)(lost.error))
}
