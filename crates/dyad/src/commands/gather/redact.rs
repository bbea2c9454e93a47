//! Secrets are removed from everything before it enters a bundle.
//!
//! Two nets: what this node's own secret files hold is removed wherever it appears, and what looks like a secret
//! is removed by its shape.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_node::Node;

/// What stands where a secret was.
const REMOVED: &str = "[removed]";
/// Shorter values are not searched for: they would tear words apart, and no password policy allows them.
const LENGTH_MIN: usize = 4;

/// Where the token of the status page is kept, if its unit does not name another file.
const SERVE_TOKEN: &str = "/etc/dyad/serve.token";
/// No file with a secret is longer.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// How deep below the configuration keys are looked for.
const DEPTH_MAX: usize = 3;
/// How long systemd may take to tell how the status page is started.
const SYSTEMCTL_LIMIT: Duration = Duration::from_secs(3);

/// The secrets that are known on this node.
#[derive(Default)]
pub(super) struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// What this node's own files hold: passwords of the BMCs, the receiver of events, the token of the status page,
    /// the keys of etcd.
    pub(super) fn of(node: &Node) -> Self {
        let pair = &node.pair;
        let bmcs = pair.nodes.iter().map(|each| &each.bmc.credentials_file);
        let mut values: Vec<String> = bmcs.flat_map(|file| passwords(&text_of(file))).collect();
        values.extend(pair.webhook.iter().flat_map(|hook| receiver(&text_of(&hook.url_file))));
        let named = token_file(&serve_command()).unwrap_or_else(|| SERVE_TOKEN.into());
        values.push(text_of(&named).trim().to_owned());
        let tls = pair.etcd.tls.iter().flat_map(|tls| [&tls.peer.key_file, &tls.client.key_file]);
        // The keys of people and of the status page are beside etcd's own.
        let mut keys: Vec<PathBuf> = tls.cloned().collect();
        add_files(&node.place.config, DEPTH_MAX, &mut keys);
        values.extend(keys.iter().flat_map(|file| key_lines(&text_of(file))));
        Self::known(values)
    }

    fn known(mut values: Vec<String>) -> Self {
        values.retain(|value| value.len() >= LENGTH_MIN);
        // The longest first: one may be part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// A text without secrets. Bytes that are no text are kept as far as they can be read.
    pub(super) fn remove(&self, content: &[u8]) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(content).into_owned();
        for value in &self.values {
            text = text.replace(value, REMOVED);
        }
        let mut in_key = false;
        let lines = text.lines().map(|line| by_shape(line, &mut in_key));
        let mut cleaned: String = lines.collect::<Vec<_>>().join("\n");
        if text.ends_with('\n') {
            cleaned.push('\n');
        }
        cleaned.into_bytes()
    }
}

/// A small text file; nothing if it cannot be read.
fn text_of(path: &Path) -> String {
    let mut text = String::new();
    let small = File::open(path).map(|file| file.take(FILE_BYTES_MAX));
    let _ = small.and_then(|mut file| file.read_to_string(&mut text));
    text
}

fn passwords(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("password=")).map(str::to_owned).collect()
}

/// What is secret of a receiver of events: the part of its address behind the server, and what it is shown.
fn receiver(text: &str) -> Vec<String> {
    let mut values = Vec::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let value = value.trim();
        match key.trim() {
            "url" => {
                let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
                values.extend(rest.find(['/', '?']).map(|at| rest[at..].to_owned()));
            }
            // `Bearer t0ken`: the word may stand without its scheme.
            "authorization" => {
                values.extend(value.rsplit(' ').next().map(str::to_owned));
                values.push(value.to_owned());
            }
            _ => {}
        }
    }
    values
}

/// How systemd starts the status page: a person may have given it a token file of their own.
fn serve_command() -> String {
    let arguments = ["show", "--property=ExecStart", "dyad-serve.service"];
    let asked =
        dyad_program::run(&mut dyad_program::command("systemctl", arguments), "", SYSTEMCTL_LIMIT);
    asked.map(|finished| finished.stdout).unwrap_or_default()
}

/// The token's file in a command line.
fn token_file(command: &str) -> Option<PathBuf> {
    let (_, rest) = command.split_once("--token-file")?;
    rest.trim_start_matches(['=', ' ']).split_whitespace().next().map(PathBuf::from)
}

