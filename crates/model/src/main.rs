//! Runs the model within given bounds: `dyad-model FAULTS LEAVES HUMANS WRITES ONE-WAY PORTS BMC DISKS LIVENESS
//! FENCINGS BOOTS CALL-OFF`, each a number; what is left out is 0, but 2 writes, and 2 boots after a person's error. Prints the bounds, the number of states and, if a
//! promise is broken, the counter-example as a scenario.

use std::process::ExitCode;
use std::time::Instant;

use dyad_model::search::{Bounds, search};
use dyad_model::{Model, Scope, World, scenario, variant};

/// Give up above this many states: about 4 GB.
const STATES_MAX: usize = 200_000_000;

fn main() -> ExitCode {
    let mut numbers = Vec::new();
    for argument in std::env::args().skip(1) {
        let Ok(number) = argument.parse::<u8>() else {
            eprintln!("error: `{argument}` is not a number from 0 to 255");
            return ExitCode::from(2);
        };
        numbers.push(number);
    }
    let get = |at: usize, default: u8| numbers.get(at).copied().unwrap_or(default);
    let scope = Scope {
        writes: get(3, 2).min(4),
        one_way: get(4, 0) != 0,
        ports: get(5, 0) != 0,
        bmc: get(6, 0) != 0,
        disks: get(7, 0) != 0,
        call_off: get(11, 0) != 0,
        count_fencings: get(9, 0) != 0,
    };
    let (faults, leaves, humans) = (get(0, 1), get(1, 0), get(2, 0));
    let liveness = get(8, 0) != 0;
    println!(
        "{faults} faults, {leaves} leaves, {humans} human acts, liveness {liveness}, {scope:?}"
    );
    let model = Model::new(scope, variant::sound());
    let start = World { boots_after_error: get(10, 2), ..World::redundant(faults, leaves, humans) };
    let clock = Instant::now();
    let found = search(&model, &[start], Bounds { states_max: STATES_MAX, liveness });
    println!(
        "{} states, depth {}, {} decisions, {} cut short, {} s{}",
        found.states,
        found.depth,
        found.decisions,
        found.truncated,
        clock.elapsed().as_secs(),
        if found.complete { "" } else { ", not complete: more states than the bound" }
    );
    if let Some(violation) = found.violation {
        println!("{}", scenario::counter_example(&violation, variant::sound()));
        return ExitCode::FAILURE;
    }
    if found.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
