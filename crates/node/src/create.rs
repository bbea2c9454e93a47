//! The first dataset of a pair (R12).
//!
//! One node begins as the only voter; the other joins it by the same rules that bring back a lost one. So
//! there is no second way of becoming a pair.
//!
//! It is made whole or not at all: a new etcd makes it in a directory of its own, where nobody can reach it,
//! and only a dataset that is at rest and reads as the only voter's is moved into place. Whatever a power cut
//! leaves in that directory was never served to anybody, and the next attempt begins anew.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use dyad_core::dataset::{Class, Dataset};

use crate::act::Failure;
use crate::etcd::{Endpoints, environment};
use crate::gather::words;
use crate::memory::Began;
use crate::node::Node;
use crate::record;

/// A new etcd elects itself within an election time-out.
const LIMIT: Duration = Duration::from_secs(30);
/// An address that nobody else knows: whatever a client wrote there would be lost with an interrupted attempt.
const PRIVATE: &str = "127.0.0.1:0";

/// Creates a dataset with this node as its only voter, and leaves etcd at rest.
pub(crate) fn dataset(node: &Node) -> Result<(), Failure> {
    let data_dir = &node.pair.etcd.data_dir;
    let member = data_dir.join("member");
    // `core` has seen that there is none; a mistake here would be the end of it.
    if member.try_exists()? {
        return Err(format!("{} exists already", member.display()).into());
    }
    record::create_directory(data_dir)?;
    let staging = node.memory.beside().beginning();
    let made = make(node, &staging)?;
    let (Some(cluster), Some(id)) = (made.cluster_id, made.member_id) else {
        return Err("the new dataset names no member".into());
    };
    sync(&staging.join("member"))?;
    fs::rename(staging.join("member"), &member)?;
    record::sync_directory(data_dir)?;
    // After the data are in place: the other way round a power cut would forbid every further attempt.
    node.memory.set_began(&Began { cluster, member: id })?;
    fs::remove_dir_all(&staging)?;
    Ok(())
}

/// Lets a new etcd make its dataset in this directory, and gives what it holds once it is at rest.
fn make(node: &Node, staging: &Path) -> Result<Dataset, Failure> {
    node.runner.stop()?;
    if staging.try_exists()? {
        fs::remove_dir_all(staging)?;
    }
    if let Some(above) = staging.parent() {
        record::create_directory(above)?;
    }
    fs::DirBuilder::new().mode(0o700).create(staging)?;
    record::create_directory(&node.place.runtime)?;
    fs::write(node.place.etcd_environment(), beginning(node, staging)?)?;
    node.runner.start()?;
    let waited = wait_until_alone(staging);
    node.runner.stop()?;
    waited?;
    let made = etcd_disk::read(staging)?;
    if made.class == Class::Alone {
        Ok(made)
    } else {
        Err(format!("the new dataset is {}: {}", made.class, made.reason).into())
    }
}

/// What the new etcd is told: as ever, but for where it listens and that it begins.
fn beginning(node: &Node, staging: &Path) -> Result<String, Failure> {
    let endpoints = Endpoints::new(&node.pair);
    let own = (node.own().name.to_string(), endpoints.peer(node.own()));
    // Two beginnings of one pair must never have the same cluster id: they are two histories.
    let unique = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let scheme = if node.pair.etcd.tls.is_some() { "https" } else { "http" };
    let private = format!("{scheme}://{PRIVATE}");
    let mut text = environment(&node.pair, node.own(), &[own]);
    for (key, value) in [
        ("ETCD_DATA_DIR", staging.display().to_string()),
        ("ETCD_LISTEN_PEER_URLS", private.clone()),
        ("ETCD_LISTEN_CLIENT_URLS", private),
        ("ETCD_INITIAL_CLUSTER_STATE", "new".to_owned()),
        ("ETCD_INITIAL_CLUSTER_TOKEN", format!("{}-{}", node.pair.name, unique.trim())),
    ] {
        text = with_value(&text, key, &value);
    }
    Ok(text)
}

/// The environment with another value for this key.
fn with_value(text: &str, key: &str, value: &str) -> String {
    let others = text.lines().filter(|line| line.split('=').next() != Some(key));
    let added = format!("{key}={value}");
    others.chain([added.as_str()]).map(|line| format!("{line}\n")).collect()
}

fn wait_until_alone(staging: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        let found = match etcd_disk::read(staging) {
            Ok(dataset) if dataset.class == Class::Alone => return Ok(()),
            Ok(dataset) => format!("{}: {}", dataset.class, dataset.reason),
            Err(error) => words(&error),
        };
        if start.elapsed() > LIMIT {
            return Err(format!("the new etcd did not lead within {LIMIT:?} ({found})").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Puts a whole directory onto the disk.
fn sync(directory: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    Ok(record::sync_directory(directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value is replaced whole, by its exact key, or added.
    #[test]
    fn values_are_replaced_by_their_exact_key() {
        let text = "ETCD_NAME=a\nETCD_LISTEN_PEER_URLS=http://10.0.0.1:2380\nETCD_DATA_DIR=/x\n";
        let changed = with_value(text, "ETCD_DATA_DIR", "/y");
        assert_eq!(
            changed,
            "ETCD_NAME=a\nETCD_LISTEN_PEER_URLS=http://10.0.0.1:2380\nETCD_DATA_DIR=/y\n"
        );
        assert!(with_value(text, "ETCD_DATA", "/z").contains("ETCD_DATA_DIR=/x\n"));
    }
}
