//! After a repair nothing is broken any more: the pair has to be whole again, by itself and within a limit.

use std::time::{Duration, Instant};

use super::act::Side;
use super::hands::Hands;
use super::person;
use super::plan::Step;
use super::report::Violation;
use crate::Lab;
use crate::error::Result;
use crate::protocol::LabStatus;

/// How long the pair may take until either node may fail again. A node that waits for its peer before it goes on
/// alone waits for a minute (R5); the rest is boots, elections and a join.
pub(super) const LIMIT: Duration = Duration::from_mins(4);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// How the pair looks from both nodes.
enum Look {
    /// Either node may fail.
    Protected,
    /// Two histories.
    Diverged,
    /// Not yet, because.
    Missing(String),
}

/// Waits until the pair is whole; tells how long that took, or what was not so in the end.
pub(super) fn settle(
    lab: &Lab,
    hands: &mut Hands<'_>,
    step: &Step,
) -> Result<Result<Duration, Violation>> {
    let start = Instant::now();
    loop {
        let status = lab.status()?;
        if let Some(violation) = mutual_kill(&status, step) {
            return Ok(Err(violation));
        }
        hands.tend(&status)?;
        let missing = match look(lab, &status) {
            Look::Protected => return Ok(Ok(start.elapsed())),
            Look::Diverged => {
                let Some(accepted) = hands.accepted.first().cloned() else {
                    let what = "both nodes went on alone, and nobody accepted that";
                    return Ok(Err(Violation::new("P1", what)));
                };
                if let Err(violation) = person::resolve(lab, &accepted)? {
                    return Ok(Err(violation));
                }
                hands.given_up.push(accepted.node);
                "a person has just chosen between two histories".to_owned()
            }
            Look::Missing(missing) => missing,
        };
        if start.elapsed() > LIMIT {
            let limit = LIMIT.as_secs();
            let what = format!("not whole {limit} s after everything was repaired: {missing}");
            return Ok(Err(Violation::new("P4", what)));
        }
        std::thread::sleep(PAUSE);
    }
}

/// P5: both nodes are off, and nobody but the pair itself took the power of either.
pub(super) fn mutual_kill(status: &LabStatus, step: &Step) -> Option<Violation> {
    let both_off = status.nodes.iter().all(|node| !node.on);
    let what = "both nodes are off, and nobody pulled a plug: they switched each other off";
    (both_off && !step.takes_power()).then(|| Violation::new("P5", what))
}

fn look(lab: &Lab, status: &LabStatus) -> Look {
    for side in Side::BOTH {
        if !status.nodes[side.position()].on {
            return Look::Missing(format!("{side} is off"));
        }
        let Some(seen) = lab.pair_status(side.name()) else {
            return Look::Missing(format!("{side} does not tell its status"));
        };
        match seen["state"].as_str() {
            Some("protected") => {}
            Some("diverged") => return Look::Diverged,
            _ => {
                let text = format!("{side} says {}: {}", seen["state"], seen["because"]);
                return Look::Missing(text);
            }
        }
    }
    let silent = || {
        let node = lab.names().into_iter().find(|node| !lab.is_writable(node));
        node.map(|node| format!("no write is accepted through {node}"))
    };
    lab.missing_of_protection().or_else(silent).map_or(Look::Protected, Look::Missing)
}
