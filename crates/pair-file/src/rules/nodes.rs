//! Rules about the two nodes, their addresses and their BMCs.

use std::net::IpAddr;

use dyad_http::{Endpoint, Fingerprint, Scheme};

use crate::cursor::Cursor;
use crate::problem::Problem;
use crate::yaml::Value;

pub(super) fn check(top: &Cursor<'_>) -> Vec<Problem> {
    let nodes = top.list("nodes");
    let mut problems = Vec::new();
    problems.extend(nodes.iter().filter_map(node_name));
    problems.extend(same_names(&nodes));
    problems.extend(every_address(&nodes));
    problems.extend(same_addresses(top));
    problems.extend(links(&nodes));
    problems.extend(nodes.iter().filter_map(|node| node.get("bmc")).flat_map(|bmc| one_bmc(&bmc)));
    problems.extend(both_bmcs(top, &nodes));
    problems
}

fn node_name(node: &Cursor<'_>) -> Option<Problem> {
    let name = node.get("name")?;
    let text = name.text()?;
    let label_is_good = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    (!text.split('.').all(label_is_good)).then(|| {
        name.error("bad-name", format!("`{text}` is no host name"))
            .hint("write what `uname -n` says on the node: letters, digits, `-` and `.`")
    })
}

fn same_names(nodes: &[Cursor<'_>]) -> Option<Problem> {
    let names: Vec<_> = nodes.iter().filter_map(|node| node.get("name")).collect();
    let [first, second] = &names[..] else { return None };
    let (one, other) = (first.text()?, second.text()?);
    // Exactly the same, or the same to DNS: neither can be told apart everywhere.
    one.eq_ignore_ascii_case(other).then(|| {
        second
            .error("same-name", format!("both nodes are named `{other}`"))
            .hint("give each node its own name")
    })
}

/// The address at a place: none if it is still to be filled in or no text, an error if it is no address
/// that a node can have.
pub(super) fn ip(place: &Cursor<'_>) -> Result<Option<IpAddr>, Problem> {
    let Some(text) = place.text() else { return Ok(None) };
    let Ok(ip) = text.parse::<IpAddr>() else {
        let hint = if text.contains('/') {
            "write it without the prefix length"
        } else {
            "write an IPv4 or IPv6 address; names are not resolved when the network is down"
        };
        return Err(place.error("bad-address", format!("`{text}` is no address")).hint(hint));
    };
    let kind = if ip.is_loopback() {
        "a loopback address"
    } else if ip.is_multicast() {
        "a multicast address"
    } else if ip.is_unspecified() {
        "no particular address"
    } else {
        match ip {
            IpAddr::V4(v4) if v4.is_broadcast() => "a broadcast address",
            IpAddr::V4(v4) if v4.is_link_local() => "a link-local address",
            IpAddr::V6(v6) if v6.is_unicast_link_local() => "a link-local address",
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => "an IPv4 address in disguise",
            _ => return Ok(Some(ip)),
        }
    };
    Err(place
        .error("bad-address", format!("{text} is {kind}"))
        .hint("write the address that the peer reaches this node at on this link"))
}

fn every_address(nodes: &[Cursor<'_>]) -> Vec<Problem> {
    let all = nodes.iter().flat_map(|node| node.list("addresses"));
    all.filter_map(|place| ip(&place).err()).collect()
}

/// Every good address of both nodes, with its place.
pub(super) fn addresses<'a>(top: &Cursor<'a>) -> Vec<(Cursor<'a>, IpAddr)> {
    let all = top.list("nodes").into_iter().flat_map(|node| node.list("addresses"));
    all.filter_map(|place| ip(&place).ok().flatten().map(|ip| (place, ip))).collect()
}

fn same_addresses(top: &Cursor<'_>) -> Vec<Problem> {
    let all = addresses(top);
    let twice = all.iter().enumerate().filter_map(|(position, (place, ip))| {
        let (first, _) = all[..position].iter().find(|(_, other)| other == ip)?;
        let message = format!("{ip} is already {}", first.path);
        Some(place.error("same-address", message).hint("every node has its own on every link"))
    });
    twice.collect()
}

fn links(nodes: &[Cursor<'_>]) -> Vec<Problem> {
    let [first, second] = nodes else { return Vec::new() };
    let (left, right) = (first.list("addresses"), second.list("addresses"));
    let mut problems = Vec::new();
    if left.len() != right.len() && !left.is_empty() && !right.is_empty() {
        let place = second.get("addresses").unwrap_or_else(|| second.clone());
        let message = format!(
            "the first node has {} addresses, the second {}: each link needs one on both",
            left.len(),
            right.len()
        );
        problems.push(
            place.error("link-without-end", message).hint("add the missing address, in link order"),
        );
    }
    let good = |places: &[Cursor<'_>], link: usize| {
        places.get(link).and_then(|place| ip(place).ok().flatten())
    };
    for (link, place) in right.iter().enumerate() {
        if let (Some(a), Some(b)) = (good(&left, link), good(&right, link))
            && a.is_ipv4() != b.is_ipv4()
        {
            let message = format!("link {link} joins {a} with {b}: IPv4 with IPv6");
            problems.push(
                place
                    .error("mixed-families", message)
                    .hint("use the same kind of address at both ends; is the order the same?"),
            );
        }
    }
    problems.extend(shared_networks(&left));
    problems
}

/// The prefix is not known here, so this goes by the usual ones and is a warning only.
fn shared_networks(places: &[Cursor<'_>]) -> Vec<Problem> {
    let network = |place: &Cursor<'_>| match ip(place).ok().flatten()? {
        IpAddr::V4(v4) => Some(v4.octets()[..3].to_vec()),
        IpAddr::V6(v6) => Some(v6.octets()[..8].to_vec()),
    };
    let shared = places.iter().enumerate().filter_map(|(position, place)| {
        let own = network(place)?;
        let first = places[..position].iter().find(|other| network(other).as_ref() == Some(&own))?;
        let message = format!("this link seems to be in the same network as {}", first.path);
        Some(place.warning("links-share-network", message).hint(
            "links that share a network share its failures: use separate cables, switches and networks",
        ))
    });
    shared.collect()
}

fn one_bmc(bmc: &Cursor<'_>) -> Vec<Problem> {
    if !matches!(bmc.node.value, Value::Map(_)) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut scheme = Scheme::Https;
    if let Some(address) = bmc.get("address")
        && let Some(text) = address.text()
    {
        match Endpoint::parse(text) {
            Ok(endpoint) => scheme = endpoint.scheme(),
            Err(error) => problems.push(bad_bmc_address(&address, text, error)),
        }
        if scheme == Scheme::Http {
            problems.push(
                address
                    .warning("bmc-without-tls", "the password crosses the network in the open")
                    .hint("use https://"),
            );
        }
    }
    if let Some(system) = bmc.get("system")
        && let Some(text) = system.text()
        && (text.len() > 256 || !text.chars().all(|c| c.is_ascii_graphic()))
    {
        problems.push(
            system
                .error("bad-system", "this is no name of a System")
                .hint("write its id, UUID or path, as the BMC lists it, without blanks"),
        );
    }
    problems.extend(bmc_tls(bmc, scheme));
    problems.extend(credentials(bmc));
    problems
}

fn bad_bmc_address(address: &Cursor<'_>, text: &str, error: dyad_http::Error) -> Problem {
    let why = match error {
        dyad_http::Error::Endpoint { why, .. } => why,
        _ => "it is no address",
    };
    // The text may hold a password before an `@`, so it is never shown.
    let hint = if text.starts_with("redfish") || text.contains("+http") {
        "write https://host[:port]; what stands behind Systems/ goes into `system`"
    } else if text.contains("/redfish/") {
        "drop the path; what stands behind Systems/ goes into `system`"
    } else {
        "write https://host or https://host:port, an IPv6 address in brackets"
    };
    address.error("bad-bmc-address", format!("this is no address of a BMC: {why}")).hint(hint)
}

fn bmc_tls(bmc: &Cursor<'_>, scheme: Scheme) -> Vec<Problem> {
    let choose = "give one of `caFile` (best), `pin` (good for self-signed) and `insecure: true`";
    let Some(tls) = bmc.get("tls") else {
        let missing = bmc.error("no-bmc-tls", "nothing says how the BMC's certificate is checked");
        return (scheme == Scheme::Https)
            .then(|| missing.hint(format!("add `tls`: {choose}")))
            .into_iter()
            .collect();
    };
    let mut problems = Vec::new();
    let insecure = tls.get("insecure").filter(|flag| flag.node.value == Value::Bool(true));
    let pin = tls.get("pin");
    let given = [tls.get("caFile"), pin.clone(), insecure.clone()].into_iter().flatten().count();
    if given != 1 && matches!(tls.node.value, Value::Map(_)) {
        let message = if given == 0 {
            "nothing says how the certificate is checked"
        } else {
            "more than one way to check the certificate is given"
        };
        problems.push(tls.error("one-bmc-tls", message).hint(choose));
    }
    if let Some(pin) = pin
        && let Some(Err(why)) = pin.text().map(str::parse::<Fingerprint>)
    {
        problems.push(pin.error("bad-pin", format!("this is no fingerprint: {why}")).hint(
            "openssl s_client -connect HOST:443 </dev/null | openssl x509 -fingerprint -sha256 -noout",
        ));
    }
    if let Some(insecure) = insecure {
        let message = "the BMC's certificate is not checked: whoever is on the way can read the \
                       password and lie about the power";
        problems.push(insecure.warning("insecure-bmc", message).hint("pin its certificate: `pin`"));
    }
    problems
}

fn credentials(bmc: &Cursor<'_>) -> Vec<Problem> {
    let Some(credentials) = bmc.get("credentials") else { return Vec::new() };
    let has = |key| credentials.get(key).is_some();
    let inline = has("username") || has("password");
    let given = [has("file"), has("onNode"), inline].into_iter().filter(|given| *given).count();
    let mut problems = Vec::new();
    if given != 1 && matches!(credentials.node.value, Value::Map(_)) {
        let message = if given == 0 {
            "nothing says where user name and password are"
        } else {
            "more than one place for user name and password is given"
        };
        problems.push(
            credentials
                .error("one-credentials", message)
                .hint("give one of `file`, `onNode`, or `username` with `password`"),
        );
    }
    if inline && has("username") != has("password") {
        problems.push(
            credentials
                .error("half-credentials", "`username` and `password` belong together")
                .hint("give both, or better: `file`"),
        );
    }
    for key in ["username", "password"] {
        let Some(place) = credentials.get(key) else { continue };
        let Some(text) = place.text() else { continue };
        // Neither fits into a credentials file or a request.
        if text.contains(char::is_control) || (key == "username" && text.contains(':')) {
            let message = format!("the {key} has a character that no BMC takes");
            let hint = "no control characters, and no colon in the user name";
            problems.push(place.error("bad-credentials", message).hint(hint));
        }
    }
    if let Some(password) = credentials.get("password") {
        problems.push(
            password
                .warning("inline-password", "the password stands in the file for all to read")
                .hint("put `username=...` and `password=...` into a 0600 file and name it: `file`"),
        );
    }
    if let Some(path) = credentials.get("onNode") {
        problems.extend(super::etcd::absolute(&path));
    }
    problems
}

fn both_bmcs(top: &Cursor<'_>, nodes: &[Cursor<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen: Vec<(Endpoint, Option<String>)> = Vec::new();
    for bmc in nodes.iter().filter_map(|node| node.get("bmc")) {
        let Some(address) = bmc.get("address") else { continue };
        let Some(Ok(endpoint)) = address.text().map(Endpoint::parse) else { continue };
        if addresses(top).iter().any(|(_, ip)| endpoint.ip() == Some(*ip)) {
            problems.push(
                address
                    .error("bmc-is-node", "this is the address of a node, not of its BMC")
                    .hint("write the address of the management controller itself"),
            );
        }
        let system = bmc.get("system").and_then(|system| system.text().map(str::to_owned));
        if let Some((_, other)) = seen.iter().find(|(other, _)| *other == endpoint) {
            if system.is_some() && other.is_some() && system != *other {
                let message = "both nodes hang on one BMC: when it fails, neither can be fenced";
                problems.push(
                    address
                        .warning("shared-bmc", message)
                        .hint("use a controller of its own for each node, if there is one"),
                );
            } else {
                let message =
                    "both nodes have the same BMC: one would be switched off for the other";
                problems.push(address.error("same-bmc", message).hint(
                    "write each node's own BMC, or tell its two Systems apart with `system`",
                ));
            }
        }
        seen.push((endpoint, system));
    }
    problems
}
