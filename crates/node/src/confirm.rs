//! A person states that the peer is down (R5).
//!
//! First everything is looked at that could contradict: Corosync, the peer's BMC, its addresses on every link.
//! Then `core` decides as ever; what a person said is written down with who said it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::thread;
use std::time::Duration;

use dyad_core::decision::Decision;
use dyad_core::facts::{Operation, Power, Request, Role};
use nix::fcntl::Flock;
use serde::Serialize;

use crate::act::{self, Failure};
use crate::agent::role_now;
use crate::gather::{Gathered, words};
use crate::journal;
use crate::node::{Error, Node};
use crate::power;

/// A peer that is up answers within a fraction of this.
const PING_LIMIT: Duration = Duration::from_secs(3);

/// What is known before a person's word is taken.
pub struct Known {
    /// The facts, with the paths on which the peer answers.
    pub gathered: Gathered,
    /// What the peer's BMC says, or why it says nothing.
    pub power: Result<Power, String>,
    /// What follows from them.
    pub decision: Decision,
}

/// What a person's answer meets.
pub enum Answered {
    /// What the person was shown is still so. The node is held.
    Unchanged(Flock<File>, Known),
    /// It is not.
    Changed(Known, String),
}

/// One line of the record of confirmations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Confirmed<'a> {
    time_ms: u64,
    who: &'a str,
    why: &'a str,
    peer: String,
    accept_loss: bool,
    despite_signs: bool,
    because: &'a str,
}

/// Looks at everything that could contradict, and decides; does nothing.
pub fn look(node: &Node, accept_loss: bool, despite_signs: bool) -> Known {
    look_for(node, Operation::Confirm { accept_loss, despite_signs })
}

/// Lets a person think about what is known, without holding the node: nobody knows for how long, and whatever Pacemaker asks
/// meanwhile must be answered. Then everything is looked at again, for the answer was about what was shown.
pub fn ask<E: From<Error>>(
    node: &Node,
    lock: Flock<File>,
    shown: &Known,
    asks: impl FnOnce() -> Result<(), E>,
) -> Result<Answered, E> {
    drop(lock);
    asks()?;
    let lock = node.lock()?;
    let now = look_for(node, shown.gathered.facts.request.operation);
    Ok(match change(shown, &now) {
        None => Answered::Unchanged(lock, now),
        Some(what) => Answered::Changed(now, what),
    })
}

/// What has changed between two looks, as far as a person's word rests on it.
fn change(shown: &Known, now: &Known) -> Option<String> {
    let (before, after) = (&shown.gathered.facts.peer, &now.gathered.facts.peer);
    let name = &after.name;
    if before.present != after.present {
        return Some(format!(
            "{name} {} the cluster",
            if after.present { "is in" } else { "left" }
        ));
    }
    if before.paths != after.paths {
        return Some(format!("{name} answers on other addresses"));
    }
    if shown.power.as_ref().ok() != now.power.as_ref().ok() {
        return Some(format!("{name}'s BMC says something else"));
    }
    let same = shown.decision == now.decision;
    (!same).then(|| now.decision.because.clone())
}

fn look_for(node: &Node, operation: Operation) -> Known {
    let request = Request { operation, ..Request::default() };
    let role = role_now(node).unwrap_or(Role::Stopped);
    let mut gathered = node.look(request, role);
    let power = power::read_peer_power(node, &gathered.facts).map_err(|error| words(&*error));
    gathered.facts.peer.power = node.memory.power();
    gathered.facts.peer.paths = answering(node);
    let decision = dyad_core::decide(&gathered.facts);
    Known { gathered, power, decision }
}

/// Switches the peer off through its BMC, if that can be reached, and tells what became of it. A person's word
/// counts without it; with it nothing can come of a mistake.
pub fn force_off(node: &Node, known: &Known) -> Result<Power, String> {
    known.power.clone()?;
    let facts = &known.gathered.facts;
    power::force_peer_off(node, facts).map_err(|error| words(&*error))?;
    Ok(node.memory.power().map_or(Power::Unknown, |reading| reading.state))
}

/// Does what was decided, and writes down who said so and why.
pub fn act(node: &Node, known: &Known, who: &str, why: &str) -> Result<(), Failure> {
    let facts = &known.gathered.facts;
    let (accept_loss, despite_signs) = match facts.request.operation {
        Operation::Confirm { accept_loss, despite_signs } => (accept_loss, despite_signs),
        _ => (false, false),
    };
    let entry = Confirmed {
        time_ms: journal::now_ms(),
        who,
        why,
        peer: node.peer().name.to_string(),
        accept_loss,
        despite_signs,
        because: &known.decision.because,
    };
    write_down(node, &entry)?;
    journal::warn(&format!(
        "{who} confirms that {} is down ({why}): {}",
        node.peer().name,
        known.decision.because
    ));
    node.journal().write(facts, &known.decision, None, &known.gathered.troubles);
    act::perform(node, &known.gathered, &known.decision.action)
}

fn write_down(node: &Node, entry: &Confirmed<'_>) -> Result<(), Failure> {
    std::fs::create_dir_all(&node.place.log)?;
    let path = node.place.log.join("confirmations.jsonl");
    let mut text = serde_json::to_vec(entry)?;
    text.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(&text)?;
    Ok(file.sync_all()?)
}

/// The peer's addresses that answer.
fn answering(node: &Node) -> Vec<String> {
    thread::scope(|scope| {
        let asked: Vec<_> = node
            .peer()
            .addresses
            .iter()
            .map(|address| (address.to_string(), scope.spawn(|| ping(&address.to_string()))))
            .collect();
        let answers = asked.into_iter().filter_map(|(address, thread)| {
            thread.join().is_ok_and(|answers| answers).then_some(address)
        });
        answers.collect()
    })
}

fn ping(address: &str) -> bool {
    let arguments = ["-n", "-q", "-c", "2", "-i", "0.3", "-W", "1", address];
    let mut ping = dyad_program::command("ping", arguments);
    dyad_program::run(&mut ping, "", PING_LIMIT).is_ok_and(|finished| finished.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, Word};

    /// As long as a person thinks, whoever needs the node gets it; the answer holds it.
    #[test]
    fn a_person_who_thinks_holds_nobody_up() {
        let fixture = Fixture::new();
        let node = fixture.node(&Word::default());
        let at_once = Duration::ZERO;
        let lock = node.lock_within(at_once).unwrap();
        let shown = look(&node, false, false);
        let answered = ask(&node, lock, &shown, || node.lock_within(at_once).map(drop)).unwrap();
        assert!(matches!(answered, Answered::Unchanged(..)));
        assert!(node.lock_within(at_once).is_err());
    }

    /// An answer to what is no longer so does not count.
    #[test]
    fn what_has_changed_meanwhile_is_told() {
        let fixture = Fixture::new();
        let node = fixture.node(&Word::default());
        let changes: [fn(&mut Known); 4] = [
            |known| known.gathered.facts.peer.present ^= true,
            |known| known.gathered.facts.peer.paths.push("127.0.0.10".to_owned()),
            |known| known.power = Ok(Power::On),
            |known| known.decision.because.clear(),
        ];
        for change in changes {
            let mut shown = look(&node, false, false);
            change(&mut shown);
            let lock = node.lock().unwrap();
            let answered = ask(&node, lock, &shown, || Ok::<_, Error>(())).unwrap();
            assert!(matches!(answered, Answered::Changed(_, what) if !what.is_empty()));
        }
    }
}
