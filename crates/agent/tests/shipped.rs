//! What no shipped program may hold.
#![cfg(not(feature = "broken-variants"))]

/// Deliberately broken rules are compiled in only for checking the campaign. A program as it ships knows neither their
/// names nor the file that chooses one.
#[test]
fn no_rule_can_be_broken() {
    for program in [env!("CARGO_BIN_EXE_dyad-node"), env!("CARGO_BIN_EXE_fence_dyad_redfish")] {
        let bytes = std::fs::read(program).unwrap();
        assert!(bytes.len() > 100_000, "{program} is no program");
        for word in ["/etc/dyad/broken", "LearnerTakesOver", "ForceNewCluster"] {
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{program} holds {word}");
        }
    }
}
