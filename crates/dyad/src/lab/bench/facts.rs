//! The machine that a benchmark ran on, and when.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What must be known to compare numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    /// When it began, in UTC.
    pub(super) date: String,
    pub(super) processors: usize,
    pub(super) processor: String,
    pub(super) memory_mb: u64,
    pub(super) kernel: String,
    pub(super) release: String,
    pub(super) optimised: bool,
    /// The machine's load average over one, five and fifteen minutes, before anything was started.
    pub(super) load_before: [f64; 3],
}

impl Facts {
    /// Of this machine, now.
    pub(super) fn now(release: &str) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            date: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            memory_mb: field(&read("/proc/meminfo"), "MemTotal").as_deref().map_or(0, megabytes),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            release: release.to_owned(),
            optimised: !cfg!(debug_assertions),
            load_before: load(&read("/proc/loadavg")),
        }
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let build = if self.optimised { "optimised" } else { "DEBUG BUILD" };
        let [one, five, fifteen] = self.load_before;
        format!(
            "{}, {} x {}, {} MB, Linux {}, Debian {}, {build}\nload before: {one:.2} {five:.2} {fifteen:.2}\n",
            self.date, self.processors, self.processor, self.memory_mb, self.kernel, self.release
        )
    }

    /// For tests.
    #[cfg(test)]
    pub(super) fn example() -> Self {
        Self {
            date: "2026-11-16T12:00:00Z".to_owned(),
            processors: 2,
            processor: "Some CPU".to_owned(),
            memory_mb: 8000,
            kernel: "6.18".to_owned(),
            release: "trixie".to_owned(),
            optimised: true,
            load_before: [0.1, 0.2, 0.3],
        }
    }
}

/// The first value of this name in a list of `name: value`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// `8123456 kB`.
fn megabytes(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn load(text: &str) -> [f64; 3] {
    let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or_default());
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own words are understood.
    #[test]
    fn the_machine_is_described() {
        let cpu = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: another\n";
        assert_eq!(field(cpu, "model name").as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(megabytes("2048000 kB"), 2000);
        let [one, _, fifteen] = load("0.25 1.50 3.00 1/234 5678\n");
        assert!((one - 0.25).abs() < f64::EPSILON && (fifteen - 3.0).abs() < f64::EPSILON);
    }
}
