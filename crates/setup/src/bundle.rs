//! Everything that one node needs, as files.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a node needs: absolute paths, in order, each with its content.
#[derive(Debug)]
pub struct Bundle {
    /// The node's name.
    pub node: String,
    /// The files.
    pub items: BTreeMap<PathBuf, Item>,
}

/// A file or a link.
#[derive(Debug)]
pub enum Item {
    /// A file.
    File {
        /// Its permissions.
        mode: u32,
        /// Its content.
        content: Vec<u8>,
    },
    /// A symbolic link to this path.
    Link(PathBuf),
}

impl Bundle {
    /// An empty bundle.
    pub(crate) fn new(node: &str) -> Self {
        Self { node: node.to_owned(), items: BTreeMap::new() }
    }

    /// Adds a file that everyone on the node may read.
    pub(crate) fn public(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        self.items.insert(path.into(), Item::File { mode: 0o644, content: content.into() });
    }

    /// Adds a file for root's eyes only.
    pub(crate) fn secret(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        self.items.insert(path.into(), Item::File { mode: 0o600, content: content.into() });
    }

    /// Adds a link.
    pub(crate) fn link(&mut self, path: impl Into<PathBuf>, target: impl Into<PathBuf>) {
        self.items.insert(path.into(), Item::Link(target.into()));
    }
}
