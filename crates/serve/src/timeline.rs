//! An incident as a small picture: a line from its beginning to its end, with a numbered mark for each step, and the same
//! steps as a list. The list alone says everything.

use std::fmt::Write as _;

use dyad_status::document::Incident;

use crate::page::escaped;

/// The picture's width, and the room that a mark takes on it.
const WIDTH: u64 = 420;
/// See above.
const MARK: u64 = 24;

/// The picture and the list; nothing if no step is known.
pub(crate) fn timeline(incident: &Incident) -> String {
    if incident.steps.is_empty() {
        return String::new();
    }
    let mut html = String::from("<figure class=\"story\">");
    add_picture(incident, &mut html);
    html.push_str("<ol>");
    for step in &incident.steps {
        let _ = write!(
            html,
            "<li>{} <small>{}</small></li>",
            escaped(&step.what),
            offset(step.after_ms)
        );
    }
    html.push_str("</ol></figure>");
    html
}

/// How long after the beginning, as finely as it matters.
fn offset(after_ms: u64) -> String {
    match after_ms {
        0 => "at once".to_owned(),
        1..=999 => format!("+{after_ms} ms"),
        1_000..=59_999 => format!("+{}.{} s", after_ms / 1_000, after_ms % 1_000 / 100),
        _ => format!("+{}", dyad_status::words::duration(after_ms)),
    }
}

fn add_picture(incident: &Incident, html: &mut String) {
    let ended = if incident.end_ms.is_some() { "over" } else { "open" };
    let _ = write!(
        html,
        "<svg viewBox=\"0 0 {WIDTH} 28\" role=\"img\" class=\"{ended}\" aria-label=\"the {} steps below, each at its time\">\
         <line x1=\"{m}\" y1=\"14\" x2=\"{}\" y2=\"14\"/>",
        incident.steps.len(),
        WIDTH - MARK / 2,
        m = MARK / 2
    );
    for (place, x) in places(incident).into_iter().enumerate() {
        let _ = write!(
            html,
            "<circle cx=\"{x}\" cy=\"14\" r=\"11\"/><text x=\"{x}\" y=\"19\" text-anchor=\"middle\">{}</text>",
            place + 1
        );
    }
    html.push_str("</svg>");
}

/// Where each mark stands: at its time, but never on the one before it, and never so far that the rest has no room.
fn places(incident: &Incident) -> Vec<u64> {
    let whole = incident.duration_ms.max(1);
    let count = incident.steps.len() as u64;
    let mut least = MARK / 2;
    let mut list = Vec::new();
    for (place, step) in incident.steps.iter().enumerate() {
        let at = MARK / 2 + (WIDTH - MARK) * step.after_ms.min(whole) / whole;
        let behind = count - place as u64 - 1;
        let most = WIDTH - MARK / 2 - behind * MARK;
        let x = at.max(least).min(most);
        least = x + MARK;
        list.push(x);
    }
    list
}

#[cfg(test)]
mod tests {
    use dyad_status::document::Step;

    use super::*;

    fn incident(steps: &[(u64, &str)]) -> Incident {
        let step =
            |(after_ms, what): &(u64, &str)| Step { after_ms: *after_ms, what: (*what).into() };
        Incident {
            start_ms: 1_000,
            end_ms: Some(13_000),
            duration_ms: 12_000,
            what: String::new(),
            steps: steps.iter().map(step).collect(),
        }
    }

    /// Marks stand at their time, do not cover each other, and stay in the picture, however close they are.
    #[test]
    fn marks_do_not_cover_each_other() {
        let steps = [
            (0, "lost"),
            (2_300, "fenced"),
            (2_310, "alone"),
            (11_990, "back"),
            (12_000, "protected"),
        ];
        let all = places(&incident(&steps));
        assert_eq!(all, [12, 87, 111, 384, 408]);
        let close: Vec<_> = (0..12).map(|n| (n, "x")).collect();
        let all = places(&incident(&close));
        assert!(all.windows(2).all(|two| two[1] - two[0] >= MARK), "{all:?}");
        let late: Vec<_> = (0..12).map(|n| (11_989 + n, "x")).collect();
        assert_eq!(places(&incident(&late)).last(), Some(&(WIDTH - MARK / 2)));
    }

    /// Every step is in the list, with its time; markup in a name stays text. Without steps nothing is drawn.
    #[test]
    fn every_step_is_told() {
        let html =
            timeline(&incident(&[(0, "<b> lost"), (2_310, "alone"), (130_000, "protected")]));
        assert!(html.contains("<li>&lt;b&gt; lost <small>at once</small></li>"), "{html}");
        assert!(html.contains("<li>alone <small>+2.3 s</small></li>"), "{html}");
        assert!(html.contains("<li>protected <small>+2 min</small></li>"), "{html}");
        assert_eq!(html.matches("<circle").count(), 3);
        assert_eq!(timeline(&incident(&[])), "");
    }
}
