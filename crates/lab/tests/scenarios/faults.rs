//! Each fault of the lab does what it says, and healing ends it.

use std::time::{Duration, Instant};

use bmc_sim::Fault;
use dyad_lab::ExecTarget;
use dyad_lab::config::{Link, reserved};
use dyad_lab::protocol::{PowerAction, Request};
use dyad_lab::timeline::Phase;

use crate::common::{Scenario, config};

const PUT: &[&str] = &["etcdctl", "--command-timeout=5s", "put", "key", "value"];
const LIMIT: Duration = Duration::from_secs(30);

/// Whether a write through a node's etcd succeeds.
fn can_write(lab: &Scenario, node: &str) -> bool {
    lab.exec(node, PUT, LIMIT).unwrap().success()
}

#[track_caller]
fn wait_for_writes(lab: &Scenario) {
    lab.wait("a write", Duration::from_mins(1), || {
        ["node-a", "node-b"]
            .into_iter()
            .find(|node| !can_write(lab, node))
            .map(|node| format!("no write through {node}"))
    });
}

/// What a BMC answers to a client in the clients' network: the HTTP status, or curl's exit code.
fn bmc_answer(lab: &Scenario, url: &str) -> Result<String, i32> {
    let words =
        ["curl", "-ksm", "2", "-u", "lab:plug-and-play", "-o", "/dev/null", "-w", "%{http_code}"];
    let mut words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
    words.push(url.into());
    let output = lab.exec_command(&ExecTarget::Client, &words).unwrap().output().unwrap();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8(output.stdout).unwrap()),
        code => Err(code.unwrap_or(-1)),
    }
}

/// One lab, every fault in turn.
#[test]
#[ignore = "needs root: make lab-test"]
fn every_fault_does_what_it_says() {
    let lab = Scenario::start(&config("faults"));
    wait_for_writes(&lab);
    a_node_cannot_set_the_clock(&lab);
    bmcs_misbehave(&lab);
    a_one_way_cut_loses_one_direction(&lab);
    a_blocked_port_is_unreachable(&lab);
    a_stalled_connection_is_silent(&lab);
    slow_fsync_slows_writes(&lab);
    a_slow_disk_stalls(&lab);
    a_full_disk_is_full(&lab);
    etcd_is_killed(&lab);
    a_frozen_node_stops_and_goes_on(&lab);
    the_disk_survives_a_power_cycle(&lab);
    lab.finish();
}

/// The clock is the machine's. Looked up, not tried: the machine would be set back if this were broken.
fn a_node_cannot_set_the_clock(lab: &Scenario) {
    const SYS_TIME: u64 = 1 << 25;
    for process in ["/proc/self/status", "/proc/1/status"] {
        let status = lab.run("node-a", &["cat", process]);
        let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap();
        let bounding = u64::from_str_radix(bounding, 16).unwrap();
        assert_eq!(bounding & SYS_TIME, 0, "{process}");
    }
}

fn bmcs_misbehave(lab: &Scenario) {
    const TIMED_OUT: i32 = 28;
    const REFUSED: i32 = 7;
    let url = format!("{}/redfish/v1/Systems/1", lab.status().unwrap().nodes[0].bmc);
    let cases = [
        (Fault::None, Ok("200")),
        (Fault::ServerError, Ok("500")),
        (Fault::WrongPassword, Ok("401")),
        (Fault::Hang, Err(TIMED_OUT)),
        (Fault::Refuse, Err(REFUSED)),
        (Fault::None, Ok("200")),
    ];
    for (fault, wanted) in cases {
        lab.bmc("node-a", fault).unwrap();
        assert_eq!(bmc_answer(lab, &url), wanted.map(Into::into), "{fault}");
    }
}

/// Corosync sends on every link in both directions: one of them falls silent, the other goes on. Corosync's
/// own counters tell, because the interface also counts the switch's frames.
fn a_one_way_cut_loses_one_direction(lab: &Scenario) {
    let packets = |node: &str, what: &str| -> u64 {
        let peer = if node == "node-a" { 2 } else { 1 };
        let key = format!("stats.knet.node{peer}.link1.{what}_total_packets");
        let answer = lab.run(node, &["corosync-cmapctl", "-m", "stats", "-g", &key]);
        answer.trim().rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap()
    };
    let more = |node: &str, what: &str, before: u64| {
        lab.wait(&format!("packets: {what} at {node}"), LIMIT, || {
            let count = packets(node, what) - before;
            (count < 10).then(|| format!("{count} so far"))
        });
    };
    let from = Some("node-a".into());
    lab.request(&Request::Cut { links: vec![Link::Link2], from }).unwrap();
    // From here on, because the other way dries up too when node-b's kernel asks in vain where node-a is.
    let received = packets("node-a", "rx");
    // By then nothing that was sent before the cut is still under way.
    lab.wait_for(Phase::Link, "link2 to node-a down");
    let (sent, arrived) = (packets("node-a", "tx"), packets("node-b", "rx"));
    more("node-a", "rx", received);
    more("node-a", "tx", sent);
    assert_eq!(packets("node-b", "rx"), arrived, "something from node-a arrived");
    lab.heal().unwrap();
    lab.wait_for_links();
}

