//! A pair on the lab's nodes, made as a site would make it: a `pair.yaml`, rendered; the package, installed; and
//! `dyad setup`. The lab has no way of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use dyad_pair_file::load;
use dyad_setup::SecretsDir;
use dyad_setup::bundle::Bundle;
use dyad_setup::output::Form;
use dyad_setup::state::{FailureKind, SetupResult, SetupState};

use crate::cluster::{BMC_PORT, BMC_SYSTEM, bmc_credentials};
use crate::config::{LabConfig, Link, PairStack, reserved};
use crate::error::{Error, Result};
use crate::image;
use crate::place::Place;

/// Where a node finds its bundle at its first boot.
const BUNDLES: &str = "/etc/dyad/nodes";
/// Where it lies if it is set up by hand.
pub const BUNDLES_BY_HAND: &str = "/root/bundles";

/// Services that stand for the container runtime and kubelet: they do nothing but run.
pub const UNITS_BEFORE: [&str; 2] = ["crio.service", "kubelet.service"];

/// The image of the container that etcd runs in, if it does.
const CONTAINER_IMAGE: &str = "localhost/etcd:lab";
/// A node's root is an overlay already, on which podman's usual storage does not work.
const CONTAINER_STORAGE: &str = "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\n\
                                 graphroot = \"/var/lib/containers/storage\"\n";
/// A node is a container itself, in which the kernel refuses new key rings.
pub(crate) const CONTAINER_SETTINGS: &str = "[containers]\nkeyring = false\n";
/// Makes that image at the first boot, of the node's own etcd and what it is linked with: nothing comes from
/// elsewhere.
const CONTAINER_UNIT: &str = r#"[Unit]
Description=The container image of etcd
Before=dyad-setup.service
ConditionPathExists=!/var/lib/containers/made

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'libraries=$(ldd /usr/bin/etcd | grep -o "/[^ ]*" || true); \
    tar --create --dereference --directory=/ usr/bin/etcd $libraries | \
    podman import --change "ENV PATH=/usr/bin" - @IMAGE@; touch /var/lib/containers/made'

[Install]
WantedBy=multi-user.target
"#;

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
    let runner = if stack.podman {
        format!("  runner: podman\n  image: {CONTAINER_IMAGE}\n")
    } else {
        String::new()
    };
    // The lab's clients are on a network of their own.
    let clients = [0, 1].map(|position| format!("\"{}\"", reserved::node_for_clients(position)));
    let names = if stack.tls {
        format!("\n    serverNames: [{}]", clients.join(", "))
    } else {
        String::new()
    };
    let units = if config.units_before { UNITS_BEFORE.join(", ") } else { String::new() };
    let _ = write!(
        text,
        "detection:\n  tokenMs: {}\nfencing:\n  bmcOffMs: 1000\n  bmcTimeoutMs: 10000\netcd:\n{runner}  tls:\n    \
         source: {tls}{names}\nunitsBefore: [{units}]\n",
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

/// Makes a blank node one that has the package and its bundle: `dyad setup` does the rest, at its first boot or
/// when somebody runs it.
pub(crate) fn install(stack: &PairStack, bundle: &Bundle, root: &Path) -> Result<()> {
    image::install_package(&stack.package, root)?;
    let place = if stack.by_hand { BUNDLES_BY_HAND } else { BUNDLES };
    let place = root.join(place.trim_start_matches('/'));
    dyad_setup::output::write(&[bundle], Form::Directory, &place)
        .map_err(|error| Error::Config(crate::error::chain(&error)))?;
    let units = root.join("etc/systemd/system");
    if stack.podman {
        image::write(&root.join("etc/containers/storage.conf"), CONTAINER_STORAGE, 0o644)?;
        image::write(&root.join("etc/containers/containers.conf"), CONTAINER_SETTINGS, 0o644)?;
        let unit = CONTAINER_UNIT.replace("@IMAGE@", CONTAINER_IMAGE);
        image::write(&units.join("lab-container.service"), &unit, 0o644)?;
        let wanted = units.join("multi-user.target.wants/lab-container.service");
        std::os::unix::fs::symlink("../lab-container.service", &wanted)
            .map_err(Error::io("linking", &wanted))?;
    }
    for unit in UNITS_BEFORE {
        let text = format!(
            "[Unit]\nDescription=A stand-in for {unit}\n\n[Service]\nExecStart=/usr/bin/sleep infinity\n"
        );
        image::write(&units.join(unit), &text, 0o644)?;
    }
    Ok(())
}

/// What a node's set-up does not yet say of itself: nothing once it is ready. One that failed is an error.
pub(crate) fn missing_of_setup(place: &Place, node: &str) -> Result<Option<String>> {
    let file = SetupState::path(&place.node(node).join("upper/var/lib/dyad"));
    let text = fs::read_to_string(&file).unwrap_or_default();
    let Ok(state) = serde_json::from_str::<SetupState>(&text) else {
        return Ok(Some(format!("{node}: the set-up has not begun")));
    };
    match (state.result, &state.failure, state.current()) {
        (SetupResult::Ready, _, _) => Ok(None),
        // A step that ran out of time is tried again.
        (SetupResult::Failed, Some(failure), _) if failure.kind != FailureKind::TimedOut => {
            let said = format!("step {}: {}", failure.step, failure.why);
            Err(Error::Node { node: node.to_owned(), what: "dyad setup", said })
        }
        (_, _, Some(step)) => Ok(Some(format!("{node}: {}", step.detail))),
        _ => Ok(Some(format!("{node}: between two steps of the set-up"))),
    }
}
