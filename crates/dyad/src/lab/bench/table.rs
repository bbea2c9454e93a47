//! The table of a benchmark: of one pair, or of two side by side.

use std::fmt::Write as _;

use serde::Serialize;

use crate::exit::Exit;
use crate::output::{self, Format};

/// One measured quantity.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    pub(super) what: &'static str,
    pub(super) rounds: usize,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bench {
    /// Of what.
    pub(super) what: &'static str,
    pub(super) token_ms: u32,
    pub(super) database_mb: u32,
    pub(super) rounds: u32,
    pub(super) processors: usize,
    pub(super) kernel: String,
    pub(super) release: &'static str,
    pub(super) optimised: bool,
    pub(super) measured: Vec<Measured>,
}

/// Several, in one run on one machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Comparison<'a> {
    results: &'a [Bench],
}

/// Prints the only result, or several side by side.
pub(super) fn print(results: &[Bench], format: Format) -> anyhow::Result<Exit> {
    match (results, format) {
        ([only], Format::Json) => output::print_json("LabBench", only)?,
        (_, Format::Json) => output::print_json("LabComparison", &Comparison { results })?,
        ([only], Format::Text) => output::print_data(&alone(only)?)?,
        (_, Format::Text) => output::print_data(&side_by_side(results)?)?,
    }
    Ok(Exit::Ok)
}

fn head(bench: &Bench) -> String {
    let build = if bench.optimised { "optimised" } else { "DEBUG BUILD" };
    format!(
        "token {} ms, database {} MB, {} processors, Linux {}, Debian {}, {build}\n\n",
        bench.token_ms, bench.database_mb, bench.processors, bench.kernel, bench.release
    )
}

fn alone(bench: &Bench) -> Result<String, std::fmt::Error> {
    let mut text = head(bench);
    writeln!(text, "{:<48} {:>4} {:>8} {:>8} {:>8}", "WHAT", "N", "MEDIAN", "MIN", "MAX")?;
    for each in &bench.measured {
        let Measured { what, rounds, median, min, max } = each;
        writeln!(text, "{what:<48} {rounds:>4} {median:>8.1} {min:>8.1} {max:>8.1}")?;
    }
    Ok(text)
}

/// Medians with their spread, and how many times the first one's the others are.
fn side_by_side(results: &[Bench]) -> Result<String, std::fmt::Error> {
    let [first, others @ ..] = results else { return Ok(String::new()) };
    let mut text = head(first);
    write!(text, "{:<45}", "WHAT: MEDIAN (MIN TO MAX)")?;
    for each in results {
        write!(text, " {:>24}", each.what)?;
    }
    writeln!(text, " {:>6}", "RATIO")?;
    for row in &first.measured {
        write!(text, "{:<45} {:>24}", row.what, cell(row))?;
        for other in others {
            let theirs = other.measured.iter().find(|each| each.what == row.what);
            write!(text, " {:>24}", theirs.map_or_else(|| "-".to_owned(), cell))?;
            let ratio = theirs.filter(|_| row.median > 0.0).map(|each| each.median / row.median);
            write!(text, " {:>6}", ratio.map_or_else(String::new, |ratio| format!("{ratio:.1}")))?;
        }
        text.push('\n');
    }
    Ok(text)
}

fn cell(measured: &Measured) -> String {
    format!("{:.0} ({:.0} to {:.0})", measured.median, measured.min, measured.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(what: &'static str, median: f64) -> Bench {
        let row = |what, median| Measured { what, rounds: 1, median, min: median, max: median };
        Bench {
            what,
            token_ms: 1000,
            database_mb: 0,
            rounds: 1,
            processors: 2,
            kernel: "6".into(),
            release: "trixie",
            optimised: true,
            measured: vec![row("a (ms)", median), row("lost", 0.0)],
        }
    }

    /// A row has both medians and their ratio; where there is nothing to divide by, no ratio.
    #[test]
    fn rivals_stand_side_by_side() {
        let text = side_by_side(&[bench("Dyad", 100.0), bench("rival", 250.0)]).unwrap();
        let row = |what: &str| text.lines().find(|line| line.starts_with(what)).unwrap().to_owned();
        assert!(row("a (ms)").ends_with("250 (250 to 250)    2.5"), "{text}");
        assert!(row("lost").trim_end().ends_with("0 (0 to 0)"), "{text}");
    }
}
