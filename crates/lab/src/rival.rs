//! What Dyad is compared with, on the same nodes: other agents that keep etcd going, each as close to what its makers
//! mean as the lab allows.

mod podman_etcd;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use dyad_setup::bundle::{Bundle, Item};

use crate::config::{LabConfig, PairStack, Rival, reserved};
use crate::error::{Error, Result};
use crate::image;
use crate::place::Place;

/// The resource that keeps etcd.
pub(crate) const RESOURCE: &str = "etcd";
/// The plain agent.
const FORCE_NEW_CLUSTER: &str = include_str!("rival/force-new-cluster");
/// Where certificates lie, as in a pair that Dyad makes.
const PKI: &str = "/etc/dyad/pki";

/// Certificates as Dyad would make them: the rivals get the same.
pub(crate) fn certificates(
    config: &LabConfig,
    place: &Place,
    pins: &[String; 2],
) -> Result<[Bundle; 2]> {
    let stack = PairStack { package: PathBuf::new(), tls: true, by_hand: false, podman: false };
    crate::pair::bundles(config, &stack, place, pins)
}

/// Writes what a node of a rival has onto its disk.
pub(crate) fn install(
    config: &LabConfig,
    rival: Rival,
    position: usize,
    bundle: &Bundle,
    (image, root): (&Path, &Path),
) -> Result<()> {
    let owner = image::etcd_owner(image)?;
    for (path, item) in &bundle.items {
        let (true, Item::File { mode, content }) = (path.starts_with(PKI), item) else { continue };
        let target = root.join(path.strip_prefix("/").unwrap_or(path));
        image::write(&target, &String::from_utf8_lossy(content), *mode)?;
        // Debian's etcd has a user of its own.
        chown(&target, Some(owner.0), Some(owner.1)).map_err(Error::io("giving away", &target))?;
    }
    match rival {
        Rival::ForceNewCluster => force_new_cluster(config, position, root),
        Rival::PodmanEtcd => podman_etcd::install(config, position, bundle, root),
    }
}

fn force_new_cluster(config: &LabConfig, position: usize, root: &Path) -> Result<()> {
    let [own, peer] = [&config.nodes[position], &config.nodes[1 - position]];
    let write = |path: &str, text: &str, mode| image::write(&root.join(path), text, mode);
    let settings = format!(
        "OWN={}\nOWN_PEER_URL={}\nPEER={}\nPEER_CLIENT_URL={}\nETCDCTL_API=3\n\
         ETCDCTL_CACERT={PKI}/ca.pem\nETCDCTL_CERT={PKI}/client.pem\nETCDCTL_KEY={PKI}/client.key\n",
        own.name,
        url(own.link1, 2380),
        peer.name,
        url(peer.link1, 2379)
    );
    write("etc/rival-etcd", &settings, 0o600)?;
    write("etc/default/etcd", &etcd_settings(config, position), 0o644)?;
    write("usr/lib/ocf/resource.d/rival/force-new-cluster", FORCE_NEW_CLUSTER, 0o755)?;
    let more = "[Service]\nEnvironmentFile=-/run/rival-etcd.env\nTimeoutStartSec=300\n";
    write("etc/systemd/system/etcd.service.d/rival.conf", more, 0o644)
}

/// The clone that Pacemaker is given.
pub(crate) fn clone_of_etcd(config: &LabConfig, rival: Rival) -> String {
    match rival {
        Rival::ForceNewCluster => {
            clone(("rival", "force-new-cluster"), &[], &["300s", "60s", "20s", "300s"], "5s")
        }
        Rival::PodmanEtcd => podman_etcd::clone_of_etcd(config),
    }
}

