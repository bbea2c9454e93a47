//! What Pacemaker's own scheduler makes of the rendered CIB, failure by failure.
//!
//! The real `crm_verify` and `crm_simulate` of the distribution run on a file; no cluster is needed.

mod common;

use std::path::PathBuf;
use std::process::Command;

use dyad_cluster::cib;
use dyad_cluster::pair::Pair;
use dyad_cluster::state::{self, ClusterState};

/// A cluster that exists as a CIB file only.
struct Simulation {
    directory: tempfile::TempDir,
}

impl Simulation {
    fn new(pair: &Pair) -> Self {
        let simulation = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::write(simulation.cib(), cib::render(pair)).unwrap();
        simulation
    }

    /// Both nodes up, everything started, both etcds voters: what most failures begin with.
    fn protected(pair: &Pair) -> Self {
        let mut simulation = Self::new(pair);
        simulation.step(&["--quorum=1", "--node-up=node-a", "--node-up=node-b"]);
        simulation.set_promotion_scores();
        let summary = simulation.step(&[]);
        assert!(summary.contains("Promote"), "etcd was not promoted:\n{summary}");
        assert_eq!(simulation.step(&[]), "", "a healthy pair is left alone");
        simulation
    }

    fn cib(&self) -> PathBuf {
        self.directory.path().join("cib.xml")
    }

    /// What the real `crm_mon` says of it.
    fn state(&self) -> ClusterState {
        let output = Command::new("crm_mon")
            .args(["--one-shot", "--output-as=xml"])
            .env("CIB_file", self.cib())
            .output()
            .expect("crm_mon runs (package pacemaker-cli-utils)");
        ClusterState::from_crm_mon(&String::from_utf8_lossy(&output.stdout)).unwrap()
    }

