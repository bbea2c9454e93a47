//! A node in a temporary directory, for tests: no cluster around it, and an etcd that is only a word.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::node::Node;
use crate::place::Place;
use crate::runner::{Error, Runner};

/// Whether etcd runs, and whether it can be stopped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    pub(crate) runs: Arc<AtomicBool>,
    pub(crate) stuck: Arc<AtomicBool>,
}

impl Word {
    pub(crate) fn running() -> Self {
        let word = Self::default();
        word.runs.store(true, Ordering::SeqCst);
        word
    }

    pub(crate) fn runs(&self) -> bool {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Runner for Word {
    fn start(&self) -> Result<(), Error> {
        self.runs.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn stop(&self) -> Result<(), Error> {
        if self.stuck.load(Ordering::SeqCst) {
            return Err(Error::StillRuns);
        }
        self.runs.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn kill(&self) -> Result<(), Error> {
        self.stop()
    }

    fn is_running(&self) -> Result<bool, Error> {
        Ok(self.runs())
    }
}

/// A node's directories, and its pair.
pub(crate) struct Fixture {
    directory: TempDir,
    pub(crate) place: Place,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let place =
            Place { config: at("etc"), runtime: at("run"), log: at("log"), state: at("lib") };
        fs::create_dir(&place.config).unwrap();
        let fixture = Self { directory, place };
        fixture.describe(&fixture.pair());
        fixture
    }

    /// The pair of node1 and node10, without certificates; nobody listens where its etcd should be.
    pub(crate) fn pair(&self) -> Value {
        let node = |name: &str, address: &str| {
            let bmc = json!({ "address": "https://127.0.0.9", "tls": "insecure", "credentialsFile": "/nowhere" });
            json!({ "name": name, "addresses": [address], "bmc": bmc })
        };
        json!({
            "name": "test",
            "nodes": [node("node1", "127.0.0.1"), node("node10", "127.0.0.10")],
            "etcd": { "dataDir": self.directory.path().join("data"), "clientPort": 1, "peerPort": 1 },
        })
    }

    /// The same with certificates that are not there.
    pub(crate) fn without_certificates(&self) -> Value {
        let mut pair = self.pair();
        let file = |name: &str| self.directory.path().join(name);
        let files =
            json!({ "caFile": file("ca"), "certFile": file("cert"), "keyFile": file("key") });
        pair["etcd"]["tls"] = json!({ "peer": files, "client": files });
        pair
    }

    pub(crate) fn describe(&self, pair: &Value) {
        fs::write(self.place.pair_file(), pair.to_string()).unwrap();
    }

    pub(crate) fn node(&self, etcd: &Word) -> Node {
        let mut node = Node::open_with_faults(self.place.clone(), &"node1".into()).unwrap();
        node.runner = Box::new(etcd.clone());
        node
    }
}
