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
            // A histogram is asked for by its parts.
            let parts = ["_sum", "_count", "_bucket"];
            let whole = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            let is_listed = TABLE.iter().any(|(listed, kind, _)| {
                *listed == name || (*listed == whole && *kind == "histogram")
            });
            assert!(is_listed, "{name} is no metric");
        }
    }
}

/// Who is woken up finds what to do.
#[test]
fn every_alert_has_its_section() {
    let rules = std::fs::read_to_string(packaging().join("dyad.rules.yml")).unwrap();
    let guide = packaging().join("../../docs/guides/alerts.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for alert in alerts(&rules) {
        assert!(guide.contains(&format!("\n## {alert}\n")), "{alert} has no section");
        // Where the package puts the guide, on every node and wherever else it is installed.
        let section = format!("\"/usr/share/doc/dyad/guides/alerts.md#{}\"", alert.to_lowercase());
        assert!(rules.contains(&section), "{alert}");
    }
}

fn alerts(rules: &str) -> Vec<&str> {
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 10);
    alerts
}

/// An alert that was never seen to fire may be one that cannot; one that was never seen quiet may be one that always does.
#[test]
fn every_alert_is_tested_both_ways() {
    let rules = std::fs::read_to_string(packaging().join("dyad.rules.yml")).unwrap();
    let tests = std::fs::read_to_string(packaging().join("dyad.rules.test.yml")).unwrap();
    for alert in alerts(&rules) {
        let quiet = format!("alertname: {alert}, exp_alerts: [] }}");
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels:");
        assert!(tests.contains(&quiet), "{alert} is never seen quiet");
        assert!(tests.contains(&fires), "{alert} is never seen to fire");
    }
}
