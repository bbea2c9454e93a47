//! Secrets are removed from everything before it enters a bundle.
//!
//! Two nets: what this node's own secret files hold is removed wherever it appears, and what looks like a secret
//! is removed by its shape.

use std::path::Path;

use dyad_node::Node;

/// What stands where a secret was.
const REMOVED: &str = "[removed]";
/// Shorter values are not searched for: they would tear words apart, and no password policy allows them.
const LENGTH_MIN: usize = 4;

/// The secrets that are known on this node.
pub(super) struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// The passwords in this node's own files.
    pub(super) fn of(node: &Node) -> Self {
        let files = node.pair.nodes.iter().map(|each| each.bmc.credentials_file.clone());
        let mut values: Vec<String> = files.flat_map(|file| passwords(&file)).collect();
        // The longest first: one may be part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
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

fn passwords(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let values = text.lines().filter_map(|line| line.strip_prefix("password="));
    values.filter(|value| value.len() >= LENGTH_MIN).map(str::to_owned).collect()
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
        let secrets = Secrets { values: vec!["hunter2-and-more".into(), "hunter2".into()] };
        String::from_utf8(secrets.remove(text.as_bytes())).unwrap()
    }

    /// A known secret goes wherever it stands, inside a word and twice in a line.
    #[test]
    fn known_secrets_go_everywhere() {
        let cleaned = removed("a=hunter2&b=xhunter2y\nhunter2-and-more\n");
        assert_eq!(cleaned, "a=[removed]&b=x[removed]y\n[removed]\n");
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
