//! The hands of a campaign: break things, and repair them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::act::{Act, Side};
use super::person::{self, Accepted};
use crate::Lab;
use crate::error::{Error, Result};
use crate::protocol::{LabStatus, PowerAction, Request};

/// How long a small command in a node may take. A node that hangs does not answer at all.
const COMMAND: Duration = Duration::from_secs(15);
/// Fencing switches a node off and on again; one that stays off for longer needs somebody at its button.
const BUTTON: Duration = Duration::from_secs(8);

/// What is to be done about the pair by those on site.
#[derive(Debug)]
pub(super) struct Hands<'a> {
    lab: &'a Lab,
    /// Nodes on which Pacemaker was stopped by hand.
    stopped: BTreeSet<Side>,
    /// Nodes that were taken out of service.
    in_maintenance: BTreeSet<Side>,
    /// Since when each node has been without power.
    off_since: [Option<Instant>; 2],
    /// Losses that somebody has accepted in this step.
    pub(super) accepted: Vec<Accepted>,
    /// Nodes whose history a person gave up in this step.
    pub(super) given_up: Vec<Side>,
    /// How often a sensible person confirmed.
    pub(super) confirmations: usize,
}

impl<'a> Hands<'a> {
    pub(super) fn new(lab: &'a Lab) -> Self {
        Self {
            lab,
            stopped: BTreeSet::new(),
            in_maintenance: BTreeSet::new(),
            off_since: [None; 2],
            accepted: Vec::new(),
            given_up: Vec::new(),
            confirmations: 0,
        }
    }

    /// Does one thing, and tells what came of it. What cannot be done now, on a node that is off for example, is
    /// told too.
    pub(super) fn perform(&mut self, act: &Act) -> Result<String> {
        match act {
            Act::SensiblePerson => {
                let (confirmed, text) = person::sensible(self.lab)?;
                self.confirmations += usize::from(confirmed);
                Ok(text)
            }
            Act::CarelessPerson => {
                let (accepted, text) = person::careless(self.lab)?;
                self.accepted.extend(accepted);
                Ok(text)
            }
            Act::Repair => self.repair(),
            Act::StopPacemaker { node } => {
                self.stopped.insert(*node);
                let stop = ["systemctl", "stop", "--no-block", "pacemaker"];
                Ok(self.in_node(*node, &stop))
            }
            Act::Shutdown { node } => {
                Ok(self.in_node(*node, &["systemctl", "poweroff", "--no-block"]))
            }
            Act::Maintenance { node } => {
                self.in_maintenance.insert(*node);
                let start = ["dyad", "maintenance", "start", node.name(), "--wait", "1"];
                Ok(self.in_node(*node, &start))
            }
            other => match self.lab.request(&request(other)) {
                Err(Error::Supervisor { reason, .. }) => Ok(format!("not possible: {reason}")),
                answer => answer,
            },
        }
    }

    /// Ends all faults, gives power, starts what was stopped. What does not work at once is done by [`Self::tend`].
    fn repair(&mut self) -> Result<String> {
        let text = self.lab.heal()?;
        for side in Side::BOTH {
            self.lab.request(&Request::Clock { node: side.name().into(), ahead_s: 0 })?;
            self.lab.power(side.name(), PowerAction::On)?;
        }
        self.tend(&self.lab.status()?)?;
        Ok(text)
    }

    /// What those on site do until the pair is whole: press power buttons, end what they have begun.
    pub(super) fn tend(&mut self, status: &LabStatus) -> Result<()> {
        for side in Side::BOTH {
            let since = &mut self.off_since[side.position()];
            if status.nodes[side.position()].on {
                *since = None;
            } else if since.get_or_insert_with(Instant::now).elapsed() > BUTTON {
                self.lab.power(side.name(), PowerAction::On)?;
                *since = None;
            }
        }
        for side in self.stopped.clone() {
            self.start_pacemaker(side);
        }
        for side in self.in_maintenance.clone() {
            self.end_maintenance(side);
        }
        Ok(())
    }

