//! The reductions are checked: what the full model can do, the reduced one can, and the other way round.

use std::collections::HashSet;

use dyad_model::search::hash::fingerprint;
use dyad_model::search::{Bounds, search};
use dyad_model::{Model, Reductions, Scope, Step, World, check, variant};

const PLAIN: Scope = Scope {
    writes: 1,
    one_way: false,
    ports: false,
    bmc: false,
    disks: false,
    call_off: false,
    count_fencings: false,
};

/// Small spaces that between them hold every kind of step.
fn spaces() -> Vec<(&'static str, World, Scope)> {
    let any = Scope { one_way: true, ports: true, bmc: true, disks: true, ..PLAIN };
    let human = World { boots_after_error: 1, ..World::redundant(1, 0, 1) };
    let mut spaces = vec![
        ("1 fault of any kind", World::redundant(1, 0, 0), any),
        ("1 fault, 1 human act", human, Scope { ports: true, ..PLAIN }),
        ("1 leave", World::redundant(0, 1, 0), Scope { call_off: true, ..PLAIN }),
    ];
    if cfg!(not(debug_assertions)) {
        spaces.push(("2 faults", World::redundant(2, 0, 0), PLAIN));
        spaces.push(("1 fault, 1 leave", World::redundant(1, 1, 0), PLAIN));
    }
    spaces
}

fn model(scope: Scope, reductions: Reductions) -> Model {
    let mut model = Model::new(scope, variant::sound());
    model.reductions = reductions;
    model
}

/// Every state that can be reached.
fn reachable(model: &Model, start: World) -> Vec<World> {
    let all = Step::all();
    let mut seen = HashSet::from([fingerprint(&start)]);
    let mut worlds = vec![start];
    let mut at = 0;
    while let Some(world) = worlds.get(at).copied() {
        at += 1;
        if check::settled(&world) {
            continue;
        }
        let nexts = all.iter().filter_map(|step| model.step(&world, *step));
        worlds.extend(nexts.filter(|next| seen.insert(fingerprint(next))));
    }
    worlds
}

/// What a state promises: which promise is broken, who serves, and whether the search stops here.
fn verdict(world: &World) -> (Option<check::Property>, bool, bool) {
    (check::broken(world), check::serves(world), check::settled(world))
}

fn agrees(name: &str, start: World, scope: Scope, reductions: Reductions) {
    let full = model(scope, Reductions::NONE);
    let reduced = model(scope, reductions);
    let representative = |world: &World| {
        let mut world = *world;
        reduced.reduce(&mut world);
        world
    };
    let all = Step::all();
    let mut represented = HashSet::new();
    let states = reachable(&full, start);
    for world in states.iter().filter(|world| !world.truncated) {
        let representative_of_it = representative(world);
        represented.insert(fingerprint(&representative_of_it));
        assert_eq!(representative(&representative_of_it), representative_of_it, "{name}: twice");
        assert_eq!(verdict(world), verdict(&representative_of_it), "{name}: {world:?}");
        if check::settled(world) {
            continue;
        }
        for step in &all {
            let Some(next) = full.step(world, *step).filter(|next| !next.truncated) else {
                continue;
            };
            let next = representative(&next);
            let same = next == representative_of_it;
            let taken = reduced.step(&representative_of_it, *step);
            assert!(same || taken == Some(next), "{name}: `{step}` from {world:?}");
        }
    }
    // Where the full model runs out of incarnations the reduced one may go on; nowhere else.
    let cut = states.iter().any(|world| world.truncated);
    let reached: HashSet<u64> = reachable(&reduced, start).iter().map(fingerprint).collect();
    assert!(represented.is_subset(&reached), "{name}: a state is missing");
    assert!(cut || represented.len() == reached.len(), "{name}: states that nothing stands for");
    println!("{name}, {reductions:?}: {} states stand for {}", reached.len(), states.len());
}

/// In whole spaces, step by step: the representative of each state breaks the same promise and takes the same
/// steps to the representatives of the next states.
#[test]
fn representatives_do_what_the_states_do() {
    for (name, start, scope) in spaces() {
        agrees(name, start, scope, Reductions::ALL);
    }
    for (name, start, scope) in spaces().into_iter().take(3) {
        agrees(name, start, scope, Reductions { statements: true, ..Reductions::NONE });
        agrees(name, start, scope, Reductions { generations: true, ..Reductions::NONE });
    }
}

/// Safety and liveness come out alike with and without the reductions, in the same spaces.
#[test]
fn verdicts_are_the_same() {
    for (name, start, scope) in spaces() {
        for reductions in [Reductions::NONE, Reductions::ALL] {
            let bounds = Bounds { states_max: 10_000_000, liveness: start.humans == 0 };
            let found = search(&model(scope, reductions), &[start], bounds);
            assert!(found.complete, "{name}: more states than the bound");
            assert!(found.violation.is_none(), "{name}, {reductions:?}: {:?}", found.violation);
        }
    }
}
