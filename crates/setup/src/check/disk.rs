//! The disk that will hold the data: how much room, how fast.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dyad_cluster::pair::Pair;
use nix::sys::statvfs::statvfs;

use super::probe::Probe;
use super::{Finding, Here};

/// Less room than this and etcd soon stops.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// etcd's database may grow to 2 GiB, and copies are kept beside it.
const FREE_BYTES_GOOD: u64 = 8 << 30;
/// What etcd writes at a time, and asks for 99 of 100 of.
const WRITE_BYTES: usize = 2_300;
const SYNC_GOOD: Duration = Duration::from_millis(10);
/// The measurement ends after so many writes or so much time.
const WRITES: usize = 100;
const MEASURE_LIMIT: Duration = Duration::from_secs(3);

/// The data directory, or what of its path is there already.
fn existing(pair: &Pair, here: &Here) -> PathBuf {
    let wanted = here.path(&pair.etcd.data_dir);
    let found = wanted.ancestors().find(|path| path.is_dir()).map(Path::to_owned);
    found.unwrap_or_else(|| here.root.clone())
}

pub(super) fn space(pair: &Pair, here: &Here) -> Probe {
    let directory = existing(pair, here);
    Probe::new("disk-space", "disk", move || match statvfs(&directory) {
        Err(error) => {
            let message = format!("cannot look at {}: {error}", directory.display());
            vec![Finding::error("disk-space", "disk", message)]
        }
        Ok(found) => {
            let free = found.blocks_available() * found.fragment_size();
            vec![judged_space(&directory, free)]
        }
    })
}

fn judged_space(directory: &Path, free: u64) -> Finding {
    let shown = format!(
        "{}.{} GiB free at {}",
        free >> 30,
        (free >> 20) % 1024 * 10 / 1024,
        directory.display()
    );
    if free < FREE_BYTES_MIN {
        Finding::error("disk-space", "disk", shown).hint("make room: 8 GiB or more are good")
    } else if free < FREE_BYTES_GOOD {
        let hint = "8 GiB or more are good: etcd may take 2, and old copies are kept beside it";
        Finding::warning("disk-space", "disk", shown).hint(hint)
    } else {
        Finding::ok("disk-space", "disk", shown)
    }
}

pub(super) fn latency(pair: &Pair, here: &Here) -> Probe {
    let directory = existing(pair, here);
    Probe::new("disk-latency", "disk", move || match measure(&directory) {
        Err(error) => {
            let message = format!("cannot write to {}: {error}", directory.display());
            vec![Finding::warning("disk-latency", "disk", message).hint("run the check as root")]
        }
        Ok(times) => vec![judged_latency(times)],
    })
}

/// How long each of a number of small synced writes took. The file vanishes with its handle.
fn measure(directory: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file = tempfile::tempfile_in(directory)?;
    let content = [0; WRITE_BYTES];
    let begin = Instant::now();
    let mut times = Vec::with_capacity(WRITES);
    while times.len() < WRITES && (times.is_empty() || begin.elapsed() < MEASURE_LIMIT) {
        let start = Instant::now();
        file.write_all(&content)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn judged_latency(mut times: Vec<Duration>) -> Finding {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let (median, slow) = (at(50), at(99));
    let shown =
        format!("a synced write takes {:.1} ms, 99 of 100 at most {:.1} ms", ms(median), ms(slow));
    if slow <= SYNC_GOOD {
        Finding::ok("disk-latency", "disk", shown)
    } else {
        let hint =
            "etcd asks for 10 ms: use an SSD with power-loss protection, not shared with others";
        Finding::warning("disk-latency", "disk", shown).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    /// The measurement ends by itself and leaves nothing behind.
    #[test]
    fn the_measurement_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let times = measure(directory.path()).unwrap();
        assert!((1..=WRITES).contains(&times.len()));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    /// Little room and slow disks are told, in proportion.
    #[test]
    fn room_and_speed_are_judged() {
        let space = |free| judged_space(Path::new("/var/lib"), free).status;
        assert_eq!(space(1 << 20), Status::Error);
        assert_eq!(space(2 << 30), Status::Warning);
        assert_eq!(space(100 << 30), Status::Ok);
        let mut times = vec![Duration::from_millis(1); 99];
        assert_eq!(judged_latency(times.clone()).status, Status::Ok);
        times.extend([Duration::from_millis(50); 3]);
        assert_eq!(judged_latency(times).status, Status::Warning);
    }
}
