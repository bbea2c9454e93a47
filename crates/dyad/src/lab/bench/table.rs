//! The table of a benchmark: of one pair, or of several side by side.

use std::fmt::Write as _;

use super::results::{Bench, Cell, Row, Unit};
use crate::exit::Exit;
use crate::output::{self, Format};

/// Prints what was found.
pub(super) fn print(bench: &Bench, format: Format) -> anyhow::Result<Exit> {
    match format {
        Format::Json => output::print_json(super::KIND, bench)?,
        Format::Text => output::print_data(&text(bench)?)?,
    }
    Ok(Exit::Ok)
}

fn text(bench: &Bench) -> Result<String, std::fmt::Error> {
    let mut text = bench.facts.line();
    let traffic = if bench.encrypted { "encrypted" } else { "in the clear" };
    writeln!(text, "token {} ms, rounds: {}, etcd {traffic}", bench.token_ms, bench.rounds)?;
    for each in &bench.contestants {
        let versions: Vec<_> =
            each.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        writeln!(text, "{}: {}", each.name, versions.join(", "))?;
    }
    text.push('\n');
    match bench.contestants.as_slice() {
        [only] => alone(bench, &only.name, &mut text)?,
        _ => side_by_side(bench, &mut text)?,
    }
    for incident in &bench.incidents {
        writeln!(text, "\n{incident}")?;
    }
    Ok(text)
}

/// The name of a row, with the size where there are several.
fn name(bench: &Bench, row: &Row) -> String {
    let several = bench.rows.iter().any(|other| other.database_mb != row.database_mb);
    let alike = || bench.rows.iter().filter(|other| other.what == row.what).count();
    if several && alike() > 1 {
        format!("{}, {} MB", row.what, row.database_mb)
    } else {
        row.what.clone()
    }
}

fn alone(bench: &Bench, contestant: &str, text: &mut String) -> std::fmt::Result {
    writeln!(text, "{:<58} {:>4} {:>8} {:>8} {:>8}", "WHAT", "N", "MEDIAN", "MIN", "MAX")?;
    for row in &bench.rows {
        if let Some(Cell { n, median, min, max, .. }) = row.cells.get(contestant) {
            let name = name(bench, row);
            writeln!(text, "{name:<58} {n:>4} {median:>8.1} {min:>8.1} {max:>8.1}")?;
        }
    }
    Ok(())
}

/// Medians with their spread, and how many times the first one's the others are.
fn side_by_side(bench: &Bench, text: &mut String) -> std::fmt::Result {
    write!(text, "{:<58}", "WHAT: MEDIAN (MIN TO MAX), OR TOTAL OF ALL")?;
    for (position, each) in bench.contestants.iter().enumerate() {
        write!(text, " {:>24}", each.name)?;
        if position > 0 {
            write!(text, " {:>6}", "RATIO")?;
        }
    }
    text.push('\n');
    for row in &bench.rows {
        write!(text, "{:<58}", name(bench, row))?;
        let mut first = None;
        for (position, each) in bench.contestants.iter().enumerate() {
            let cell = row.cells.get(&each.name);
            write!(text, " {:>24}", cell.map_or_else(|| "-".to_owned(), |it| shown(it, row.unit)))?;
            let value = cell.map(|it| it.value(row.unit));
            if position == 0 {
                first = value.filter(|value| *value > 0.0);
                continue;
            }
            let ratio = first.zip(value).map(|(first, value)| format!("{:.1}", value / first));
            write!(text, " {:>6}", ratio.unwrap_or_default())?;
        }
        // No blanks at the end of a line.
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    Ok(())
}

fn shown(cell: &Cell, unit: Unit) -> String {
    let Cell { n, median, min, max, total } = cell;
    match unit {
        Unit::Ms if *median < 100.0 => format!("{median:.1} ({min:.1} to {max:.1})"),
        Unit::Ms => format!("{median:.0} ({min:.0} to {max:.0})"),
        Unit::Count => format!("{total:.0} in {n} times"),
        Unit::Each => format!("{median:.0}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::results::{
        CUT_LOST, Contestant, FAULT_TO_WRITE, FENCED_TO_WRITE, Samples, rows,
    };
    use super::*;
    use crate::lab::bench::facts::Facts;

    /// Two contestants at two sizes; the rival lost something.
    pub(in super::super) fn example() -> Bench {
        let mut all = Vec::new();
        for (name, factor) in [("Dyad", 1.0), ("rival", 2.5)] {
            for (size, extra) in [(1, 0.0), (100, 10.0)] {
                let mut samples = Samples::new(name, size);
                samples.add(FAULT_TO_WRITE, Some((2000.0 + extra) * factor));
                samples.add(FENCED_TO_WRITE, Some((40.0 + extra) * factor));
                if size == 1 {
                    samples.add(CUT_LOST, Some(if name == "rival" { 7.0 } else { 0.0 }));
                    samples.add(CUT_LOST, Some(0.0));
                }
                all.push(samples);
            }
        }
        let contestant = |name: &str| Contestant {
            name: name.to_owned(),
            versions: [("etcd".to_owned(), "3.5.16".to_owned())].into(),
        };
        Bench {
            facts: Facts::example(),
            token_ms: 1000,
            rounds: 1,
            encrypted: true,
            contestants: vec![contestant("Dyad"), contestant("rival")],
            rows: rows(&all),
            incidents: vec!["rival, 100 MB: it did not come back".to_owned()],
            failed: false,
        }
    }

    /// A row has all cells and a ratio; where there is nothing to divide by, no ratio. What went wrong is told.
    #[test]
    fn contestants_stand_side_by_side() {
        insta::assert_snapshot!(text(&example()).unwrap());
    }

    /// What was printed as JSON is read back, and makes the same table.
    #[test]
    fn a_table_is_made_again_from_json() {
        let bench = example();
        let json =
            serde_json::to_string(&output::Document::new(super::super::KIND, &bench)).unwrap();
        let again: Bench = serde_json::from_str(&json).unwrap();
        assert_eq!(text(&again).unwrap(), text(&bench).unwrap());
    }
}
