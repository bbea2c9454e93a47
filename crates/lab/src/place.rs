//! Where a lab keeps its things: one directory, nothing outside of it but a cgroup of its own.

use std::path::PathBuf;

use crate::config::LabConfig;
use crate::error::{Error, Result};

/// The directory under which each lab has its own.
pub fn labs_directory() -> PathBuf {
    std::env::var_os("DYAD_LAB_DIR").map_or_else(|| "/var/lib/dyad-lab".into(), PathBuf::from)
}

/// The cache that outlives labs and source trees.
pub fn cache_directory() -> PathBuf {
    std::env::var_os("DYAD_CACHE").map_or_else(|| "/var/cache/dyad".into(), PathBuf::from)
}

/// The paths of one lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The lab's name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
}

impl Place {
    /// The place of the lab of this name.
    pub fn of(name: &str) -> Self {
        Self { name: name.into(), directory: labs_directory().join(name) }
    }

    /// Every lab that has a directory.
    pub fn all() -> Vec<Self> {
        let entries = std::fs::read_dir(labs_directory()).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().map(|name| Self::of(name)).collect()
    }

    /// The configuration that the lab was started with.
    pub fn config(&self) -> Result<LabConfig> {
        let path = self.config_file();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NotFound(self.name.clone()));
            }
            other => other.map_err(Error::io("reading", &path))?,
        };
        serde_json::from_str(&text).map_err(|error| Error::Io {
            step: "understanding",
            object: path,
            source: error.into(),
        })
    }

    /// The configuration's file.
    pub fn config_file(&self) -> PathBuf {
        self.directory.join("lab.json")
    }
    /// The socket on which the supervisor listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("control")
    }
    /// The supervisor's process id.
    pub fn pid_file(&self) -> PathBuf {
        self.directory.join("supervisor.pid")
    }
    /// What the supervisor says.
    pub fn supervisor_log(&self) -> PathBuf {
        self.directory.join("supervisor.log")
    }
    /// What happened in the lab: one JSON object per line.
    pub fn events(&self) -> PathBuf {
        self.directory.join("events.jsonl")
    }
    /// A node's directory.
    pub fn node(&self, name: &str) -> PathBuf {
        self.directory.join("nodes").join(name)
    }
    /// A node's journal, readable whether it runs or not.
    pub fn journal(&self, name: &str) -> PathBuf {
        self.node(name).join("upper/var/log/journal")
    }
    /// The lab's cgroup below the root of the cgroup2 hierarchy.
    pub fn cgroup(&self) -> String {
        format!("dyad-lab-{}", self.name)
    }
}
