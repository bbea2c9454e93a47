//! Each scenario of `scenarios/` reads as it is played.

use std::path::Path;

use dyad_model::{scenario, variant};

/// Every step of every scenario gives the facts, the decision, the rule and the reason that its text says, and
/// none breaks a promise. `DYAD_UPDATE=1` rewrites the texts; the change is read as a diff.
#[test]
fn scenarios_read_as_they_are_played() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let update = std::env::var_os("DYAD_UPDATE").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        count += 1;
        match scenario::replay(&text, variant::sound()) {
            Err(error) => wrong.push(format!("{name}: {error}")),
            Ok(player) => {
                if let Some(property) = player.violated {
                    wrong.push(format!("{name}: breaks {property}"));
                }
                if update {
                    std::fs::write(&path, player.transcript()).unwrap();
                } else if player.transcript() != text {
                    wrong.push(format!(
                        "{name}: reads differently; run with DYAD_UPDATE=1 and look at the diff"
                    ));
                }
            }
        }
    }
    assert!(count >= 30, "only {count} scenarios found in {}", folder.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
