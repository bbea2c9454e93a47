//! Both halves of the judgement put together, and told.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::history::History;
use crate::linearizable::{self, Limits, Linearizability, Violation};
use crate::lost::{self, Lost};
use crate::operation::Operation;

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Linearizable, and nothing acknowledged is lost.
    Good,
    /// Not so, and shown.
    Bad,
    /// Nothing bad was found, but not everything could be decided.
    Undecided,
}

/// The judgement of a history.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// In one word.
    pub answer: Answer,
    /// Operations in the history.
    pub operations: usize,
    /// Whether the generator ended in good order.
    pub ended: bool,
    /// Is there one order that explains every answer?
    pub linearizability: Linearizability,
    /// Is everything that was acknowledged still there, once?
    pub lost: Lost,
    #[serde(skip)]
    start_ns: u64,
}

/// Judges a history.
pub fn judge(history: &History, limits: Limits) -> Verdict {
    let linearizability = linearizable::check(&history.operations, limits);
    let lost = lost::check(history);
    let answer = if !linearizability.violations.is_empty() || !lost.findings.is_empty() {
        Answer::Bad
    } else if !linearizability.undecided.is_empty() || lost.undecided.is_some() {
        Answer::Undecided
    } else {
        Answer::Good
    };
    Verdict {
        answer,
        operations: history.operations.len(),
        ended: history.ended,
        linearizability,
        lost,
        start_ns: history.start_ns(),
    }
}

/// The most keys shown with their operations; the rest is named.
const SHOWN_MAX: usize = 5;

/// The most keys that are named.
const NAMED_MAX: usize = 20;

impl Verdict {
    /// The judgement for people. The first line is the answer.
    pub fn render(&self) -> String {
        let mut text = String::from(match self.answer {
            Answer::Good => "good: linearizable, nothing acknowledged is lost\n",
            Answer::Bad => "bad: this history is not what one dependable store would give\n",
            Answer::Undecided => "undecided: nothing bad was found, but not all could be decided\n",
        });
        let found = &self.linearizability;
        let _ = write!(
            text,
            "  {} operations on {} keys; {} changes acknowledged",
            self.operations, found.keys, self.lost.acknowledged,
        );
        for (what, nodes) in
            [("final state of", &self.lost.nodes), ("not read in the end:", &self.lost.unread)]
        {
            if !nodes.is_empty() {
                let _ = write!(text, "; {what} {}", nodes.join(", "));
            }
        }
        text.push('\n');
        if !self.ended {
            text.push_str(
                "  the generator did not end in good order: its last outcomes are unknown\n",
            );
        }
        for key in &found.undecided {
            let _ = writeln!(text, "\nkey {key}: undecided, the limits ran out");
        }
        if let Some(why) = &self.lost.undecided {
            let _ = writeln!(text, "\nlost acknowledgements: undecided, {why}");
        }
        for (kind, count) in &self.lost.counts {
            let _ = writeln!(text, "\n{}: {count}", kind.describe());
            for finding in self.lost.findings.iter().filter(|finding| finding.kind == *kind) {
                let _ = writeln!(text, "  {}", finding.message);
            }
            if *count > lost::KEPT_MAX {
                let _ = writeln!(text, "  … and {} more", count - lost::KEPT_MAX);
            }
        }
        for violation in found.violations.iter().take(SHOWN_MAX) {
            self.render_violation(violation, &mut text);
        }
        if let Some(rest) = found.violations.get(SHOWN_MAX..).filter(|rest| !rest.is_empty()) {
            let keys: Vec<&str> = rest.iter().take(NAMED_MAX).map(|it| &*it.key).collect();
            let _ = write!(text, "\nnot linearizable either: {}", keys.join(", "));
            if rest.len() > NAMED_MAX {
                let _ = write!(text, " … and {} more", rest.len() - NAMED_MAX);
            }
            text.push('\n');
        }
        text
    }

