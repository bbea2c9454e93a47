//! The disk under a node's etcd: a small file system of its own, kept in a file, which survives power
//! cycles and can be filled, slowed and hung.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cgroup::Cgroup;
use crate::error::{Error, Result, errno};
use crate::program::{self, QUICK};

/// Between two stalls a slow disk lets writes through for this long.
const BREATH: Duration = Duration::from_millis(10);

/// The disk of one node.
#[derive(Debug)]
pub(crate) struct Disk {
    mount: PathBuf,
    cgroup: Cgroup,
    faults: Mutex<DiskFaults>,
}

#[derive(Debug, Default)]
struct DiskFaults {
    stall: Option<Duration>,
    worker: Option<Worker>,
    slow_fsync: Option<Worker>,
    slow_fsync_ms: Option<u32>,
    full: bool,
}

/// A thread that keeps a fault up until it is told to stop.
#[derive(Debug)]
struct Worker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Self { stop, thread: std::thread::spawn(move || work(&seen)) }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread looks at the flag every few milliseconds.
        let _ = self.thread.join();
    }
}

impl Disk {
    /// Makes the file system and mounts it in this mount namespace.
    pub(crate) fn build(
        directory: &Path,
        size_mib: u32,
        owner: (u32, u32),
        cgroup: Cgroup,
    ) -> Result<Self> {
        let image = directory.join("etcd.img");
        let mount = directory.join("etcd");
        fs::create_dir_all(&mount).map_err(Error::io("making", &mount))?;
        let file = File::create(&image).map_err(Error::io("making", &image))?;
        file.set_len(u64::from(size_mib) << 20).map_err(Error::io("sizing", &image))?;
        // No reserve for root: "full" is to mean full for everybody.
        let mut mkfs = program::words("mkfs.ext4 -q -F -m 0");
        program::output(mkfs.arg(&image), "", QUICK)?;
        let mut attach = program::words("mount -t ext4 -o loop,noatime");
        program::output(attach.arg(&image).arg(&mount), "", QUICK)?;
        chown(&mount, Some(owner.0), Some(owner.1)).map_err(Error::io("giving away", &mount))?;
        Ok(Self { mount, cgroup, faults: Mutex::default() })
    }

    /// Where it is mounted in the supervisor's mount namespace.
    pub(crate) fn mount(&self) -> &Path {
        &self.mount
    }

    /// Every write waits for up to this long from now on.
    pub(crate) fn slow(&self, stall: Duration) {
        let mut faults = self.lock();
        stop(&mut faults.worker);
        faults.stall = Some(stall);
        faults.worker = Some(stalling(&self.mount, stall));
    }

    /// Every fsync of etcd takes this much longer from now on, also of an etcd that is started later.
    pub(crate) fn slow_fsync(&self, delay_ms: u32) {
        let mut faults = self.lock();
        stop(&mut faults.slow_fsync);
        let cgroup = self.cgroup.clone();
        faults.slow_fsync_ms = Some(delay_ms);
        faults.slow_fsync = Some(Worker::start(move |stop| delay_fsyncs(&cgroup, delay_ms, stop)));
    }

    /// Takes all free space.
    pub(crate) fn fill(&self) -> Result<()> {
        self.lock().full = true;
        let path = self.fill_file();
        let failed = || Error::io("filling", &path);
        let mut file = File::create(&path).map_err(failed())?;
        let space = nix::sys::statvfs::statvfs(&self.mount).map_err(|e| failed()(errno(e)))?;
        let free = space.blocks_available().saturating_mul(space.fragment_size());
        let free = i64::try_from(free).unwrap_or(i64::MAX);
        // Space is reserved, not written; what that leaves over is written until nothing fits.
        let _ = nix::fcntl::fallocate(&file, nix::fcntl::FallocateFlags::empty(), 0, free);
        while file.write_all(&[0; 4096]).is_ok() {}
        Ok(())
    }

