//! Rules about the data store.

use std::path::{Component, Path};

use crate::cursor::Cursor;
use crate::problem::Problem;

/// Arguments that Dyad gives etcd itself; another value would break what it decides.
const OWN_ARGUMENTS: [&str; 26] = [
    "name",
    "data-dir",
    "wal-dir",
    "listen-client-urls",
    "listen-peer-urls",
    "advertise-client-urls",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "force-new-cluster",
    "strict-reconfig-check",
    "heartbeat-interval",
    "election-timeout",
    "cert-file",
    "key-file",
    "trusted-ca-file",
    "client-cert-auth",
    "peer-cert-file",
    "peer-key-file",
    "peer-trusted-ca-file",
    "peer-client-cert-auth",
    "auto-tls",
    "peer-auto-tls",
    "discovery",
    "config-file",
];

pub(super) fn check(top: &Cursor<'_>) -> Vec<Problem> {
    let Some(etcd) = top.get("etcd") else { return Vec::new() };
    let mut problems = Vec::new();
    problems.extend(etcd.get("dataDir").and_then(|path| data_dir(&path)));
    problems.extend(ports(&etcd));
    problems.extend(runner(&etcd));
    problems.extend(tls(&etcd));
    problems.extend(election(&etcd));
    problems.extend(etcd.list("extraArgs").iter().filter_map(argument));
    problems
}

/// A path on a node must be absolute and plain.
pub(super) fn absolute(place: &Cursor<'_>) -> Option<Problem> {
    let text = place.text()?;
    let is_plain = Path::new(text).is_absolute()
        && Path::new(text).components().all(|part| part != Component::ParentDir)
        && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    (!is_plain).then(|| {
        place
            .error("not-absolute", format!("`{text}` is no absolute path"))
            .hint("begin with `/`, without `..` and without spaces")
    })
}

fn data_dir(place: &Cursor<'_>) -> Option<Problem> {
    let text = place.text()?;
    let depth = Path::new(text).components().count();
    absolute(place).or_else(|| {
        (depth < 3).then(|| {
            place
                .error("bad-data-dir", format!("`{text}` is too close to the root"))
                .hint("old copies are kept beside it: use a directory like /var/lib/etcd")
        })
    })
}

fn ports(etcd: &Cursor<'_>) -> Option<Problem> {
    let client = etcd.get("clientPort");
    let peer = etcd.get("peerPort");
    let port = |place: &Option<Cursor<'_>>, default| match place {
        Some(place) => place.integer(),
        None => Some(default),
    };
    let defaults = dyad_cluster::pair::Etcd::default();
    let number = port(&client, defaults.client_port.into())?;
    let place = peer.clone().or(client)?;
    (port(&peer, defaults.peer_port.into()) == Some(number)).then(|| {
        place
            .error("same-port", format!("clients and the peer have the same port, {number}"))
            .hint("give them different ones; 2379 and 2380 are usual")
    })
}

fn runner(etcd: &Cursor<'_>) -> Option<Problem> {
    let is_podman = etcd.get("runner").is_some_and(|runner| runner.text() == Some("podman"));
    match (is_podman, etcd.get("image")) {
        (true, None) => Some(
            etcd.get("runner")?
                .error("no-image", "the runner podman needs an image")
                .hint("add `image`, best with its digest: registry/etcd@sha256:..."),
        ),
        (false, Some(image)) => Some(
            image
                .error("image-without-podman", "an image is given, but podman does not run etcd")
                .hint("add `runner: podman`, or remove `image`"),
        ),
        (true, Some(image)) => {
            let text = image.text()?;
            let is_plain =
                text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '%'));
            (!is_plain).then(|| image.error("bad-image", format!("`{text}` is no image name")))
        }
        (false, None) => None,
    }
}

