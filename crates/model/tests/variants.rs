//! The checker is checked: every deliberately broken rule is caught.
#![cfg(feature = "variants")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dyad_core::broken::Broken;
use dyad_model::search::{Bounds, search};
use dyad_model::{Model, Scope, World, scenario};

/// What may happen, from the smallest space to the largest: faults, leaves, human acts, and the scope.
fn spaces() -> Vec<(&'static str, World, Scope)> {
    let plain = Scope {
        writes: 1,
        one_way: false,
        ports: false,
        bmc: false,
        disks: false,
        call_off: false,
        count_fencings: true,
    };
    let human = |faults| World { boots_after_error: 2, ..World::redundant(faults, 0, 1) };
    let cuts = Scope { one_way: true, ports: true, ..plain };
    vec![
        ("1 fault", World::redundant(1, 0, 0), cuts),
        ("1 leave", World::redundant(0, 1, 0), plain),
        ("1 fault, 1 human act", human(1), Scope { bmc: true, ..plain }),
        ("1 lost disk", World::redundant(1, 0, 0), Scope { disks: true, ..plain }),
        ("2 leaves", World::redundant(0, 2, 0), plain),
        ("2 faults", World::redundant(2, 0, 0), plain),
        ("1 fault, 1 leave", World::redundant(1, 1, 0), Scope { call_off: true, ..cuts }),
        ("2 faults with lost disks", World::redundant(2, 0, 0), Scope { disks: true, ..plain }),
        ("2 faults, 1 human act", human(2), plain),
    ]
}

/// Where the search for one variant in one space ends: far above where any of them is found.
const STATES_MAX: usize = 1_000_000;

/// How a variant is caught: by the model, with the promise it breaks, or by a scenario that reads differently.
fn caught(variant: Broken) -> Option<String> {
    for (name, start, scope) in spaces() {
        let model = Model::new(scope, Some(variant));
        let found = search(&model, &[start], Bounds { states_max: STATES_MAX, liveness: true });
        if let Some(violation) = found.violation {
            let steps = violation.steps.len();
            return Some(format!("{} | model, {name}: {steps} steps", violation.property));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let played =
            |variant| scenario::replay(&text, variant).map(|player| player.transcript().to_owned());
        let differs = played(None).unwrap() != played(Some(variant)).unwrap_or_default();
        if differs {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            return Some(format!("the decision itself | scenario `{name}`"));
        }
    }
    None
}

/// How each is caught, in their order; two at a time.
fn caught_by_all() -> Vec<Option<String>> {
    let next = AtomicUsize::new(0);
    let how = Mutex::new(vec![None; Broken::ALL.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((variant, _)) = Broken::ALL.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let at = Broken::ALL.iter().position(|(known, _)| known == variant).unwrap();
                    let caught = caught(*variant);
                    how.lock().unwrap()[at] = caught;
                }
            });
        }
    });
    how.into_inner().unwrap()
}

/// Every variant is caught, and the table in the documentation says by what.
#[test]
fn every_broken_variant_is_caught() {
    let mut table = String::from(
        "| variant | what is broken | promise that fails | found by |\n|---|---|---|---|\n",
    );
    let mut missed = Vec::new();
    for ((variant, what), how) in Broken::ALL.iter().zip(caught_by_all()) {
        match how {
            Some(how) => {
                let _ = writeln!(table, "| `{variant:?}` | {what} | {how} |");
            }
            None => missed.push(format!("{variant:?}")),
        }
    }
    print!("{table}");
    assert!(missed.is_empty(), "nothing catches {missed:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/model.md");
    let text = std::fs::read_to_string(&page).unwrap_or_default();
    let (begin, end) = ("<!-- variants: begin -->\n", "<!-- variants: end -->");
    let (before, rest) = text.split_once(begin).expect("the page has a place for the table");
    let (found, after) = rest.split_once(end).expect("the place has an end");
    if std::env::var_os("DYAD_UPDATE").is_some() {
        std::fs::write(&page, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "run with DYAD_UPDATE=1 and look at the diff");
    }
}

/// In the same spaces the rules as they ship keep every promise: what is caught there is the broken rule's fault.
#[test]
fn the_rules_as_they_ship_pass_where_variants_are_caught() {
    for (name, start, scope) in spaces() {
        let model = Model::new(scope, None);
        let found = search(&model, &[start], Bounds { states_max: 4_000_000, liveness: true });
        println!("{name}: {} states", found.states);
        assert!(found.complete, "{name}: more states than the bound");
        assert!(found.violation.is_none(), "{name}: {:?}", found.violation);
    }
}
