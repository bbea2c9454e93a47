//! Timing as arithmetic: how long a failure may take, and which settings can kill both nodes or loop.
//!
//! A link cut makes both nodes want to fence each other. Exactly one must win, so one of them (the preferred
//! survivor) is fenced only after a delay, and that delay has to outlast everything that can make the
//! preferred survivor slow. What can make it slow is computed here; no clock is read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::NodeName;

/// Pacemaker's controller re-asks for the CIB after one second if updates were under way when it began; seen
/// in two of three failovers, on either node.
pub const PACEMAKER_REASK_MS: u64 = 1_000;
/// From the new membership to the fencing request, without the re-ask: election of a coordinator, one run of
/// the scheduler, dispatch.
pub const PACEMAKER_DISPATCH_MS: u64 = 300;
/// The stand-in vote, from the proof to the first accepted write, on a busy machine.
pub const STAND_IN_MS: u64 = 250;
/// How long etcd lets a client wait that it had forwarded to a leader which then died, beside two election
/// time-outs.
pub const ETCD_FORWARDED_REQUEST_MS: u64 = 5_000;
/// Corosync refuses a consensus time-out below 1.2 times the token time-out.
const CONSENSUS_PER_TOKEN_PERCENT: u64 = 120;
/// Corosync sends the token again this often before it calls it lost (`token_retransmits_before_loss_const`).
const TOKEN_RETRANSMITS: u64 = 4;
/// etcd cancels watches that ask for a leader after this many election time-outs without one.
const WATCH_ELECTIONS: u64 = 3;
/// Longest time this arithmetic takes: a day. Anything above is a typing error, and sums cannot overflow.
const LIMIT_MS: u64 = 86_400_000;

/// The settings of one node that decide how fast it acts and is acted upon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeTiming {
    /// Its name.
    pub name: NodeName,
    /// Corosync's `token` as this node runs it.
    pub token_ms: u64,
    /// Corosync's `consensus` as this node runs it.
    pub consensus_ms: u64,
    /// How long the peer waits before it fences this node. Only the preferred survivor has one.
    pub fence_delay_ms: u64,
    /// The longest time its BMC takes from the request to an Off that was read back.
    pub bmc_off_ms: u64,
    /// The limit on one fencing attempt on its BMC.
    pub bmc_timeout_ms: u64,
}

/// All settings of a pair that have to do with time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PairTiming {
    /// Both nodes.
    pub nodes: [NodeTiming; 2],
    /// How many separate links connect them.
    pub links: u8,
    /// When Corosync declares one link down (`knet_ping_timeout`).
    pub link_timeout_ms: u64,
    /// Whether a booted node waits for its peer before it acts (`wait_for_all`).
    pub wait_for_all: bool,
    /// Pacemaker's limit on one fencing action (`stonith-timeout`).
    pub fencing_timeout_ms: u64,
    /// etcd's election time-out.
    pub etcd_election_ms: u64,
}

/// Ready-made detection settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Preset {
    /// Direct cables, quiet machines.
    Fast,
    /// Corosync's own defaults.
    Normal,
    /// Shared or radio links, busy machines.
    Tolerant,
}

impl Preset {
    /// Corosync's token time-out of this preset.
    pub fn token_ms(self) -> u64 {
        match self {
            Self::Fast => 1_000,
            Self::Normal => 3_000,
            Self::Tolerant => 10_000,
        }
    }

    /// Corosync's consensus time-out of this preset.
    pub fn consensus_ms(self) -> u64 {
        self.token_ms() * CONSENSUS_PER_TOKEN_PERCENT / 100
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// It works, but people should know.
    Warning,
    /// These settings are refused.
    Error,
}

/// One thing that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A short name that stays the same, for scripts and documentation.
    pub id: &'static str,
    /// What is wrong, with the numbers.
    pub message: String,
    /// What to change.
    pub hint: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// How long the loss of one node takes at worst, by phase, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorstCase {
    /// Until the survivor's Corosync knows (token, then consensus).
    pub detection_ms: u64,
    /// From there until the peer is proven off.
    pub fencing_ms: u64,
    /// From there until the survivor accepts a write.
    pub take_over_ms: u64,
    /// The sum: fault to first write.
    pub total_ms: u64,
    /// The slowest single client request: one that had been forwarded to the lost leader.
    pub slowest_request_ms: u64,
}

impl NodeTiming {
    /// How far the two nodes can be apart in noticing the same cut: the token may have been anywhere, which
    /// is worth one retransmission, and after a one-way cut one side waits out its consensus again.
    fn detection_skew_ms(&self) -> u64 {
        self.token_ms / TOKEN_RETRANSMITS + self.consensus_ms
    }