fn tls(etcd: &Cursor<'_>) -> Vec<Problem> {
    let Some(tls) = etcd.get("tls") else { return Vec::new() };
    let given = [("peer", tls.get("peer")), ("client", tls.get("client"))];
    let source = tls.get("source");
    let source_text = source.as_ref().and_then(Cursor::text).unwrap_or("generate");
    let mut problems = Vec::new();
    for (key, files) in given {
        match (source_text, files) {
            ("files", None) => problems.push(
                tls.error("no-tls-files", format!("`source: files` needs `{key}`"))
                    .hint(format!("add `{key}` with caFile, certFile and keyFile")),
            ),
            ("generate" | "off", Some(files)) => problems.push(
                files
                    .error(
                        "unused-tls-files",
                        format!("files are given, but the source is {source_text}"),
                    )
                    .hint("set `source: files`, or remove them"),
            ),
            (_, Some(files)) => {
                let paths = ["caFile", "certFile", "keyFile"].into_iter();
                problems
                    .extend(paths.filter_map(|key| files.get(key)).filter_map(|p| absolute(&p)));
            }
            (_, None) => {}
        }
    }
    let names = tls.list("serverNames");
    if let Some(name) = names.first().filter(|_| source_text != "generate") {
        let message = format!("no certificates are made: the source is {source_text}");
        let hint = "leave `serverNames` out: these names belong into your own certificates";
        problems.push(name.error("unused-server-names", message).hint(hint));
    }
    problems.extend(names.iter().filter_map(server_name));
    if let Some(source) = source.filter(|_| source_text == "off") {
        let message = "whoever reaches etcd's ports can read and change all data";
        problems.push(source.warning("no-etcd-tls", message).hint("leave it out: `generate`"));
    }
    problems
}

/// An address, or a name that a certificate can carry.
fn server_name(place: &Cursor<'_>) -> Option<Problem> {
    let text = place.text()?;
    let label = |label: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(fine)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_name = name.len() <= 253 && name.split('.').all(label);
    (!is_name && text.parse::<std::net::IpAddr>().is_err()).then(|| {
        place
            .error("bad-server-name", format!("`{text}` is neither an address nor a host name"))
            .hint("without scheme and port: etcd.example.com, *.example.com, 10.0.0.1")
    })
}

fn election(etcd: &Cursor<'_>) -> Option<Problem> {
    let defaults = dyad_cluster::pair::Etcd::default();
    let heartbeat = etcd.get("heartbeatMs");
    let election = etcd.get("electionMs");
    let value = |place: &Option<Cursor<'_>>, default: u64| match place {
        Some(place) => place.integer().and_then(|number| u64::try_from(number).ok()),
        None => Some(default),
    };
    let heartbeat_ms = value(&heartbeat, defaults.heartbeat_ms)?;
    let election_ms = value(&election, defaults.election_ms)?;
    let place = election.or(heartbeat)?;
    (election_ms < heartbeat_ms.saturating_mul(5)).then(|| {
        place
            .error(
                "election-too-short",
                format!("an election time-out of {election_ms} ms is less than five heartbeats of {heartbeat_ms} ms"),
            )
            .hint(format!("set `electionMs` to {} or more; etcd refuses less", heartbeat_ms.saturating_mul(5)))
    })
}

fn argument(place: &Cursor<'_>) -> Option<Problem> {
    let text = place.text()?;
    let Some(rest) = text.strip_prefix("--") else {
        return Some(
            place
                .error("bad-argument", format!("`{text}` is no argument"))
                .hint("write `--name=value`, each in an entry of its own"),
        );
    };
    let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
    if text.contains(char::is_whitespace) {
        return Some(
            place
                .error("bad-argument", format!("`--{name}` has a space in it"))
                .hint("write `--name=value`, each in an entry of its own"),
        );
    }
    if OWN_ARGUMENTS.contains(&name) {
        return Some(
            place
                .error("own-argument", format!("`--{name}` is Dyad's to give"))
                .hint("remove it; the other keys of this file say what it should be"),
        );
    }
    value.contains(|c: char| matches!(c, '"' | '\'' | '\\' | '$') || c.is_control()).then(|| {
        place.error(
            "bad-argument",
            format!("`--{name}` has a quote, `\\`, `$` or control character in it"),
        )
    })
}