    /// Pacemaker counts failures for minutes, and gives a resource up that failed often. Steps follow each other faster
    /// than failures do in a year: what is over does not count for the next one.
    pub(super) fn forget_failures(&self) -> String {
        self.in_node(Side::A, &["crm_resource", "--cleanup"])
    }

    fn start_pacemaker(&mut self, side: Side) {
        let state = ["systemctl", "is-active", "pacemaker"];
        match self.lab.exec(side.name(), &state, COMMAND) {
            Ok(finished) if finished.stdout.trim() == "active" => {
                self.stopped.remove(&side);
            }
            Ok(_) => drop(self.in_node(side, &["systemctl", "start", "--no-block", "pacemaker"])),
            Err(_) => {}
        }
    }

    fn end_maintenance(&mut self, side: Side) {
        let end = ["dyad", "maintenance", "end", side.name(), "--wait", "0"];
        let ended = Side::BOTH.iter().any(|on| {
            let finished = self.lab.exec(on.name(), &end, COMMAND);
            // 6: it was told, and the node has not rejoined yet.
            finished.is_ok_and(|finished| [0, 6].contains(&finished.code))
        });
        if ended {
            self.in_maintenance.remove(&side);
        }
    }

    /// Makes a node's etcd the leader. Who leads anyway is as good, if that does not work.
    pub(super) fn lead(&self, side: Side) {
        let id =
            self.lab.etcd_status(side.name()).and_then(|it| it["header"]["member_id"].as_u64());
        if let Some(id) = id {
            self.lab.etcdctl(side.other().name(), &["move-leader", &format!("{id:x}")]);
        }
    }

    /// Runs a command in a node, and tells how it ended.
    fn in_node(&self, side: Side, command: &[&str]) -> String {
        let status = self.lab.node_status(side.name());
        if status.is_none_or(|status| !status.on || status.frozen) {
            return format!("not possible: {side} is off or hangs");
        }
        match self.lab.exec(side.name(), command, COMMAND) {
            Ok(finished) if finished.success() => "done".to_owned(),
            Ok(finished) => {
                let last = finished.stderr.lines().find(|line| line.contains("error"));
                format!("exit code {}: {}", finished.code, last.unwrap_or_default())
            }
            Err(error) => format!("not possible: {error}"),
        }
    }
}

/// The acts that are one request to the lab.
fn request(act: &Act) -> Request {
    let name = |side: &Side| side.name().to_owned();
    match act {
        Act::PowerOff { node } => Request::Power { node: name(node), action: PowerAction::Off },
        Act::PowerCycle { node } => Request::Power { node: name(node), action: PowerAction::Cycle },
        Act::PowerOn { node } => Request::Power { node: name(node), action: PowerAction::On },
        Act::Cut { links, from } => {
            Request::Cut { links: links.clone(), from: from.as_ref().map(name) }
        }
        Act::Freeze { node } => Request::Freeze { node: name(node) },
        Act::Thaw { node } => Request::Thaw { node: name(node) },
        Act::KillEtcd { node } => Request::KillEtcd { node: name(node) },
        Act::BlockPort { node, port } => Request::BlockPort { node: name(node), port: *port },
        Act::Stall { node } => Request::Stall { node: name(node), port: 2380 },
        Act::SlowDisk { node, stall_ms } => {
            Request::SlowDisk { node: name(node), stall_ms: *stall_ms }
        }
        Act::SlowFsync { node, delay_ms } => {
            Request::SlowFsync { node: name(node), delay_ms: *delay_ms }
        }
        Act::FullDisk { node } => Request::FullDisk { node: name(node) },
        Act::Clock { node, ahead_s } => Request::Clock { node: name(node), ahead_s: *ahead_s },
        Act::Bmc { node, fault } => Request::Bmc { node: name(node), fault: fault.clone() },
        // Done by hand, not by the lab: what is left of them here is a look.
        Act::StopPacemaker { .. }
        | Act::Shutdown { .. }
        | Act::Maintenance { .. }
        | Act::SensiblePerson
        | Act::CarelessPerson
        | Act::Repair => Request::Heal,
    }
}
