//! A comparison as a picture: bars on a logarithmic scale, for times that lie far apart.

use std::fmt::Write as _;

use super::results::{
    Bench, CUT_LOST, FAULT_TO_WRITE, FENCED_TO_WRITE, LOST_WITH_NODE, ONE_WAY_LOST, REJOIN, Row,
    Unit, What,
};

const WIDTH: f64 = 960.0;
/// Where bars begin, and where the longest ends.
const LEFT: f64 = 250.0;
const RIGHT: f64 = 800.0;
const BAR: f64 = 22.0;
const GAP: f64 = 12.0;

/// Colours that keep their contrast on both backgrounds; meaning is never carried by colour alone.
const STYLE: &str = "<style>\n\
    svg{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:13px}\n\
    .page{fill:#ffffff}.ink{fill:#1f2328}.dim{fill:#59636e}.rule{stroke:#d1d9e0}\n\
    .c0{fill:#1a7f37}.c1{fill:#bc4c00}.c2{fill:#8250df}\n\
    .title{font-size:17px;font-weight:600}.head{font-weight:600}.mono{font-variant-numeric:tabular-nums}\n\
    @media (prefers-color-scheme:dark){.page{fill:#0d1117}.ink{fill:#f0f6fc}.dim{fill:#9198a1}\
    .rule{stroke:#3d444d}.c0{fill:#3fb950}.c1{fill:#ffa657}.c2{fill:#ab7df8}}\n</style>\n";

/// What is drawn, in this order.
const SHOWN: [What; 3] = [FAULT_TO_WRITE, FENCED_TO_WRITE, REJOIN];

/// Draws it.
pub(super) fn draw(bench: &Bench) -> String {
    let mut body = String::new();
    let scale = Scale::of(bench);
    let mut y = 76.0;
    for what in SHOWN {
        let rows: Vec<&Row> = bench.rows.iter().filter(|row| row.what == what.name).collect();
        let several = rows.len() > 1;
        for row in rows {
            let size = if several { format!(", {} MB", row.database_mb) } else { String::new() };
            y = group(&mut body, bench, row, &format!("{}{size}", title(what)), &scale, y);
        }
    }
    y = lost(&mut body, bench, y);
    let height = y + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"How long it takes, by contestant\">\n{STYLE}\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n\
         <text class=\"ink title\" x=\"24\" y=\"34\">One of two nodes is lost</text>\n\
         <text class=\"dim\" x=\"24\" y=\"56\">medians in seconds, logarithmic; token {} ms, {}, {} \
         processors</text>\n",
        bench.token_ms,
        escape(bench.facts.date.get(..10).unwrap_or_default()),
        bench.facts.processors,
    );
    svg += &body;
    svg.push_str("</svg>\n");
    svg
}

/// A quantity in words, without its unit.
fn title(what: What) -> &'static str {
    what.name.trim_end_matches(" (ms)")
}

/// From the decade below the shortest to the longest.
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    fn of(bench: &Bench) -> Self {
        let shown = |row: &&Row| SHOWN.iter().any(|what| what.name == row.what);
        let rows = bench.rows.iter().filter(shown);
        let values: Vec<f64> =
            rows.flat_map(|row| row.cells.values().map(|cell| cell.median)).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
        let most = values.iter().copied().fold(1.0, f64::max);
        let from = least.min(most).log10().floor();
        Self { from, to: most.log10().max(from + 1.0) }
    }

    fn x(&self, ms: f64) -> f64 {
        let part = (ms.max(1.0).log10() - self.from) / (self.to - self.from);
        LEFT + (RIGHT - LEFT) * part.clamp(0.005, 1.0)
    }
}

