//! The rules that the schema cannot say: what ties keys together, and what a text must look like.
//!
//! They look at the tree, not at the types: each rule says what it can about what is there, also when another
//! part of the file is broken.

mod etcd;
mod nodes;

use crate::cursor::{Cursor, placeholder};
use crate::problem::Problem;
use crate::suggest::suggest;
use crate::yaml::Node;

/// Everything that the rules find.
pub(crate) fn check(tree: &Node) -> Vec<Problem> {
    let top = Cursor::top(tree);
    let mut problems = to_fill_in(&top);
    problems.extend(pair_name(&top));
    problems.extend(nodes::check(&top));
    problems.extend(preferred_survivor(&top));
    problems.extend(detection(&top));
    problems.extend(etcd::check(&top));
    problems.extend(units(&top));
    problems.extend(virtual_ip(&top));
    problems.extend(webhook(&top));
    problems
}

fn to_fill_in(top: &Cursor<'_>) -> Vec<Problem> {
    let open = top.texts().into_iter().filter_map(|(place, text)| {
        let what = placeholder(text)?;
        let problem = place.error("to-fill-in", "still to be filled in");
        Some(problem.hint(format!("write {what}")))
    });
    open.collect()
}

fn pair_name(top: &Cursor<'_>) -> Option<Problem> {
    let name = top.get("name")?;
    let text = name.text()?;
    let is_good = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    (!is_good).then(|| {
        name.error("bad-name", format!("`{text}` is no name for a pair"))
            .hint("use letters, digits, `-`, `_` and `.`, and begin with a letter or digit")
    })
}

fn preferred_survivor(top: &Cursor<'_>) -> Option<Problem> {
    let preferred = top.get("preferredSurvivor")?;
    let text = preferred.text()?;
    let named: Vec<_> = top.list("nodes").iter().filter_map(|node| node.get("name")).collect();
    let names: Vec<_> = named.iter().filter_map(Cursor::text).collect();
    if names.is_empty() || names.contains(&text) {
        return None;
    }
    let hint = match suggest(text, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("name one of {}", names.join(" and ")),
    };
    Some(preferred.error("unknown-node", format!("`{text}` is none of the two nodes")).hint(hint))
}

fn detection(top: &Cursor<'_>) -> Option<Problem> {
    let token = top.at(&["detection", "tokenMs"])?;
    top.at(&["detection", "preset"])?;
    Some(
        token
            .error("preset-and-token", "a preset and an explicit token are given")
            .hint("keep one of `preset` and `tokenMs`"),
    )
}

/// Services that are Dyad's or the cluster's own business.
const OWN_UNITS: [&str; 6] =
    ["corosync", "pacemaker", "etcd", "dyad-etcd", "dyad-setup", "pacemaker_remote"];

fn units(top: &Cursor<'_>) -> Vec<Problem> {
    let all = ["unitsBefore", "unitsAfter"].into_iter().flat_map(|key| top.list(key));
    let mut seen: Vec<String> = Vec::new();
    let mut problems = Vec::new();
    for unit in all {
        let Some(text) = unit.text() else { continue };
        let name = text.strip_suffix(".service").unwrap_or(text);
        if let Some((message, hint)) = bad_unit(name) {
            problems.push(unit.error("bad-unit", format!("`{text}` {message}")).hint(hint));
        } else if seen.iter().any(|known| known == name) {
            problems.push(
                unit.error("unit-twice", format!("`{text}` is listed twice"))
                    .hint("keep one of them"),
            );
        }
        seen.push(name.to_owned());
    }
    problems
}

fn bad_unit(name: &str) -> Option<(&'static str, &'static str)> {
    const OTHER_TYPES: [&str; 10] = [
        ".socket",
        ".target",
        ".mount",
        ".timer",
        ".path",
        ".slice",
        ".scope",
        ".device",
        ".swap",
        ".automount",
    ];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.' | '@' | '-');
    if OTHER_TYPES.iter().any(|suffix| name.ends_with(suffix)) {
        Some(("is not a service", "name a .service unit"))
    } else if name.is_empty() || name.len() > 200 || !name.chars().all(is_plain) {
        Some((
            "is no name of a systemd service",
            "use letters, digits, `-`, `_`, `.`, `:` and `@`, as systemctl shows it",
        ))
    } else if name.ends_with('@') {
        Some(("is a template", "name an instance of it: `name@instance`"))
    } else if OWN_UNITS.contains(&name) {
        Some(("belongs to the pair itself", "remove it; Dyad sees to it"))
    } else {
        None
    }
}

fn virtual_ip(top: &Cursor<'_>) -> Vec<Problem> {
    let Some(virtual_ip) = top.get("virtualIp") else { return Vec::new() };
    let mut problems = Vec::new();
    let address = virtual_ip.get("address");
    let ip = address.as_ref().and_then(|address| match nodes::ip(address) {
        Ok(ip) => ip,
        Err(problem) => {
            problems.push(problem);
            None
        }
    });
    if let (Some(address), Some(ip)) = (&address, ip) {
        if nodes::addresses(top).iter().any(|(_, other)| *other == ip) {
            problems.push(
                address
                    .error("same-address", format!("{ip} is already the address of a node"))
                    .hint("take an address of its own that moves"),
            );
        }
        let most = if ip.is_ipv4() { 32 } else { 128 };
        if let Some(prefix) = virtual_ip.get("prefix")
            && let Some(length) = prefix.integer()
            && length > most
        {
            let message = format!("a prefix of {length} is too long for {ip}; at most {most}");
            problems.push(prefix.error("bad-prefix", message));
        }
    }
    if let Some(interface) = virtual_ip.get("interface")
        && let Some(name) = interface.text()
        && (name.len() > 15 || name.contains(|c: char| c == '/' || !c.is_ascii_graphic()))
    {
        problems.push(
            interface
                .error("bad-interface", format!("`{name}` is no name of a network interface"))
                .hint("`ip link` lists them"),
        );
    }
    problems
}

fn webhook(top: &Cursor<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    // An address is often a secret itself: somebody who puts it here must not see it repeated.
    if let Some(file) = top.at(&["webhook", "urlFile"])
        && file.text().is_some_and(|text| text.contains("://"))
    {
        problems.push(
            file.error("webhook-url", "this is an address, not the name of a file").hint(
                "write `url=<the address>` into a file with mode 0600, and name the file here",
            ),
        );
    }
    if let Some(file) = top.at(&["webhook", "caFile"])
        && file.text().is_some_and(|text| !text.starts_with('/'))
    {
        problems.push(
            file.error("relative-path", "the path on the nodes is not absolute")
                .hint("name the file as the nodes have it"),
        );
    }
    problems
}
