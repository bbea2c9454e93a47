//! Scenario `by the book`: what Pacemaker and its tools expect of a resource agent and of its neighbours.

use std::time::Duration;

use dyad_lab::config::{PairStack, Stack};

use crate::common::{Pair, config, package};

/// Where Pacemaker finds the agent.
const AGENT: &str = "/usr/lib/ocf/resource.d/dyad/etcd";
/// How long one call may take.
const CALL: Duration = Duration::from_mins(1);

/// Runs the agent as a person would, with no more than the OCF standard asks for.
fn agent(pair: &Pair, node: &str, action: &str) -> i32 {
    let name = format!("OCF_RESKEY_CRM_meta_on_node={node}");
    let words =
        ["env", "OCF_ROOT=/usr/lib/ocf", "OCF_RESOURCE_INSTANCE=etcd", &name, AGENT, action];
    pair.exec(node, &words, CALL).unwrap().code
}

pub(crate) fn keeps_to_the_book(pair: &Pair) {
    let [first, second] = pair.names();
    // Pacemaker's own tool reads the description, and validates by it.
    let described = pair.run(first, &["crm_resource", "--show-metadata", "ocf:dyad:etcd"]);
    assert!(described.contains("<resource-agent name=\"etcd\""), "{described}");
    let listed = pair.run(first, &["crm_resource", "--list-agents", "ocf:dyad"]);
    assert!(listed.contains("etcd"), "{listed}");
    pair.run(first, &["crm_resource", "--validate", "--resource", "etcd"]);

    // On a healthy voter every action that asks for what is so already changes nothing, twice.
    let clients = pair.clients();
    let members = pair.members(first);
    for _ in 0..2 {
        assert_eq!(agent(pair, second, "start"), 0);
        assert_eq!(agent(pair, second, "promote"), 0);
        assert_eq!(agent(pair, second, "monitor"), 8, "promoted, and runs");
        assert_eq!(agent(pair, second, "validate-all"), 0);
        assert_eq!(agent(pair, second, "meta-data"), 0);
    }
    assert_eq!(pair.members(first), members);
    // What it does not know it says so (OCF_ERR_UNIMPLEMENTED).
    assert_eq!(agent(pair, second, "dance"), 3);
    assert_eq!(agent(pair, second, "notify"), 3);

    // The number by which the second look tells a new membership is the one that Corosync's tool prints.
    for (position, node) in pair.names().iter().enumerate() {
        let file = format!("/var/lib/corosync/ringid_{}", position + 1);
        let stored = pair.run(node, &["od", "-A", "n", "-t", "x8", &file]);
        let said = pair.run(node, &["corosync-quorumtool", "-s", "-p", "-i"]);
        let ring = said.lines().find_map(|line| line.strip_prefix("Ring ID:")).unwrap();
        let sequence = ring.trim().rsplit('.').next().unwrap();
        assert_eq!(stored.trim().trim_start_matches('0'), sequence);
    }
    writes_nothing_when_nothing_changed(pair);
    passes_the_tester(pair);
    pair.wait_protected();
    clients.judge(pair);
}

/// Looks at everything, and glances, on both nodes leave the CIB as it was: its updates at the wrong moment cost a
/// second each.
fn writes_nothing_when_nothing_changed(pair: &Pair) {
    let [first, second] = pair.names();
    // The CIB's first tag holds its version: two epochs and the number of updates.
    let version = || {
        let cib = pair.run(first, &["cibadmin", "--query"]);
        let tag = cib.split_once('>').unwrap().0.to_owned();
        assert!(tag.contains(" num_updates=") && tag.contains(" epoch="), "{tag}");
        tag
    };
    pair.wait_protected();
    let before = version();
    // Without this record of the last one, the next monitor has a full look again.
    let record = "/run/dyad/full-look.json";
    for _ in 0..2 {
        for node in [first, second] {
            pair.run(node, &["rm", "--force", record]);
        }
        for node in [first, second] {
            pair.wait(&format!("a full look on {node}"), || {
                let there = pair.exec(node, &["test", "-e", record], CALL);
                (!there.is_ok_and(|test| test.success())).then(|| "no look yet".to_owned())
            });
        }
    }
    assert_eq!(version(), before);
}

/// The distribution's own test of resource agents, on an etcd that runs alone and that nobody else looks at meanwhile.
fn passes_the_tester(pair: &Pair) {
    let [first, second] = pair.names();
    pair.run(first, &["crm_standby", "--node", first, "--update", "on"]);
    pair.wait("the last voter", || {
        let voters = pair.voters(second);
        (voters != 1).then(|| format!("{voters} voters"))
    });
    pair.run(second, &["crm_attribute", "--name", "maintenance-mode", "--update", "true"]);
    let name = format!("OCF_RESKEY_CRM_meta_on_node={second}");
    let words = ["env", "OCF_ROOT=/usr/lib/ocf", &name, "ocf-tester", "-n", "etcd", AGENT];
    let said = pair.exec(second, &words, CALL).unwrap();
    assert!(said.success() && said.stdout.contains("passed all tests"), "{said:?}");
    pair.run(second, &["crm_attribute", "--name", "maintenance-mode", "--delete"]);
    pair.run(first, &["crm_standby", "--node", first, "--delete"]);
}

/// Pacemaker 3.0; the older one is asked by the scenario of its release.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_agent_keeps_to_the_book() {
    keeps_to_the_book(&Pair::usual());
}

/// broken-file: a node without its certificate's key keeps what runs, starts nothing, and can be stopped; when its etcd ends,
/// the other one goes on without it and nobody is fenced. Mended, it comes back.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_missing_key_is_one_nodes_trouble() {
    const KEY: &str = "/etc/dyad/pki/server.key";
    const ELSEWHERE: &str = "/root/server.key";
    let mut config = config();
    config.stack =
        Stack::Pair(PairStack { package: package(), tls: true, by_hand: false, podman: false });
    let pair = Pair::of(&config);
    let [first, second] = pair.names();
    let clients = pair.clients();

    pair.run(second, &["mv", KEY, ELSEWHERE]);
    assert_eq!(agent(&pair, second, "monitor"), 191, "promoted, and runs, but cannot be asked");
    assert_eq!(agent(&pair, second, "start"), 5, "not installed here");
    assert_eq!(pair.voters(first), 2);

    let seen = pair.seen(first);
    pair.run(second, &["systemctl", "kill", "--signal=KILL", "dyad-etcd.service"]);
    pair.wait_decision(first, seen, "takeOver", "R2");
    pair.wait_writable(first);
    assert_eq!(pair.powered_off(), Vec::<String>::new());

    pair.run(second, &["mv", ELSEWHERE, KEY]);
    pair.run(first, &["crm_resource", "--cleanup", "--resource", "etcd"]);
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}
