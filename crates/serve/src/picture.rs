//! The pair as a picture: two nodes, the links between them, and what can switch each one off.
//!
//! Whatever a colour says is also said by a word or by the form of a line.

use std::fmt::Write as _;

use dyad_status::Status;
use dyad_status::document::{FenceDevice, Link, Node};

use crate::page::escaped;

/// Where the two nodes stand.
const LEFT: [u32; 2] = [10, 420];

/// The picture, as SVG that takes its colours from the page.
pub(crate) fn picture(status: &Status) -> String {
    let mut svg = String::from(
        "<svg viewBox=\"0 0 630 226\" role=\"img\" aria-label=\"the two nodes, their links and their power\">",
    );
    for (position, link) in status.links.iter().enumerate() {
        add_link(u32::try_from(position).unwrap_or(0), link, &mut svg);
    }
    for (position, node) in status.nodes.iter().take(2).enumerate() {
        let device = status.fencing.devices.iter().find(|device| device.node == node.name);
        add_node(LEFT[position], node, device, &mut svg);
    }
    svg.push_str("</svg>");
    svg
}

fn add_link(position: u32, link: &Link, svg: &mut String) {
    let y = 46 + position * 40;
    let (class, word) = match link.connected {
        Some(true) => ("up", "connected"),
        Some(false) => ("down", "DOWN"),
        None => ("unknown", "not known"),
    };
    let _ = write!(
        svg,
        "<g class=\"link {class}\"><line x1=\"210\" y1=\"{y}\" x2=\"420\" y2=\"{y}\"/>\
         <text x=\"315\" y=\"{}\" text-anchor=\"middle\">link {}: {word}</text></g>",
        y - 7,
        link.number
    );
}

fn add_node(x: u32, node: &Node, device: Option<&FenceDevice>, svg: &mut String) {
    let (class, word) = match node.in_cluster {
        Some(true) => ("up", "in the cluster"),
        Some(false) => ("down", "NOT in the cluster"),
        None => ("unknown", "cluster: not known"),
    };
    let role = match node.etcd.role.as_deref() {
        Some("noLeader") => "no leader",
        Some(role) => role,
        None => "not known",
    };
    let data = node.etcd.dataset.as_deref().unwrap_or("not known");
    let name = short(&node.name, 22);
    let _ = write!(
        svg,
        "<g class=\"node {class}\"><rect x=\"{x}\" y=\"10\" width=\"200\" height=\"130\" rx=\"10\"/>\
         <text class=\"name\" x=\"{t}\" y=\"38\">{}</text><text x=\"{t}\" y=\"62\">{word}</text>\
         <text x=\"{t}\" y=\"84\">Pacemaker: {}</text>\
         <text x=\"{t}\" y=\"106\">etcd: {}</text><text x=\"{t}\" y=\"128\">data: {}</text></g>",
        escaped(&name),
        escaped(node.pacemaker.as_deref().unwrap_or("not known")),
        escaped(role),
        escaped(data),
        t = x + 14
    );
    let (class, word) = match device.and_then(|device| device.works) {
        Some(true) => ("up", "BMC answers"),
        Some(false) => ("down", "BMC FAILS"),
        None => ("unknown", "BMC not tested now"),
    };
    let middle = x + 100;
    let _ = write!(
        svg,
        "<g class=\"power {class}\"><line x1=\"{middle}\" y1=\"140\" x2=\"{middle}\" y2=\"178\"/>\
         <rect x=\"{}\" y=\"178\" width=\"160\" height=\"40\" rx=\"8\"/>\
         <text x=\"{middle}\" y=\"203\" text-anchor=\"middle\">{word}</text></g>",
        x + 20
    );
}

/// A name that fits its box; the whole one is in the table below.
fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let kept: String = name.chars().take(most - 1).collect();
    format!("{kept}…")
}
