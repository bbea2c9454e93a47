//! The document of facts: it survives JSON, and what is not one is refused with its key.

mod fixture;

use dyad_core::Facts;

/// Agents log facts as JSON; the replay reads the very same facts.
#[test]
fn facts_survive_json() {
    let facts = fixture::pair_at_rest();
    let json = serde_json::to_string_pretty(&facts).unwrap();
    assert!(json.contains(r#""apiVersion": "dyad/v1""#), "{json}");
    assert_eq!(serde_json::from_str::<Facts>(&json).unwrap(), facts);
}

/// A misspelt key is not a missing fact: it is refused by name.
#[test]
fn unknown_keys_are_refused() {
    let mut json = serde_json::to_value(fixture::pair_at_rest()).unwrap();
    json["pacemaker"]["quorat"] = true.into();
    let error = serde_json::from_value::<Facts>(json).unwrap_err().to_string();
    assert!(error.contains("quorat"), "{error}");
}

/// No document can break a rule: the switch of the broken variants is not part of it.
#[test]
fn a_document_cannot_break_a_rule() {
    let mut json = serde_json::to_value(fixture::pair_at_rest()).unwrap();
    json["broken"] = "LearnerTakesOver".into();
    assert!(serde_json::from_value::<Facts>(json).is_err());
}

/// The example that the command line's tests and the documentation use is what the fixture says.
#[test]
fn the_example_document_has_not_drifted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../dyad/tests/data/facts.json");
    let wanted = serde_json::to_string_pretty(&fixture::pair_at_rest()).unwrap() + "\n";
    if std::env::var_os("DYAD_UPDATE").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), wanted, "run with DYAD_UPDATE=1");
}