    /// Ends every fault.
    pub(crate) fn heal(&self) -> Result<()> {
        let mut faults = self.lock();
        stop(&mut faults.worker);
        stop(&mut faults.slow_fsync);
        let was_full = faults.full;
        *faults = DiskFaults::default();
        if was_full {
            let path = self.fill_file();
            fs::remove_file(&path).map_err(Error::io("removing", &path))?;
        }
        Ok(())
    }

    /// Runs `work` while writes are not held up: a process that waits for a stalled disk cannot be killed.
    /// The stall comes back afterwards, as a bad disk survives a power cycle.
    pub(crate) fn without_stall<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut faults = self.lock();
        stop(&mut faults.worker);
        let result = work();
        faults.worker = faults.stall.map(|stall| stalling(&self.mount, stall));
        result
    }

    /// What is broken, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let faults = self.lock();
        let mut words = Vec::new();
        if let Some(stall) = faults.stall {
            words.push(format!("disk stalls for {} ms", stall.as_millis()));
        }
        if let Some(delay) = faults.slow_fsync_ms {
            words.push(format!("fsync {delay} ms slower"));
        }
        if faults.full {
            words.push("disk full".into());
        }
        words
    }

    fn fill_file(&self) -> PathBuf {
        self.mount.join(".filled-by-the-lab")
    }

    fn lock(&self) -> MutexGuard<'_, DiskFaults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stop(worker: &mut Option<Worker>) {
    if let Some(worker) = worker.take() {
        worker.stop();
    }
}

/// Freezes the file system again and again: writes wait as they would for a disk that does not answer.
fn stalling(mount: &Path, stall: Duration) -> Worker {
    let mount = mount.to_owned();
    Worker::start(move |stop| {
        while !stop.load(Ordering::Relaxed) {
            set_frozen(&mount, true);
            pause(stall, stop);
            set_frozen(&mount, false);
            pause(BREATH, stop);
        }
    })
}

/// Freezes or thaws a file system. Thawing one that is not frozen is refused, which is fine.
pub(crate) fn set_frozen(mount: &Path, frozen: bool) {
    let option = if frozen { "--freeze" } else { "--unfreeze" };
    let mut command = program::command("fsfreeze", [option]);
    let _ = program::run(command.arg(mount), "", QUICK);
}

fn pause(time: Duration, stop: &AtomicBool) {
    let end = std::time::Instant::now() + time;
    while !stop.load(Ordering::Relaxed) && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2).min(time));
    }
}

/// Keeps a tracer on every etcd of the node that delays its fsync calls.
fn delay_fsyncs(cgroup: &Cgroup, delay_ms: u32, stop: &AtomicBool) {
    let mut tracers: Vec<(u32, Child)> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        tracers.retain_mut(|(_, tracer)| matches!(tracer.try_wait(), Ok(None)));
        for pid in pids_named(cgroup, "etcd") {
            let traced = tracers.iter().any(|(traced, _)| *traced == pid);
            if !traced && let Ok(tracer) = trace(pid, delay_ms) {
                tracers.push((pid, tracer));
            }
        }
        pause(Duration::from_millis(100), stop);
    }
    for (_, mut tracer) in tracers {
        // Asked kindly: a tracer that is killed would take the traced process with it in the middle of a
        // delayed call.
        let pid = nix::unistd::Pid::from_raw(tracer.id().cast_signed());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = tracer.wait();
    }
}

fn trace(pid: u32, delay_ms: u32) -> std::io::Result<Child> {
    let delay_us = u64::from(delay_ms) * 1000;
    Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"])
        .args(["-e", &format!("inject=fsync,fdatasync:delay_enter={delay_us}")])
        .args(["-p", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The processes of a cgroup that run a program of this name. The name they go by would not do: the resource
/// agent is called as `etcd` too, being a link of that name.
pub(crate) fn pids_named(cgroup: &Cgroup, name: &str) -> Vec<u32> {
    let mut pids = cgroup.pids();
    pids.retain(|pid| {
        fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|program| program.file_name().is_some_and(|file| file == name))
    });
    pids
}
