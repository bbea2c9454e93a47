//! What scenarios and campaigns ask of a pair: its etcd, its decisions, whether either node may fail.

use std::time::Duration;

use serde_json::Value;

use super::Lab;
use crate::protocol::NodeStatus;

/// How long one command in a node may take.
const COMMAND: Duration = Duration::from_secs(30);

impl Lab {
    /// Both nodes' names.
    pub fn names(&self) -> [&str; 2] {
        [&self.config.nodes[0].name, &self.config.nodes[1].name].map(String::as_str)
    }

    /// The other node.
    pub fn peer_of(&self, node: &str) -> &str {
        let [first, second] = self.names();
        if node == first { second } else { first }
    }

    /// Runs `etcdctl` in a node; gives nothing if it fails.
    pub fn etcdctl(&self, node: &str, arguments: &[&str]) -> Option<String> {
        let position = self.config.position(node).ok()?;
        let address = self.config.nodes[position].link1;
        let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        let tls = self.config.stack.tls();
        let scheme = if tls { "https" } else { "http" };
        let endpoint = format!("--endpoints={scheme}://{host}:2379");
        let mut command =
            vec!["env", "ETCDCTL_API=3", "etcdctl", &endpoint, "--command-timeout=3s"];
        if tls {
            command.extend([
                "--cacert=/etc/dyad/pki/ca.pem",
                "--cert=/etc/dyad/pki/client.pem",
                "--key=/etc/dyad/pki/client.key",
            ]);
        }
        command.extend(arguments);
        let finished = self.exec(node, &command, COMMAND).ok()?;
        finished.success().then_some(finished.stdout)
    }

    /// What etcd on a node says of itself.
    pub fn etcd_status(&self, node: &str) -> Option<Value> {
        let text = self.etcdctl(node, &["endpoint", "status", "--write-out=json"])?;
        let list: Value = serde_json::from_str(&text).ok()?;
        Some(list[0]["Status"].clone())
    }

    /// The ids of the members, as a node's etcd knows them.
    pub fn members(&self, node: &str) -> Vec<String> {
        let text = self.etcdctl(node, &["member", "list"]).unwrap_or_default();
        let ids = text.lines().filter_map(|line| line.split(',').next());
        let mut ids: Vec<String> = ids.map(str::to_owned).collect();
        ids.sort();
        ids
    }

    /// How many members vote, as a node's etcd knows them. A learner may be on its way at any time.
    pub fn voters(&self, node: &str) -> usize {
        let text = self.etcdctl(node, &["member", "list"]).unwrap_or_default();
        text.lines().filter(|line| line.trim_end().ends_with("false")).count()
    }

    /// Whether a node's etcd accepts a write now.
    pub fn is_writable(&self, node: &str) -> bool {
        self.etcdctl(node, &["put", "scenario", "writable"]).is_some()
    }

    /// What is missing until either node may fail: both vote, and both have passed the barrier in this boot.
    pub fn missing_of_protection(&self) -> Option<String> {
        let names = self.names();
        names.iter().find_map(|name| self.missing_of_pair(name)).or_else(|| {
            let unfit = names.iter().find(|name| {
                let finished = self.exec(name, &["test", "-e", "/run/dyad/eligible.json"], COMMAND);
                !finished.is_ok_and(|finished| finished.success())
            });
            unfit.map(|name| format!("{name} has not passed the barrier"))
        })
    }

    /// What `dyad status` on a node says; nothing from a node that cannot be asked.
    pub fn pair_status(&self, node: &str) -> Option<Value> {
        // Machines that run tests are busy: patience changes what is known, not what is said of it.
        let command = ["dyad", "status", "--output", "json", "--limit-ms", "3000"];
        let finished = self.exec(node, &command, COMMAND).ok()?;
        serde_json::from_str(&finished.stdout).ok()
    }

    /// How a node is, from outside.
    pub fn node_status(&self, node: &str) -> Option<NodeStatus> {
        self.status().ok()?.nodes.into_iter().find(|each| each.name == node)
    }

    /// The decisions of a node, oldest first; readable whether it runs or not.
    pub fn decisions(&self, node: &str) -> Vec<Value> {
        let path = self.place.node(node).join("upper/var/log/dyad/decisions.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
