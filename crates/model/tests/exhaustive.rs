//! The rules as they ship keep every promise in every state within these bounds.

use dyad_model::search::{Bounds, search};
use dyad_model::{Model, Scope, World, scenario, variant};

fn exhaust(name: &str, start: World, scope: Scope, liveness: bool) {
    let model = Model::new(scope, variant::sound());
    let found = search(&model, &[start], Bounds { states_max: 60_000_000, liveness });
    println!(
        "{name}: {} states, depth {}, {} decisions, {} cut short",
        found.states, found.depth, found.decisions, found.truncated
    );
    if let Some(violation) = found.violation {
        panic!("{name}:\n{}", scenario::counter_example(&violation, variant::sound()));
    }
    assert!(found.complete, "{name}: more states than the bound");
    assert_eq!(found.truncated, 0, "{name}: the bounds of the model cut paths short");
}

const PLAIN: Scope = Scope {
    writes: 1,
    one_way: false,
    ports: false,
    bmc: false,
    disks: false,
    call_off: false,
    count_fencings: false,
};

/// One fault from full redundancy, everything that can fail: always recovers by itself.
#[test]
fn one_fault_of_any_kind() {
    let scope =
        Scope { writes: 2, one_way: true, ports: true, bmc: true, count_fencings: true, ..PLAIN };
    exhaust("1 fault of any kind, 2 writes, liveness", World::redundant(1, 0, 0), scope, true);
}

/// A planned stop, and a second one: the other goes on.
#[test]
fn planned_stops() {
    exhaust("1 leave, liveness", World::redundant(0, 1, 0), PLAIN, true);
}

/// The large spaces: minutes in an optimised build, far too long in another.
#[cfg(not(debug_assertions))]
mod large {
    use super::*;

    /// Two faults of any kind, lost disks included, with liveness.
    #[test]
    fn two_faults_of_any_kind() {
        let scope = Scope {
            one_way: true,
            ports: true,
            bmc: true,
            disks: true,
            call_off: false,
            count_fencings: true,
            ..PLAIN
        };
        exhaust("2 faults of any kind, liveness", World::redundant(2, 0, 0), scope, true);
    }

    /// Three faults and two writes.
    #[test]
    fn three_faults_two_writes() {
        let scope = Scope { writes: 2, ..PLAIN };
        exhaust("3 faults, 2 writes", World::redundant(3, 0, 0), scope, false);
    }

    /// Two faults, a planned stop, cuts of etcd's peer port and one human act, right or wrong.
    #[test]
    fn two_faults_a_leave_port_cuts_and_a_human_act() {
        let start = World { boots_after_error: 2, ..World::redundant(2, 1, 1) };
        let scope = Scope { ports: true, ..PLAIN };
        exhaust("2 faults, 1 leave, port cuts, 1 human act", start, scope, false);
    }

    /// Two planned stops: after each other, of the same node twice, and of both at once.
    #[test]
    fn two_leaves() {
        exhaust("2 leaves, liveness", World::redundant(0, 2, 0), PLAIN, true);
    }

    /// A fault and a planned stop that may be called off, with liveness.
    #[test]
    fn a_fault_and_a_leave() {
        let scope = Scope { one_way: true, ports: true, call_off: true, ..PLAIN };
        exhaust(
            "1 fault, 1 leave or one called off, cuts of any kind, liveness",
            World::redundant(1, 1, 0),
            scope,
            true,
        );
    }
}
