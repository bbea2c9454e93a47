//! `dyad status` as a person meets it: whole reports, at 80 columns, in each kind of trouble.

use dyad::commands::status::text;
use dyad_core::state::State;
use dyad_status::Status;
use dyad_status::document::{
    Detection, Drill, Etcd, FenceDevice, FenceEvent, Fencing, Incident, Link, Node, Unit,
};

const NOW_MS: u64 = 1_794_805_200_000;

fn etcd(role: &str) -> Etcd {
    Etcd {
        role: Some(role.into()),
        dataset: Some("pair".into()),
        eligible: Some(true),
        disk_writable: Some(true),
        member: Some("4d14787b67dba033".into()),
        version: Some("3.5.16".into()),
        db_size_bytes: Some(83_000_000),
        db_in_use_bytes: Some(61_400_000),
        raft_index: Some(4_711),
        behind_entries: Some(0),
        ..Etcd::default()
    }
}

fn node(name: &str, etcd: Etcd) -> Node {
    Node { name: name.into(), in_cluster: Some(true), pacemaker: Some("online".into()), etcd }
}

fn device(node: &str, by: &str) -> FenceDevice {
    FenceDevice {
        node: node.into(),
        tested_by: Some(by.into()),
        works: Some(true),
        test_interval_ms: 60_000,
        test_since_ms: Some(NOW_MS - 86_400_000 * 12),
    }
}

fn protected() -> Status {
    let state = State::Protected;
    Status {
        pair: "shop-17".into(),
        seen_by: "node-a".into(),
        time_ms: NOW_MS,
        took_ms: 61,
        state,
        urgency: state.urgency(),
        exit_code: state.exit_code(),
        on: None,
        since_ms: Some(NOW_MS - 86_400_000 * 12),
        because: "either node may fail".into(),
        next: None,
        risks: Vec::new(),
        unknown: Vec::new(),
        nodes: vec![node("node-a", etcd("leader")), node("node-b", etcd("follower"))],
        links: (0..2)
            .map(|number| Link {
                number,
                own: format!("10.77.{}.1", number + 1),
                peer: format!("10.77.{}.2", number + 1),
                connected: Some(true),
            })
            .collect(),
        fencing: Fencing {
            enabled: Some(true),
            devices: vec![device("node-a", "node-b"), device("node-b", "node-a")],
            last: Some(FenceEvent {
                node: "node-b".into(),
                action: "reboot".into(),
                outcome: "success".into(),
                completed: Some("2026-11-04 05:06:37.657904Z".into()),
            }),
            last_drill: Some(Drill {
                time_ms: NOW_MS - 86_400_000 * 30,
                node: "node-b".into(),
                failure: None,
                fenced_after_ms: Some(2_300),
                longest_write_gap_ms: Some(2_450),
                protected_after_ms: Some(74_000),
            }),
        },
        detection: Some(Detection {
            token_timeout_ms: 3_000,
            token_silence_ms: 560,
            tokens_lost: 1,
        }),
        units: ["crio.service", "kubelet.service"]
            .map(|name| Unit { name: name.into(), runs_here: Some(true), runs_on_peer: Some(true) })
            .into(),
        certificates: Vec::new(),
        setup: None,
        incident: Some(Incident {
            start_ms: NOW_MS - 86_400_000 * 12 - 41_000,
            end_ms: Some(NOW_MS - 86_400_000 * 12),
            duration_ms: 41_000,
            what: "node-b is offline and clean; this node was a voter with it in this boot".into(),
            steps: Vec::new(),
        }),
    }
}

fn set(status: &mut Status, state: State, because: &str) {
    status.state = state;
    status.urgency = state.urgency();
    status.exit_code = state.exit_code();
    status.because = because.into();
}

/// The report without colours; no line is wider than 80 columns.
#[track_caller]
fn report(status: &Status) -> String {
    let plain = anstream::adapter::strip_str(&text(status)).to_string();
    for line in plain.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    plain
}

#[test]
fn all_is_well() {
    insta::assert_snapshot!("protected", report(&protected()));
}

