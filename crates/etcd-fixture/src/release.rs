//! Where the binaries of each etcd series are.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// A Debian release, and with it an etcd series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Debian 12: etcd 3.4.
    Bookworm,
    /// Debian 13: etcd 3.5.
    Trixie,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        })
    }
}

impl Release {
    /// Both series.
    pub const ALL: [Self; 2] = [Self::Bookworm, Self::Trixie];

    /// The path of `etcd`, `etcdctl` or (trixie only) `etcdutl`; fetched if it is not there yet.
    pub fn binary(self, name: &str) -> anyhow::Result<PathBuf> {
        let bin = cache_dir().join("etcd").join(self.to_string()).join("usr/bin");
        if !bin.join("etcd").exists() {
            fetch()?;
        }
        let path = bin.join(name);
        ensure!(path.exists(), "{} does not exist", path.display());
        Ok(path)
    }
}

/// The cache outside the tree that the scripts use as well.
pub fn cache_dir() -> PathBuf {
    std::env::var_os("DYAD_CACHE").map_or_else(|| "/var/cache/dyad".into(), PathBuf::from)
}

fn fetch() -> anyhow::Result<()> {
    fs::create_dir_all(cache_dir()).context("creating the cache directory")?;
    // Test binaries run side by side: one fetches, the others wait for it.
    let lock = File::create(cache_dir().join(".fetch-etcd.lock"))?;
    lock.lock().context("waiting for another fetch")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/fetch-etcd");
    let status = Command::new(&script).status().context("running scripts/fetch-etcd")?;
    ensure!(status.success(), "scripts/fetch-etcd: {status}");
    Ok(())
}
