//! A node's cgroup is its mains: it tells whether the node runs, hangs it, and pulls its plug.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long the kernel may take to end every process of a node.
const KILL_LIMIT: Duration = Duration::from_secs(15);

/// A cgroup of the unified hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// The root of the unified hierarchy as this process sees it mounted, on a hybrid machine too.
    pub fn root() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")
            .map_err(Error::io("reading", "/proc/self/mounts"))?;
        // The last one wins: a later mount lies over an earlier one.
        let path = mounts.lines().rev().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let path = fields.next()?;
            (fields.next()? == "cgroup2").then(|| PathBuf::from(path))
        });
        let path = path.ok_or_else(|| Error::Machine("no cgroup2 hierarchy is mounted".into()))?;
        Ok(Self { path })
    }

    /// The cgroup at this path of a mounted hierarchy.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// A child of this cgroup, made or not.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self { path: self.path.join(name) }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has been made.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Makes it.
    pub fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.path).map_err(Error::io("making cgroup", &self.path))
    }

    /// Moves a process into it.
    pub fn add(&self, pid: u32) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Whether a process is in it or below it. An error is an error, never "no".
    pub fn populated(&self) -> Result<bool> {
        self.flag("populated ")
    }

    /// Whether all its processes are stopped.
    pub fn frozen(&self) -> Result<bool> {
        self.flag("frozen ")
    }

    /// Stops every process in it, as a hang of the machine would, or lets them go on.
    pub fn set_frozen(&self, frozen: bool) -> Result<()> {
        self.write("cgroup.freeze", if frozen { "1" } else { "0" })?;
        let what = if frozen { "freezing" } else { "thawing" };
        self.wait_for(what, |cgroup| Ok(cgroup.frozen()? == frozen))
    }

    /// Kills every process in it and below it, and waits until the last is gone.
    pub fn kill(&self) -> Result<()> {
        if !self.exists() {
            return Ok(());
        }
        self.write("cgroup.freeze", "0")?;
        self.write("cgroup.kill", "1")?;
        self.wait_for("killing", |cgroup| Ok(!cgroup.populated()?))
    }

    /// Removes it and everything below it; it must be empty.
    pub fn remove(&self) -> Result<()> {
        for child in self.children() {
            child.remove()?;
        }
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("removing cgroup", &self.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes everything below it, so that the next boot finds it clean.
    pub fn remove_children(&self) -> Result<()> {
        self.children().iter().try_for_each(Self::remove)
    }

    /// The processes in it and below it.
    pub fn pids(&self) -> Vec<u32> {
        let own = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        let mut pids: Vec<u32> = own.lines().filter_map(|line| line.parse().ok()).collect();
        pids.extend(self.children().iter().flat_map(Self::pids));
        pids
    }

    /// The CPU time that it has used.
    pub fn cpu_time(&self) -> Result<Duration> {
        let path = self.path.join("cpu.stat");
        let text = fs::read_to_string(&path).map_err(Error::io("reading", &path))?;
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
        Ok(Duration::from_micros(usage.unwrap_or_default()))
    }

    fn children(&self) -> Vec<Self> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.map(|entry| Self { path: entry.path() }).collect()
    }

    fn flag(&self, name: &str) -> Result<bool> {
        let path = self.path.join("cgroup.events");
        let text = fs::read_to_string(&path).map_err(Error::io("reading", &path))?;
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        match value {
            Some("0") => Ok(false),
            Some("1") => Ok(true),
            _ => Err(Error::Machine(format!("{} does not tell {name}", path.display()))),
        }
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(Error::io("writing", path))
    }

    fn wait_for(&self, what: &str, done: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        while !done(self)? {
            if start.elapsed() > KILL_LIMIT {
                return Err(Error::TimedOut {
                    what: format!("{what} cgroup {}", self.path.display()),
                    limit: KILL_LIMIT,
                    missing: format!("processes {:?}", self.pids()),
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}
