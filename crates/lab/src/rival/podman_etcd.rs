//! The agent `podman-etcd`, with the files and programs that it finds on a node of two-node OpenShift. What is not
//! there (an operator, cri-o, `oc`) is stood in for by as little as the agent asks of it.

use std::path::Path;

use dyad_setup::bundle::{Bundle, Item};

use super::{PKI, clone, url};
use crate::config::LabConfig;
use crate::error::{Error, Result};
use crate::image;

/// What the agent's container is made from.
const IMAGE: &str = "localhost/etcd:rival";
/// Where the agent's container has the certificates, and where they are on the node.
const CERTS_INSIDE: &str = "/etc/kubernetes/static-pod-certs";
const CERTS: &str = "/etc/kubernetes/static-pod-resources/etcd-certs";
const POD: &str = "configmaps/external-etcd-pod/pod.yaml";
/// For the lab's own scripts: names that do not depend on the node.
const OWN_CERTS: &str = "/etc/rival-certs";

/// A node's root is an overlay already, on which podman's usual storage does not work; etcd's disk is a real one.
const STORAGE: &str = "[storage]\ndriver = \"overlay\"\nrunroot = \"/run/containers/storage\"\n\
                       graphroot = \"/var/lib/etcd/.containers\"\n";
const FIRST_BOOT: &str = include_str!("podman-etcd-first-boot");
const FIRST_BOOT_UNIT: &str = "[Unit]\nDescription=What podman-etcd finds\nBefore=pacemaker.service\n\
     [Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=120\nExecStart=/usr/libexec/rival/first-boot\n\
     [Install]\nRequiredBy=pacemaker.service\n";
const REVISION: &str = include_str!("podman-etcd-revision");
const REVISION_UNIT: &str = "[Unit]\nDescription=The revision that podman-etcd compares\nAfter=rival-first-boot.service\n\
     [Service]\nExecStart=/usr/libexec/rival/revision\n[Install]\nWantedBy=multi-user.target\n";

/// How long a node takes to come back. One that is back before the survivor's monitor has seen its loss blocks the
/// survivor for two minutes, by waiting in its start; real machines take longer to boot than the lab's, so they are slow here.
const SLOW_BOOT: &str = "[Service]\nTimeoutStartSec=180\n\
     ExecStartPre=/bin/sh -c '[ ! -e /var/lib/rival-booted ] || sleep 60'\n";

/// As two-node OpenShift makes it; limits and interval are the agent's own.
pub(super) fn clone_of_etcd(config: &LabConfig) -> String {
    let map: Vec<_> =
        config.nodes.iter().map(|node| format!("{}:{}", node.name, node.link1)).collect();
    let map = map.join(";");
    let parameters = [
        ("node_ip_map", map.as_str()),
        ("drop_in_dependency", "true"),
        // A node is a container: the kernel lets it neither set the agent's usual -997, nor a filter of devices.
        ("oom", "0"),
        ("run_opts", "--cgroups=disabled"),
    ];
    clone(("heartbeat", "podman-etcd"), &parameters, &["600s", "90s", "25s", "20s"], "30s")
}

/// Writes what a node has onto its disk.
pub(super) fn install(
    config: &LabConfig,
    position: usize,
    bundle: &Bundle,
    root: &Path,
) -> Result<()> {
    let [own, peer] = [&config.nodes[position], &config.nodes[1 - position]];
    let write = |path: &str, text: &str, mode| {
        image::write(&root.join(path.trim_start_matches('/')), text, mode)
    };
    let base = |address| url(address, 0).trim_end_matches(":0").to_owned();
    let members: Vec<_> = config
        .nodes
        .iter()
        .map(|node| format!("{}={}", node.name, url(node.link1, 2380)))
        .collect();
    let settings = format!(
        "OWN={}\nPEER={}\nOWN_URL={}\nPEER_URL={}\nMEMBERS={}\nIMAGE={IMAGE}\nCERTS={OWN_CERTS}\n",
        own.name,
        peer.name,
        base(own.link1),
        base(peer.link1),
        members.join(",")
    );
    write("etc/rival-etcd", &settings, 0o644)?;
    let all = format!("{CERTS}/secrets/etcd-all-certs/etcd");
    for (file, targets) in [
        ("ca.pem", [format!("{CERTS}/{CA}"), format!("{OWN_CERTS}/ca.crt")]),
        ("peer.pem", [format!("{all}-peer-{}.crt", own.name), format!("{OWN_CERTS}/peer.crt")]),
        ("peer.key", [format!("{all}-peer-{}.key", own.name), format!("{OWN_CERTS}/peer.key")]),
        (
            "server.pem",
            [format!("{all}-serving-{}.crt", own.name), format!("{OWN_CERTS}/serving.crt")],
        ),
        (
            "server.key",
            [format!("{all}-serving-{}.key", own.name), format!("{OWN_CERTS}/serving.key")],
        ),
    ] {
        let text = certificate(bundle, file)?;
        for target in targets {
            write(&target, &text, 0o600)?;
        }
    }
    write(&format!("{CERTS}/{POD}"), &pod(&own.name), 0o644)?;
    write("var/lib/kubelet/config.json", "{}\n", 0o600)?;
    write("etc/containers/storage.conf", STORAGE, 0o644)?;
    write("etc/containers/containers.conf", crate::pair::CONTAINER_SETTINGS, 0o644)?;
    // There is no static pod of etcd here, and the agent only checks that `oc` is there.
    write("usr/bin/crictl", "#!/bin/sh\nexit 0\n", 0o755)?;
    write("usr/bin/oc", "#!/bin/sh\nexit 1\n", 0o755)?;
    write("usr/libexec/rival/first-boot", FIRST_BOOT, 0o755)?;
    write("usr/libexec/rival/revision", REVISION, 0o755)?;
    write("etc/systemd/system/corosync.service.d/slow-boot.conf", SLOW_BOOT, 0o644)?;
    unit(root, "rival-first-boot.service", FIRST_BOOT_UNIT, "pacemaker.service.requires")?;
    unit(root, "rival-revision.service", REVISION_UNIT, "multi-user.target.wants")
}

