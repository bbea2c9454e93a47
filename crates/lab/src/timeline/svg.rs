//! The timeline as a picture: one row per step, placed by time.

use std::fmt::Write as _;

use super::{Entry, Phase, Timeline, shorten};

const WIDTH: f64 = 960.0;
const TOP: f64 = 84.0;
const ROW: f64 = 26.0;
/// Where the chart begins and ends.
const LEFT: f64 = 500.0;
const RIGHT: f64 = 860.0;

/// Colours that keep their contrast on both backgrounds; meaning is never carried by colour alone.
const STYLE: &str = "<style>\n\
    svg{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:13px}\n\
    .page{fill:#ffffff}.ink{fill:#1f2328}.dim{fill:#59636e}.rule{stroke:#d1d9e0}.bar{stroke:#afb8c1}\n\
    .lab{fill:#cf222e}.first{fill:#0969da}.second{fill:#8250df}.bmc{fill:#bc4c00}.client{fill:#1a7f37}\n\
    .title{font-size:17px;font-weight:600}.mono{font-variant-numeric:tabular-nums}.strong{font-weight:600}\n\
    @media (prefers-color-scheme:dark){.page{fill:#0d1117}.ink{fill:#f0f6fc}.dim{fill:#9198a1}\
    .rule{stroke:#3d444d}.bar{stroke:#656c76}.lab{fill:#ff7b72}.first{fill:#4493f8}.second{fill:#ab7df8}\
    .bmc{fill:#ffa657}.client{fill:#3fb950}}\n</style>\n";

/// Draws it.
pub(super) fn draw(timeline: &Timeline) -> String {
    let rows = u32::try_from(timeline.entries.len()).unwrap_or(u32::MAX);
    let height = TOP + ROW * f64::from(rows) + 30.0;
    let last = timeline.entries.last().map_or(0.0, |entry| entry.ms);
    let step = grid_step(last);
    let end = ((last / step).ceil() * step).max(step);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Steps after: {}\">\n{STYLE}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n\
         <text class=\"ink title\" x=\"24\" y=\"34\">{}</text>\n\
         <text class=\"dim\" x=\"24\" y=\"56\">milliseconds after the fault, on both nodes and their \
         BMCs</text>\n",
        escape(&timeline.origin),
        escape(&timeline.origin),
    );
    grid(&mut svg, end, step, height);
    let nodes = node_order(timeline);
    for (number, entry) in (0_u32..).zip(&timeline.entries) {
        row(&mut svg, entry, TOP + ROW * (f64::from(number) + 0.5), end, &nodes);
    }
    svg.push_str("</svg>\n");
    svg
}

fn grid(svg: &mut String, end: f64, step: f64, height: f64) {
    let bottom = height - 24.0;
    let mut ms = 0.0;
    while ms <= end + step / 2.0 {
        let x = position(ms, end);
        let _ = writeln!(
            svg,
            "<line class=\"rule\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <text class=\"dim mono\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            ms.round()
        );
        ms += step;
    }
}

fn row(svg: &mut String, entry: &Entry, y: f64, end: f64, nodes: &[String]) {
    let x = position(entry.ms, end);
    let class = class_of(&entry.place, nodes);
    let weight = if entry.phase == Phase::Fault { " strong" } else { "" };
    let baseline = y + 4.5;
    let text = if entry.text.is_empty() {
        entry.phase.name().to_owned()
    } else {
        format!("{}: {}", entry.phase.name(), entry.text)
    };
    let _ = writeln!(
        svg,
        "<text class=\"{class} strong\" x=\"24\" y=\"{baseline:.1}\">{}</text>\
         <text class=\"ink{weight}\" x=\"140\" y=\"{baseline:.1}\">{}</text>\
         <line class=\"bar\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{y:.1}\"/>\
         <circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>\
         <text class=\"ink mono\" x=\"{:.1}\" y=\"{baseline:.1}\">{:.0} ms</text>",
        escape(&shorten(&entry.place, 15)),
        escape(&shorten(&text, 52)),
        x + 11.0,
        entry.ms,
    );
}

fn position(ms: f64, end: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (ms / end).clamp(0.0, 1.0)
}

/// A step that gives four to eight lines with round numbers.
fn grid_step(last: f64) -> f64 {
    let rough = (last / 6.0).max(1.0);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// The nodes in the order of their names, so that colours do not change from picture to picture.
fn node_order(timeline: &Timeline) -> Vec<String> {
    let mut nodes: Vec<_> = timeline
        .entries
        .iter()
        .map(|entry| entry.place.clone())
        .filter(|place| !place.starts_with("BMC ") && place != "lab" && place != "client")
        .collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

fn class_of(place: &str, nodes: &[String]) -> &'static str {
    match place {
        "lab" => "lab",
        "client" => "client",
        place if place.starts_with("BMC ") => "bmc",
        place if nodes.first().is_some_and(|first| first == place) => "first",
        _ => "second",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grid lines are round and neither crowded nor missing, from milliseconds to minutes.
    #[test]
    fn grid_lines_are_round_and_few() {
        for (last, wanted) in [(0.0, 1.0), (80.0, 20.0), (2900.0, 500.0), (60_000.0, 10_000.0)] {
            assert!((grid_step(last) - wanted).abs() < f64::EPSILON, "{last}: {}", grid_step(last));
        }
    }
}