/// The files below a directory.
fn add_files(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => add_files(&entry.path(), depth - 1, files),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

/// The lines between the marks of the private keys in a file.
fn key_lines(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("-----") {
            inside = line.contains("BEGIN") && line.contains("PRIVATE KEY");
        } else if inside {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Words behind which a secret stands.
const MARKS: [&str; 7] = [
    "password=",
    "passwd=",
    "\"password\":",
    "authorization:",
    "x-auth-token:",
    "secret=",
    "token=",
];

fn by_shape(line: &str, in_key: &mut bool) -> String {
    if line.contains("PRIVATE KEY-----") {
        *in_key = line.contains("BEGIN");
        return REMOVED.to_owned();
    }
    if *in_key {
        return REMOVED.to_owned();
    }
    let lower = line.to_ascii_lowercase();
    let first = MARKS.iter().filter_map(|mark| Some(lower.find(mark)? + mark.len())).min();
    match first {
        // Everything behind it: where the secret ends is not known.
        Some(end) if line.is_char_boundary(end) && end < line.len() => {
            format!("{}{REMOVED}", &line[..end])
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(text: &str) -> String {
        let secrets = Secrets::known(vec!["hunter2".into(), "hunter2-and-more".into()]);
        String::from_utf8(secrets.remove(text.as_bytes())).unwrap()
    }

    /// A known secret goes wherever it stands, inside a word and twice in a line.
    #[test]
    fn known_secrets_go_everywhere() {
        let cleaned = removed("a=hunter2&b=xhunter2y\nhunter2-and-more\n");
        assert_eq!(cleaned, "a=[removed]&b=x[removed]y\n[removed]\n");
    }

    /// The secrets of a receiver of events, of the status page and of etcd are known by their files.
    #[test]
    fn secrets_are_read_from_their_files() {
        let hook = "# chat\nurl=https://hooks.example.org:8443/services/T0/s3cret?x=1\nauthorization=Bearer t0ken\n";
        let told = "POST /services/T0/s3cret?x=1 to hooks.example.org:8443 with t0ken: refused";
        let secrets = Secrets::known(receiver(hook));
        let cleaned = String::from_utf8(secrets.remove(told.as_bytes())).unwrap();
        assert_eq!(cleaned, "POST [removed] to hooks.example.org:8443 with [removed]: refused");
        assert_eq!(Secrets::known(receiver("url=http://10.0.0.1/\n")).values, [""; 0]);
        for (command, file) in [
            ("argv[]=/usr/bin/dyad serve --token-file /etc/dyad/t --x ; y", Some("/etc/dyad/t")),
            ("argv[]=/usr/bin/dyad serve --token-file=/root/t ;", Some("/root/t")),
            ("argv[]=/usr/bin/dyad serve ;", None),
        ] {
            assert_eq!(token_file(command), file.map(PathBuf::from), "{command}");
        }
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nIBADAN\n-----END PRIVATE KEY-----\n";
        assert_eq!(key_lines(key), ["MIIEvQ", "IBADAN"]);
        assert_eq!(key_lines("-----BEGIN CERTIFICATE-----\nMIIC\n-----END\nplain\n"), [""; 0]);
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("a/b")).unwrap();
        std::fs::write(directory.path().join("a/b/person.key"), key).unwrap();
        let mut files = Vec::new();
        add_files(directory.path(), DEPTH_MAX, &mut files);
        assert_eq!(files, [directory.path().join("a/b/person.key")]);
        assert_eq!(passwords("username=root\npassword=a b\n"), ["a b"]);
        assert_eq!(text_of(Path::new("/nowhere")), "");
    }

    /// What looks like a secret goes, whatever its value.
    #[test]
    fn secrets_go_by_their_shape() {
        for line in [
            "password=s3same and=more",
            "Authorization: Basic YWRtaW46czNzYW1l",
            "X-Auth-Token: s3same",
            "{ \"Password\": \"s3same\" }",
            "curl --data PASSWD=s3same",
        ] {
            let cleaned = removed(line);
            assert!(!cleaned.contains("s3same") && !cleaned.contains("YWRt"), "{cleaned}");
            assert!(cleaned.ends_with(REMOVED), "{cleaned}");
        }
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nIBADAN\n-----END PRIVATE KEY-----\nafter\n";
        let cleaned = removed(key);
        assert!(!cleaned.contains("MIIEvQ") && cleaned.ends_with("\nafter\n"), "{cleaned}");
    }

    /// Everything else stays as it was.
    #[test]
    fn the_rest_stays() {
        let text = "Nov 16 node-a corosync[1]: token lost\n<nvpair name=\"credentials_file\" value=\"/etc/dyad/bmc\"/>\n\n";
        assert_eq!(removed(text), text);
    }
}
