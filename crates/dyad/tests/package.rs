//! Both packages bring along what a node, or whoever watches it, turns to: looked up in their lists, and in the package
//! itself where one was made.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What must be there once a package is installed.
const WANTED: [&str; 12] = [
    "usr/bin/dyad",
    "usr/libexec/dyad/dyad-node",
    "usr/lib/systemd/system/dyad-serve.service",
    "usr/share/man/man1/dyad-status.1",
    "usr/share/dyad/pair.schema.json",
    "usr/share/dyad/status.schema.json",
    "usr/share/dyad/prometheus/dyad.rules.yml",
    "usr/share/dyad/prometheus/dyad.rules.test.yml",
    "usr/share/dyad/grafana/dyad.json",
    "usr/share/doc/dyad/guides/alerts.md",
    "usr/share/doc/dyad/reference/metrics.md",
    "usr/share/doc/dyad/images/status-page.png",
];

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The files of a pattern like `../../docs/guides/*.md`; the programs are built by then.
fn files(pattern: &str) -> Vec<String> {
    let path = here().join(pattern);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    if pattern.contains("target/package") || !name.contains('*') {
        assert!(path.exists() || pattern.contains("target/package"), "{pattern} does not exist");
        return vec![name];
    }
    let (start, end) = name.split_once('*').unwrap();
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let found: Vec<_> =
        names.filter(|name| name.starts_with(start) && name.ends_with(end)).collect();
    assert!(!found.is_empty(), "{pattern} has no files");
    found
}

/// The installed paths of an asset: a directory ends with a slash.
fn installed(source: &str, destination: &str) -> Vec<String> {
    let destination = destination.trim_start_matches('/');
    let into = |name: String| match destination.strip_suffix('/') {
        Some(directory) => format!("{directory}/{name}"),
        None => destination.to_owned(),
    };
    files(source).into_iter().map(into).collect()
}

/// The words in quotes of a line.
fn quoted(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

#[test]
fn both_packages_bring_everything() {
    let text = std::fs::read_to_string(here().join("Cargo.toml")).unwrap();
    let (rest, rpm) = text.split_once("[package.metadata.generate-rpm]").unwrap();
    let (_, deb) = rest.split_once("[package.metadata.deb]").unwrap();
    for (kind, list) in [("deb", deb), ("rpm", rpm)] {
        let assets = list
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("[\"../") || line.starts_with("{ source"));
        let all: Vec<String> =
            assets.map(quoted).flat_map(|words| installed(words[0], words[1])).collect();
        for wanted in WANTED {
            assert!(
                all.iter().any(|path| path == wanted),
                "{wanted} is not in the {kind}: {all:?}"
            );
        }
    }
}

/// What was really packed, if `scripts/package` ran in this tree.
#[test]
fn the_package_holds_what_its_list_says() {
    let package = here().join("../../target/package/dyad.deb");
    if !package.exists() {
        eprintln!("no package here: scripts/package --debug makes one");
        return;
    }
    let output = Command::new("dpkg-deb").arg("--contents").arg(&package).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    for wanted in WANTED {
        // Manual pages are packed on their own.
        let names = [format!("./{wanted}\n"), format!("./{wanted}.gz\n")];
        assert!(names.iter().any(|name| listed.contains(name)), "{wanted} is not in {listed}");
    }
}
