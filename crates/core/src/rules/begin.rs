//! R12: a pair begins once.
//!
//! The first dataset is the only one that is made out of nothing, and a second one would be a second history.
//! So it needs both nodes: each in the cluster, each with no data and with nothing that tells that it ever had
//! any, each saying so to the other's present boot. One of the two, the same for both, makes it; the other
//! joins by the rules that bring back a lost node.

use super::Verdict;
use crate::commands;
use crate::dataset::Class;
use crate::decision::{Action, Awaited, Refusal, Rule};
use crate::facts::Facts;
use crate::standing::Standing;
use crate::statement::{EtcdWord, Statement};

/// Whether a node has no data, and nothing tells that it ever had any.
pub(crate) fn is_blank(facts: &Facts) -> bool {
    facts.dataset.class == Class::None && former_data(facts).is_none()
}

/// What the set-up does about the data.
pub(crate) fn begin(facts: &Facts, standing: &Standing) -> Verdict {
    let name = &facts.peer.name;
    if facts.etcd_runs() {
        return Verdict::nothing(Rule::R12, "this node's etcd runs: the pair has begun");
    }
    if facts.dataset.class != Class::None {
        let because = format!("this node has data ({}): the pair has begun", standing.class);
        return Verdict::nothing(Rule::R12, because);
    }
    let Some(heard) = facts.heard() else {
        let because = if facts.peer.present {
            format!("{name} is there and has not yet answered this boot")
        } else {
            format!("{name} is not in the cluster yet")
        };
        return Verdict::wait(Awaited::Cluster, Rule::R12, because);
    };
    match heard.class {
        Class::Pair | Class::Alone => {
            Verdict::nothing(Rule::R12, format!("{name} has the data: this node joins it"))
        }
        Class::None => both_without_data(facts, heard),
        class => {
            let because = format!("{name} has a {class} dataset: that pair has begun before");
            Verdict::refuse(Refusal::NoVoter, commands::RESOLVE, Rule::R12, because)
        }
    }
}

fn both_without_data(facts: &Facts, heard: &Statement) -> Verdict {
    let name = &facts.peer.name;
    if let Some(trace) = former_data(facts) {
        let because = format!("this node held data before: {trace}");
        return Verdict::refuse(Refusal::HadData, commands::FORMER_DATA, Rule::R12, because);
    }
    if !heard.blank {
        let because = format!("{name} held data before, and says what tells so");
        return Verdict::refuse(Refusal::HadData, commands::explain_on(name), Rule::R12, because);
    }
    if heard.etcd != EtcdWord::Stopped {
        let because = format!("{name} starts an etcd of its own");
        return Verdict::wait(Awaited::PeerToServe, Rule::R12, because);
    }
    if let Some(waiting) = not_yet_safe(facts) {
        return waiting;
    }
    if !facts.comes_first() {
        let because = format!("neither node ever held data; {name} makes the first dataset");
        return Verdict::wait(Awaited::PeerToServe, Rule::R12, because);
    }
    let because = format!("neither this node nor {name} ever held data: this one begins");
    Verdict::new(Action::CreateDataset, Rule::R12, because)
}

/// What every later rule rests on must be there before there are data to protect.
fn not_yet_safe(facts: &Facts) -> Option<Verdict> {
    let pacemaker = &facts.pacemaker;
    if !pacemaker.quorate {
        let because = "Corosync and Pacemaker do not both say yet that there is quorum";
        return Some(Verdict::wait(Awaited::Cluster, Rule::R12, because));
    }
    if !pacemaker.fencing_enabled || !pacemaker.startup_fencing {
        let because = "without fencing the loss of a node could never be survived safely";
        return Some(Verdict::inert("fencing", commands::STATUS, Rule::R12, because));
    }
    if pacemaker.maintenance || !pacemaker.managed {
        let because = "Pacemaker is told to leave things alone";
        let command = commands::maintenance_end(&facts.node);
        return Some(Verdict::inert("Pacemaker's hand", command, Rule::R12, because));
    }
    if !facts.disk_writable {
        let because = "the own disk is full or read-only";
        return Some(Verdict::inert(
            "a disk that takes writes",
            commands::DISK,
            Rule::R12,
            because,
        ));
    }
    None
}

/// The first thing that tells of earlier data on this node, in words.
fn former_data(facts: &Facts) -> Option<String> {
    if let Some(trace) = facts.traces.first() {
        return Some(trace.clone());
    }
    let marks = &facts.marks;
    let member = marks.yielded.as_ref().map(|mark| mark.member);
    let member = member.or_else(|| marks.take_over.as_ref().map(|mark| mark.member));
    if let Some(member) = member {
        return Some(format!("a mark of its member {member}"));
    }
    if let Some(memory) = facts.peer.memory {
        return Some(format!("it remembers member {} of its peer", memory.member));
    }
    facts.eligibility.as_ref().map(|record| format!("a record of its member {}", record.member))
}
