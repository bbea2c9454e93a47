//! The two control-plane hosts of an install-config and their BMCs.

use dyad_http::{Endpoint, Secret};

use super::{Account, Host};
use crate::cursor::Cursor;
use crate::problem::Problem;
use crate::yaml::Value;

/// Both hosts, in the file's order, and what is wrong with them.
pub(super) fn read(top: &Cursor<'_>) -> (Vec<Host>, Vec<Problem>) {
    let mut problems = Vec::new();
    let hosts = top.at(&["platform", "baremetal", "hosts"]);
    let hosts = hosts.as_ref().map(Cursor::items).unwrap_or_default();
    let new = top.at(&["controlPlane", "fencing", "credentials"]);
    let old = top.at(&["platform", "baremetal", "hosts"]);
    let Some(place) = new.clone().or(old) else {
        let key = "controlPlane.fencing.credentials";
        problems.push(
            Problem::error("missing-key", None, key, "nothing says how the nodes are fenced")
                .hint("add an entry for each node: hostname, address, username, password"),
        );
        return (Vec::new(), problems);
    };
    let found: Vec<_> = if let Some(list) = new {
        list.items().iter().map(|entry| new_form(entry, &hosts, &mut problems)).collect()
    } else {
        let masters = hosts.iter().filter(|host| is_control_plane(host));
        masters.map(|host| old_form(host, &mut problems)).collect()
    };
    if found.len() != 2 {
        let message = format!("there are BMC credentials for {} hosts, a pair has 2", found.len());
        problems.push(place.error("not-a-pair", message).hint("name each of the two nodes once"));
    }
    let hosts: Vec<Host> = found.into_iter().flatten().collect();
    if let [first, second] = &hosts[..] {
        if first.account.node == second.account.node {
            let message = format!("both entries are for {}", first.account.node);
            problems.push(place.error("same-name", message).hint("name each node once"));
        }
        if first.bmc_address == second.bmc_address && first.system == second.system {
            let message = "both nodes have the same BMC: one would be switched off for the other";
            problems.push(place.error("same-bmc", message).hint("write each node's own BMC"));
        }
    }
    (hosts, problems)
}

fn is_control_plane(host: &Cursor<'_>) -> bool {
    host.get("role")
        .and_then(|role| role.text())
        .is_none_or(|role| role != "worker" && role != "arbiter")
}

fn new_form(entry: &Cursor<'_>, hosts: &[Cursor<'_>], problems: &mut Vec<Problem>) -> Option<Host> {
    let node = required(entry, "hostname", problems);
    let verify = entry.get("certificateVerification");
    let checks_certificate = match verify.as_ref().and_then(Cursor::text) {
        None | Some("Enabled") => true,
        Some("Disabled") => false,
        Some(other) => {
            problems.extend(verify.map(|verify| {
                verify
                    .error("unknown-word", format!("`{other}` is not Enabled or Disabled"))
                    .hint("write Enabled or Disabled")
            }));
            true
        }
    };
    let named = hosts.iter().find(|host| {
        let name = host.get("name").and_then(|name| name.text());
        // R10: compared whole, but an install-config may use the short name in one place.
        name.is_some() && (name == node || name == node.and_then(|n| n.split('.').next()))
    });
    finish(entry, node, checks_certificate, named.and_then(static_address), problems)
}

fn old_form(host: &Cursor<'_>, problems: &mut Vec<Problem>) -> Option<Host> {
    let node = required(host, "name", problems);
    let Some(bmc) = host.get("bmc") else {
        problems.push(
            host.error("missing-key", "the host has no `bmc`")
                .hint("both nodes of a pair need one, to switch each other off"),
        );
        return None;
    };
    let disabled = bmc.get("disableCertificateVerification");
    let checks_certificate = disabled.is_none_or(|flag| flag.node.value != Value::Bool(true));
    finish(&bmc, node, checks_certificate, static_address(host), problems)
}

fn finish(
    entry: &Cursor<'_>,
    node: Option<&str>,
    checks_certificate: bool,
    address: Option<String>,
    problems: &mut Vec<Problem>,
) -> Option<Host> {
    let bmc_address = required(entry, "address", problems);
    let username = required(entry, "username", problems);
    let password = required(entry, "password", problems);
    let parsed = bmc_address.map(redfish);
    if let Some(Err((why, hint))) = &parsed
        && let Some(place) = entry.get("address")
    {
        // The text may hold a password before an `@`, so it is never shown.
        problems.push(place.error("bad-bmc-address", why.clone()).hint(*hint));
    }
    let node = node.filter(|node| {
        let is_good = is_host_name(node);
        if !is_good {
            problems.push(
                entry
                    .error("bad-name", format!("`{}` is no host name", node.escape_debug()))
                    .hint("write what `uname -n` says on the node"),
            );
        }
        is_good
    })?;
    let (bmc_address, system) = parsed?.ok()?;
    for (key, value) in [("username", username), ("password", password)] {
        if value.is_some_and(|text| text.contains(['\n', '\r'])) {
            problems
                .push(entry.error("bad-credentials", format!("the {key} has a line break in it")));
        }
    }
    let account = Account {
        node: node.to_owned(),
        username: username?.to_owned(),
        password: Secret::new(password?),
    };
    Some(Host { account, bmc_address, system, checks_certificate, address })
}

