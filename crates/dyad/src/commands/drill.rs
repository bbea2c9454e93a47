//! `dyad drill`: can the nodes be switched off when it matters?

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use dyad_core::ids::NodeName;
use dyad_core::state::State;
use dyad_node::place::Place;
use dyad_node::{Node, journal, pacemaker, power, record};
use dyad_status::document::Drill as LastDrill;
use dyad_status::look::{PATIENT, look};
use dyad_status::words::duration;
use etcd_peer::client::Deadline;
use serde::Serialize;

use super::{person, this_node, waiting};
use crate::cli::DrillArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::wrap::wrap;

/// One write of the drill: longer is a gap.
const WRITE_LIMIT: Duration = Duration::from_secs(2);
/// The pause between two writes.
const WRITE_PAUSE: Duration = Duration::from_millis(20);
/// How long it may take until the loss of the node shows: a token, and what follows it.
const LOSS_LIMIT: Duration = Duration::from_mins(1);
/// The key that the drill writes to.
const KEY: &[u8] = b"dyad/drill";

/// What a BMC said.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bmc {
    node: String,
    address: String,
    power: Option<String>,
    error: Option<String>,
    took_ms: u64,
}

/// What a drill came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Drill {
    node: String,
    fenced_after_ms: u64,
    longest_write_gap_ms: u64,
    protected_after_ms: u64,
}

/// Asks the BMCs, or fences the other node.
pub(super) fn run(arguments: &DrillArguments, format: Format) -> anyhow::Result<Exit> {
    let node = Arc::new(this_node::open()?);
    match &arguments.really {
        None => report(&node, format),
        Some(name) => {
            let drill = fence(&node, name, arguments)?;
            match format {
                Format::Json => output::print_json("Drill", &drill)?,
                Format::Text => output::print_data(&told(&drill))?,
            }
            Ok(Exit::Ok)
        }
    }
}

