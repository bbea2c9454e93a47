//! What a person is told to type exists, and is parsed as it stands.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use dyad::cli::Cli;
use dyad_core::commands::examples;

/// Every command that a decision or a judgement names is one of this command line. `dyad etcd inspect` is named
/// without the directory, which the reader knows better.
#[test]
fn every_hint_is_a_command() {
    for example in examples(&"node-b".into()) {
        let mut words: Vec<&str> = example.split(' ').collect();
        assert_eq!(words[0], "dyad", "{example}");
        if example == "dyad etcd inspect" {
            words.push("/var/lib/etcd");
        }
        let parsed = Cli::try_parse_from(&words);
        assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
    }
}

/// Whoever uses a command wrongly, or at the wrong time, is told what to do instead: every refusal in the source has a hint.
#[test]
fn every_refusal_has_a_hint() {
    let mut sources = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut sources);
    let mut seen = 0;
    for path in sources {
        // Each problem of a file is told with its own hint, before the sum of them.
        if path.ends_with("commands/pair_file.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        // From one failure to the next, or to the end of its function.
        for part in code.split("Failure::new(").skip(1) {
            let part = part.split("\n}").next().unwrap();
            if part.starts_with("Exit::Usage") || part.starts_with("Exit::Refused") {
                seen += 1;
                assert!(part.contains(".hint("), "{}: {part}", path.display());
            }
        }
    }
    assert!(seen > 20, "{seen} refusals: does the test still read them?");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}
