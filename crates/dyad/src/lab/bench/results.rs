//! What a benchmark found: rows by quantity and database size, a cell for each contestant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::facts::Facts;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Unit {
    /// Milliseconds: medians are compared.
    Ms,
    /// Things: sums are compared.
    Count,
    /// Things that happen each time: medians are compared.
    Each,
}

/// A quantity: its name in every table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct What {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
}

const fn ms(name: &'static str) -> What {
    What { name, unit: Unit::Ms }
}

const fn count(name: &'static str) -> What {
    What { name, unit: Unit::Count }
}

pub(super) const FAULT_TO_WRITE: What = ms("node lost -> first write (ms)");
pub(super) const FENCED_TO_WRITE: What = ms("fencing done -> first write (ms)");
pub(super) const PROOF_TO_WRITE: What = ms("proof in hand -> first write (ms)");
pub(super) const VOTE: What = ms("stand-in vote, start to end (ms)");
pub(super) const SLOWEST: What = ms("node lost: slowest request of who stays (ms)");
pub(super) const LOST_WITH_NODE: What = count("node lost: acknowledged writes lost");
pub(super) const REJOIN: What = ms("back in the cluster -> both vote again (ms)");
pub(super) const JOIN: What = ms("learner added -> barrier passed (ms)");
pub(super) const COPY: What = ms("the same bytes copied by the same link (ms)");
pub(super) const STOP_GAP: What = ms("planned stop: longest time without a write (ms)");
pub(super) const STOP_SLOWEST: What = ms("planned stop: slowest write of who stays (ms)");
pub(super) const STOP_FAILED: What = count("planned stop: failed writes of who stays");
pub(super) const CUT_TO_WRITE: What = ms("links cut both ways -> first write (ms)");
pub(super) const CUT_LOST: What = count("links cut both ways: acknowledged writes lost");
pub(super) const ONE_WAY_TO_WRITE: What = ms("links cut one way -> first write (ms)");
pub(super) const ONE_WAY_LOST: What = count("links cut one way: acknowledged writes lost");
pub(super) const MONITOR: What = ms("one monitor of a healthy voter: CPU (ms)");
pub(super) const PROCESSES: What =
    What { name: "one monitor of a healthy voter: processes", unit: Unit::Each };

/// The order of the table.
const ORDER: [What; 18] = [
    FAULT_TO_WRITE,
    FENCED_TO_WRITE,
    PROOF_TO_WRITE,
    VOTE,
    SLOWEST,
    LOST_WITH_NODE,
    REJOIN,
    JOIN,
    COPY,
    STOP_GAP,
    STOP_SLOWEST,
    STOP_FAILED,
    CUT_TO_WRITE,
    CUT_LOST,
    ONE_WAY_TO_WRITE,
    ONE_WAY_LOST,
    MONITOR,
    PROCESSES,
];

/// One value that was measured.
#[derive(Debug)]
struct Sample {
    what: What,
    contestant: &'static str,
    database_mb: u32,
    value: f64,
}

/// Values of one contestant at one size of the database.
#[derive(Debug)]
pub(super) struct Samples {
    contestant: &'static str,
    database_mb: u32,
    values: Vec<Sample>,
}

impl Samples {
    pub(super) fn new(contestant: &'static str, database_mb: u32) -> Self {
        Self { contestant, database_mb, values: Vec::new() }
    }

    /// Adds a value, if there is one.
    pub(super) fn add(&mut self, what: What, value: Option<f64>) {
        let Self { contestant, database_mb, .. } = *self;
        let sample = |value| Sample { what, contestant, database_mb, value };
        self.values.extend(value.map(sample));
    }
}

/// Everything that is printed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bench {
    #[serde(flatten)]
    pub(super) facts: Facts,
    pub(super) token_ms: u32,
    pub(super) rounds: u32,
    /// Whether etcd's traffic was encrypted: the same for everyone.
    pub(super) encrypted: bool,
    /// Dyad first.
    pub(super) contestants: Vec<Contestant>,
    pub(super) rows: Vec<Row>,
    /// What went wrong, in words.
    pub(super) incidents: Vec<String>,
    /// Whether anything of it was Dyad's: then its numbers do not count.
    #[serde(default)]
    pub(super) failed: bool,
}

/// Who was measured, made of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contestant {
    pub(super) name: String,
    /// Versions by package.
    pub(super) versions: BTreeMap<String, String>,
}

/// A quantity at one size of the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) unit: Unit,
    pub(super) database_mb: u32,
    /// By contestant.
    pub(super) cells: BTreeMap<String, Cell>,
}

/// What one contestant did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cell {
    pub(super) n: usize,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) total: f64,
}

impl Cell {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let n = values.len();
        // Of an even number the mean of the two in the middle: no side is favoured.
        let median = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
        Some(Self { n, median, min, max, total: values.iter().sum() })
    }

    /// The number that is compared.
    pub(super) fn value(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Ms | Unit::Each => self.median,
            Unit::Count => self.total,
        }
    }
}

/// Puts values together into rows, in the order of the table, then by size.
pub(super) fn rows(all: &[Samples]) -> Vec<Row> {
    let samples = || all.iter().flat_map(|each| &each.values);
    let mut sizes: Vec<u32> = samples().map(|sample| sample.database_mb).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = Vec::new();
    for what in ORDER {
        for &database_mb in &sizes {
            let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for sample in samples().filter(|it| it.what == what && it.database_mb == database_mb) {
                values.entry(sample.contestant.to_owned()).or_default().push(sample.value);
            }
            let cells: BTreeMap<_, _> = values
                .into_iter()
                .filter_map(|(name, values)| Some((name, Cell::of(values)?)))
                .collect();
            if !cells.is_empty() {
                rows.push(Row { what: what.name.to_owned(), unit: what.unit, database_mb, cells });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values come together by quantity and size, in the order of the table; an even number has its middle.
    #[test]
    fn values_become_rows() {
        let mut small = Samples::new("Dyad", 1);
        small.add(MONITOR, Some(2.0));
        small.add(FAULT_TO_WRITE, Some(30.0));
        small.add(FAULT_TO_WRITE, Some(10.0));
        small.add(FAULT_TO_WRITE, None);
        let mut large = Samples::new("Dyad", 100);
        large.add(FAULT_TO_WRITE, Some(7.0));
        let mut rival = Samples::new("rival", 1);
        rival.add(FAULT_TO_WRITE, Some(40.0));
        let rows = rows(&[large, small, rival]);
        let names: Vec<_> = rows.iter().map(|row| (row.what.as_str(), row.database_mb)).collect();
        let wanted = [(FAULT_TO_WRITE.name, 1), (FAULT_TO_WRITE.name, 100), (MONITOR.name, 1)];
        assert_eq!(names, wanted);
        let cell = rows[0].cells["Dyad"];
        assert_eq!(cell, Cell { n: 2, median: 20.0, min: 10.0, max: 30.0, total: 40.0 });
        assert_eq!(rows[0].cells["rival"].n, 1);
    }
}