/// The node that must not be rebooted is in the first line.
#[test]
fn one_node_is_lost() {
    let mut status = protected();
    set(&mut status, State::Alone, "do not reboot it");
    status.on = Some("node-a".into());
    status.since_ms = Some(NOW_MS - 192_000);
    let peer = &mut status.nodes[1];
    peer.in_cluster = Some(false);
    peer.pacemaker = Some("offline".into());
    peer.etcd = Etcd::default();
    status.nodes[0].etcd.dataset = Some("alone".into());
    status.links.iter_mut().for_each(|link| link.connected = Some(false));
    status.units.iter_mut().for_each(|unit| unit.runs_on_peer = Some(false));
    status.incident.as_mut().unwrap().end_ms = None;
    insta::assert_snapshot!("alone", report(&status));
}

/// What waits for a person says for what, and which command supplies it.
#[test]
fn a_person_is_needed() {
    let mut status = protected();
    let because = "waiting for node-b, or a person who knows that it never went on alone: node-b \
                   may have gone on alone after term 4 index 4711: everything it wrote then would \
                   be lost";
    set(&mut status, State::Blocked, because);
    status.since_ms = None;
    status.next = Some("dyad confirm --yes-peer-is-down node-b --accept-possible-loss".into());
    let alarms = vec!["etcd raised an alarm: the database is full (NOSPACE)".into()];
    status.nodes[0].etcd = Etcd { eligible: Some(false), alarms, ..etcd("stopped") };
    status.fencing.devices[1].works = Some(false);
    status.fencing.last_drill = Some(Drill {
        failure: Some("fencing node-b: it did not end within 60 s".into()),
        fenced_after_ms: None,
        longest_write_gap_ms: None,
        protected_after_ms: None,
        ..status.fencing.last_drill.take().unwrap()
    });
    insta::assert_snapshot!("blocked", report(&status));
}

/// With Pacemaker and Corosync down what is left is told, and what is missing is named.
#[test]
fn half_of_it_does_not_answer() {
    let mut status = protected();
    set(
        &mut status,
        State::AtRisk,
        "both nodes hold the data, but Corosync does not answer on node-a",
    );
    status.since_ms = None;
    status.risks = vec![
        "Corosync does not answer on node-a".into(),
        "Pacemaker does not answer on node-a: nobody would take over".into(),
    ];
    status.unknown = vec![
        "Corosync: no answer within 260 ms".into(),
        "Pacemaker: cannot ask Pacemaker: crm_mon --one-shot --output-as=xml failed (exit code \
         102): crm_mon: Connection to cluster failed: Connection refused"
            .into(),
    ];
    for node in &mut status.nodes {
        node.in_cluster = None;
        node.pacemaker = None;
    }
    status.links.iter_mut().for_each(|link| link.connected = None);
    status.units.iter_mut().for_each(|unit| unit.runs_on_peer = None);
    status.fencing = Fencing {
        devices: status
            .fencing
            .devices
            .into_iter()
            .map(|device| FenceDevice {
                works: None,
                tested_by: None,
                test_since_ms: None,
                ..device
            })
            .collect(),
        ..Fencing::default()
    };
    insta::assert_snapshot!("half", report(&status));
}

/// Long names and IPv6 addresses stay within the width.
#[test]
fn long_names_fit() {
    let mut status = protected();
    let names = ["control-plane-0.shop-0017.region-north.example.com", "node1.example.com"];
    for (node, name) in status.nodes.iter_mut().zip(names) {
        node.name = name.into();
    }
    set(&mut status, State::CatchingUp, "node1.example.com copies the data (43 %)");
    status.on = Some(names[0].into());
    // Also this node may be behind: the leader is another one.
    status.nodes[0].etcd.behind_entries = Some(2);
    status.nodes[1].etcd =
        Etcd { caught_up_percent: Some(43), behind_entries: Some(812), ..etcd("learner") };
    for link in &mut status.links {
        link.own = "fd00:1234:5678:9abc:def0:1234:5678:9ab1".into();
        link.peer = "fd00:1234:5678:9abc:def0:1234:5678:9ab2".into();
    }
    insta::assert_snapshot!("long", report(&status));
}