    fn detection_ms(&self) -> u64 {
        self.token_ms + self.consensus_ms
    }
}

impl PairTiming {
    /// How long the loss of `lost` (0 or 1) takes at worst, if its BMC answers as promised.
    ///
    /// `bmc_says_off` tells whether the lost node's BMC already reports Off: then the delay is skipped.
    pub fn worst_case(&self, lost: usize, bmc_says_off: bool) -> WorstCase {
        let (lost, survivor) = (&self.nodes[lost & 1], &self.nodes[(lost & 1) ^ 1]);
        let delay_ms = if bmc_says_off { 0 } else { lost.fence_delay_ms };
        let detection_ms = survivor.detection_ms();
        let fencing_ms = PACEMAKER_DISPATCH_MS + PACEMAKER_REASK_MS + delay_ms + lost.bmc_off_ms;
        let take_over_ms = STAND_IN_MS;
        WorstCase {
            detection_ms,
            fencing_ms,
            take_over_ms,
            total_ms: detection_ms + fencing_ms + take_over_ms,
            slowest_request_ms: detection_ms
                + fencing_ms
                + take_over_ms
                + ETCD_FORWARDED_REQUEST_MS
                + 2 * self.etcd_election_ms,
        }
    }

    /// The shortest delay that lets exactly one node survive a cut: the other one's detection may come a
    /// skew earlier, this one's Pacemaker may re-ask, and its peer's BMC has to finish.
    pub fn delay_needed_ms(&self, preferred: usize) -> u64 {
        let (preferred, other) = (&self.nodes[preferred & 1], &self.nodes[(preferred & 1) ^ 1]);
        let slower_by = preferred.detection_ms().saturating_sub(other.detection_ms());
        slower_by + preferred.detection_skew_ms() + PACEMAKER_REASK_MS + other.bmc_off_ms
    }

