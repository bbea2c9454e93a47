//! The look itself: every source at the same time, each with a limit, nothing changed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use dyad_cluster::state::ClusterState;
use dyad_core::ids::NodeName;
use dyad_core::state::Judgement;
use dyad_node::corosync::{self, Membership};
use dyad_node::etcd::{self, Live};
use dyad_node::gather::{Disk, Gathered, words};
use dyad_node::place::Place;
use dyad_node::{Node, pacemaker, record};
use etcd_peer::client::{Alarm, Client, Deadline, Status as EtcdStatus};

use crate::document::{Drill, FenceEvent, Status};
use crate::events::{self, Event};
use crate::history::{self, Moment};
use crate::tools::{Token, Told};
use crate::{tell, tools};

/// How long `dyad status` waits for any source: a person who looks has an answer in a blink.
pub const GLANCE: Duration = Duration::from_millis(260);
/// On a machine with more work than it has processors everything takes longer by as much; more than this is not
/// waited for.
const STRETCH_MAX: u32 = 8;

/// How long a glance lasts on this machine now: slow must not look like dead.
pub fn glance() -> Duration {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    GLANCE * stretch(&load, processors)
}

fn stretch(loadavg: &str, processors: usize) -> u32 {
    let load: f64 = loadavg.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let share = load / f64::from(u32::try_from(processors.max(1)).unwrap_or(u32::MAX));
    #[allow(clippy::cast_sign_loss, reason = "a load is not negative")]
    let whole = share.clamp(1.0, f64::from(STRETCH_MAX)) as u32;
    whole
}

/// How long somebody waits who must not act on half an answer.
pub const PATIENT: Duration = Duration::from_secs(5);

/// A question that was asked of a source. Its thread may outlive us; each source has a limit of its own.
struct Asked<T> {
    what: &'static str,
    answer: Receiver<Result<T, String>>,
}

fn ask<T: Send + 'static>(
    what: &'static str,
    question: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Asked<T> {
    let (sender, answer) = channel();
    thread::spawn(move || {
        let _ = sender.send(question());
    });
    Asked { what, answer }
}

/// The time until which answers count.
struct Patience {
    end: Instant,
    limit: Duration,
}

impl Patience {
    fn take<T>(&self, asked: Asked<T>) -> Result<T, String> {
        let left = self.end.saturating_duration_since(Instant::now());
        let why = match asked.answer.recv_timeout(left) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(why)) => why,
            Err(RecvTimeoutError::Timeout) => {
                format!("no answer within {} ms", self.limit.as_millis())
            }
            Err(RecvTimeoutError::Disconnected) => "the look at it failed".to_owned(),
        };
        Err(format!("{}: {why}", asked.what))
    }
}

/// What the peer's etcd said over the network.
#[derive(Debug, Clone)]
pub(crate) struct PeerWord {
    pub(crate) status: EtcdStatus,
    pub(crate) voters: usize,
}

/// Everything that was seen, and what follows from it.
pub struct Seen {
    /// The facts, as decisions would rest on them.
    pub gathered: Gathered,
    /// What was concluded.
    pub judgement: Judgement,
    /// The document.
    pub status: Status,
}

/// Looks at the pair from this node. No source is waited for longer than the limit.
pub fn look(node: &Arc<Node>, limit: Duration) -> Seen {
    let start = Instant::now();
    let answers = Questions::ask(node).answers(&Patience { end: start + limit, limit });
    tell::tell(node, answers, start)
}

/// All questions, asked.
struct Questions {
    cluster: Asked<ClusterState>,
    membership: Asked<Membership>,
    statements: Asked<Vec<(NodeName, String)>>,
    told: Asked<Told>,
    live: Asked<Live>,
    peer: Asked<PeerWord>,
    alarms: Asked<Vec<Alarm>>,
    token: Asked<Token>,
    links: Asked<Vec<(u32, bool)>>,
    fenced: Asked<Vec<FenceEvent>>,
    disk: Asked<Disk>,
    units: Asked<Vec<bool>>,
    past: Asked<Past>,
    booting: Asked<bool>,
}

/// All answers; what is missing says why.
pub(crate) struct Answers {
    pub(crate) cluster: Result<ClusterState, String>,
    pub(crate) membership: Result<Membership, String>,
    pub(crate) statements: Result<Vec<(NodeName, String)>, String>,
    pub(crate) told: Result<Told, String>,
    pub(crate) live: Result<Live, String>,
    pub(crate) peer: Result<PeerWord, String>,
    pub(crate) alarms: Result<Vec<Alarm>, String>,
    pub(crate) token: Result<Token, String>,
    pub(crate) links: Result<Vec<(u32, bool)>, String>,
    pub(crate) fenced: Result<Vec<FenceEvent>, String>,
    pub(crate) disk: Result<Disk, String>,
    pub(crate) units: Result<Vec<bool>, String>,
    pub(crate) past: Result<Past, String>,
    pub(crate) booting: Result<bool, String>,
}

fn said<T, E: std::error::Error>(answer: Result<T, E>) -> Result<T, String> {
    answer.map_err(|error| words(&error))
}

/// A person needs to know that it does not answer, not with which arguments it was asked.
fn brief(why: &str) -> String {
    let time = if why.contains("did not end within") { " in time" } else { "" };
    format!("does not run here, or does not answer{time}")
}