/// A clone with notifications; limits of start, stop, monitor and notify.
fn clone(
    (provider, kind): (&str, &str),
    parameters: &[(&str, &str)],
    [start, stop, monitor, notify]: &[&str; 4],
    interval: &str,
) -> String {
    let mut text = format!(
        "<clone id=\"{RESOURCE}-clone\"><meta_attributes id=\"{RESOURCE}-clone-meta\">\
         <nvpair id=\"{RESOURCE}-notify\" name=\"notify\" value=\"true\"/>\
         <nvpair id=\"{RESOURCE}-interleave\" name=\"interleave\" value=\"true\"/></meta_attributes>\n\
         <primitive id=\"{RESOURCE}\" class=\"ocf\" provider=\"{provider}\" type=\"{kind}\">\n\
         <instance_attributes id=\"{RESOURCE}-parameters\">"
    );
    for (name, value) in parameters {
        let _ =
            write!(text, "<nvpair id=\"{RESOURCE}-{name}\" name=\"{name}\" value=\"{value}\"/>");
    }
    let _ = write!(
        text,
        "</instance_attributes>\n<operations>\
         <op id=\"{RESOURCE}-start\" name=\"start\" interval=\"0\" timeout=\"{start}\"/>\
         <op id=\"{RESOURCE}-stop\" name=\"stop\" interval=\"0\" timeout=\"{stop}\"/>\
         <op id=\"{RESOURCE}-monitor\" name=\"monitor\" interval=\"{interval}\" timeout=\"{monitor}\"/>\
         <op id=\"{RESOURCE}-notify-op\" name=\"notify\" interval=\"0\" timeout=\"{notify}\"/>\
         </operations></primitive></clone>\n"
    );
    text
}

/// The settings of a plain pair of etcds, as Dyad's are: certificates, and a log that is kept short.
fn etcd_settings(config: &LabConfig, position: usize) -> String {
    let node = &config.nodes[position];
    let own = |port| url(node.link1, port);
    let members: Vec<_> = config
        .nodes
        .iter()
        .map(|node| format!("{}={}", node.name, url(node.link1, 2380)))
        .collect();
    let client = url(reserved::node_for_clients(position).into(), 2379);
    let mut text = format!(
        "ETCD_NAME={}\nETCD_DATA_DIR=/var/lib/etcd/default\nETCD_LISTEN_PEER_URLS={}\n\
         ETCD_INITIAL_ADVERTISE_PEER_URLS={}\nETCD_LISTEN_CLIENT_URLS={},{client},https://127.0.0.1:2379\n\
         ETCD_ADVERTISE_CLIENT_URLS={}\nETCD_INITIAL_CLUSTER={}\nETCD_INITIAL_CLUSTER_STATE=new\n\
         ETCD_INITIAL_CLUSTER_TOKEN={}\nETCD_SNAPSHOT_COUNT=10000\n",
        node.name,
        own(2380),
        own(2380),
        own(2379),
        own(2379),
        members.join(","),
        config.name,
    );
    for (prefix, file) in [("ETCD_", "server"), ("ETCD_PEER_", "peer")] {
        let _ = write!(
            text,
            "{prefix}CERT_FILE={PKI}/{file}.pem\n{prefix}KEY_FILE={PKI}/{file}.key\n\
             {prefix}TRUSTED_CA_FILE={PKI}/ca.pem\n{prefix}CLIENT_CERT_AUTH=true\n"
        );
    }
    text
}

/// An encrypted endpoint.
fn url(address: IpAddr, port: u16) -> String {
    match address {
        IpAddr::V4(address) => format!("https://{address}:{port}"),
        IpAddr::V6(address) => format!("https://[{address}]:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Stack;

    /// Both rivals' first CIB is well-formed and has etcd as a clone with notifications.
    #[test]
    fn the_cib_of_a_rival_has_etcd() {
        for rival in [Rival::ForceNewCluster, Rival::PodmanEtcd] {
            let config = LabConfig { stack: Stack::Rival(rival), ..LabConfig::named("test") };
            let cib = crate::cluster::cib(&config, &["one".into(), "two".into()]);
            let document = roxmltree::Document::parse(&cib).unwrap();
            let clone = document.descendants().find(|node| node.has_tag_name("clone")).unwrap();
            let notify = clone.descendants().find(|node| node.attribute("name") == Some("notify"));
            assert_eq!(notify.unwrap().attribute("value"), Some("true"));
        }
    }

    /// The plain agent is a shell script without mistakes that a shell can find.
    #[test]
    fn the_plain_agent_is_a_script() {
        let mut command = crate::program::command("sh", ["-n"]);
        crate::program::output(&mut command, FORCE_NEW_CLUSTER, crate::program::QUICK).unwrap();
    }

    /// A plain pair speaks to clients and to the peer with certificates only.
    #[test]
    fn a_plain_pair_is_encrypted() {
        let config = LabConfig::named("test").ipv6();
        let text = etcd_settings(&config, 1);
        assert!(text.contains("node-a=https://[fd77:0:0:1::1]:2380"), "{text}");
        assert!(!text.contains("http://"), "{text}");
        assert!(text.contains("ETCD_PEER_CLIENT_CERT_AUTH=true"), "{text}");
    }
}