    /// Everything that is wrong with these settings, errors first. No errors: they may be used.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.absurd();
        if findings.is_empty() {
            findings.extend(self.can_kill_both());
            findings.extend(self.can_loop());
            findings.extend(self.detects_badly());
            findings.extend(self.costs_watches());
        }
        findings.sort_by_key(|finding| finding.severity == Severity::Warning);
        findings
    }

    fn absurd(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for node in &self.nodes {
            let values = [
                ("tokenMs", node.token_ms, 1),
                ("consensusMs", node.consensus_ms, 1),
                ("fenceDelayMs", node.fence_delay_ms, 0),
                ("bmcOffMs", node.bmc_off_ms, 0),
                ("bmcTimeoutMs", node.bmc_timeout_ms, 1),
            ];
            for (key, value, least) in values {
                findings.extend(out_of_range(&format!("{} of {}", key, node.name), value, least));
            }
        }
        let values = [
            ("linkTimeoutMs", self.link_timeout_ms),
            ("fencingTimeoutMs", self.fencing_timeout_ms),
            ("etcdElectionMs", self.etcd_election_ms),
        ];
        findings.extend(values.iter().filter_map(|(key, value)| out_of_range(key, *value, 1)));
        if self.nodes[0].name == self.nodes[1].name {
            findings.push(error(
                "same-name",
                format!("both nodes are named {}", self.nodes[0].name),
                "give each node its own name",
            ));
        }
        findings
    }

    /// P5: no mutual kill.
    fn can_kill_both(&self) -> Vec<Finding> {
        let [first, second] = &self.nodes;
        let mut findings = Vec::new();
        if first.token_ms != second.token_ms || first.consensus_ms != second.consensus_ms {
            findings.push(error(
                "different-tokens",
                format!(
                    "{} runs with token {} and consensus {} ms, {} with {} and {} ms: the faster one beats the delay and the wrong node survives",
                    first.name, first.token_ms, first.consensus_ms,
                    second.name, second.token_ms, second.consensus_ms
                ),
                "load the same corosync.conf on both nodes",
            ));
        }
        match (first.fence_delay_ms, second.fence_delay_ms) {
            (0, 0) => findings.push(error(
                "no-delay",
                "neither node is fenced with a delay: after a cut each can power the other off".into(),
                "give the preferred survivor a fencing delay",
            )),
            (0, _) => findings.extend(self.delay_too_short(1)),
            (_, 0) => findings.extend(self.delay_too_short(0)),
            _ => findings.push(error(
                "two-delays",
                format!(
                    "both nodes are fenced with a delay ({} and {} ms): every failure pays for it and their difference is what counts",
                    first.fence_delay_ms, second.fence_delay_ms
                ),
                "keep the delay on the preferred survivor only",
            )),
        }
        findings
    }

    fn delay_too_short(&self, preferred: usize) -> Option<Finding> {
        let node = &self.nodes[preferred];
        let needed_ms = self.delay_needed_ms(preferred);
        (node.fence_delay_ms <= needed_ms).then(|| {
            error(
                "delay-too-short",
                format!(
                    "{} is fenced after {} ms, but {} ms may pass until its peer is off: each can power the other off",
                    node.name, node.fence_delay_ms, needed_ms
                ),
                format!("set the delay above {needed_ms} ms, or use a faster BMC or a shorter token"),
            )
        })
    }

    /// P5: no fencing loops.
    fn can_loop(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.wait_for_all {
            findings.push(error(
                "no-wait-for-all",
                "without wait_for_all a node that boots behind a cut fences its peer, which boots and does the same".into(),
                "set wait_for_all: 1 in the quorum section of corosync.conf",
            ));
        }
        for node in &self.nodes {
            if node.bmc_timeout_ms < node.bmc_off_ms {
                findings.push(error(
                    "bmc-timeout-too-short",
                    format!(
                        "fencing {} is given up after {} ms, but its BMC takes up to {} ms: it would be tried for ever",
                        node.name, node.bmc_timeout_ms, node.bmc_off_ms
                    ),
                    "raise the BMC's time limit",
                ));
            }
            let attempt_ms = node.fence_delay_ms + node.bmc_timeout_ms;
            if self.fencing_timeout_ms < attempt_ms {
                findings.push(error(
                    "fencing-timeout-too-short",
                    format!(
                        "Pacemaker gives up fencing {} after {} ms, but delay and BMC may take {} ms: it would be tried for ever",
                        node.name, self.fencing_timeout_ms, attempt_ms
                    ),
                    format!("set stonith-timeout to {attempt_ms} ms or more"),
                ));
            }
        }
        findings
    }

    fn detects_badly(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for node in &self.nodes {
            let least_ms = node.token_ms * CONSENSUS_PER_TOKEN_PERCENT / 100;
            if node.consensus_ms < least_ms {
                findings.push(error(
                    "consensus-too-short",
                    format!(
                        "{} runs with consensus {} ms; Corosync needs 1.2 times the token, {} ms",
                        node.name, node.consensus_ms, least_ms
                    ),
                    format!("set consensus to {least_ms}, or leave it out"),
                ));
            }
            if self.links > 1 && self.link_timeout_ms >= node.token_ms {
                findings.push(error(
                    "link-timeout-too-long",
                    format!(
                        "a dead link is noticed after {} ms, a dead node by {} after {} ms: one of {} links can be gone and nobody knows",
                        self.link_timeout_ms, node.name, node.token_ms, self.links
                    ),
                    "set knet_ping_timeout to half the token or less",
                ));
            }
        }
        match self.links {
            0 => findings.push(error("no-link", "the nodes have no link".into(), "add a link")),
            1 => findings.push(warning(
                "one-link",
                "the nodes have one link only: one bad cable costs the redundancy".into(),
                "add a second link on separate cables and switches",
            )),
            _ => {}
        }
        findings
    }

    fn costs_watches(&self) -> Option<Finding> {
        let gap_ms =
            (0..2).map(|lost| self.worst_case(lost, true).total_ms).max().unwrap_or_default();
        let kept_ms = WATCH_ELECTIONS * self.etcd_election_ms;
        (gap_ms > kept_ms).then(|| {
            warning(
                "watches-end",
                format!(
                    "a take-over may take {gap_ms} ms; etcd ends watches that ask for a leader after {kept_ms} ms, their clients connect anew"
                ),
                "nothing to do, unless a shorter token or a longer etcd election time-out suits the site",
            )
        })
    }
}

fn out_of_range(key: &str, value: u64, least: u64) -> Option<Finding> {
    (value < least || value > LIMIT_MS).then(|| {
        error(
            "out-of-range",
            format!("{key} is {value}; it must lie between {least} and {LIMIT_MS} ms"),
            "the unit is milliseconds",
        )
    })
}

fn error(id: &'static str, message: String, hint: impl Into<String>) -> Finding {
    Finding { severity: Severity::Error, id, message, hint: hint.into() }
}

