//! What Dyad is compared with: the same two nodes with the distribution's parts only.

use dyad_lab::Lab;
use dyad_lab::config::{FenceAgent, LabConfig, Stack};

use super::{COMMAND, Pair, RECOVERY, failure};

/// The agent, plain and fair.
const AGENT: &str = include_str!("force-new-cluster");

/// What keeps etcd going.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Dyad.
    Dyad,
    /// `fence_redfish`, and an agent that restarts etcd with `--force-new-cluster`.
    ForceNewCluster,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dyad => "Dyad",
            Self::ForceNewCluster => "--force-new-cluster",
        }
    }
}

/// A lab for the rival.
pub(super) fn config(mut config: LabConfig) -> LabConfig {
    config.stack = Stack::Minimal;
    config.fence_agent = FenceAgent::Distribution;
    // It is started by the agent, on a disk of the same size.
    config.etcd = false;
    config
}

/// Puts the agent into both nodes and hands etcd to Pacemaker.
pub(super) fn install(lab: &Lab) -> anyhow::Result<()> {
    let nodes = &lab.config().nodes;
    for (position, node) in nodes.iter().enumerate() {
        let peer = &nodes[1 - position];
        let settings = format!(
            "OWN={}\nOWN_PEER=http://{}:2380\nPEER={}\nPEER_CLIENT=http://{}:2379\n",
            node.name, node.link1, peer.name, peer.link1
        );
        let defaults = dyad_lab::cluster::etcd_defaults(lab.config(), position);
        write(lab, &node.name, "/etc/bench-etcd", &settings, "644")?;
        write(lab, &node.name, "/etc/default/etcd", &defaults, "644")?;
        write(lab, &node.name, "/usr/lib/ocf/resource.d/bench/etcd", AGENT, "755")?;
        let more = "[Service]\nEnvironmentFile=-/run/bench-etcd.env\nTimeoutStartSec=60\n";
        write(lab, &node.name, "/etc/systemd/system/etcd.service.d/bench.conf", more, "644")?;
        let reload = ["systemctl", "daemon-reload"];
        let done = lab.exec(&node.name, &reload, COMMAND).map_err(failure)?;
        anyhow::ensure!(done.success(), "{done:?}");
    }
    let clone = "<clone id=\"etcd-clone\"><meta_attributes id=\"etcd-clone-meta\">\
        <nvpair id=\"etcd-notify\" name=\"notify\" value=\"true\"/>\
        <nvpair id=\"etcd-interleave\" name=\"interleave\" value=\"true\"/></meta_attributes>\
        <primitive id=\"etcd\" class=\"ocf\" provider=\"bench\" type=\"etcd\"><operations>\
        <op id=\"etcd-start\" name=\"start\" interval=\"0\" timeout=\"60s\"/>\
        <op id=\"etcd-stop\" name=\"stop\" interval=\"0\" timeout=\"60s\"/>\
        <op id=\"etcd-monitor\" name=\"monitor\" interval=\"5s\" timeout=\"20s\"/>\
        </operations></primitive></clone>";
    let words = ["cibadmin", "--create", "--scope", "resources", "--xml-text", clone];
    let done = lab.exec(&nodes[0].name, &words, COMMAND).map_err(failure)?;
    anyhow::ensure!(done.success(), "handing etcd to Pacemaker: {done:?}");
    Ok(())
}

fn write(lab: &Lab, node: &str, path: &str, text: &str, mode: &str) -> anyhow::Result<()> {
    let script = "mkdir -p \"$(dirname \"$1\")\"; printf %s \"$2\" > \"$1\"; chmod \"$3\" \"$1\"";
    let words = ["sh", "-ec", script, "sh", path, text, mode];
    let done = lab.exec(node, &words, COMMAND).map_err(failure)?;
    anyhow::ensure!(done.success(), "writing {path} on {node}: {done:?}");
    Ok(())
}

impl Pair<'_> {
    /// Waits until the rival is whole: Pacemaker has everything, and both etcds know two voters.
    pub(super) fn wait_rival_whole(&self) -> anyhow::Result<()> {
        let missing = || {
            let nodes = &self.lab.config().nodes;
            nodes.iter().find_map(|node| self.lab.missing_of_pair(&node.name)).or_else(|| {
                (0..2).find_map(|position| {
                    let voters = self.voters(position);
                    (voters != 2).then(|| format!("{} knows {voters} voters", self.name(position)))
                })
            })
        };
        self.lab.wait_until("the rival to be whole", RECOVERY, missing).map_err(failure)
    }

    /// How many voters a node's etcd knows and serves with.
    pub(super) fn voters(&self, position: usize) -> usize {
        let node = &self.lab.config().nodes[position];
        let url = format!("--endpoints=http://{}:2379", node.link1);
        let words = ["env", "ETCDCTL_API=3", "etcdctl", "--command-timeout=2s", &url];
        let mut list = words.to_vec();
        list.extend(["member", "list"]);
        let mut read = words.to_vec();
        read.extend(["get", "bench-whole"]);
        let run = |words: &[&str]| self.lab.exec(&node.name, words, COMMAND).ok();
        if run(&read).is_none_or(|done| !done.success()) {
            return 0;
        }
        let text = run(&list).map_or_else(String::new, |done| done.stdout);
        text.lines().filter(|line| line.trim_end().ends_with("false")).count()
    }
}
