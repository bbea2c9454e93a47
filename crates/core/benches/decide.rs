//! How long a decision takes, from the usual monitor to the longest way through the rules. No decision may take
//! more than ten microseconds.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::hint::black_box;

use criterion::Criterion;
use dyad_core::dataset::Class;
use dyad_core::facts::{Eligibility, EligibleBy, EtcdState, LiveMember, Operation, Role};
use dyad_core::{Facts, Statement, decide};

/// A voter of a healthy pair looks and finds nothing to do: the decision that is made all day.
fn healthy() -> Facts {
    let mut facts = fixture::pair_at_rest();
    facts.role = Role::Promoted;
    facts.etcd.state = EtcdState::Leader;
    facts.etcd.members = [(fixture::ME, "north"), (fixture::PEER, "south")]
        .map(|(id, node)| LiveMember {
            id,
            node: Some(node.into()),
            learner: false,
            started: true,
            caught_up: false,
        })
        .into();
    facts.eligibility = Some(Eligibility {
        boot: facts.boot.clone(),
        run: facts.run.clone(),
        member: fixture::ME,
        with: fixture::PEER,
        by: EligibleBy::Barrier,
    });
    facts
}

/// The peer is gone and proven dead: the take-over is announced.
fn survivor() -> Facts {
    let mut facts = healthy();
    facts.etcd.state = EtcdState::NoLeader;
    facts.etcd.members.clear();
    facts.peer.present = false;
    facts.peer.statement = None;
    for node in &mut facts.pacemaker.nodes {
        node.online = node.name == facts.node;
    }
    facts
}

/// Two histories: refused, with the reason and the command.
fn diverged() -> Facts {
    let mut facts = fixture::pair_at_rest();
    facts.dataset = fixture::dataset(Class::Alone);
    facts.peer.statement = Some(fixture::statement(Class::Alone));
    facts
}

/// No quorum after a boot, and a dataset that may be old.
fn lone_boot() -> Facts {
    let mut facts = fixture::pair_at_rest();
    facts.request.operation = Operation::Boot;
    facts.pacemaker.quorate = false;
    facts.peer.present = false;
    facts.peer.statement = None;
    facts
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("decide");
    for (name, facts) in [
        ("healthy monitor", healthy()),
        ("cold boot, both pairs", fixture::pair_at_rest()),
        ("take-over", survivor()),
        ("diverged", diverged()),
        ("lone boot", lone_boot()),
    ] {
        println!("{name}: {:?}", decide(&facts).action);
        group.bench_function(name, |bench| bench.iter(|| decide(black_box(&facts))));
    }
    let facts = healthy();
    group
        .bench_function("statement", |bench| bench.iter(|| Statement::of(black_box(&facts), None)));
    group.finish();
    criterion.final_summary();
}
