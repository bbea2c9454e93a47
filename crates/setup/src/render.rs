//! From one description to the bundles of both nodes.

use std::path::Path;

use dyad_cluster::pair::{CertificateFiles, Pair};
use dyad_cluster::{cib, corosync};
use dyad_pair_file::file::{PairFile, TlsSource};
use dyad_pair_file::{bmc_ca_path, credentials_path, pki as places};

use dyad_node::webhook::Receiver;

use crate::account;
use crate::bundle::Bundle;
use crate::error::{Error, failed};
pub use crate::pki::AuthorityStep;
use crate::pki::{self, Authority, Purpose};
use crate::secrets::SecretsDir;
use crate::units;

/// Where the packages put the agents.
const AGENTS: &str = "/usr/libexec/dyad";
/// No authority of a BMC is larger.
const CA_BYTES_MAX: usize = 1024 * 1024;

/// What is to be made anew before a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// etcd's certificates, by the authority that signed them.
    Certificates,
    /// A step towards another authority.
    Authority(AuthorityStep),
    /// Corosync's key.
    Authkey,
}

/// Makes something anew that is else made once.
pub fn renew(pair: &Pair, secrets: &SecretsDir, renewal: Renewal) -> Result<(), Error> {
    match renewal {
        Renewal::Certificates => pki::forget_certificates(secrets, pair),
        Renewal::Authority(step) => pki::step(secrets, step),
        Renewal::Authkey => secrets.renew_authkey(),
    }
}

/// Renders both nodes. `base` is the directory that relative paths of the file start from.
///
/// Makes what is made once (Corosync's key, the authority, certificates) in the secrets directory; everything
/// else depends on nothing but the file and what it names.
pub fn render(
    file: &PairFile,
    pair: &Pair,
    base: &Path,
    secrets: &SecretsDir,
) -> Result<[Bundle; 2], Error> {
    let authkey = secrets.authkey()?;
    let generates = file.etcd.tls.source == TlsSource::Generate;
    let authority = if generates { Some(Authority::open(secrets)?) } else { None };
    let mut bundles = Vec::with_capacity(2);
    for position in 0..2 {
        let mut bundle = Bundle::new(&pair.nodes[position].name.0);
        add_cluster(&mut bundle, pair, &authkey);
        add_bmcs(&mut bundle, file, base)?;
        add_webhook(&mut bundle, file, base)?;
        if let Some(authority) = &authority {
            let more = &file.etcd.tls.server_names;
            add_certificates(&mut bundle, pair, position, authority, more)?;
        }
        add_units(&mut bundle, pair);
        bundles.push(bundle);
    }
    Ok(bundles.try_into().expect("two nodes were rendered"))
}

fn add_cluster(bundle: &mut Bundle, pair: &Pair, authkey: &[u8]) {
    bundle.public("/etc/corosync/corosync.conf", corosync::render(pair));
    bundle.secret("/etc/corosync/authkey", authkey);
    bundle.public("/etc/dyad/cib.xml", cib::render(pair));
    let own = for_node(pair, &bundle.node);
    let mut json = serde_json::to_string_pretty(&own).expect("a pair is JSON");
    json.push('\n');
    bundle.public("/etc/dyad/pair.json", json);
}

/// The description as this node reads it: `{node}` in the names of given certificates is its own name.
fn for_node(pair: &Pair, node: &str) -> Pair {
    let mut own = pair.clone();
    let fill = |files: &mut CertificateFiles| {
        for path in [&mut files.ca_file, &mut files.cert_file, &mut files.key_file] {
            *path = path.to_string_lossy().replace("{node}", node).into();
        }
    };
    if let Some(tls) = &mut own.etcd.tls {
        fill(&mut tls.peer);
        fill(&mut tls.client);
    }
    own
}

/// Both accounts go to both nodes: the peer's to fence it, the own one to compare the BMC with the machine.
fn add_bmcs(bundle: &mut Bundle, file: &PairFile, base: &Path) -> Result<(), Error> {
    for node in &file.nodes {
        if let Some(account) = account::account(node, base)? {
            let text = account::text(&account.username, &account.password);
            bundle.secret(credentials_path(&node.name), text);
        }
        if let Some(path) = node.bmc.tls.as_ref().and_then(|tls| tls.ca_file.as_ref()) {
            let path = account::resolve(base, path);
            let content = std::fs::read(&path).map_err(failed("read", &path))?;
            let is_certificate = content.len() <= CA_BYTES_MAX
                && String::from_utf8_lossy(&content).contains("-----BEGIN CERTIFICATE-----");
            // A key that was named by mistake must not become a public file.
            if !is_certificate || String::from_utf8_lossy(&content).contains("PRIVATE KEY") {
                let why = "it is no PEM file with certificates only".to_owned();
                return Err(Error::Secret { path, why });
            }
            bundle.public(bmc_ca_path(&node.name), content);
        }
    }
    Ok(())
}

/// The address that events are posted to, if it can be used: a mistake is found here and not at night.
fn add_webhook(bundle: &mut Bundle, file: &PairFile, base: &Path) -> Result<(), Error> {
    let Some(webhook) = &file.webhook else { return Ok(()) };
    let path = account::resolve(base, &webhook.url_file);
    let text =
        dyad_power::read_private(&path).and_then(|text| Receiver::parse(&text).map(|_| text));
    let text = text.map_err(|why| Error::Secret { path, why })?;
    bundle.secret(dyad_pair_file::WEBHOOK, text.as_bytes());
    Ok(())
}

fn add_certificates(
    bundle: &mut Bundle,
    pair: &Pair,
    position: usize,
    authority: &Authority<'_>,
    server_names: &[String],
) -> Result<(), Error> {
    bundle.public(places::CA, authority.trusted.clone());
    for (purpose, certificate, key) in [
        (Purpose::Peer, places::PEER_CERT, places::PEER_KEY),
        (Purpose::Server, places::SERVER_CERT, places::SERVER_KEY),
        (Purpose::Client, places::CLIENT_CERT, places::CLIENT_KEY),
    ] {
        let issued = authority.issue(pair, &pair.nodes[position], purpose, server_names)?;
        bundle.public(certificate, issued.certificate);
        bundle.secret(key, issued.key);
    }
    Ok(())
}

fn add_units(bundle: &mut Bundle, pair: &Pair) {
    let directory = Path::new("/etc/systemd/system");
    for (name, text) in units::all(pair) {
        bundle.public(directory.join(name), text);
    }
    for unit in [units::SETUP_UNIT, units::LONE_BOOT_UNIT, units::WEBHOOK_PATH] {
        let wants = directory.join("multi-user.target.wants").join(unit);
        bundle.link(wants, format!("../{unit}"));
    }
    bundle.link("/usr/lib/ocf/resource.d/dyad/etcd", format!("{AGENTS}/dyad-node"));
    bundle.link(format!("{AGENTS}/dyad-alert"), "dyad-node");
    bundle.link("/usr/sbin/fence_dyad_redfish", format!("{AGENTS}/fence_dyad_redfish"));
}