impl Questions {
    /// The slowest source is asked first.
    fn ask(node: &Arc<Node>) -> Self {
        let units = unit_names(node);
        let data_dir = node.pair.etcd.data_dir.clone();
        let beside = node.memory.beside().clone();
        let began = node.memory.began_file().to_owned();
        let place = node.place.clone();
        let (own, alarmed, peer) = (Arc::clone(node), Arc::clone(node), Arc::clone(node));
        Self {
            cluster: ask("Pacemaker", || said(pacemaker::state()).map_err(|why| brief(&why))),
            membership: ask("Corosync", || said(corosync::membership()).map_err(|why| brief(&why))),
            statements: ask("what the nodes say", || said(pacemaker::statements())),
            told: ask("what the pair is told", tools::told),
            live: ask("etcd on this node", move || {
                said(etcd::look(&own.pair, own.own(), own.runner.as_ref(), &own.client))
            }),
            peer: ask("etcd on the other node", move || peer_word(&peer)),
            alarms: ask("etcd's alarms", move || alarms(&alarmed)),
            token: ask("Corosync's token", tools::token),
            links: ask("links", tools::links),
            fenced: ask("history of fencing", tools::fencing_history),
            disk: ask("the disk", move || Ok(Disk::read(&data_dir, &beside, &began))),
            units: ask("units", move || tools::units(&units)),
            booting: ask("systemd", tools::is_booting),
            past: ask("the decision log", move || Ok(Past::read(&place))),
        }
    }

    fn answers(self, patience: &Patience) -> Answers {
        // A peer that is away never answers, and neither does an etcd that rests: patience would be in vain.
        let glance = glance();
        let end = patience.end.min(Instant::now() + glance);
        let hasty = Patience { end, limit: patience.limit.min(glance) };
        Answers {
            membership: patience.take(self.membership),
            statements: patience.take(self.statements),
            told: patience.take(self.told),
            live: patience.take(self.live),
            peer: hasty.take(self.peer),
            alarms: hasty.take(self.alarms),
            token: patience.take(self.token),
            links: patience.take(self.links),
            fenced: patience.take(self.fenced),
            disk: patience.take(self.disk),
            units: patience.take(self.units),
            past: patience.take(self.past),
            booting: hasty.take(self.booting),
            cluster: patience.take(self.cluster),
        }
    }
}

/// The alarms of both members. Either knows them; one that does not serve says nothing, and the other is asked.
fn alarms(node: &Node) -> Result<Vec<Alarm>, String> {
    let ask = |client: Client| said(client.alarms(Deadline::after(PATIENT)));
    let own = said(node.own_client()).and_then(ask);
    own.or_else(|why| said(node.peer_client()).and_then(ask).map_err(|_| why))
}

/// What was written down before: decisions, events, the last drill.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    pub(crate) moments: Vec<Moment>,
    pub(crate) events: Vec<Event>,
    pub(crate) drill: Option<Drill>,
}

impl Past {
    fn read(place: &Place) -> Self {
        Self {
            moments: history::moments(&place.log),
            events: events::recorded(),
            // One that cannot be read is as good as none: nothing rests on it.
            drill: record::read(&place.last_drill()).ok().flatten(),
        }
    }
}

/// Asks the peer's etcd over the network.
fn peer_word(node: &Node) -> Result<PeerWord, String> {
    let client = said(node.peer_client())?;
    let deadline = Deadline::after(PATIENT);
    let status = said(client.status(deadline))?;
    // etcd 3.4 does not tell a learner's clients who is a member.
    let voters = match client.members(deadline) {
        Ok(members) => members.voters().count(),
        Err(_) if status.learner => 0,
        Err(error) => return Err(words(&error)),
    };
    Ok(PeerWord { status, voters })
}

/// The units of the pair, in the order in which they start.
pub(crate) fn unit_names(node: &Node) -> Vec<String> {
    node.pair.units_before.iter().chain(&node.pair.units_after).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An idle machine is not waited for; a busy one is, up to a limit; nonsense is an idle one.
    #[test]
    fn a_busy_machine_is_given_time() {
        assert_eq!(stretch("0.31 0.20 0.18 1/500 1234", 2), 1);
        assert_eq!(stretch("6.10 5.00 4.00 1/500 1234", 2), 3);
        assert_eq!(stretch("900.0 5.00 4.00 1/500 1234", 2), STRETCH_MAX);
        assert_eq!(stretch("", 0), 1);
    }

    /// P6: a source that hangs is named, and nobody waits for it longer than the limit.
    #[test]
    fn a_source_that_hangs_is_named() {
        let start = Instant::now();
        let asked = ask("a stuck disk", || {
            thread::sleep(Duration::from_secs(30));
            Ok(())
        });
        let limit = Duration::from_millis(20);
        let patience = Patience { end: start + limit, limit };
        assert_eq!(patience.take(asked), Err("a stuck disk: no answer within 20 ms".to_owned()));
        assert!(start.elapsed() < Duration::from_secs(10));
        let failed: Asked<()> = ask("etcd", || panic!("a bug in a reader"));
        let patience = Patience { end: Instant::now() + Duration::from_secs(5), limit };
        assert_eq!(patience.take(failed), Err("etcd: the look at it failed".to_owned()));
    }
}