    /// Lets something happen, lets the cluster react, and returns what it did.
    fn step(&mut self, what: &[&str]) -> String {
        let output = Command::new("crm_simulate")
            .args(["--simulate", "--xml-file"])
            .arg(self.cib())
            .arg("--save-output")
            .arg(self.cib())
            .args(what)
            .output()
            .expect("crm_simulate runs (package pacemaker-cli-utils)");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let summary = text.split("Transition Summary:").nth(1).expect("a transition summary");
        let summary = summary.split("Executing Cluster Transition:").next().unwrap();
        summary
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Makes the last answer of every promoted etcd's monitor this one. (`--op-inject` cannot: it expects 0
    /// where a promoted resource answers 8.)
    fn answer_promoted_monitors(&mut self, answer: u8) {
        let text = std::fs::read_to_string(self.cib()).unwrap();
        let change = |line: &str| {
            let is_monitor = line.contains("operation_key=\"etcd_monitor_5000\"");
            let code =
                line.find("rc-code=\"").filter(|_| is_monitor).map(|at| at + "rc-code=\"".len());
            match code {
                None => line.to_owned(),
                Some(at) => {
                    let end = at + line[at..].find('"').unwrap();
                    format!("{}{answer}{}", &line[..at], &line[end..])
                }
            }
        };
        let changed: Vec<_> = text.lines().map(change).collect();
        std::fs::write(self.cib(), changed.join("\n")).unwrap();
    }

    /// What the agents do on a running node: both say that they may be promoted.
    fn set_promotion_scores(&mut self) {
        let mut text = std::fs::read_to_string(self.cib()).unwrap();
        for id in [1, 2] {
            let score = format!(
                "<transient_attributes id=\"{id}\"><instance_attributes id=\"status-{id}\"><nvpair id=\"status-{id}-master-etcd\" name=\"master-etcd\" value=\"100\"/></instance_attributes></transient_attributes>"
            );
            let state = text.find(&format!("<node_state id=\"{id}\"")).expect("a node state");
            let inside = state + text[state..].find('>').unwrap() + 1;
            text.insert_str(inside, &score);
        }
        std::fs::write(self.cib(), text).unwrap();
    }
}

/// `crm_verify` finds nothing to complain about.
#[test]
fn crm_verify_accepts_the_cib() {
    for pair in [common::usual(), common::alike(), common::ipv6()] {
        let simulation = Simulation::new(&pair);
        let text = std::fs::read_to_string(simulation.cib()).unwrap();
        // Without nodes that are up, the only complaint left is that there is nobody to fence them.
        let quorate = text.replacen("<cib ", "<cib have-quorum=\"1\" ", 1);
        let quiet = quorate.replace(
            "name=\"startup-fencing\" value=\"true\"",
            "name=\"startup-fencing\" value=\"false\"",
        );
        std::fs::write(simulation.cib(), quiet).unwrap();
        let output =
            Command::new("crm_verify").args(["-V", "-x"]).arg(simulation.cib()).output().unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<_> = talk
            .lines()
            .filter(|line| line.contains("error") || line.contains("warning"))
            .filter(|line| !line.contains("unseen nodes"))
            .collect();
        assert!(complaints.is_empty(), "{}: {complaints:?}", pair.name);
    }
}

/// cold-boot: nothing starts without Corosync's quorum; with it, units, etcd and the rest start in order.
#[test]
fn cold_boot() {
    let mut simulation = Simulation::new(&common::usual());
    let alone = simulation.step(&["--quorum=0", "--node-up=node-a"]);
    assert!(alone.lines().all(|line| line.ends_with("due to no quorum (blocked)")), "{alone}");
    insta::assert_snapshot!(simulation.step(&["--quorum=1", "--node-up=node-b"]));
}

/// node-failure: the lost node is fenced; nothing is restarted or moved on the survivor but the address.
#[test]
fn node_failure() {
    let mut simulation = Simulation::protected(&common::usual());
    let summary = simulation.step(&["--quorum=1", "--node-fail=node-b"]);
    assert!(summary.contains("Fence (reboot) node-b"), "{summary}");
    assert!(!summary.contains("Restart") && !summary.contains("Recover"), "{summary}");
    insta::assert_snapshot!(summary);
}

/// kubelet-crash: kubelet is restarted, etcd is not touched.
#[test]
fn kubelet_crash() {
    let mut simulation = Simulation::protected(&common::usual());
    let summary = simulation.step(&["--op-inject=kubelet_monitor_10000@node-a=7"]);
    assert!(summary.contains("Recover") && !summary.contains("etcd"), "{summary}");
    insta::assert_snapshot!(summary);
}

/// kubelet-stop-fails: the node is fenced.
#[test]
fn kubelet_stop_fails() {
    let mut simulation = Simulation::protected(&common::usual());
    let summary = simulation.step(&["--op-inject=kubelet_stop_0@node-a=1"]);
    assert!(summary.contains("Fence (reboot) node-a"), "{summary}");
}

/// kubelet-start-fails: after the bounded retries kubelet stays off there; etcd goes on.
#[test]
fn kubelet_start_fails() {
    let mut simulation = Simulation::protected(&common::usual());
    let inject = ["--op-inject=kubelet_start_0@node-a=1"];
    let summary = simulation.step(&inject);
    assert!(!summary.contains("Fence"), "{summary}");
    assert!(!summary.contains("etcd"), "{summary}");
}

/// etcd-crash: etcd is recovered where it was, nobody is fenced.
#[test]
fn etcd_crash() {
    let mut simulation = Simulation::protected(&common::usual());
    let summary = simulation.step(&["--op-inject=etcd_monitor_5000@node-a=9"]);
    assert!(summary.contains("Recover") && !summary.contains("Fence"), "{summary}");
    insta::assert_snapshot!(summary);
}

/// A degraded answer (191: waiting for a take-over) changes nothing.
#[test]
fn waiting_for_a_take_over_is_left_alone() {
    let mut simulation = Simulation::protected(&common::usual());
    simulation.answer_promoted_monitors(191);
    assert_eq!(simulation.step(&[]), "");
    // The same change with an answer that is no good shows that the scheduler looked.
    simulation.answer_promoted_monitors(9);
    assert!(simulation.step(&[]).contains("Recover    etcd"));
}

/// etcd-stop-fails: the node is fenced.
#[test]
fn etcd_stop_fails() {
    let mut simulation = Simulation::protected(&common::usual());
    let summary = simulation.step(&["--op-inject=etcd_stop_0@node-b=1"]);
    assert!(summary.contains("Fence (reboot) node-b"), "{summary}");
}

/// broken-file: an agent that cannot work on one node (5) is kept off that node, without fencing, and the other one goes
/// on untouched. The answer for a wrong configuration (6) would end it on both: the agent never gives it.
#[test]
fn a_broken_file_ends_etcd_on_its_node_only() {
    for operation in ["etcd_start_0", "etcd_promote_0"] {
        let promoted_after = |answer: u8| {
            let mut simulation = Simulation::protected(&common::usual());
            let failed = format!("--op-inject={operation}@node-b={answer}");
            let mut summary = simulation.step(&[&failed]);
            summary.push_str(&simulation.step(&[]));
            assert!(!summary.contains("Fence"), "{answer}: {summary}");
            let state = simulation.state();
            let promoted = state
                .resources
                .iter()
                .filter(|each| each.id == cib::ETCD && each.role == "Promoted");
            let nodes = promoted.flat_map(|each| each.nodes.iter().map(ToString::to_string));
            let mut nodes: Vec<_> = nodes.collect();
            nodes.sort();
            nodes
        };
        assert_eq!(promoted_after(5), ["node-a"], "{operation}");
        assert!(promoted_after(6).is_empty(), "{operation}");
    }
}

/// The state that a proof rests on: a lost node is offline and unclean until it is fenced, then offline and
/// clean, as the real `crm_mon` tells it.
#[test]
fn a_fenced_node_is_offline_and_clean() {
    let mut simulation = Simulation::protected(&common::usual());
    let both = simulation.state();
    assert!(both.fencing_enabled && !both.maintenance);
    assert!(both.nodes.iter().all(|node| node.online && !node.unclean), "{both:?}");
    let promoted = both.resources.iter().filter(|r| r.id == cib::ETCD && r.role == "Promoted");
    assert_eq!(promoted.count(), 2);

    simulation.step(&["--quorum=1", "--node-fail=node-b"]);
    let peer = simulation.state().node(&"node-b".into()).cloned().unwrap();
    assert!(!peer.online && !peer.unclean, "after fencing: {peer:?}");
}

/// Start-up fencing is read from the rendered CIB itself.
#[test]
fn startup_fencing_is_read_from_the_cib() {
    assert!(state::startup_fencing(&cib::render(&common::usual())).unwrap());
}
