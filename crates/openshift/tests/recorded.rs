//! The client against a small server that answers as an OpenShift API server does, over real TLS.

#[path = "../../http/tests/common/mod.rs"]
mod common;

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use common::{Pki, Server, read_request};
use dyad_openshift::{Access, Error, ManagedEtcdKind};
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};

const TOKEN: &str = "sha256~not-a-real-token";

/// A cluster: its topology, its etcd operator's settings, and every request that came.
struct Cluster {
    access: Access,
    settings: Arc<Mutex<Value>>,
    asked: Arc<Mutex<Vec<String>>>,
    _pki: Pki,
}

fn cluster(topology: &'static str) -> Cluster {
    let pki = Pki::new(&["127.0.0.1"]);
    let settings = Arc::new(Mutex::new(json!({
        "kind": "ConfigMap",
        "metadata": { "name": "etcd-operator-config", "namespace": "openshift-etcd-operator" },
        "data": { "config.yaml": "apiVersion: operator.openshift.io/v1alpha1\n" },
    })));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let config = pki.server_config(false);
    let (kept, seen) = (Arc::clone(&settings), Arc::clone(&asked));
    let server = Server::start(move |stream, _| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while let Some(request) = read_request(&mut stream) {
            let (status, answer) = answer(&request, topology, &mut kept.lock().unwrap());
            seen.lock().unwrap().push(request.lines().next().unwrap_or_default().to_owned());
            let body = answer.to_string();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
            stream.flush().unwrap();
        }
    });
    let token_file = pki.directory.path().join("token");
    std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
    let url = format!("https://{}", server.address);
    let access = Access { url, token_file, ca_file: pki.ca_file() };
    Cluster { access, settings, asked, _pki: pki }
}

fn answer(request: &str, topology: &str, settings: &mut Value) -> (&'static str, Value) {
    let refusal = |message: &str| json!({ "kind": "Status", "message": message });
    if !request.contains(&format!("Authorization: Bearer {TOKEN}\r\n")) {
        return ("401 Unauthorized", refusal("Unauthorized"));
    }
    let words: Vec<&str> = request.split_whitespace().take(2).collect();
    let config = "/api/v1/namespaces/openshift-etcd-operator/configmaps/etcd-operator-config";
    match words.as_slice() {
        ["GET", "/apis/config.openshift.io/v1/infrastructures/cluster"] => {
            ("200 OK", json!({ "status": { "controlPlaneTopology": topology } }))
        }
        ["GET", path] if *path == config => ("200 OK", settings.clone()),
        ["PATCH", path] if *path == config => {
            if !request.contains("Content-Type: application/merge-patch+json\r\n") {
                return ("415 Unsupported Media Type", refusal("not a merge patch"));
            }
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let patch: Value = serde_json::from_str(body).unwrap();
            for (key, value) in patch["data"].as_object().unwrap() {
                settings["data"][key] = value.clone();
            }
            ("200 OK", settings.clone())
        }
        _ => ("403 Forbidden", refusal("forbidden")),
    }
}

/// The field is set once, the rest of the settings stays, a second time changes nothing, and it goes back.
#[test]
fn the_operator_lets_go_and_takes_back() {
    let cluster = cluster("DualReplica");
    let access = &cluster.access;
    assert_eq!(access.managed_etcd_kind().unwrap(), ManagedEtcdKind::Cluster);
    assert!(access.set_managed_etcd_kind(ManagedEtcdKind::External).unwrap());
    assert!(!access.set_managed_etcd_kind(ManagedEtcdKind::External).unwrap());
    let data = cluster.settings.lock().unwrap()["data"].clone();
    assert_eq!(data["managedEtcdKind"], "External");
    assert!(data["config.yaml"].as_str().unwrap().contains("operator.openshift.io"));
    assert!(access.set_managed_etcd_kind(ManagedEtcdKind::Cluster).unwrap());
    assert_eq!(access.managed_etcd_kind().unwrap(), ManagedEtcdKind::Cluster);
}

/// In any other topology nothing is changed.
#[test]
fn only_two_nodes_are_asked() {
    let cluster = cluster("HighlyAvailable");
    let error =
        cluster.access.set_managed_etcd_kind(ManagedEtcdKind::External).unwrap_err().to_string();
    assert!(error.contains("HighlyAvailable") && error.contains("DualReplica"), "{error}");
    assert!(cluster.asked.lock().unwrap().iter().all(|line| !line.starts_with("PATCH")));
}

/// A wrong token, a strange server and a missing file are told apart; no message holds the token.
#[test]
fn errors_say_what_to_look_at() {
    let cluster = cluster("DualReplica");
    let wrong = cluster.access.token_file.with_file_name("wrong");
    std::fs::write(&wrong, "other-secret").unwrap();
    let access = Access { token_file: wrong, ..cluster.access.clone() };
    let error = access.check_topology().unwrap_err();
    assert!(matches!(&error, Error::Refused { status: 401, .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("other-secret"));

    let stranger = Pki::new(&["127.0.0.1"]);
    let access = Access { ca_file: stranger.ca_file(), ..cluster.access.clone() };
    assert!(matches!(access.check_topology(), Err(Error::Http { .. })));

    let access = Access { token_file: "/nonexistent".into(), ..cluster.access.clone() };
    let error = access.check_topology().unwrap_err().to_string();
    assert!(error.contains("/nonexistent"), "{error}");

    let access = Access { url: cluster.access.url.replace("https", "http"), ..cluster.access };
    assert!(matches!(access.check_topology(), Err(Error::Plain { .. })));
}