fn warning(id: &'static str, message: String, hint: impl Into<String>) -> Finding {
    Finding { severity: Severity::Warning, id, message, hint: hint.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(preset: Preset) -> PairTiming {
        let node = |name: &str| NodeTiming {
            name: name.into(),
            token_ms: preset.token_ms(),
            consensus_ms: preset.consensus_ms(),
            fence_delay_ms: 0,
            bmc_off_ms: 500,
            bmc_timeout_ms: 10_000,
        };
        let mut pair = PairTiming {
            nodes: [node("node-a"), node("node-b")],
            links: 2,
            link_timeout_ms: preset.token_ms() / 2,
            wait_for_all: true,
            fencing_timeout_ms: 60_000,
            etcd_election_ms: 1_000,
        };
        pair.nodes[0].fence_delay_ms = pair.delay_needed_ms(0) + 1;
        pair
    }

    fn error_ids(pair: &PairTiming) -> Vec<&'static str> {
        pair.findings().iter().filter(|f| f.severity == Severity::Error).map(|f| f.id).collect()
    }

    /// Every preset with the delay that the arithmetic asks for may be used.
    #[test]
    fn presets_are_accepted() {
        for preset in [Preset::Fast, Preset::Normal, Preset::Tolerant] {
            assert_eq!(error_ids(&pair(preset)), [""; 0], "{preset:?}");
        }
    }

    /// Each way to kill both nodes, to loop or to detect badly is refused, by its own name and no other.
    #[test]
    fn each_bad_setting_is_refused_by_name() {
        type Change = fn(&mut PairTiming);
        let cases: &[(&str, Change)] = &[
            ("no-delay", |p| p.nodes[0].fence_delay_ms = 0),
            ("two-delays", |p| p.nodes[1].fence_delay_ms = 1),
            ("delay-too-short", |p| p.nodes[0].fence_delay_ms -= 1),
            ("delay-too-short", |p| p.nodes[1].bmc_off_ms += 1),
            ("no-wait-for-all", |p| p.wait_for_all = false),
            ("bmc-timeout-too-short", |p| p.nodes[0].bmc_timeout_ms = 499),
            ("fencing-timeout-too-short", |p| p.fencing_timeout_ms = 10_500),
            ("no-link", |p| p.links = 0),
            ("link-timeout-too-long", |p| p.link_timeout_ms = 1_000),
            ("out-of-range", |p| p.etcd_election_ms = 0),
            ("out-of-range", |p| p.nodes[1].token_ms = u64::MAX),
            ("same-name", |p| p.nodes[1].name = p.nodes[0].name.clone()),
        ];
        for (id, change) in cases {
            let mut pair = pair(Preset::Fast);
            change(&mut pair);
            let found = error_ids(&pair);
            assert!(!found.is_empty() && found.iter().all(|f| f == id), "{id}: {found:?}");
        }
    }

    /// A reload of corosync.conf that reached one node only beats any delay: refused, even if long enough.
    #[test]
    fn different_tokens_are_refused() {
        let mut pair = pair(Preset::Fast);
        pair.nodes[0].fence_delay_ms = 40_000;
        pair.nodes[1].token_ms = 500;
        pair.nodes[1].consensus_ms = 600;
        pair.link_timeout_ms = 200;
        assert_eq!(error_ids(&pair), ["different-tokens"]);
    }

    /// The faster the other node detects, the longer the delay has to be.
    #[test]
    fn a_faster_peer_needs_a_longer_delay() {
        let even = pair(Preset::Normal);
        let mut uneven = even.clone();
        uneven.nodes[1].token_ms = 1_000;
        uneven.nodes[1].consensus_ms = 1_200;
        assert_eq!(uneven.delay_needed_ms(0), even.delay_needed_ms(0) + 4_400);
    }

    /// The delay is paid only when the node that carries it is lost and its BMC does not say Off.
    #[test]
    fn who_pays_the_delay() {
        let pair = pair(Preset::Fast);
        let delay_ms = pair.nodes[0].fence_delay_ms;
        assert_eq!(
            pair.worst_case(0, false).total_ms,
            pair.worst_case(0, true).total_ms + delay_ms
        );
        assert_eq!(pair.worst_case(1, false), pair.worst_case(1, true));
    }

    /// The phases add up to the total.
    #[test]
    fn phases_add_up() {
        let worst = pair(Preset::Normal).worst_case(1, false);
        assert_eq!(worst.detection_ms, 3_000 + 3_600);
        assert_eq!(worst.total_ms, worst.detection_ms + worst.fencing_ms + worst.take_over_ms);
    }
}
