//! Pairs and places that the tests of this crate use.
#![allow(dead_code, missing_docs, unreachable_pub)] // each test file uses some of them

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use dyad_cluster::pair::Pair;
use dyad_pair_file::file::PairFile;
use dyad_setup::bundle::{Bundle, Item};
use dyad_setup::{Error, SecretsDir, render};

/// Passwords that must not be seen anywhere but in private files.
pub const PASSWORDS: [&str; 5] =
    ["secret-of-a", "secret-of-b", "in-the-open-1", "in-the-open-10", "secret-of-hook"];

/// A directory with a pair file and what it names.
pub struct Site {
    pub directory: tempfile::TempDir,
    pub file: PairFile,
    pub pair: Pair,
}

impl Site {
    /// The good pair file of this name.
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pair-file/tests/good");
        let text = std::fs::read_to_string(path.join(format!("{name}.yaml"))).unwrap();
        Self::from_text(&text)
    }

    pub fn from_text(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let loaded = dyad_pair_file::load(text.as_bytes());
        let (Some(file), Some(pair)) = (loaded.file, loaded.pair) else {
            panic!("{:?}", loaded.problems);
        };
        std::fs::write(directory.path().join("pair.yaml"), text).unwrap();
        let site = Self { directory, file, pair };
        for (name, password) in [
            ("node-a", "secret-of-a"),
            ("node-b", "secret-of-b"),
            ("master-0", "secret-of-a"),
            ("master-1", "secret-of-b"),
        ] {
            let path = site.secrets_path().join(format!("bmc-{name}"));
            let password = dyad_http::Secret::new(password);
            dyad_setup::write_account(&path, "admin", &password).unwrap();
        }
        let webhook = site.secrets_path().join("webhook");
        std::fs::write(&webhook, "url=https://hooks.example.org/secret-of-hook\n").unwrap();
        std::fs::set_permissions(&webhook, std::fs::Permissions::from_mode(0o600)).unwrap();
        let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(site.path("bmc-ca.pem"), certificate).unwrap();
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn secrets_path(&self) -> PathBuf {
        self.path("pair-secrets")
    }

    pub fn secrets(&self) -> SecretsDir {
        SecretsDir::open(&self.secrets_path()).unwrap()
    }

    pub fn render(&self) -> Result<[Bundle; 2], Error> {
        render::render(&self.file, &self.pair, self.directory.path(), &self.secrets())
    }
}

/// A bundle as text; what is random is named, not shown.
pub fn shown(bundle: &Bundle) -> String {
    let mut text = String::new();
    for (path, item) in &bundle.items {
        match item {
            Item::Link(target) => {
                writeln!(text, "==== {} -> {}", path.display(), target.display()).unwrap();
            }
            Item::File { mode, content } => {
                writeln!(text, "==== {} ({mode:04o})", path.display()).unwrap();
                text.push_str(&content_shown(content));
            }
        }
    }
    text
}

fn content_shown(content: &[u8]) -> String {
    match str::from_utf8(content) {
        Ok(pem) if pem.contains("PRIVATE KEY") => "<a private key>\n".to_owned(),
        Ok(pem) if pem.contains("BEGIN CERTIFICATE") => "<a certificate>\n".to_owned(),
        Ok(plain) => plain.to_owned(),
        Err(_) => format!("<{} random bytes>\n", content.len()),
    }
}

/// Every file below a directory with its mode and content.
pub fn files_below(directory: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            found.push((entry.path(), mode, std::fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}
