//! The text of a pair.yaml that comes from an install-config.

use std::fmt::Write as _;

use super::Host;
use crate::cursor::{Cursor, placeholder};
use crate::yaml;

/// Where OpenShift keeps etcd's certificates on a control-plane node.
const CERTS: &str = "/etc/kubernetes/static-pod-resources/etcd-certs";

/// The text, and what is still to be filled in.
pub(super) fn pair_yaml(
    name: &str,
    hosts: &[Host],
    network: Option<&str>,
    secrets: &str,
) -> (String, Vec<(String, String)>) {
    let mut text = String::from(HEAD);
    // Writing to a string does not fail.
    let _ = write_top(&mut text, name);
    for host in hosts {
        let _ = write_host(&mut text, host, network, secrets);
    }
    let _ = write_tail(&mut text);
    let open = open_items(&text);
    (text, open)
}

fn open_items(text: &str) -> Vec<(String, String)> {
    let (tree, _) = yaml::parse(text.as_bytes());
    let tree = tree.expect("what is written here is YAML");
    let texts = Cursor::top(&tree).texts();
    texts
        .into_iter()
        .filter_map(|(place, text)| Some((place.path, placeholder(text)?.to_owned())))
        .collect()
}

const HEAD: &str = "\
# yaml-language-server: $schema=/usr/share/dyad/pair.schema.json
#
# Converted from an OpenShift install-config. Fill in what stands in <...>, then:
#
#   dyad check pair.yaml
";

/// Text as a YAML scalar that means exactly this text.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

fn write_top(text: &mut String, name: &str) -> std::fmt::Result {
    writeln!(text, "apiVersion: dyad/v1\nkind: Pair\nname: {}\n\nnodes:", quoted(name))
}

fn write_host(
    text: &mut String,
    host: &Host,
    network: Option<&str>,
    secrets: &str,
) -> std::fmt::Result {
    let node = &host.account.node;
    writeln!(text, "  - name: {}", quoted(node))?;
    writeln!(text, "    addresses:")?;
    let address = match (&host.address, network) {
        (Some(address), _) => address.clone(),
        (None, Some(network)) => format!("<the address of {node} in {network}>"),
        (None, None) => format!("<the address of {node} on the first link>"),
    };
    writeln!(text, "      - {}", quoted(&address))?;
    writeln!(text, "      # Remove this line of both nodes if there is no second link.")?;
    writeln!(text, "      - {}", quoted(&format!("<the address of {node} on the second link>")))?;
    writeln!(text, "    bmc:")?;
    writeln!(text, "      address: {}", quoted(&host.bmc_address))?;
    if let Some(system) = &host.system {
        writeln!(text, "      system: {}", quoted(system))?;
    }
    if host.bmc_address.starts_with("https://") {
        writeln!(text, "      tls:")?;
        if host.checks_certificate {
            writeln!(
                text,
                "        # The authority that issued the BMC's certificate; or a `pin`."
            )?;
            let what = "<the PEM file with the authority of the BMC's certificate>";
            writeln!(text, "        caFile: {}", quoted(what))?;
        } else {
            writeln!(text, "        # As the install-config said. Better: `pin` its certificate.")?;
            writeln!(text, "        insecure: true")?;
        }
    }
    writeln!(text, "      credentials:")?;
    writeln!(text, "        file: {}", quoted(&format!("{secrets}/bmc-{node}")))
}

fn write_tail(text: &mut String) -> std::fmt::Result {
    writeln!(text, "\ndetection:\n  preset: normal\n")?;
    writeln!(text, "# etcd as OpenShift runs it: its image, its certificates.\netcd:")?;
    writeln!(text, "  runner: podman")?;
    let image = "<the etcd image of the release: oc adm release info --image-for=etcd>";
    writeln!(text, "  image: {}", quoted(image))?;
    writeln!(text, "  tls:\n    source: files")?;
    for (key, kind) in [("peer", "peer"), ("client", "serving")] {
        writeln!(text, "    {key}:")?;
        let bundle = format!("{CERTS}/configmaps/etcd-all-bundles/server-ca-bundle.crt");
        writeln!(text, "      caFile: {}", quoted(&bundle))?;
        let file = |suffix| format!("{CERTS}/secrets/etcd-all-certs/etcd-{kind}-{{node}}.{suffix}");
        writeln!(text, "      certFile: {}", quoted(&file("crt")))?;
        writeln!(text, "      keyFile: {}", quoted(&file("key")))?;
    }
    writeln!(text, "\nunitsBefore: [crio.service, kubelet.service]")
}