    fn render_violation(&self, violation: &Violation, text: &mut String) {
        let seconds =
            |ns: u64| Duration::from_nanos(ns.saturating_sub(self.start_ns)).as_secs_f64();
        let _ = writeln!(
            text,
            "\nkey {} is not linearizable: no order explains these {} operations, from {:.6} s to {:.6} s",
            violation.key,
            violation.operations.len(),
            seconds(violation.from_ns),
            seconds(violation.to_ns),
        );
        let lines: Vec<[String; 4]> = violation.operations.iter().map(columns).collect();
        let width =
            |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
        let (id, who, what) = (width(0), width(1), width(2));
        for (operation, line) in violation.operations.iter().zip(&lines) {
            let mark = if operation.id == violation.culprit { '>' } else { ' ' };
            let _ = writeln!(
                text,
                "{mark} {:>id$}  {}  {:who$}  {:what$}  {}",
                line[0],
                bar(operation, violation),
                line[1],
                line[2],
                line[3],
            );
        }
        let _ = writeln!(text, "  impossible with the answer of #{}", violation.culprit);
    }
}

fn columns(operation: &Operation) -> [String; 4] {
    [
        format!("#{}", operation.id),
        format!("client {} via {}", operation.client, operation.endpoint),
        operation.action.to_string(),
        operation.outcome.to_string(),
    ]
}

/// How wide the picture of the times is, in columns.
const BAR_COLUMNS: u64 = 32;

/// From when to when an operation lasted, as a bar over the time of the example.
fn bar(operation: &Operation, violation: &Violation) -> String {
    let span = violation.to_ns.saturating_sub(violation.from_ns).max(1);
    let column = |ns: u64| {
        let offset = u128::from(ns.saturating_sub(violation.from_ns));
        let column = offset * u128::from(BAR_COLUMNS - 1) / u128::from(span);
        column.min(u128::from(BAR_COLUMNS - 1)) as u64
    };
    let from = column(operation.invoke_ns);
    let to = operation.complete_ns.map_or(BAR_COLUMNS - 1, column).max(from);
    let over = operation.complete_ns.is_some_and(|complete| complete <= violation.to_ns);
    (0..BAR_COLUMNS)
        .map(|at| match at {
            _ if at < from || at > to => ' ',
            _ if at == to && !over => '>',
            _ if at == from || at == to => '|',
            _ => '-',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::history;

    /// The text names the key, the answer that made it impossible, and draws who overlapped whom.
    #[test]
    fn a_violation_is_told() {
        let verdict = judge(
            &history(
                "1 a k put x 0-10 ok 2
                 2 b k put y 15- unknown
                 1 a k get   20-30 ok 3 y@3
                 2 b k get   40-50 ok 2 x@2
                 final a 3 k=y@3/2/2",
            ),
            Limits::default(),
        );
        assert_eq!(verdict.answer, Answer::Bad);
        let wanted = "\
bad: this history is not what one dependable store would give
  4 operations on 1 keys; 1 changes acknowledged; final state of a

the revision went back: 1
  #4 (get via b) was answered at revision 2, though #3 (get via a) was already over at revision 3

key k is not linearizable: no order explains these 4 operations, from 0.000000 s to 0.000000 s
  #1  |-----|                           client 1 via a  put x  ok, revision 2
  #2           |--------------------->  client 2 via b  put y  unknown: timed out
  #3              |-----|               client 1 via a  get    holds y (changed at 3), revision 3
> #4                          |------|  client 2 via b  get    holds x (changed at 2), revision 2
  impossible with the answer of #4
";
        assert_eq!(verdict.render(), wanted, "{}", verdict.render());
    }

    /// Good needs both halves; without a final state it is undecided, which is not good.
    #[test]
    fn good_needs_both_halves() {
        let run = "1 a k put x 0-10 ok 2\n";
        let undecided = judge(&history(run), Limits::default());
        assert_eq!(undecided.answer, Answer::Undecided);
        assert!(undecided.render().starts_with("undecided"));
        let good = judge(&history(&format!("{run} final a 2 k=x@2/2/1")), Limits::default());
        assert_eq!(good.answer, Answer::Good, "{}", good.render());
    }
}
