//! Reading a data directory, against etcd's own `etcdutl snapshot status` on the same file in the same run.
//!
//! The directories are written by real etcd 3.5 once and kept in `$DYAD_CACHE/bench-data`: 1 MB with a
//! thousand keys, 100 MB with a hundred thousand, 1 GB with a million; and `log`, the longest log that etcd's
//! defaults leave with such values: a hundred thousand entries and no snapshot yet. `DYAD_BENCH_SIZES=1MB,log`
//! takes some of them. At the end medians, spread, ratio and the peak of memory are printed; `make bench` runs
//! it.

use std::fmt;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use criterion::{BenchmarkId, Criterion};
use etcd_fixture::{Cluster, Options, Release, cache_dir};

const VALUE_BYTES: usize = 800;
const INSPECT_RUNS: usize = 101;
/// How often the slow tool is run.
const STATUS_RUNS: usize = 5;

struct Size {
    name: &'static str,
    keys: u32,
    /// Keys of one write, which is one entry: etcd takes up to 128 operations at once.
    batch: u32,
    /// Entries between snapshots.
    snapshot_count: u32,
}

impl Size {
    /// As many entries between snapshots as etcd has bytes between them by default: a log of ordinary size.
    const fn usual(name: &'static str, keys: u32) -> Self {
        Self { name, keys, batch: 100, snapshot_count: 1_000 }
    }
}

const SIZES: [Size; 4] = [
    Size::usual("1MB", 1_000),
    Size::usual("100MB", 100_000),
    Size::usual("1GB", 1_000_000),
    Size { name: "log", keys: 99_900, batch: 1, snapshot_count: 100_000 },
];

fn main() {
    // The benchmark starts itself to measure memory: a process that does nothing but read.
    let arguments: Vec<_> = std::env::args_os().collect();
    if let [_, flag, dir] = arguments.as_slice()
        && flag == "--read-once"
    {
        return read_once(Path::new(dir));
    }
    run().unwrap();
}

/// Reads once and prints how much the peak of memory grew by it, in kilobytes.
fn read_once(dir: &Path) {
    let before = peak_kilobytes();
    black_box(etcd_disk::read(dir).unwrap());
    println!("{}", peak_kilobytes().saturating_sub(before));
}

fn peak_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn run() -> anyhow::Result<()> {
    let wanted = std::env::var("DYAD_BENCH_SIZES").unwrap_or_else(|_| "1MB,100MB,1GB,log".into());
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let mut lines = Vec::new();
    for size in SIZES.iter().filter(|size| wanted.split(',').any(|name| name == size.name)) {
        let dir = data(size)?;
        let mut group = criterion.benchmark_group("inspect");
        group.bench_with_input(BenchmarkId::from_parameter(size.name), &dir, |bencher, dir| {
            bencher.iter(|| black_box(etcd_disk::read(dir).unwrap()));
        });
        group.finish();
        lines.push(compare(size, &dir)?);
    }
    println!("\n| database | keys | log read | inspect ms | memory | snapshot status ms | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

fn compare(size: &Size, dir: &Path) -> anyhow::Result<String> {
    let inspect = times(INSPECT_RUNS, || {
        black_box(etcd_disk::read(dir)?);
        Ok(())
    })?;
    let db = dir.join("member/snap/db");
    let tool = Release::Trixie.binary("etcdutl")?;
    let status = times(STATUS_RUNS, || {
        let mut command = Command::new(&tool);
        let status =
            command.args(["snapshot", "status"]).arg(&db).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "etcdutl snapshot status: {status}");
        Ok(())
    })?;
    let memory = Command::new(std::env::current_exe()?).arg("--read-once").arg(dir).output()?;
    let memory: u64 = String::from_utf8_lossy(&memory.stdout).trim().parse().context("memory")?;
    Ok(format!(
        "| {} MB | {} | {} MB | {inspect} | {:.1} MB | {status} | 1 : {:.0} |",
        fs::metadata(&db)?.len() / 1_000_000,
        size.keys,
        log_bytes(dir)? / 1_000_000,
        f64::from(u32::try_from(memory)?) / 1e3,
        status.median / inspect.median,
    ))
}

/// How long something took, in milliseconds.
struct Times {
    median: f64,
    least: f64,
    greatest: f64,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.median, self.least, self.greatest)
    }
}

fn times(runs: usize, mut run: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Times> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(Times { median: times[runs / 2], least: times[0], greatest: times[runs - 1] })
}

/// How much of the log is read: from the segment on that holds the newest snapshot, without the space that
/// was allocated in advance.
fn log_bytes(dir: &Path) -> anyhow::Result<u64> {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or_default();
    let mut snapshot = 0;
    for entry in fs::read_dir(dir.join("member/snap"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some((_, index)) = name.strip_suffix(".snap").and_then(|name| name.split_once('-')) {
            snapshot = snapshot.max(hex(index));
        }
    }
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir.join("member/wal"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((_, first)) = name.strip_suffix(".wal").and_then(|name| name.split_once('-')) {
            segments.push((hex(first), entry.path()));
        }
    }
    segments.sort();
    let start = segments.iter().rposition(|(first, _)| *first <= snapshot).unwrap_or_default();
    let mut total = 0;
    for (_, path) in &segments[start..] {
        let bytes = fs::read(path)?;
        total += bytes.iter().rposition(|byte| *byte != 0).unwrap_or_default() as u64;
    }
    Ok(total)
}

/// A directory of this size, written by real etcd the first time.
fn data(size: &Size) -> anyhow::Result<PathBuf> {
    let target = cache_dir().join("bench-data").join(format!("v1-{}", size.name));
    if target.exists() {
        return Ok(target);
    }
    eprintln!("writing {} with etcd 3.5, once, into {}", size.name, target.display());
    let options = Options::new(Release::Trixie)
        .snapshot_count(size.snapshot_count)
        .argument("--quota-backend-bytes=8589934592")
        .argument("--unsafe-no-fsync")
        .argument("--max-wals=2");
    let mut cluster = Cluster::start(1, options)?;
    fill(&cluster, size)?;
    cluster.members[0].stop()?;
    // Another start deletes the segments that are no longer needed.
    cluster.members[0].start()?;
    cluster.members[0].wait_writable()?;
    cluster.members[0].put_many("last", 10, 100)?;
    cluster.members[0].stop()?;
    fs::create_dir_all(cache_dir().join("bench-data"))?;
    let staging = target.with_extension("new");
    let copied = Command::new("cp")
        .args(["-a", "--sparse=always", "--"])
        .arg(cluster.members[0].data_dir())
        .arg(&staging)
        .status()?;
    ensure!(copied.success(), "copying the directory into the cache");
    fs::rename(&staging, &target)?;
    Ok(target)
}

fn fill(cluster: &Cluster, size: &Size) -> anyhow::Result<()> {
    let mut gateway = cluster.members[0].gateway()?;
    let value = vec![b'v'; VALUE_BYTES];
    for batch in 0..size.keys / size.batch {
        let names: Vec<_> = (0..size.batch)
            .map(|number| format!("/registry/things/{:08}", batch * size.batch + number))
            .collect();
        gateway.put_all(names.iter().map(|name| (name.as_str(), value.as_slice())))?;
    }
    Ok(())
}
