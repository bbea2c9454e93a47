//! What becomes of OpenShift install-configs.

use std::fmt::Write as _;
use std::path::Path;

use dyad_pair_file::Problem;
use dyad_pair_file::install_config::{Conversion, convert};

fn read(name: &str) -> Result<Conversion, Vec<Problem>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install-config").join(name);
    convert(&std::fs::read(path).unwrap(), "pair-secrets")
}

fn told(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        writeln!(text, "{problem}\n    hint: {}", problem.hint.as_deref().unwrap_or("-")).unwrap();
    }
    text
}

/// Both forms in which installers name the BMCs become a pair file; what they cannot know is listed, and is
/// all that the check of the result complains about.
#[test]
fn both_forms_are_converted() {
    for name in ["new-form", "old-form"] {
        let conversion = read(&format!("{name}.yaml")).unwrap();
        insta::assert_snapshot!(format!("{name}"), conversion.yaml);
        insta::assert_snapshot!(format!("{name}-warnings"), told(&conversion.warnings));
        let problems = dyad_pair_file::load(conversion.yaml.as_bytes()).problems;
        let errors: Vec<_> = problems.iter().filter(|problem| problem.is_error()).collect();
        let open: Vec<_> = conversion.open.iter().map(|(key, _)| key.as_str()).collect();
        let wrong: Vec<_> = errors.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(wrong, open, "{}", told(&problems));
        assert!(errors.iter().all(|problem| problem.id == "to-fill-in"));
    }
}

/// A converted file that is filled in can be used.
#[test]
fn a_converted_file_that_is_filled_in_is_usable() {
    let mut text = read("old-form.yaml").unwrap().yaml;
    for (open, filled) in [
        ("<the address of master-0 on the first link>", "10.1.0.1"),
        ("<the address of master-0 on the second link>", "10.2.0.1"),
        ("<the address of master-1 on the first link>", "10.1.0.2"),
        ("<the address of master-1 on the second link>", "10.2.0.2"),
        ("<the etcd image of the release: oc adm release info --image-for=etcd>", "quay.io/etcd:1"),
    ] {
        assert!(text.contains(open), "{open}");
        text = text.replace(open, filled);
    }
    let loaded = dyad_pair_file::load(text.as_bytes());
    assert!(loaded.is_usable(), "{}", told(&loaded.problems));
}

/// Passwords leave as accounts only: neither the file, nor a message, nor a debug print has them.
#[test]
fn passwords_go_their_own_way() {
    let conversion = read("new-form.yaml").unwrap();
    let passwords: Vec<_> = conversion.accounts.iter().map(|a| a.password.expose()).collect();
    assert_eq!(passwords, ["first-secret", "second=secret #2"]);
    assert!(!conversion.yaml.contains("secret #2") && !conversion.yaml.contains("first-secret"));
    assert!(!conversion.yaml.contains("cHVsbC1zZWNyZXQ="), "the pull secret stays where it is");
    let debug = format!("{conversion:?}");
    assert!(!debug.contains("first-secret") && !debug.contains("second=secret"), "{debug}");
}

/// What an installer would refuse is refused, all at once, and without repeating a password.
#[test]
fn what_is_no_pair_is_refused() {
    let problems = read("bad.yaml").unwrap_err();
    let text = told(&problems);
    assert!(!text.contains("first-secret") && !text.contains("4711"), "{text}");
    insta::assert_snapshot!("bad-install-config", text);
}
