//! What tells that a node has held data before (R12), beside the marks and records that decisions use anyway.
//!
//! What cannot be looked at counts as a trace: nobody begins a pair on a disk that cannot be read.

use std::fs;
use std::path::Path;

use crate::aside;
use crate::memory::Began;
use crate::place::BesideData;
use crate::record;

/// Every trace, in words.
pub(crate) fn find(data_dir: &Path, beside: &BesideData, began: &Path) -> Vec<String> {
    let mut traces = Vec::new();
    match aside::list(beside) {
        Ok(copies) => {
            let told = |copy: &aside::Copy| format!("{} was moved aside", copy.path.display());
            traces.extend(copies.iter().map(told));
        }
        Err(error) => traces.push(error.to_string()),
    }
    for record in [beside.stop_record(), beside.passed_record()] {
        if record.try_exists().unwrap_or(true) {
            traces.push(format!("{} was written by a voter", record.display()));
        }
    }
    let handed_over = began.with_file_name("hand-over.json");
    if handed_over.try_exists().unwrap_or(true) {
        traces.push(format!("{} names data that are to be handed over", handed_over.display()));
    }
    match record::read::<Began>(began) {
        Ok(None) => {}
        Ok(Some(record)) => traces.push(format!(
            "{} names member {} of cluster {}",
            began.display(),
            record.member,
            record.cluster
        )),
        Err(error) => traces.push(error.to_string()),
    }
    traces.extend(others(data_dir));
    traces
}

/// Datasets of somebody else, one level below: Debian's own etcd keeps its data there.
fn others(data_dir: &Path) -> Vec<String> {
    let entries = match fs::read_dir(data_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![format!("cannot list {}: {error}", data_dir.display())],
    };
    let directories = entries.filter_map(Result::ok).map(|entry| entry.path());
    let ours = BesideData::new(data_dir);
    directories
        .filter(|path| path != ours.directory() && path.join("member/wal").is_dir())
        .map(|path| format!("{} holds a dataset", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use dyad_core::facts::LogPosition;
    use dyad_core::ids::{ClusterId, MemberId};

    use super::*;

    /// A new disk has no traces, with or without a data directory, `lost+found` or an interrupted beginning.
    #[test]
    fn a_new_disk_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("etcd");
        let beside = BesideData::new(&data_dir);
        let began = directory.path().join("began.json");
        assert_eq!(find(&data_dir, &beside, &began), [""; 0]);
        fs::create_dir_all(data_dir.join("lost+found")).unwrap();
        fs::create_dir_all(beside.beginning().join("member/wal")).unwrap();
        assert_eq!(find(&data_dir, &beside, &began), [""; 0]);
    }

    /// Each kind of trace is found and named.
    #[test]
    fn traces_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("etcd");
        let beside = BesideData::new(&data_dir);
        let began = directory.path().join("began.json");
        fs::create_dir_all(beside.aside().join("000001-a1")).unwrap();
        fs::create_dir_all(data_dir.join("default/member/wal")).unwrap();
        record::write_durable(&beside.stop_record(), &LogPosition::default()).unwrap();
        let record = Began { cluster: ClusterId(0xc), member: MemberId(0xa1) };
        record::write_durable(&began, &record).unwrap();
        let traces = find(&data_dir, &beside, &began);
        let expected =
            ["000001-a1 was moved", "stopped-at.json", "member a1 of cluster c", "default"];
        assert_eq!(traces.len(), expected.len(), "{traces:?}");
        for (trace, expected) in traces.iter().zip(expected) {
            assert!(trace.contains(expected), "{trace} should contain {expected}");
        }
        fs::write(&began, "torn").unwrap();
        let traces = find(&data_dir, &beside, &began);
        assert!(traces.iter().any(|trace| trace.contains("not a valid record")), "{traces:?}");
    }
}