/// The bars of one row; gives where the next one begins.
fn group(svg: &mut String, bench: &Bench, row: &Row, name: &str, scale: &Scale, mut y: f64) -> f64 {
    let _ = writeln!(
        svg,
        "<text class=\"ink head\" x=\"24\" y=\"{:.1}\">{}</text>",
        y + 14.0,
        escape(name)
    );
    y += 22.0;
    for (position, contestant) in bench.contestants.iter().enumerate() {
        let baseline = y + BAR - 7.0;
        let _ = write!(
            svg,
            "<text class=\"dim\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 12.0,
            escape(&contestant.name)
        );
        match row.cells.get(&contestant.name) {
            Some(cell) => {
                let end = scale.x(cell.median);
                let _ = writeln!(
                    svg,
                    "<rect class=\"c{position}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                     rx=\"3\"/><text class=\"ink mono\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
                    end - LEFT,
                    BAR - 4.0,
                    end + 8.0,
                    seconds(cell.median)
                );
            }
            None => {
                let _ = writeln!(
                    svg,
                    "<text class=\"dim\" x=\"{LEFT}\" y=\"{baseline:.1}\">not measured</text>"
                );
            }
        }
        y += BAR;
    }
    y + GAP
}

/// Acknowledged writes that are gone, of all faults.
fn lost(svg: &mut String, bench: &Bench, mut y: f64) -> f64 {
    let kinds = [LOST_WITH_NODE, CUT_LOST, ONE_WAY_LOST];
    let rows = || bench.rows.iter().filter(|row| kinds.iter().any(|kind| kind.name == row.what));
    if rows().next().is_none() {
        return y;
    }
    let _ = writeln!(
        svg,
        "<text class=\"ink head\" x=\"24\" y=\"{:.1}\">acknowledged writes lost, all faults together</text>",
        y + 14.0
    );
    y += 22.0;
    for (position, contestant) in bench.contestants.iter().enumerate() {
        let cells = || rows().filter_map(|row| row.cells.get(&contestant.name));
        let total: f64 = cells().map(|cell| cell.value(Unit::Count)).sum();
        let faults: usize = cells().map(|cell| cell.n).sum();
        let baseline = y + BAR - 7.0;
        let _ = writeln!(
            svg,
            "<text class=\"dim\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"c{position} head mono\" x=\"{LEFT}\" y=\"{baseline:.1}\">{total:.0} in {faults} faults</text>",
            LEFT - 12.0,
            escape(&contestant.name)
        );
        y += BAR;
    }
    y + GAP
}

/// Three digits are enough.
fn seconds(ms: f64) -> String {
    let seconds = ms / 1e3;
    if seconds < 0.1 {
        format!("{seconds:.3} s")
    } else if seconds < 10.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.0} s")
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::example;
    use super::*;

    /// Well-formed; a bar for every cell of what is shown, a longer one for a longer time, inside of the picture.
    #[test]
    fn every_time_has_its_bar() {
        let bench = example();
        let svg = draw(&bench);
        // Every element is closed: what opens and does not close itself has its end.
        for name in ["svg", "text", "style"] {
            let opened = svg.matches(&format!("<{name}")).count();
            assert_eq!(opened, svg.matches(&format!("</{name}>")).count(), "{name}");
        }
        let width = |line: &str| {
            let rest = &line[line.find("width=\"")? + 7..];
            rest[..rest.find('"')?].parse::<f64>().ok()
        };
        let bars: Vec<f64> =
            svg.lines().filter(|line| line.contains("rect class=\"c")).filter_map(width).collect();
        assert_eq!(bars.len(), 8);
        for pair in bars.chunks(2) {
            assert!(pair[0] < pair[1] && pair[1] <= RIGHT - LEFT, "{bars:?}");
        }
        assert!(svg.contains("7 in 2 faults") && svg.contains("0 in 2 faults"), "{svg}");
    }

    /// A time has three digits, whatever its size.
    #[test]
    fn times_are_short() {
        let shown = [36.4, 179.0, 2394.0, 45_210.0].map(seconds);
        assert_eq!(shown, ["0.036 s", "0.18 s", "2.39 s", "45 s"]);
    }
}
