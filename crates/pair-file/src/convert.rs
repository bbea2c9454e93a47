//! From what people write to what everything is rendered from.

use std::path::PathBuf;

use dyad_cluster::pair;

use crate::file;

/// Where a node's credentials lie on both nodes, if `dyad render` puts them there.
pub fn credentials_path(node: &str) -> PathBuf {
    format!("/etc/dyad/bmc-{node}").into()
}

/// Where the authority of a node's BMC lies on both nodes.
pub fn bmc_ca_path(node: &str) -> PathBuf {
    format!("/etc/dyad/bmc-{node}-ca.pem").into()
}

/// Where the address that events are posted to lies on both nodes.
pub const WEBHOOK: &str = "/etc/dyad/webhook";

/// Where generated certificates lie on a node.
pub mod pki {
    /// The directory.
    pub const DIRECTORY: &str = "/etc/dyad/pki";
    /// The pair's authority.
    pub const CA: &str = "/etc/dyad/pki/ca.pem";
    /// The certificate between the members.
    pub const PEER_CERT: &str = "/etc/dyad/pki/peer.pem";
    /// Its key.
    pub const PEER_KEY: &str = "/etc/dyad/pki/peer.key";
    /// The certificate that clients see; Dyad's agents show it too.
    pub const SERVER_CERT: &str = "/etc/dyad/pki/server.pem";
    /// Its key.
    pub const SERVER_KEY: &str = "/etc/dyad/pki/server.key";
    /// A certificate for clients on this node, such as API servers.
    pub const CLIENT_CERT: &str = "/etc/dyad/pki/client.pem";
    /// Its key.
    pub const CLIENT_KEY: &str = "/etc/dyad/pki/client.key";
}

/// The description that everything is rendered from; none if an address is not one or there are not two
/// nodes, which the rules have reported.
pub(crate) fn pair(file: &file::PairFile) -> Option<pair::Pair> {
    let nodes: Vec<_> = file.nodes.iter().map(node).collect::<Option<_>>()?;
    Some(pair::Pair {
        name: file.name.clone(),
        nodes: nodes.try_into().ok()?,
        preferred_survivor: file.preferred_survivor.as_deref().map(Into::into),
        detection: detection(&file.detection),
        fencing: pair::Fencing {
            delay_ms: file.fencing.delay_ms,
            bmc_off_ms: file.fencing.bmc_off_ms,
            bmc_timeout_ms: file.fencing.bmc_timeout_ms,
            monitor_interval_ms: file.fencing.monitor_interval_ms,
        },
        etcd: etcd(&file.etcd)?,
        units_before: file.units_before.clone(),
        units_after: file.units_after.clone(),
        virtual_ip: match &file.virtual_ip {
            None => None,
            Some(virtual_ip) => Some(pair::VirtualIp {
                address: virtual_ip.address.parse().ok()?,
                prefix: virtual_ip.prefix,
                interface: virtual_ip.interface.clone(),
            }),
        },
        webhook: file.webhook.as_ref().map(|webhook| pair::Webhook {
            url_file: WEBHOOK.into(),
            ca_file: webhook.ca_file.clone(),
        }),
    })
}

fn node(node: &file::Node) -> Option<pair::Node> {
    let bmc = &node.bmc;
    let tls = bmc.tls.clone().unwrap_or_default();
    Some(pair::Node {
        name: node.name.as_str().into(),
        addresses: node.addresses.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?,
        bmc: pair::Bmc {
            address: bmc.address.clone(),
            system: bmc.system.clone(),
            tls: match (tls.ca_file, tls.pin) {
                (Some(_), _) => pair::BmcTls::CaFile(bmc_ca_path(&node.name)),
                (None, Some(pin)) => pair::BmcTls::Pin(pin),
                (None, None) => pair::BmcTls::Insecure,
            },
            credentials_file: bmc
                .credentials
                .on_node
                .clone()
                .unwrap_or_else(|| credentials_path(&node.name)),
        },
    })
}

fn detection(detection: &file::Detection) -> pair::Detection {
    let preset = match detection.preset.unwrap_or(file::Preset::Normal) {
        file::Preset::Fast => pair::Detection::Fast,
        file::Preset::Normal => pair::Detection::Normal,
        file::Preset::Tolerant => pair::Detection::Tolerant,
    };
    let file::Detection { token_ms, consensus_ms, link_timeout_ms, .. } = *detection;
    if token_ms.or(consensus_ms).or(link_timeout_ms).is_none() {
        return preset;
    }
    let token_ms = token_ms.unwrap_or_else(|| preset.token_ms());
    pair::Detection::Custom { token_ms, consensus_ms, link_timeout_ms }
}

fn etcd(etcd: &file::Etcd) -> Option<pair::Etcd> {
    Some(pair::Etcd {
        data_dir: etcd.data_dir.clone(),
        client_port: etcd.client_port,
        peer_port: etcd.peer_port,
        runner: match etcd.runner {
            file::Runner::Systemd => pair::Runner::Systemd,
            file::Runner::Podman => pair::Runner::Podman { image: etcd.image.clone()? },
        },
        tls: match etcd.tls.source {
            file::TlsSource::Off => None,
            file::TlsSource::Generate => Some(generated()),
            file::TlsSource::Files => Some(pair::EtcdTls {
                peer: given(etcd.tls.peer.as_ref()?),
                client: given(etcd.tls.client.as_ref()?),
            }),
        },
        heartbeat_ms: etcd.heartbeat_ms,
        election_ms: etcd.election_ms,
        extra_args: etcd.extra_args.clone(),
        keep_copies: etcd.keep_copies,
    })
}

fn generated() -> pair::EtcdTls {
    let files = |cert: &str, key: &str| pair::CertificateFiles {
        ca_file: pki::CA.into(),
        cert_file: cert.into(),
        key_file: key.into(),
    };
    pair::EtcdTls {
        peer: files(pki::PEER_CERT, pki::PEER_KEY),
        client: files(pki::SERVER_CERT, pki::SERVER_KEY),
    }
}

fn given(files: &file::CertificateFiles) -> pair::CertificateFiles {
    pair::CertificateFiles {
        ca_file: files.ca_file.clone(),
        cert_file: files.cert_file.clone(),
        key_file: files.key_file.clone(),
    }
}