fn a_blocked_port_is_unreachable(lab: &Scenario) {
    lab.request(&Request::BlockPort { node: "node-b".into(), port: 2380 }).unwrap();
    lab.wait("writes to fail", LIMIT, || can_write(lab, "node-a").then(|| "they work".into()));
    assert_eq!(lab.missing_of_pair("node-a"), None, "the cluster does not notice");
    lab.heal().unwrap();
    wait_for_writes(lab);
}

/// Of two clients that watch the same key one falls silent: its connection is lost, the other's is not.
fn a_stalled_connection_is_silent(lab: &Scenario) {
    let watch = |seconds: &str| {
        let body = "{\"create_request\":{\"key\":\"a2V5\"}}";
        let url = format!("http://{}:2379/v3/watch", lab.status().unwrap().nodes[0].client);
        let words = ["curl", "-sNm", seconds, "-d", body, &url].map(Into::into);
        let mut command = lab.exec_command(&ExecTarget::Client, &words).unwrap();
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let client = reserved::CLIENT.to_string();
    let silent = watch("6");
    lab.wait("a connection to stall", LIMIT, || {
        let request = Request::Stall { node: "node-a".into(), port: 2379 };
        match lab.request(&request) {
            Ok(said) if said.contains(&client) => None,
            other => Some(format!("{other:?}")),
        }
    });
    let other = watch("4");
    lab.wait("the second watch", LIMIT, || {
        let connections = lab.run("node-a", &["ss", "-Htn", "state", "established"]);
        (connections.matches(&client).count() < 2).then_some(connections)
    });
    // More than one: the watch may begin a moment after its connection.
    for _ in 0..5 {
        lab.run("node-a", PUT);
    }
    let events = |watch: std::process::Child| {
        let output = watch.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().matches("events").count()
    };
    assert!(events(other) > 0, "the other watch saw nothing");
    assert_eq!(events(silent), 0, "the stalled watch saw something");
    lab.heal().unwrap();
    assert_eq!(lab.status().unwrap().network_faults, Vec::<String>::new());
}

fn slow_fsync_slows_writes(lab: &Scenario) {
    for node in ["node-a", "node-b"] {
        lab.request(&Request::SlowFsync { node: node.into(), delay_ms: 400 }).unwrap();
    }
    lab.wait("a slow write", LIMIT, || {
        let start = Instant::now();
        can_write(lab, "node-a");
        let took = start.elapsed();
        (took < Duration::from_millis(400)).then(|| format!("it took {took:?}"))
    });
    lab.heal().unwrap();
    wait_for_writes(lab);
}

fn a_slow_disk_stalls(lab: &Scenario) {
    lab.request(&Request::SlowDisk { node: "node-a".into(), stall_ms: 3_600_000 }).unwrap();
    let touch = ["timeout", "2", "touch", "/var/lib/etcd/probe"];
    lab.wait("the disk to hang", LIMIT, || {
        let done = lab.exec("node-a", &touch, Duration::from_secs(4));
        done.is_ok_and(|done| done.success()).then(|| "it works".into())
    });
    lab.heal().unwrap();
    lab.run("node-a", &["touch", "/var/lib/etcd/probe"]);
    wait_for_writes(lab);
}

fn a_full_disk_is_full(lab: &Scenario) {
    lab.request(&Request::FullDisk { node: "node-a".into() }).unwrap();
    let write = ["dd", "if=/dev/zero", "of=/var/lib/etcd/probe", "bs=64K", "count=1", "conv=fsync"];
    let done = lab.exec("node-a", &write, LIMIT).unwrap();
    assert!(done.stderr.contains("No space left on device"), "{done:?}");
    lab.heal().unwrap();
    lab.run("node-a", &write);
    wait_for_writes(lab);
}

/// systemd starts a killed etcd again; it is a different process then.
fn etcd_is_killed(lab: &Scenario) {
    let pid = |lab: &Scenario| lab.run("node-b", &["systemctl", "show", "-P", "MainPID", "etcd"]);
    let before = pid(lab);
    lab.request(&Request::KillEtcd { node: "node-b".into() }).unwrap();
    lab.wait("another etcd", LIMIT, || (pid(lab) == before).then(|| "the same process".into()));
    wait_for_writes(lab);
}

fn a_frozen_node_stops_and_goes_on(lab: &Scenario) {
    // Shorter than the token: the pair does not notice.
    lab.request(&Request::Freeze { node: "node-b".into() }).unwrap();
    assert!(lab.status().unwrap().nodes[1].frozen);
    lab.request(&Request::Thaw { node: "node-b".into() }).unwrap();
    assert!(!lab.status().unwrap().nodes[1].frozen);
    lab.wait_complete();
}

fn the_disk_survives_a_power_cycle(lab: &Scenario) {
    for path in ["/root/kept", "/var/lib/etcd/kept"] {
        lab.run("node-b", &["touch", path]);
    }
    lab.request(&Request::Clock { node: "node-b".into(), ahead_s: 1_000_000 }).unwrap();
    lab.power("node-b", PowerAction::Cycle).unwrap();
    lab.run("node-b", &["ls", "/root/kept", "/var/lib/etcd/kept"]);
    let uptime = lab.run("node-b", &["cat", "/proc/uptime"]);
    let seconds: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
    assert!(seconds > 1_000_000.0, "up for {seconds} s");
    lab.wait_complete();
}