fn report(node: &Arc<Node>, format: Format) -> anyhow::Result<Exit> {
    let bmcs: Vec<Bmc> = std::thread::scope(|scope| {
        let asked: Vec<_> = [node.own(), node.peer()].map(|each| scope.spawn(|| ask(each))).into();
        asked.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let fencing = look(node, PATIENT).status.fencing;
    let last = fencing.last;
    // Pacemaker gives a test up that failed too often, for minutes.
    let given_up: Vec<&str> = fencing
        .devices
        .iter()
        .filter(|device| device.works == Some(false))
        .map(|device| device.node.as_str())
        .collect();
    let all = bmcs.iter().all(|bmc| bmc.error.is_none()) && given_up.is_empty();
    match format {
        Format::Json => {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Body {
                bmcs: Vec<Bmc>,
                last: Option<dyad_status::document::FenceEvent>,
            }
            output::print_json("DrillReport", Body { bmcs, last })?;
        }
        Format::Text => {
            let mut text = String::new();
            for bmc in &bmcs {
                let said = match (&bmc.power, &bmc.error) {
                    (Some(power), _) => format!("says {power}"),
                    (None, why) => format!("FAILS: {}", why.as_deref().unwrap_or("no answer")),
                };
                let line = format!("{}: {} {said} ({} ms)", bmc.node, bmc.address, bmc.took_ms);
                let _ = writeln!(text, "{}", wrap(&line, 80, 2));
            }
            let used = last.map_or("never, as far as Pacemaker remembers".to_owned(), |last| {
                let when = last.when();
                format!("{} of {}: {} ({when})", last.action, last.node, last.outcome)
            });
            let _ = writeln!(text, "last used: {used}");
            for name in given_up {
                let _ = writeln!(
                    text,
                    "Pacemaker's own test of {name} failed; when the BMC answers again:\n  \
                     crm_resource --cleanup --resource fence-{name}"
                );
            }
            let _ = writeln!(text, "a real test: dyad drill --really {}", node.peer().name);
            output::print_data(&text)?;
        }
    }
    Ok(if all { Exit::Ok } else { Exit::No })
}

fn ask(node: &dyad_cluster::pair::Node) -> Bmc {
    let start = Instant::now();
    let answer = power::look_at(&node.bmc, &node.bmc.credentials_file);
    let took_ms = elapsed_ms(start);
    let (power, error) = match answer {
        Ok(system) => (Some(format!("{:?}", system.power)), None),
        Err(why) => (None, Some(dyad_node::gather::words(&*why))),
    };
    let (name, address) = (node.name.to_string(), node.bmc.address.clone());
    Bmc { node: name, address, power, error, took_ms }
}

fn elapsed_ms(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Fences the other node of a protected pair, and measures.
fn fence(node: &Arc<Node>, name: &str, arguments: &DrillArguments) -> anyhow::Result<Drill> {
    let target = person::named(node, name)?.name.clone();
    if target == node.own().name {
        let message = format!("{target} cannot fence itself");
        let hint = format!("run it on {}", node.peer().name);
        return Err(Failure::new(Exit::Usage, message).hint(hint).into());
    }
    let seen = look(node, PATIENT);
    seen.judgement.gate(&seen.status.unknown).map_err(|shut| {
        Failure::new(Exit::Refused, format!("no drill now: {}", shut.because)).hint(shut.command)
    })?;
    if !arguments.yes {
        let question = format!(
            "{target} loses its power now, without a warning, and boots again.\nType its name to do it"
        );
        person::asks_for(name, &question, "--yes")?;
    }
    person::write_down(node, &format!("fences {target}: a drill"), None)?;
    let time_ms = journal::now_ms();
    let measured = measure(node, &target, arguments);
    keep(&node.place, &remembered(time_ms, &target.0, &measured));
    measured
}

/// What is kept of a drill: one that failed is remembered as well.
fn remembered(time_ms: u64, node: &str, measured: &anyhow::Result<Drill>) -> LastDrill {
    let drill = measured.as_ref().ok();
    LastDrill {
        time_ms,
        node: node.to_owned(),
        failure: measured.as_ref().err().map(|why| format!("{why:#}")),
        fenced_after_ms: drill.map(|drill| drill.fenced_after_ms),
        longest_write_gap_ms: drill.map(|drill| drill.longest_write_gap_ms),
        protected_after_ms: drill.map(|drill| drill.protected_after_ms),
    }
}

/// `dyad status` tells of it. A drill is not undone by a record that cannot be written.
fn keep(place: &Place, drill: &LastDrill) {
    if let Err(error) = record::write_durable(&place.last_drill(), drill) {
        journal::warn(&format!(
            "the drill is not remembered: {}",
            dyad_node::gather::words(&error)
        ));
    }
}

/// Fences, and measures what that costs.
fn measure(
    node: &Arc<Node>,
    target: &NodeName,
    arguments: &DrillArguments,
) -> anyhow::Result<Drill> {
    let delay_ms = node.pair.fencing.bmc_timeout_ms.saturating_mul(3);
    let limit = Duration::from_millis(delay_ms).max(Duration::from_mins(1));
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let wait = Duration::from_secs(arguments.wait);
    let (fenced, back, gap) = std::thread::scope(|scope| {
        let writes = scope.spawn(|| longest_gap(node, &stop));
        let fenced = pacemaker::fence(target, limit).map(|()| elapsed_ms(start));
        let back = if fenced.is_ok() { protected_again(node, wait) } else { Ok(()) };
        stop.store(true, Ordering::Relaxed);
        (fenced, back, writes.join())
    });
    let fenced_after_ms = fenced.with_context(|| format!("fencing {target}"))?;
    let gap = gap.map_err(|_| anyhow::anyhow!("the writes of the drill failed"))??;
    back?;
    Ok(Drill {
        node: target.to_string(),
        fenced_after_ms,
        longest_write_gap_ms: gap,
        protected_after_ms: elapsed_ms(start),
    })
}

/// Waits until the loss has shown, and then until it is made good: what is seen at once is from before.
fn protected_again(node: &Arc<Node>, limit: Duration) -> Result<(), Failure> {
    waiting::until(node, LOSS_LIMIT.min(limit), "the loss to show", |seen| {
        seen.judgement.state != State::Protected
    })?;
    waiting::until(node, limit, "the pair to be protected again", |seen| {
        seen.judgement.state == State::Protected
    })
    .map(drop)
}

/// Writes through this node's etcd until told to stop; gives the longest time without an acknowledged write.
fn longest_gap(node: &Node, stop: &AtomicBool) -> anyhow::Result<u64> {
    let client = node.own_client()?;
    let mut last = Instant::now();
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        if client.put(KEY, b"drill", Deadline::after(WRITE_LIMIT)).is_ok() {
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        std::thread::sleep(WRITE_PAUSE);
    }
    longest = longest.max(last.elapsed());
    Ok(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX))
}

fn told(drill: &Drill) -> String {
    format!(
        "{} was fenced after {}\nlongest time without a write here: {}\nprotected again after {}\n",
        drill.node,
        duration(drill.fenced_after_ms),
        duration(drill.longest_write_gap_ms),
        duration(drill.protected_after_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `dyad status` reads is what was measured, or why nothing was.
    #[test]
    fn a_drill_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place { state: directory.path().to_owned(), ..Place::default() };
        let drill = Drill {
            node: "node-b".into(),
            fenced_after_ms: 2_300,
            longest_write_gap_ms: 2_450,
            protected_after_ms: 74_000,
        };
        let read = || record::read::<LastDrill>(&place.last_drill()).unwrap().unwrap();
        keep(&place, &remembered(5, "node-b", &Ok(drill)));
        let last = read();
        assert_eq!((last.time_ms, last.failure.as_deref()), (5, None));
        assert_eq!(last.protected_after_ms, Some(74_000));
        let failed = Err(anyhow::anyhow!("no answer").context("fencing node-b"));
        keep(&place, &remembered(6, "node-b", &failed));
        assert_eq!(read().failure.as_deref(), Some("fencing node-b: no answer"));
    }
}
