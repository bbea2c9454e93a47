//! What a person may start now, and why not.

use super::{Judgement, State};
use crate::commands;
use crate::dataset::Class;
use crate::facts::Facts;
use crate::ids::NodeName;
use crate::standing::Standing;
use crate::statement::EtcdWord;

/// Why planned work must not start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotNow {
    /// Why.
    pub because: String,
    /// What a person can do first.
    pub command: String,
}

/// What is next on a node that gives its dataset up for the other's (R6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveWay {
    /// Stop its etcd in good order: what runs is not given up.
    Stop,
    /// Give the dataset up. The rules look once more.
    GiveUp,
    /// It was given up: let the node in again.
    Join,
}

fn not_now(because: String, command: impl Into<String>) -> NotNow {
    NotNow { because, command: command.into() }
}

impl Judgement {
    /// Whether something may start that can take either node away: an upgrade, a change of configuration. Only
    /// a pair that survives it may, and only if everything is known.
    pub fn gate(&self, unknown: &[String]) -> Result<(), NotNow> {
        if self.state != State::Protected {
            let because = format!("the pair is {}: {}", self.state, self.because);
            return Err(not_now(because, commands::STATUS));
        }
        match unknown.first() {
            None => Ok(()),
            Some(what) => {
                let because = format!("not everything could be known: {what}");
                Err(not_now(because, commands::STATUS))
            }
        }
    }

    /// Whether this node may be taken out of service. It may if the other one goes on without it.
    pub fn may_leave(&self, facts: &Facts, node: &NodeName) -> Result<(), NotNow> {
        let stays = if *node == facts.node { &facts.peer.name } else { &facts.node };
        let serves_alone = self.on.as_ref() == Some(stays)
            && matches!(self.state, State::Alone | State::CatchingUp);
        // It serves nothing: taking it out harms nobody.
        if serves_alone || self.state == State::Protected {
            return Ok(());
        }
        // At risk, the one that stays may still be fit: a broken BMC is mended in maintenance.
        if self.state == State::AtRisk && is_fit(facts, stays) {
            return Ok(());
        }
        let because = match self.state {
            State::Alone | State::CatchingUp => {
                format!("{node} is the only one that has everything: {}", self.because)
            }
            _ => format!("{stays} could not go on: the pair is {}: {}", self.state, self.because),
        };
        Err(not_now(because, commands::STATUS))
    }
}

impl Judgement {
    /// What is next for a person who gives this node's dataset up. Two that have diverged are resolved; and what was
    /// `begun` is ended, wherever it was broken off. Not so on a node that serves while the other claims nothing: that
    /// choice has been made, and it was another one.
    pub fn give_way(&self, facts: &Facts, begun: bool) -> Result<GiveWay, NotNow> {
        let diverged = self.state == State::Diverged;
        let claims = Standing::of(facts).class == Class::Alone;
        let runs = facts.etcd_runs();
        if !diverged && (!begun || (claims && runs)) {
            let because =
                format!("the two have not diverged: the pair is {}: {}", self.state, self.because);
            return Err(not_now(because, commands::STATUS));
        }
        Ok(match (claims, runs) {
            (true, true) => GiveWay::Stop,
            (true, false) => GiveWay::GiveUp,
            (false, _) => GiveWay::Join,
        })
    }
}

/// Whether a node serves, may go on alone, and can write.
fn is_fit(facts: &Facts, node: &NodeName) -> bool {
    if *node == facts.node {
        let record = facts.eligibility.as_ref();
        return facts.disk_writable && record.is_some_and(|record| record.boot == facts.boot);
    }
    facts.heard().is_some_and(|heard| {
        heard.eligible && heard.disk_writable && heard.etcd == EtcdWord::Serving
    })
}
