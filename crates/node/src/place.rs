//! Where a node keeps what.

use std::path::{Path, PathBuf};

/// The directories of a node. Tests put them elsewhere.
#[derive(Debug, Clone)]
pub struct Place {
    /// The configuration: `/etc/dyad`.
    pub config: PathBuf,
    /// What a reboot must lose: `/run/dyad`. Eligibility lives here.
    pub runtime: PathBuf,
    /// The decision log: `/var/log/dyad`.
    pub log: PathBuf,
    /// What outlives a reboot and the data's own disk: `/var/lib/dyad`.
    pub state: PathBuf,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            config: "/etc/dyad".into(),
            runtime: "/run/dyad".into(),
            log: "/var/log/dyad".into(),
            state: "/var/lib/dyad".into(),
        }
    }
}

impl Place {
    /// The description of the pair, the same on both nodes.
    pub fn pair_file(&self) -> PathBuf {
        self.config.join("pair.json")
    }

    /// The arguments of the local etcd, written before each start.
    pub fn etcd_environment(&self) -> PathBuf {
        self.runtime.join("etcd.env")
    }

    /// Which data this machine has held, on another disk than the data if they have one of their own: a
    /// disk that is not mounted must not look like one that never held any.
    pub fn began(&self) -> PathBuf {
        self.state.join("began.json")
    }

    /// Names the data of an etcd that is about to be handed over: they count as data of this node already.
    pub fn hand_over(&self) -> PathBuf {
        self.state.join("hand-over.json")
    }

    /// Says that a person began to give this node's dataset up, until that has ended.
    pub fn resolving(&self) -> PathBuf {
        self.state.join("resolving.json")
    }

    /// What the last drill that was typed on this node came to.
    pub fn last_drill(&self) -> PathBuf {
        self.state.join("drill.json")
    }

    /// Held by whoever decides and acts on this node.
    pub fn lock(&self) -> PathBuf {
        self.runtime.join("lock")
    }
}

/// What lies beside the data, on the same file system: marks, records, copies moved aside.
#[derive(Debug, Clone)]
pub struct BesideData {
    directory: PathBuf,
}

impl BesideData {
    /// Beside the data in this etcd data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { directory: data_dir.join("dyad") }
    }

    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The take-over mark.
    pub fn take_over_mark(&self) -> PathBuf {
        self.directory.join("take-over.json")
    }

    /// The yield mark.
    pub fn yield_mark(&self) -> PathBuf {
        self.directory.join("yield.json")
    }

    /// The newest log position that was seen of the peer.
    pub fn peer_memory(&self) -> PathBuf {
        self.directory.join("peer-memory.json")
    }

    /// The own log position at the last orderly stop.
    pub fn stop_record(&self) -> PathBuf {
        self.directory.join("stopped-at.json")
    }

    /// The last member of this node that has passed a barrier.
    pub fn passed_record(&self) -> PathBuf {
        self.directory.join("passed.json")
    }

    /// Where the first dataset is made, before it is moved into place.
    pub fn beginning(&self) -> PathBuf {
        self.directory.join("beginning")
    }

    /// Room that is kept for the marks of a node whose disk is full.
    pub fn ballast(&self) -> PathBuf {
        self.directory.join("ballast")
    }

    /// Datasets that were moved aside.
    pub fn aside(&self) -> PathBuf {
        self.directory.join("aside")
    }
}
