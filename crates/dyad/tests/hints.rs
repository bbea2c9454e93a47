//! What a person is told to type exists, and is parsed as it stands.

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
