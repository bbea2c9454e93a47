//! `dyad rotate etcd-certs`: new certificates of this node's etcd, tried at the other one before they are used.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use dyad_cluster::pair::{CertificateFiles, EtcdTls};
use dyad_core::state::State;
use dyad_http::{Client, Deadline, Endpoint, Fingerprint, Identity, Request, Trust};
use dyad_node::certificates::{self, NewFile};
use dyad_node::gather::words;
use dyad_node::{Node, pacemaker};
use dyad_pair_file::pki;
use dyad_status::look::{PATIENT, look};
use serde::Serialize;

use super::super::{maintenance, person, waiting};
use crate::cli::{MaintenanceArguments, RotateCertificates};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Tells the other node that this one is at it.
const ATTRIBUTE: &str = "dyad-rotate";
/// A word that is older was left by somebody who did not come back.
const WORD_MS_MAX: u64 = 15 * 60 * 1000;
/// One handshake and one answer.
const TRY_LIMIT: Duration = Duration::from_secs(5);
/// How long etcd may take to show the new certificate.
const SHOWN_LIMIT: Duration = Duration::from_secs(10);
/// No certificate or key is larger.
const BYTES_MAX: u64 = 1 << 20;
/// Where the bundle that the next boot compares with may lie.
const KEPT: &str = "/etc/dyad/nodes";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    node: &'a str,
    replaced: Vec<String>,
    restarted: bool,
}

/// One file that is to be replaced.
struct Change {
    path: PathBuf,
    new: Vec<u8>,
    old: Option<Vec<u8>>,
    secret: bool,
}

/// Does it.
pub(super) fn run(
    node: &Arc<Node>,
    arguments: &RotateCertificates,
    format: Format,
) -> anyhow::Result<Exit> {
    let tls = node.pair.etcd.tls.clone().ok_or_else(|| {
        Failure::new(Exit::Usage, "this pair's etcd has no certificates (etcd.tls.source: off)")
            .hint("there is nothing to rotate; etcd.tls.source in pair.yaml gives it some")
    })?;
    let changes = changes(&tls, &arguments.from)?;
    let own = node.own().name.to_string();
    let trust_changes = changes
        .iter()
        .any(|change| [&tls.peer.ca_file, &tls.client.ca_file].contains(&&change.path));
    let replaced: Vec<_> = changes.iter().map(|change| change.path.display().to_string()).collect();
    if changes.is_empty() {
        tell(format, &Body { node: &own, replaced, restarted: false }, "nothing differs\n")?;
        return Ok(Exit::Ok);
    }
    require_protected(node)?;
    let turn = Turn::take(node)?;
    let staged = Staged::new(&node.place.runtime.join("rotate"), &tls, &changes)?;
    staged.check(node)?;
    let act = format!("puts new certificates of {own}'s etcd into use");
    person::write_down(node, &act, arguments.reason.as_deref())?;
    let installed = if trust_changes {
        out_of_service(node, arguments, || install(node, &changes))
    } else {
        install(node, &changes)
    };
    if let Err(error) = installed.and_then(|()| shown(node, &tls)) {
        put_back(node, &changes).context("putting the old certificates back")?;
        return Err(error.context("the old certificates are in place again"));
    }
    drop(turn);
    let body = Body { node: &own, replaced, restarted: trust_changes };
    let how = if trust_changes { "was restarted and shows" } else { "shows" };
    let text = format!(
        "{own}'s etcd {how} the new certificates\nnow the same on {}, with its own bundle\n",
        node.peer().name
    );
    tell(format, &body, &text)?;
    Ok(Exit::Ok)
}

fn tell(format: Format, body: &Body<'_>, text: &str) -> anyhow::Result<()> {
    match format {
        Format::Json => output::print_json("Rotation", body),
        Format::Text => output::print_data(text),
    }
}

