use std::fs;
use std::sync::atomic::Ordering;

use super::*;
use crate::fixture::{Fixture, Word as Etcd};
use crate::{act, runner, vote};

fn environment() -> Environment {
    Environment::from([("OCF_RESKEY_CRM_meta_on_node", "node1")])
}

fn recurring() -> Environment {
    Environment::from([
        ("OCF_RESKEY_CRM_meta_on_node", "node1"),
        ("OCF_RESKEY_CRM_meta_interval", "5000"),
    ])
}

fn asked(word: &str, environment: &Environment) -> Request {
    match environment.action(word) {
        Action::Operate(request) => request,
        other => panic!("{other:?}"),
    }
}

/// What the agent answers on a node without certificates.
fn without_certificates(fixture: &Fixture, etcd: &Etcd, word: &str, by: &Environment) -> Answer {
    fixture.describe(&fixture.without_certificates());
    operate_on(&fixture.node(etcd), &asked(word, by), by)
}

/// What it answers on a node whose description is damaged.
fn without_description(fixture: &Fixture, etcd: &Etcd, word: &str, by: &Environment) -> Answer {
    fs::write(fixture.place.pair_file(), "{\"name\": ").unwrap();
    let fault = Node::open_with_faults(fixture.place.clone(), &"node1".into()).err().unwrap();
    blind::operate(&asked(word, by), &fixture.place, etcd, &fault)
}

/// P4: no fault of this node's files makes Pacemaker give etcd up on both nodes (6), whatever it asks.
#[test]
fn a_broken_file_is_one_nodes_trouble() {
    for etcd in [Etcd::default(), Etcd::running()] {
        for word in ["start", "promote", "validate-all"] {
            let fixture = Fixture::new();
            let answer = without_certificates(&fixture, &etcd, word, &environment());
            assert_eq!(answer.code, code::INSTALLED, "{word}");
            assert!(answer.stderr.contains("/ca"), "the file is named: {}", answer.stderr);
            let answer = without_description(&fixture, &etcd, word, &environment());
            assert_eq!(answer.code, code::INSTALLED, "{word}");
            assert!(answer.stderr.contains("pair.json"), "{}", answer.stderr);
        }
    }
}

/// Nor does a description of another version, no description, or the description of others.
#[test]
fn what_stays_wrong_is_told_from_what_may_pass() {
    let fixture = Fixture::new();
    let answer = || run("start", &environment(), fixture.place.clone()).code;
    let mut newer = fixture.pair();
    newer["invented"] = true.into();
    fixture.describe(&newer);
    assert_eq!(answer(), code::INSTALLED);
    let mut others = fixture.pair();
    others["nodes"][0]["name"] = "node2".into();
    fixture.describe(&others);
    assert_eq!(answer(), code::INSTALLED);
    fs::remove_file(fixture.place.pair_file()).unwrap();
    assert_eq!(answer(), code::INSTALLED);
    fs::create_dir(fixture.place.pair_file()).unwrap();
    assert_eq!(answer(), code::GENERIC, "a file that cannot be read may be readable later");
}

/// A stop is possible whatever is broken: one that failed would end in fencing.
#[test]
fn etcd_can_be_stopped_without_any_file() {
    for broken in [without_certificates, without_description] {
        for (word, role) in [("stop", Role::Stopped), ("demote", Role::Unpromoted)] {
            let (fixture, etcd) = (Fixture::new(), Etcd::running());
            write_role(&fixture.place, Role::Promoted);
            let answer = broken(&fixture, &etcd, word, &environment());
            assert_eq!((answer.code, etcd.runs()), (code::SUCCESS, false), "{answer:?}");
            assert_eq!(role_in(&fixture.place), Some(role));
        }
        let (fixture, etcd) = (Fixture::new(), Etcd::running());
        etcd.stuck.store(true, Ordering::SeqCst);
        let answer = broken(&fixture, &etcd, "stop", &environment());
        assert_eq!(answer.code, code::GENERIC, "an etcd that still runs is not stopped");
    }
}

/// A probe on a node with a broken file says what is true: nothing runs. What runs goes on running.
#[test]
fn what_runs_is_left_alone() {
    for broken in [without_certificates, without_description] {
        let probe = |etcd: &Etcd| broken(&Fixture::new(), etcd, "monitor", &environment()).code;
        assert_eq!(probe(&Etcd::default()), exit_code(Word::NotRunning));
        assert_eq!(probe(&Etcd::running()), exit_code(Word::Ok));
        let monitor = |etcd: &Etcd, role| {
            let fixture = Fixture::new();
            write_role(&fixture.place, role);
            broken(&fixture, etcd, "monitor", &recurring()).code
        };
        let degraded = exit_code(Word::DegradedPromoted);
        assert_eq!(monitor(&Etcd::running(), Role::Promoted), degraded);
        assert_eq!(monitor(&Etcd::running(), Role::Unpromoted), code::SUCCESS);
        let failed = exit_code(Word::FailedPromoted);
        assert_eq!(monitor(&Etcd::default(), Role::Promoted), failed);
    }
}

/// R7: etcd is at rest and the stop has succeeded, though the peer could not be told, asked or handed over to: nobody listens
/// here. A stop that failed for want of a courtesy would end in fencing.
#[test]
fn a_stop_needs_nobody_else() {
    use dyad_core::decision::Action as Due;
    use dyad_core::ids::{ClusterId, MemberId};
    for due in [Due::HandOver { to: MemberId(2) }, Due::Leave, Due::Yield, Due::Nothing] {
        for word in ["stop", "demote"] {
            let (fixture, etcd) = (Fixture::new(), Etcd::running());
            let node = fixture.node(&etcd);
            let request = asked(word, &environment());
            let mut gathered = node.look(request.clone(), Role::Promoted);
            gathered.facts.dataset.cluster_id = Some(ClusterId(1));
            gathered.facts.dataset.member_id = Some(MemberId(1));
            let decided = dyad_core::decide(&gathered.facts);
            let decision = dyad_core::Decision { action: due.clone(), ..decided };
            let outcome = node.carry_out_at_last(gathered, decision);
            let answer = answer(&node, &request, &outcome);
            assert_eq!((answer.code, etcd.runs()), (code::SUCCESS, false), "{due:?}: {answer:?}");
        }
    }
}

/// One deadline for a whole stop: what waits for the node, for courtesies and for etcd's end fits into what Pacemaker gives,
/// with the two tools that may be asked in between, and a container that is left behind.
#[test]
fn a_stop_fits_into_its_time_out() {
    use std::time::Duration;
    let request = asked("stop", &environment());
    // Whoever holds the node may have begun to take over just before.
    assert!(lock::limit(&request) >= vote::LIMIT);
    assert_eq!(lock::limit(&asked("monitor", &environment())), lock::LIMIT);
    let (tool, look) = (Duration::from_secs(5), Duration::from_secs(5));
    let until_stop = lock::limit(&request).max(act::COURTESY_LIMIT) + look + tool;
    let stopped = until_stop + runner::STOP_LIMIT + runner::REMOVE_LIMIT;
    let said = act::WORDS_LIMIT + look + tool;
    let time_out = Duration::from_secs(dyad_cluster::cib::STOP_TIMEOUT_S);
    assert!(stopped.max(said) < time_out, "{stopped:?} {said:?}");
}
