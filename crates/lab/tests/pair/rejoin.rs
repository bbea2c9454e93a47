//! Scenarios `rejoin`: a node dies while the other one is on its way back, at every step of that way.

use dyad_lab::protocol::Request;

use crate::common::Pair;
use crate::states::harmless_commands;

/// etcd's ports, for members and for clients.
const PEER_PORT: u16 = 2380;
const CLIENT_PORT: u16 = 2379;

/// node-b is lost, node-a goes on alone, and node-b comes back while `port` of `node` is blocked.
fn comes_back_behind(pair: &Pair, node: &str, port: u16) {
    pair.lose("node-b");
    pair.heal().unwrap();
    pair.ask(&Request::BlockPort { node: node.into(), port });
    pair.power_on("node-b");
}

/// node-b is listed as a learner and cannot start: it does not reach the voter.
fn learner_that_cannot_start(pair: &Pair) {
    comes_back_behind(pair, "node-a", PEER_PORT);
    pair.wait("a learner", || {
        let members = pair.members("node-a").len();
        (members != 2 || pair.voters("node-a") != 1).then(|| format!("{members} members"))
    });
}

/// node-b follows as a learner and is not promoted: it cannot be asked how far it is.
fn learner_that_is_not_promoted(pair: &Pair) {
    comes_back_behind(pair, "node-b", CLIENT_PORT);
    pair.wait_decision("node-b", pair.seen("node-b"), "wait", "R4");
}

/// node-b votes, but the barrier has not passed, and does not for as long as the hold lasts: node-b's agent
/// is kept from saying that it votes.
fn promoted_before_the_barrier(pair: &Pair) -> Hold<'_> {
    let hold = Hold::of(pair, "node-b");
    pair.heal().unwrap();
    pair.wait("a second voter", || (pair.voters("node-a") != 2).then(|| "one votes".into()));
    assert!(!is_eligible(pair, "node-b"));
    hold
}

/// Keeps a node's agent from doing anything, as a process of it that is slow would. Not for longer than an
/// operation waits for another one.
struct Hold<'a> {
    pair: &'a Pair,
    node: &'static str,
}

impl<'a> Hold<'a> {
    fn of(pair: &'a Pair, node: &'static str) -> Self {
        let lock = "systemd-run --quiet --unit=scenario-hold --service-type=exec \
                    flock /run/dyad/lock sleep infinity; \
                    while flock --nonblock /run/dyad/lock true; do :; done";
        pair.run(node, &["sh", "-c", lock]);
        Self { pair, node }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let limit = std::time::Duration::from_secs(10);
        let _ = self.pair.exec(self.node, &["systemctl", "stop", "scenario-hold"], limit);
    }
}

fn is_eligible(pair: &Pair, node: &str) -> bool {
    let test = ["test", "-e", "/run/dyad/eligible.json"];
    pair.exec(node, &test, std::time::Duration::from_secs(10)).is_ok_and(|done| done.success())
}

/// The voter's etcd crashes while the other is a learner: it is the only copy, and starts again on it. The
/// learner's join goes on where it was.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_voter_crashes_while_the_other_is_a_learner() {
    let pair = Pair::usual();
    let clients = pair.clients();
    learner_that_cannot_start(&pair);
    pair.ask(&Request::KillEtcd { node: "node-a".into() });
    pair.wait_writable("node-a");
    assert_eq!(pair.voters("node-a"), 1);
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
    assert_eq!(pair.powered_off(), Vec::<String>::new());
}

/// The voter dies while the other is a learner. A learner never takes over, whatever is proven; when the
/// voter is back, it goes on.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_voter_dies_while_the_other_is_a_learner() {
    let pair = Pair::usual();
    let clients = pair.clients();
    learner_that_cannot_start(&pair);
    let seen = pair.seen("node-b");
    pair.bmc("node-a", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-a");
    pair.wait_for(dyad_lab::timeline::Phase::FencingDone, "");
    assert!(!pair.is_writable("node-b"));
    pair.heal().unwrap();
    pair.power_on("node-a");
    pair.wait_protected();
    assert!(pair.decision("node-b", seen, "takeOver", "").is_none());
    clients.judge(&pair);
}