const CA: &str = "configmaps/etcd-all-bundles/server-ca-bundle.crt";

fn certificate(bundle: &Bundle, file: &str) -> Result<String> {
    match bundle.items.get(&Path::new(PKI).join(file)) {
        Some(Item::File { content, .. }) => Ok(String::from_utf8_lossy(content).into_owned()),
        _ => Err(Error::Config(format!("no {file} was rendered for {}", bundle.node))),
    }
}

/// The pod's manifest, as far as the agent reads it; values as on bare metal.
fn pod(node: &str) -> String {
    let all = format!("{CERTS_INSIDE}/secrets/etcd-all-certs/etcd-peer-{node}");
    let values = [
        ("ETCD_CIPHER_SUITES", String::new()),
        ("ETCD_DATA_DIR", "/var/lib/etcd".to_owned()),
        ("ETCD_ELECTION_TIMEOUT", "1000".to_owned()),
        ("ETCD_ENABLE_PPROF", "true".to_owned()),
        ("ETCD_WARNING_APPLY_DURATION", "200ms".to_owned()),
        ("ETCD_WATCH_PROGRESS_NOTIFY_INTERVAL", "5s".to_owned()),
        ("ETCD_HEARTBEAT_INTERVAL", "100".to_owned()),
        ("ETCD_QUOTA_BACKEND_BYTES", "8589934592".to_owned()),
        ("ETCD_SOCKET_REUSE_ADDRESS", "true".to_owned()),
        ("ETCDCTL_CACERT", format!("{CERTS_INSIDE}/{CA}")),
        ("ETCDCTL_CERT", format!("{all}.crt")),
        ("ETCDCTL_KEY", format!("{all}.key")),
    ];
    let env: Vec<_> =
        values.map(|(name, value)| serde_json::json!({ "name": name, "value": value })).into();
    let container = serde_json::json!({ "name": "etcd", "image": IMAGE, "env": env });
    let pod = serde_json::json!({
        "metadata": { "labels": { "app": "etcd", "revision": "1" } },
        "spec": { "containers": [container], "volumes": [] },
    });
    format!("{pod}\n")
}

/// What `systemctl enable` would do.
fn unit(root: &Path, name: &str, text: &str, wants: &str) -> Result<()> {
    let units = root.join("etc/systemd/system");
    image::write(&units.join(name), text, 0o644)?;
    let wants = units.join(wants);
    std::fs::create_dir_all(&wants).map_err(Error::io("making", &wants))?;
    let link = wants.join(name);
    std::os::unix::fs::symlink(format!("../{name}"), &link).map_err(Error::io("linking", &link))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manifest has what the agent's filters look for.
    #[test]
    fn the_manifest_has_what_the_agent_reads() {
        let pod: serde_json::Value = serde_json::from_str(&pod("node-a")).unwrap();
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["image"], IMAGE);
        let env = container["env"].as_array().unwrap();
        let key = env.iter().find(|each| each["name"] == "ETCDCTL_KEY").unwrap();
        assert!(key["value"].as_str().unwrap().ends_with("etcd-peer-node-a.key"), "{key}");
        assert!(pod["spec"]["volumes"].is_array());
    }

    /// The lab's own scripts have no mistakes that a shell can find.
    #[test]
    fn the_scripts_are_scripts() {
        for text in [FIRST_BOOT, REVISION] {
            let mut command = crate::program::command("sh", ["-n"]);
            crate::program::output(&mut command, text, crate::program::QUICK).unwrap();
        }
    }
}