/// The files of the pair that differ, as the new directory has them. What it does not have stays.
fn changes(tls: &EtcdTls, from: &Path) -> anyhow::Result<Vec<Change>> {
    let mut paths: Vec<(PathBuf, bool)> = Vec::new();
    for files in [&tls.peer, &tls.client] {
        paths.extend(
            [(&files.ca_file, false), (&files.cert_file, false), (&files.key_file, true)]
                .map(|(path, secret)| (path.clone(), secret)),
        );
    }
    if tls.client.ca_file == Path::new(pki::CA) {
        paths.push((pki::CLIENT_CERT.into(), false));
        paths.push((pki::CLIENT_KEY.into(), true));
    }
    paths.sort();
    paths.dedup();
    let (mut found, mut changes) = (0, Vec::new());
    for (path, secret) in paths {
        let below = from.join(path.strip_prefix("/").unwrap_or(&path));
        let Ok(size) = fs::metadata(&below).map(|file| file.len()) else { continue };
        anyhow::ensure!(size <= BYTES_MAX, "{} is too large for a certificate", below.display());
        found += 1;
        let new = fs::read(&below).with_context(|| format!("reading {}", below.display()))?;
        let old = fs::read(&path).ok();
        if old.as_ref() != Some(&new) {
            changes.push(Change { path, new, old, secret });
        }
    }
    if found == 0 {
        let message =
            format!("{} has none of the certificates that this pair names", from.display());
        return Err(Failure::new(Exit::Usage, message)
            .hint("--from takes what `dyad render --renew certificates` wrote for this node")
            .into());
    }
    Ok(changes)
}

fn require_protected(node: &Arc<Node>) -> Result<(), Failure> {
    let seen = look(node, PATIENT);
    seen.judgement
        .gate(&seen.status.unknown)
        .map_err(|refused| Failure::new(Exit::Refused, refused.because).hint(refused.command))
}

/// Never both nodes at once: each says that it is at it before it looks whether the other is.
struct Turn;

impl Turn {
    fn take(node: &Node) -> anyhow::Result<Self> {
        let now = dyad_node::journal::now_ms();
        pacemaker::publish(ATTRIBUTE, &now.to_string()).context("telling the other node")?;
        let turn = Self;
        let said = pacemaker::published(ATTRIBUTE).context("asking the other node")?;
        let peer = &node.peer().name;
        let theirs =
            said.iter().find(|(name, _)| name == peer).and_then(|(_, text)| text.parse().ok());
        match theirs {
            Some(since) if now.saturating_sub(since) < WORD_MS_MAX => {
                let message = format!("{peer} changes its certificates now");
                Err(Failure::new(Exit::Refused, message).hint("one node after the other").into())
            }
            _ => Ok(turn),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = pacemaker::publish(ATTRIBUTE, "0");
    }
}

/// The new files, as a whole set, where only root sees them: what is not new is the old one.
struct Staged {
    directory: PathBuf,
    tls: EtcdTls,
}

impl Staged {
    fn new(directory: &Path, tls: &EtcdTls, changes: &[Change]) -> anyhow::Result<Self> {
        let _ = fs::remove_dir_all(directory);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.with_context(|| format!("making {}", directory.display()))?;
        let place = |set: &str, files: &CertificateFiles| -> anyhow::Result<CertificateFiles> {
            let stage = |name: &str, path: &Path| -> anyhow::Result<PathBuf> {
                let Some(change) = changes.iter().find(|change| change.path == path) else {
                    return Ok(path.to_owned());
                };
                let to = directory.join(format!("{set}-{name}"));
                write(&to, 0o600, &change.new)?;
                Ok(to)
            };
            Ok(CertificateFiles {
                ca_file: stage("ca", &files.ca_file)?,
                cert_file: stage("cert", &files.cert_file)?,
                key_file: stage("key", &files.key_file)?,
            })
        };
        let tls =
            EtcdTls { peer: place("peer", &tls.peer)?, client: place("client", &tls.client)? };
        Ok(Self { directory: directory.to_owned(), tls })
    }

