//! A pair on the lab's nodes, from the same description that a site would write: a `pair.yaml`, rendered.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use dyad_pair_file::load;
use dyad_setup::SecretsDir;
use dyad_setup::bundle::{Bundle, Item};

use crate::cluster::{BMC_PORT, BMC_SYSTEM, bmc_credentials};
use crate::config::{LabConfig, Link, PairStack, reserved};
use crate::error::{Error, Result};
use crate::image;
use crate::place::Place;

/// The programs that a node of a pair has, and where.
const PROGRAMS: &[(&str, &str)] = &[
    ("dyad", "usr/bin/dyad"),
    ("dyad-node", "usr/libexec/dyad/dyad-node"),
    ("fence_dyad_redfish", "usr/libexec/dyad/fence_dyad_redfish"),
];

/// Services that stand for the container runtime and kubelet: they do nothing but run.
pub const UNITS_BEFORE: [&str; 2] = ["crio.service", "kubelet.service"];

/// Begins the data on the first node before its first Pacemaker starts.
const FIRST_DATASET: &str = "\
[Unit]
Description=The first dataset of this pair
ConditionPathExists=/etc/dyad/begin
Before=pacemaker.service
After=network.target

[Service]
Type=oneshot
ExecStart=/usr/libexec/dyad/dyad-node create-dataset
ExecStartPost=/usr/bin/rm /etc/dyad/begin

[Install]
WantedBy=multi-user.target
";

/// What the pair's site would write.
pub fn pair_yaml(config: &LabConfig, stack: &PairStack, pins: &[String; 2]) -> String {
    let mut text = format!("apiVersion: dyad/v1\nkind: Pair\nname: {}\nnodes:\n", config.name);
    for (position, (node, pin)) in config.nodes.iter().zip(pins).enumerate() {
        let addresses = Link::ALL.map(|link| format!("\"{}\"", node.address(link))).join(", ");
        let _ = write!(
            text,
            "  - name: {}\n    addresses: [{addresses}]\n    bmc:\n      address: \
             https://{}:{BMC_PORT}\n      system: \"{BMC_SYSTEM}\"\n      tls:\n        pin: \
             \"{pin}\"\n      credentials:\n        file: bmc.credentials\n",
            node.name,
            reserved::bmc(position),
        );
    }
    let tls = if stack.tls { "generate" } else { "off" };
    let units = UNITS_BEFORE.join(", ");
    let _ = write!(
        text,
        "detection:\n  tokenMs: {}\nfencing:\n  bmcOffMs: 1000\n  bmcTimeoutMs: 10000\netcd:\n  tls:\n    \
         source: {tls}\nunitsBefore: [{units}]\n",
        config.token_ms,
    );
    text
}

/// Renders what each node needs.
pub(crate) fn bundles(
    config: &LabConfig,
    stack: &PairStack,
    place: &Place,
    pins: &[String; 2],
) -> Result<[Bundle; 2]> {
    let text = pair_yaml(config, stack, pins);
    image::write(&place.directory.join("pair.yaml"), &text, 0o644)?;
    image::write(&place.directory.join("bmc.credentials"), &bmc_credentials(), 0o600)?;
    let loaded = load(text.as_bytes());
    let (Some(file), Some(pair)) = (&loaded.file, &loaded.pair) else {
        let problems: Vec<_> =
            loaded.problems.iter().map(|problem| format!("{problem:?}")).collect();
        return Err(Error::Config(format!("pair.yaml: {}", problems.join("; "))));
    };
    let failed = |error: dyad_setup::Error| Error::Config(crate::error::chain(&error));
    let secrets = SecretsDir::open(&place.directory.join("pair-secrets")).map_err(failed)?;
    dyad_setup::render::render(file, pair, &place.directory, &secrets).map_err(failed)
}

/// Puts a rendered node and its programs onto its disk.
pub(crate) fn install(
    stack: &PairStack,
    bundle: &Bundle,
    position: usize,
    image: &Path,
    root: &Path,
) -> Result<()> {
    for (path, item) in &bundle.items {
        let target = root.join(path.strip_prefix("/").unwrap_or(path));
        match item {
            Item::File { mode, content } => write_bytes(&target, content, *mode)?,
            // The set-up job is not part of this.
            Item::Link(_) if path.ends_with("dyad-setup.service") => {}
            Item::Link(to) => link(to, &target)?,
        }
    }
    for (name, target) in PROGRAMS {
        let content = stack.programs.join(name);
        let content = fs::read(&content).map_err(Error::io("reading", &content))?;
        write_bytes(&root.join(target), &content, 0o755)?;
    }
    let cib = root.join("var/lib/pacemaker/cib/cib.xml");
    let rendered = fs::read(root.join("etc/dyad/cib.xml")).map_err(Error::io("reading", &cib))?;
    write_bytes(&cib, &rendered, 0o600)?;
    let (user, group) = image::owner(image, "hacluster")?;
    chown(&cib, Some(user), Some(group)).map_err(Error::io("giving away", &cib))?;
    let units = root.join("etc/systemd/system");
    for unit in UNITS_BEFORE {
        let text = format!(
            "[Unit]\nDescription=A stand-in for {unit}\n\n[Service]\nExecStart=/usr/bin/sleep infinity\n"
        );
        image::write(&units.join(unit), &text, 0o644)?;
    }
    if position == 0 {
        image::write(&root.join("etc/dyad/begin"), "", 0o644)?;
        image::write(&units.join("dyad-begin.service"), FIRST_DATASET, 0o644)?;
        let wants = units.join("multi-user.target.wants/dyad-begin.service");
        link(Path::new("../dyad-begin.service"), &wants)?;
    }
    Ok(())
}

fn write_bytes(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::io("making", parent))?;
    }
    if path.is_symlink() {
        fs::remove_file(path).map_err(Error::io("removing", path))?;
    }
    fs::write(path, content).map_err(Error::io("writing", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(Error::io("setting the mode of", path))
}

fn link(to: &Path, path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::io("making", parent))?;
    }
    if path.is_symlink() || path.exists() {
        fs::remove_file(path).map_err(Error::io("removing", path))?;
    }
    std::os::unix::fs::symlink(to, path).map_err(Error::io("linking", path))
}
