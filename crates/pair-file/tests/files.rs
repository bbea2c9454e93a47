//! What is said about whole files, good and bad, as golden files that are read as a diff.

use std::fmt::Write as _;
use std::path::Path;

use dyad_pair_file::{Loaded, Problem, load};

fn read(file: &str) -> Loaded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    load(&std::fs::read(&path).unwrap())
}

fn told(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        let kind = if problem.is_error() { "error" } else { "warning" };
        writeln!(text, "{kind} [{}] {problem}", problem.id).unwrap();
        writeln!(text, "    hint: {}", problem.hint.as_deref().unwrap_or("-")).unwrap();
    }
    text
}

/// Good files are used, whatever is worth a warning; each means exactly the recorded pair.
#[test]
fn good_files_are_used() {
    for name in ["usual", "alike", "ipv6", "podman"] {
        let loaded = read(&format!("good/{name}.yaml"));
        assert!(loaded.is_usable(), "{name}:\n{}", told(&loaded.problems));
        insta::assert_snapshot!(format!("warnings-{name}"), told(&loaded.problems));
        let json = serde_json::to_string_pretty(&loaded.pair.unwrap()).unwrap();
        insta::assert_snapshot!(format!("pair-{name}"), json);
    }
}

/// Every mistake of a file is shown at once, with place, key and advice, whatever else is broken.
#[test]
fn all_mistakes_are_shown_at_once() {
    for name in ["shape", "rules", "timing"] {
        let loaded = read(&format!("bad/{name}.yaml"));
        assert!(!loaded.is_usable() && loaded.file.is_none());
        insta::assert_snapshot!(format!("bad-{name}"), told(&loaded.problems));
    }
}

/// A password, wherever it was put by mistake, is not repeated by any message.
#[test]
fn passwords_are_not_repeated() {
    for (file, secret) in [("bad/rules.yaml", "hunter2"), ("bad/shape.yaml", "12345")] {
        let text = told(&read(file).problems);
        assert!(!text.contains(secret), "{text}");
    }
    let loaded = read("good/alike.yaml");
    assert!(!format!("{loaded:?}").contains("in-the-open"));
}

/// Escape sequences of a file do not reach the terminal, whatever they are part of.
#[test]
fn escape_sequences_do_not_reach_the_terminal() {
    let text = "\"\\e[31mred\": 1\nname: \"\\e[31m\"\nkind: \"\\a\"\n";
    let problems = load(text.as_bytes()).problems;
    assert!(problems.len() >= 3);
    assert!(!told(&problems).contains(|c: char| c.is_control() && c != '\n'), "{problems:?}");
}

/// What YAML is notorious for is told in plain words, and costs no time or memory.
#[test]
fn notorious_yaml() {
    let bomb = format!(
        "a: &a [x,x,x,x,x,x,x,x,x]\n{}",
        ('b'..='z').map(|c| format!("{c}: &{c} [*a,*a,*a]\n")).collect::<String>()
    );
    let deep = "[".repeat(100_000);
    let huge = "x: y\n".repeat(100_000);
    let many = format!("a: [{}]", "1,".repeat(60_000));
    let cases: Vec<(&str, &[u8], &str)> = vec![
        ("empty", b"", "empty"),
        ("comment only", b"# nothing\n", "empty"),
        ("tab", b"name: x\nnodes:\n\t- name: y\n", "tab"),
        ("nul", b"name: a\0b\n", "control-character"),
        ("utf-16", b"\xff\xfen\0a\0", "not-utf8"),
        ("latin-1", b"name: caf\xe9\n", "not-utf8"),
        ("alias bomb", bomb.as_bytes(), "anchor"),
        ("merge key", b"a: &a {x: 1}\nb: {<<: *a}\n", "anchor"),
        ("deep", deep.as_bytes(), "syntax"),
        ("huge", huge.as_bytes(), "too-large"),
        ("many", many.as_bytes(), "too-large"),
        ("two documents", b"a: 1\n---\nb: 2\n", "second-document"),
        ("tag", b"name: !!binary aGk=\n", "tag"),
        ("directive", b"%YAML 1.1\n---\na: 1\n", "syntax"),
        ("not closed", b"name: \"x\n", "syntax"),
        ("twice", b"name: a\nname: b\n", "duplicate-key"),
        ("a list", b"- a\n- b\n", "wrong-type"),
        ("a word", b"hello\n", "wrong-type"),
        ("key is a list", b"[a, b]: c\n", "syntax"),
    ];
    for (what, bytes, id) in cases {
        let loaded = load(bytes);
        assert!(!loaded.is_usable(), "{what}");
        let ids: Vec<_> = loaded.problems.iter().map(|problem| problem.id).collect();
        assert!(ids.contains(&id), "{what}: {}", told(&loaded.problems));
    }
}

/// A byte-order mark is no mistake, `no` is a name like any other, and an empty optional key is absent.
#[test]
fn harmless_yaml() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/usual.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let text = text
        .replace("name: site-17", "name: no")
        .replace("virtualIp:", "preferredSurvivor:\nvirtualIp:");
    let loaded = load(format!("\u{feff}{text}").as_bytes());
    assert!(loaded.is_usable(), "{}", told(&loaded.problems));
    assert_eq!(loaded.pair.unwrap().name, "no");
}

proptest::proptest! {
    /// Whatever the bytes are, the answer is a list of problems or a pair, never a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        let loaded = load(&bytes);
        assert!(loaded.is_usable() || !loaded.problems.is_empty());
    }

    /// The same for text that looks like a pair file with one place changed.
    #[test]
    fn a_good_file_with_one_change(at in 0usize..600, what in "[ -~\n\t\u{e9}]{0,3}") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/usual.yaml");
        let mut text = std::fs::read_to_string(path).unwrap();
        let at = at.min(text.len());
        text.insert_str(at, &what);
        let loaded = load(text.as_bytes());
        assert!(loaded.is_usable() || loaded.problems.iter().any(Problem::is_error));
    }
}