fn is_host_name(name: &str) -> bool {
    let is_plain = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 64 && name.split('.').all(is_plain)
}

fn required<'a>(entry: &Cursor<'a>, key: &str, problems: &mut Vec<Problem>) -> Option<&'a str> {
    let Some(value) = entry.get(key) else {
        let message = format!("`{key}` is missing");
        problems.push(entry.error("missing-key", message).hint(format!("add `{key}`")));
        return None;
    };
    let text = match &value.node.value {
        Value::Text(text) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    };
    if text.is_none() {
        problems.push(value.error("wrong-type", "text is wanted here").hint("put it in quotes"));
    }
    text
}

/// Where a BMC address of an installer points to: the server, and the System behind the path.
fn redfish(text: &str) -> Result<(String, Option<String>), (String, &'static str)> {
    const KNOWN: &str = "write redfish+https://HOST/redfish/v1/Systems/ID";
    let (scheme, rest) =
        text.split_once("://").ok_or_else(|| ("the address has no scheme".to_owned(), KNOWN))?;
    let (driver, transport) = scheme.split_once('+').unwrap_or((scheme, "https"));
    let (driver, transport) = match driver {
        "http" | "https" => ("redfish", driver),
        _ => (driver, transport),
    };
    match driver {
        "redfish"
        | "redfish-virtualmedia"
        | "redfish-uefihttp"
        | "idrac-virtualmedia"
        | "idrac-redfish"
        | "ilo5-virtualmedia"
        | "ilo5-redfish" => {}
        "ipmi" | "libvirt" => {
            let why = format!("`{driver}` is not Redfish");
            return Err((why, "Dyad fences over Redfish: write the BMC's Redfish address"));
        }
        _ => return Err(("the scheme is not known".to_owned(), KNOWN)),
    }
    if !matches!(transport, "http" | "https") {
        return Err(("the transport is neither http nor https".to_owned(), KNOWN));
    }
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let url = format!("{transport}://{server}");
    if let Err(dyad_http::Error::Endpoint { why, .. }) = Endpoint::parse(&url) {
        return Err((format!("this is no address of a BMC: {why}"), KNOWN));
    }
    let path = path.trim_end_matches('/');
    let system = path.rsplit_once("Systems/").map(|(_, id)| id).filter(|id| !id.is_empty());
    Ok((url, system.map(str::to_owned)))
}

/// The first fixed address in a host's `networkConfig`.
fn static_address(host: &Cursor<'_>) -> Option<String> {
    let interfaces = host.at(&["networkConfig", "interfaces"])?;
    interfaces.items().iter().find_map(|interface| {
        ["ipv4", "ipv6"].into_iter().find_map(|family| {
            let family = interface.get(family)?;
            let address = family.list("address").first()?.get("ip")?.text()?.to_owned();
            address.parse::<std::net::IpAddr>().ok().map(|_| address)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form in which installers write a Redfish address gives server and System; others are refused.
    #[test]
    fn addresses_of_installers() {
        for (text, url, system) in [
            ("redfish+https://10.0.0.1/redfish/v1/Systems/1", "https://10.0.0.1", Some("1")),
            ("redfish://bmc1:8443/redfish/v1/Systems/abc/", "https://bmc1:8443", Some("abc")),
            (
                "redfish-virtualmedia+http://[fd00::1]:8000/redfish/v1/Systems/x-y",
                "http://[fd00::1]:8000",
                Some("x-y"),
            ),
            (
                "idrac-virtualmedia://bmc1/redfish/v1/Systems/System.Embedded.1",
                "https://bmc1",
                Some("System.Embedded.1"),
            ),
            ("https://bmc1", "https://bmc1", None),
        ] {
            assert_eq!(redfish(text), Ok((url.to_owned(), system.map(str::to_owned))), "{text}");
        }
        for text in
            ["ipmi://10.0.0.1", "bmc1", "ftp://bmc1", "redfish+ftp://bmc1", "redfish://u:p@bmc1/"]
        {
            let (why, _) = redfish(text).unwrap_err();
            assert!(!why.contains("u:p"), "{why}");
        }
    }
}
