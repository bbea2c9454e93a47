//! `dyad init`, `check` and `render` as a person meets them: whole outputs, at 80 columns.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// A directory in which the commands run.
struct Shell(tempfile::TempDir);

impl Shell {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `dyad` and returns what was said and how it ended.
    fn dyad(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_dyad"))
            .args(arguments)
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    /// The same as one text for a golden file.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.dyad(arguments);
        let text = format!(
            "$ dyad {}\n{}---- stderr\n{}---- exit {}\n",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            output.status.code().unwrap()
        );
        assert!(!text.contains("hunter2"), "{text}");
        text.replace(&self.path().display().to_string(), "DIR")
    }

    fn good(&self, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pair-file/tests").join(name);
        std::fs::copy(source, self.path().join("pair.yaml")).unwrap();
    }

    fn account(&self, name: &str) {
        let directory = self.path().join("pair-secrets");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
        let path = directory.join(name);
        std::fs::write(&path, "username=admin\npassword=hunter2\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// A new user's first steps: a starter, its check, and no second starter over the first.
#[test]
fn first_steps() {
    let shell = Shell::new();
    insta::assert_snapshot!("init", shell.told(&["init"]));
    insta::assert_snapshot!("init-again", shell.told(&["init"]));
    insta::assert_snapshot!("check-starter", shell.told(&["check"]));
    insta::assert_snapshot!("render-starter", shell.told(&["render", "--out", "out"]));
    assert!(!shell.path().join("out").exists() && !shell.path().join("pair-secrets").exists());
    insta::assert_snapshot!("check-nothing", shell.told(&["check", "none.yaml"]));
}

/// A check that finds weak places only, and one that finds files missing.
#[test]
fn checks() {
    let shell = Shell::new();
    shell.good("good/alike.yaml");
    insta::assert_snapshot!("check-weak", shell.told(&["check", "--offline"]));
    shell.good("good/usual.yaml");
    shell.account("bmc-node-a");
    insta::assert_snapshot!("check-missing", shell.told(&["check", "--offline"]));
    shell.good("bad/shape.yaml");
    insta::assert_snapshot!("check-bad", shell.told(&["check", "--offline"]));
    insta::assert_snapshot!("render-bad", shell.told(&["render", "--out", "out"]));
}

/// The report for machines says the same, and the exit code too.
#[test]
fn checks_for_machines() {
    let shell = Shell::new();
    shell.good("good/alike.yaml");
    insta::assert_snapshot!("check-json", shell.told(&["check", "--offline", "-o", "json"]));
}

/// An install-config becomes a pair file and private account files.
#[test]
fn from_an_install_config() {
    let shell = Shell::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pair-file/tests/install-config");
    let text = std::fs::read_to_string(source.join("new-form.yaml")).unwrap();
    let text = text.replace("first-secret", "hunter2");
    std::fs::write(shell.path().join("install-config.yaml"), text).unwrap();
    insta::assert_snapshot!("init-from", shell.told(&["init", "--from", "install-config.yaml"]));
    let account = shell.path().join("pair-secrets/bmc-master-0.edge.example.com");
    let mode = account.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(std::fs::read_to_string(&account).unwrap(), "username=root\npassword=hunter2\n");
    let pair = std::fs::read_to_string(shell.path().join("pair.yaml")).unwrap();
    assert!(!pair.contains("hunter2"));

    // What an interrupted attempt left does not block the next one; another account does.
    std::fs::remove_file(shell.path().join("pair.yaml")).unwrap();
    assert!(shell.dyad(&["init", "--from", "install-config.yaml"]).status.success());
    std::fs::remove_file(shell.path().join("pair.yaml")).unwrap();
    std::fs::write(&account, "username=root\npassword=other\n").unwrap();
    let refused = shell.told(&["init", "--from", "install-config.yaml"]);
    insta::assert_snapshot!("init-from-other-account", refused);
    assert_eq!(std::fs::read_to_string(&account).unwrap(), "username=root\npassword=other\n");

    std::fs::copy(source.join("bad.yaml"), shell.path().join("bad.yaml")).unwrap();
    let refused = shell.told(&["init", "other.yaml", "--from", "bad.yaml"]);
    insta::assert_snapshot!("init-from-bad", refused);
    assert!(!shell.path().join("other.yaml").exists());
}

/// Rendering says what it wrote and where the secrets are; a wrong node or a missing password is told.
#[test]
fn renderings() {
    let shell = Shell::new();
    shell.good("good/podman.yaml");
    shell.account("bmc-master-0");
    insta::assert_snapshot!("render-no-password", shell.told(&["render", "--out", "out"]));
    shell.account("bmc-master-1");
    insta::assert_snapshot!("render-dir", shell.told(&["render", "--out", "out"]));
    insta::assert_snapshot!(
        "render-node",
        shell.told(&["render", "--out", "out", "--format", "tar", "--node", "master-0"])
    );
    let one = ["render", "--out", "tar", "--format", "tar", "--node", "master-0.edge.example.com"];
    insta::assert_snapshot!("render-tar", shell.told(&one));
    assert!(shell.path().join("tar/master-0.edge.example.com.tar").exists());
    assert!(!shell.path().join("tar/master-1.edge.example.com.tar").exists());
}

/// The schema that is printed is the published one, and it accepts the keys of the starter.
#[test]
fn the_schema_is_printed() {
    let output = Shell::new().dyad(&["init", "--schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "Pair");
    assert_eq!(schema["additionalProperties"], false);
}