/// The voter dies right after the promotion. Before the barrier nothing proves that the promoted one has all
/// that was acknowledged: it waits. After it, it takes over.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_voter_dies_right_after_the_promotion() {
    let pair = Pair::usual();
    let clients = pair.clients();
    learner_that_is_not_promoted(&pair);
    let hold = promoted_before_the_barrier(&pair);
    let seen = pair.seen("node-b");
    pair.bmc("node-a", "do-nothing".parse().unwrap()).unwrap();
    pair.pull_plug("node-a");
    drop(hold);
    pair.wait_for(dyad_lab::timeline::Phase::FencingDone, "");
    assert!(!pair.is_writable("node-b"));
    assert!(pair.decision("node-b", seen, "takeOver", "").is_none());

    pair.heal().unwrap();
    let seen = pair.seen("node-b");
    pair.power_on("node-a");
    // The moment the barrier has passed on node-b, it may lose its peer.
    pair.wait("node-b to pass the barrier", || {
        (!is_eligible(&pair, "node-b")).then(|| "it has not".into())
    });
    pair.pull_plug("node-a");
    pair.wait_decision("node-b", seen, "takeOver", "R2");
    pair.wait_writable("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}

/// The promoted one dies before the barrier. The voter has marked the promotion (R4): it goes on alone. Until then both
/// said that one of them catches up, and every command answered accordingly.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_promoted_one_dies_before_the_barrier() {
    let pair = Pair::usual();
    let clients = pair.clients();
    learner_that_is_not_promoted(&pair);
    for node in pair.names() {
        harmless_commands(&pair, node, "catchingUp");
    }
    let hold = promoted_before_the_barrier(&pair);
    let seen = pair.seen("node-a");
    pair.pull_plug("node-b");
    drop(hold);
    pair.wait_decision("node-a", seen, "takeOver", "R");
    pair.wait_writable("node-a");
    pair.heal().unwrap();
    pair.wait_protected();
    clients.judge(&pair);
}

/// The joiner loses its power at each step of its join. Each time it begins again from what is then true, and
/// in the end the pair is whole.
#[test]
#[ignore = "needs root: make lab-test"]
fn the_joiner_dies_at_each_step() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-b");
    pair.heal().unwrap();
    let steps = [
        ("node-a", "addPeerAsLearner"),
        ("node-b", "joinAsLearner"),
        ("node-a", "promoteLearner"),
        ("node-a", "barrier"),
    ];
    for (node, action) in steps {
        let seen = pair.seen(node);
        pair.power_on("node-b");
        pair.wait_decision(node, seen, action, "");
        pair.pull_plug("node-b");
        pair.wait_writable("node-a");
    }
    pair.power_on("node-b");
    pair.wait_protected();
    clients.judge(&pair);
}

/// A learner that takes long over what it receives knows no leader meanwhile, and cannot be asked. It holds nobody
/// up, so it is not taken for a deaf voter: nothing that it has received is given up.
#[test]
#[ignore = "needs root: make lab-test"]
fn a_learner_may_take_its_time() {
    let pair = Pair::usual();
    let clients = pair.clients();
    pair.lose("node-b");
    pair.heal().unwrap();
    let seen = pair.seen("node-b");
    pair.power_on("node-b");
    pair.wait_decision("node-b", seen, "joinAsLearner", "cold-boot");
    // Busy with a large log, as far as anybody can see.
    pair.run("node-b", &["systemctl", "kill", "--signal=STOP", "dyad-etcd.service"]);
    let for_long = "read up rest < /proc/uptime; \
                    since=$(sed -n 's/.*\"uptime_ms\": \\([0-9]*\\).*/\\1/p' /run/dyad/since-leaderless.json); \
                    test -n \"$since\" && test $(( ${up%.*} * 1000 - since )) -gt 20000";
    let limit = std::time::Duration::from_secs(10);
    pair.wait("20 s without a leader", || {
        let lasted = pair.exec("node-b", &["sh", "-c", for_long], limit);
        (!lasted.is_ok_and(|done| done.success())).then(|| "not yet".into())
    });
    assert_eq!(pair.voters("node-a"), 1);
    pair.run("node-b", &["systemctl", "kill", "--signal=CONT", "dyad-etcd.service"]);
    pair.wait_protected();
    assert!(pair.decision("node-b", seen, "yield", "R8").is_none());
    clients.judge(&pair);
}
