//! The alert rules are valid, do what they say, rest on metrics that exist, and each has a page to turn to.

use std::path::{Path, PathBuf};
use std::process::Command;

use dyad_serve::metrics::TABLE;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus")
}

fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(packaging())
        .output()
        .expect("promtool is part of Debian's package prometheus: scripts/setup installs it");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_rules_are_valid_and_do_what_they_say() {
    promtool(&["check", "rules", "dyad.rules.yml"]);
    promtool(&["test", "rules", "dyad.rules.test.yml"]);
}

/// A rule on a metric that nobody exports would be silent for ever.
#[test]
fn rules_and_dashboard_rest_on_metrics_that_exist() {
    let rules = std::fs::read_to_string(packaging().join("dyad.rules.yml")).unwrap();
    let board = std::fs::read_to_string(packaging().join("../grafana/dyad.json")).unwrap();
    let _: serde_json::Value = serde_json::from_str(&board).unwrap();
    for text in [rules, board] {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: Vec<&str> = words.filter(|word| word.starts_with("dyad_")).collect();
        assert!(!named.is_empty());
        for name in named {
            assert!(TABLE.iter().any(|(listed, _, _)| *listed == name), "{name} is no metric");
        }
    }
}

/// Who is woken up finds what to do.
#[test]
fn every_alert_has_its_section() {
    let rules = std::fs::read_to_string(packaging().join("dyad.rules.yml")).unwrap();
    let guide = packaging().join("../../docs/guides/alerts.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 10);
    for alert in alerts {
        assert!(guide.contains(&format!("\n## {alert}\n")), "{alert} has no section");
        assert!(rules.contains(&format!("alerts.md#{}", alert.to_lowercase())), "{alert}");
    }
}