    /// Everything that can be known before: the names, the dates, the keys, and what the other node's etcd, as it
    /// runs now, says to a handshake.
    fn check(&self, node: &Node) -> Result<(), Failure> {
        let refused = |why: String, hint: &str| Failure::new(Exit::Refused, why).hint(hint);
        for (what, files) in [("peer", &self.tls.peer), ("server", &self.tls.client)] {
            for address in &node.own().addresses {
                let checked = dyad_http::check_certificate(
                    &files.ca_file,
                    &files.cert_file,
                    &address.to_string(),
                );
                checked.map_err(|error| {
                    refused(format!("the new {what} certificate cannot be used: {}", words(&error)), "render it for this node's addresses, with the authority that the pair trusts")
                })?;
            }
        }
        let peer = node.peer();
        let hint = "a new authority is trusted by both nodes before it signs: \
                    dyad render --renew trust-new-authority";
        for (files, port) in [
            (&self.tls.peer, node.pair.etcd.peer_port),
            (&self.tls.client, node.pair.etcd.client_port),
        ] {
            for target in [peer, node.own()] {
                ask(target, port, files, None).map_err(|why| {
                    let name = &target.name;
                    refused(
                        format!(
                            "{name}'s etcd and the new certificate do not take each other: {why}"
                        ),
                        hint,
                    )
                })?;
            }
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Asks a node's etcd for its version, showing these certificates; with a pin, it must show that one itself.
fn ask(
    target: &dyad_cluster::pair::Node,
    port: u16,
    files: &CertificateFiles,
    pin: Option<Fingerprint>,
) -> Result<(), String> {
    let address = target.addresses.first().ok_or("it has no address")?;
    let url = format!("https://{}", std::net::SocketAddr::new(*address, port));
    let trust = pin.map_or_else(|| Trust::CaFile(files.ca_file.clone()), Trust::Pin);
    let identity =
        Identity { certificate_file: files.cert_file.clone(), key_file: files.key_file.clone() };
    let asked = Endpoint::parse(&url)
        .and_then(|endpoint| Client::builder(endpoint).trust(trust).identity(identity).build())
        .and_then(|client| client.send(&Request::get("/version"), Deadline::after(TRY_LIMIT)));
    match asked {
        Ok(answer) if answer.status == 200 => Ok(()),
        Ok(answer) => Err(format!("it answers {}", answer.status)),
        Err(error) => Err(words(&error)),
    }
}

/// etcd reads whom it trusts at its start: the node leaves in good order, and comes back with the new files.
fn out_of_service(
    node: &Arc<Node>,
    arguments: &RotateCertificates,
    install: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let planned = MaintenanceArguments {
        node: node.own().name.to_string(),
        reason: arguments.reason.clone(),
        wait: arguments.wait,
    };
    maintenance::start(node, &planned)?;
    let installed = install();
    let back = maintenance::end(node, &planned);
    installed?;
    back.map(drop)
}

/// Puts the files in place: all of them or none, whenever the power goes.
fn install(node: &Node, changes: &[Change]) -> anyhow::Result<()> {
    let own = &node.own().name.0;
    let files: Vec<_> = changes.iter().flat_map(|change| change.files(own, &change.new)).collect();
    Ok(certificates::install(&node.place, &files)?)
}

fn put_back(node: &Node, changes: &[Change]) -> anyhow::Result<()> {
    let own = &node.own().name.0;
    let before = changes.iter().filter_map(|change| Some(change.files(own, change.old.as_ref()?)));
    let files: Vec<_> = before.flatten().collect();
    Ok(certificates::install(&node.place, &files)?)
}

impl Change {
    /// The file itself, and what the next boot compares with, if that is kept.
    fn files(&self, own: &str, content: &[u8]) -> Vec<NewFile> {
        let mode = if self.secret { 0o600 } else { 0o644 };
        let file = |path: PathBuf| NewFile { path, mode, content: content.to_owned() };
        let below = self.path.strip_prefix("/").unwrap_or(&self.path);
        let kept = Path::new(KEPT).join(own).join(below);
        let mut files = vec![file(self.path.clone())];
        files.extend(kept.is_file().then(|| file(kept)));
        files
    }
}

fn write(path: &Path, mode: u32, content: &[u8]) -> anyhow::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .with_context(|| format!("creating {}", path.display()))?;
    std::io::Write::write_all(&mut file, content)
        .and_then(|()| file.sync_all())
        .with_context(|| format!("writing {}", path.display()))
}

/// This node's etcd shows the new certificates on both ports, and the pair is as well as before.
fn shown(node: &Arc<Node>, tls: &EtcdTls) -> anyhow::Result<()> {
    let start = std::time::Instant::now();
    for (files, port) in
        [(&tls.peer, node.pair.etcd.peer_port), (&tls.client, node.pair.etcd.client_port)]
    {
        let pin = dyad_http::fingerprint(&files.cert_file)?;
        while let Err(why) = ask(node.own(), port, files, Some(pin)) {
            if start.elapsed() > SHOWN_LIMIT {
                let message =
                    format!("etcd does not show the new certificate on port {port}: {why}");
                return Err(Failure::new(Exit::Failed, message)
                    .hint("the new files are in place: journalctl -u dyad-etcd tells why")
                    .into());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    // With the new files, as every later command has it.
    let again = Arc::new(super::super::this_node::open()?);
    waiting::until(&again, SHOWN_LIMIT, "the pair to be protected", |seen| {
        matches!(seen.judgement.state, State::Protected | State::AtRisk)
    })?;
    Ok(())
}
