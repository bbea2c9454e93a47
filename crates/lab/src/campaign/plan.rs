//! What will be done, and when: drawn from a seed alone, so that it can be printed, read and done again.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use dyad_judge::chance::Chance;
use serde::{Deserialize, Serialize};

use super::act::{Act, Side};
use crate::config::Link;

/// etcd's ports, for members and for clients.
const PEER_PORT: u16 = 2380;
const CLIENT_PORT: u16 = 2379;

/// What kinds of faults there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A node loses its power; it may come back at once, be powered on by fencing, or stay off.
    Power,
    /// Both nodes lose their power.
    Both,
    /// Both links are cut.
    Cut,
    /// Both links are cut in one direction.
    OneWay,
    /// One link is cut.
    Link,
    /// A node hangs, for ever or for a while.
    Freeze,
    /// etcd crashes.
    Etcd,
    /// A port of etcd is unreachable.
    Port,
    /// One connection goes silent.
    Stall,
    /// A disk is slow.
    SlowDisk,
    /// A disk is full.
    FullDisk,
    /// A BMC does not do what it is told.
    Bmc,
    /// A node hangs, or the links are cut, while one BMC or both do not do what they are told.
    NoProof,
    /// Pacemaker is stopped, or a node shut down.
    Stop,
    /// A node is taken out of service.
    Maintenance,
    /// A lost node comes back, and the survivor is lost while it joins.
    Rejoin,
    /// Both nodes are lost, one after the other, and the one with the older copy boots first.
    OldCopy,
    /// A node dies together with its BMC, and a person who knows it says so.
    Sensible,
    /// Both nodes are lost, the older copy comes back first, and a person lets it go on.
    Careless,
}

impl Kind {
    /// All of them, with how often each is drawn.
    pub const ALL: [(Self, u64); 19] = [
        (Self::Power, 16),
        (Self::Both, 4),
        (Self::Cut, 9),
        (Self::OneWay, 8),
        (Self::Link, 5),
        (Self::Freeze, 8),
        (Self::Etcd, 8),
        (Self::Port, 6),
        (Self::Stall, 5),
        (Self::SlowDisk, 6),
        (Self::FullDisk, 4),
        (Self::Bmc, 5),
        (Self::NoProof, 5),
        (Self::Stop, 9),
        (Self::Maintenance, 5),
        (Self::Rejoin, 6),
        (Self::OldCopy, 3),
        (Self::Sensible, 3),
        (Self::Careless, 2),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Both => "both",
            Self::Cut => "cut",
            Self::OneWay => "one-way",
            Self::Link => "link",
            Self::Freeze => "freeze",
            Self::Etcd => "etcd",
            Self::Port => "port",
            Self::Stall => "stall",
            Self::SlowDisk => "slow-disk",
            Self::FullDisk => "full-disk",
            Self::Bmc => "bmc",
            Self::NoProof => "no-proof",
            Self::Stop => "stop",
            Self::Maintenance => "maintenance",
            Self::Rejoin => "rejoin",
            Self::OldCopy => "old-copy",
            Self::Sensible => "sensible",
            Self::Careless => "careless",
        }
    }

    /// Some faults need the pair to be in a certain state: nothing else happens in their step.
    fn is_story(self) -> bool {
        matches!(self, Self::Rejoin | Self::OldCopy | Self::Sensible | Self::Careless)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = Self::ALL.map(|(kind, _)| kind);
        kinds.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = kinds.map(Self::name).join(", ");
            format!("no kind of fault {text:?}; there are {names}")
        })
    }
}

/// Something that is done at a moment of its step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timed {
    /// Milliseconds after the step began.
    pub at_ms: u64,
    /// What is done.
    #[serde(flatten)]
    pub act: Act,
}

/// A few faults that may overlap; then everything is repaired, and the pair has to be whole again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The kinds of its faults.
    pub faults: Vec<Kind>,
    /// The node whose etcd is made the leader before it begins, if any: who leads decides what can be lost.
    pub leader: Option<Side>,
    /// What is done, in order.
    pub acts: Vec<Timed>,
    /// When everything is repaired, in milliseconds after the step began.
    pub repair_ms: u64,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// Only these kinds were drawn; all, if there are none.
    pub only: Vec<Kind>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Draws a plan with this many faults.
    pub fn draw(seed: u64, faults: u32, only: &[Kind]) -> Self {
        let mut chance = Chance::new(seed, 0);
        let mut steps = Vec::new();
        let mut left = faults;
        while left > 0 {
            let step = Step::draw(&mut chance, left, only);
            left = left.saturating_sub(u32::try_from(step.faults.len()).unwrap_or(u32::MAX));
            steps.push(step);
        }
        Self { seed, only: only.to_vec(), steps }
    }

    /// How many faults it has.
    pub fn faults(&self) -> usize {
        self.steps.iter().map(|step| step.faults.len()).sum()
    }

    /// For people: one line per act.
    pub fn render(&self) -> String {
        let mut text = format!("seed {}: {} faults\n", self.seed, self.faults());
        for (number, step) in self.steps.iter().enumerate() {
            let kinds: Vec<_> = step.faults.iter().map(ToString::to_string).collect();
            let _ = write!(text, "step {}: {}", number + 1, kinds.join(", "));
            let _ = match step.leader {
                Some(leader) => writeln!(text, " ({leader} leads)"),
                None => writeln!(text),
            };
            for Timed { at_ms, act } in &step.acts {
                let _ = writeln!(text, "  {:>6.1} s  {act}", seconds(*at_ms));
            }
            let _ = writeln!(text, "  {:>6.1} s  {}", seconds(step.repair_ms), Act::Repair);
        }
        text
    }
}

fn seconds(ms: u64) -> f64 {
    std::time::Duration::from_millis(ms).as_secs_f64()
}

impl Step {
    fn draw(chance: &mut Chance, faults_max: u32, only: &[Kind]) -> Self {
        let first = kind(chance, only);
        if first.is_story() {
            let acts = story(first, chance);
            let last_ms = acts.last().map_or(0, |timed| timed.at_ms);
            // Long enough to be fenced, and for what follows from that.
            let repair_ms = last_ms + 5_000 + hold(chance);
            return Self { faults: vec![first], leader: None, acts, repair_ms };
        }
        // Mostly one fault; often enough another one while the first is there, or is being recovered from.
        let wanted = match chance.below(100) {
            0..50 => 1,
            50..82 => 2,
            _ => 3,
        };
        let leader = chance.once_in(2).then(|| side(chance));
        let mut step = Self { faults: Vec::new(), leader, acts: Vec::new(), repair_ms: 0 };
        let mut at_ms = 0;
        let mut next = Some(first);
        for number in 0..faults_max.min(wanted) {
            let kind = next.take().unwrap_or_else(|| {
                std::iter::repeat_with(|| kind(chance, only))
                    .take(100)
                    .find(|kind| !kind.is_story())
                    .unwrap_or(Kind::Power)
            });
            if number > 0 {
                at_ms += gap(chance);
                if chance.once_in(4) {
                    step.acts.push(Timed { at_ms, act: Act::Repair });
                    at_ms += gap(chance);
                }
            }
            step.faults.push(kind);
            for (after_ms, act) in fault(kind, chance) {
                step.acts.push(Timed { at_ms: at_ms + after_ms, act });
            }
        }
        step.acts.sort_by_key(|timed| timed.at_ms);
        let last_ms = step.acts.last().map_or(0, |timed| timed.at_ms);
        step.repair_ms = last_ms + hold(chance);
        step
    }

    /// Whether this takes the power of a node.
    pub fn takes_power(&self) -> bool {
        self.acts.iter().any(|timed| timed.act.takes_power_of().is_some())
    }

    /// Whether a person may begin a second history here.
    pub fn is_careless(&self) -> bool {
        self.acts.iter().any(|timed| timed.act == Act::CarelessPerson)
    }

    /// What is done, in one line.
    pub fn summary(&self) -> String {
        let acts: Vec<_> = self.acts.iter().map(|timed| timed.act.to_string()).collect();
        acts.join("; ")
    }
}

/// How long until the next thing: often before the last one was noticed, often while it is being recovered
/// from, sometimes after that.
fn gap(chance: &mut Chance) -> u64 {
    match chance.below(10) {
        0..3 => chance.below(2_000),
        3..8 => 2_000 + chance.below(7_000),
        _ => 9_000 + chance.below(9_000),
    }
}

/// How long the last fault stays: sometimes it is over before it matters; mostly it is acted on first.
fn hold(chance: &mut Chance) -> u64 {
    match chance.below(10) {
        0..2 => 500 + chance.below(2_500),
        2..7 => 4_000 + chance.below(6_000),
        _ => 10_000 + chance.below(10_000),
    }
}

fn kind(chance: &mut Chance, only: &[Kind]) -> Kind {
    let weight = |(kind, weight): &(Kind, u64)| {
        if only.is_empty() || only.contains(kind) { *weight } else { 0 }
    };
    let total: u64 = Kind::ALL.iter().map(weight).sum();
    let mut drawn = chance.below(total.max(1));
    for entry in &Kind::ALL {
        match drawn.checked_sub(weight(entry)) {
            Some(rest) => drawn = rest,
            None => return entry.0,
        }
    }
    Kind::Power
}

fn side(chance: &mut Chance) -> Side {
    Side::BOTH[usize::from(chance.once_in(2))]
}

/// One fault, as acts with the time after its beginning.
fn fault(kind: Kind, chance: &mut Chance) -> Vec<(u64, Act)> {
    let node = side(chance);
    let both_links = || Link::ALL.to_vec();
    match kind {
        Kind::Power => power(node, chance),
        Kind::Both => {
            let later_ms = chance.below(1_500);
            vec![(0, Act::PowerOff { node }), (later_ms, Act::PowerOff { node: node.other() })]
        }
        Kind::Cut => {
            // As slow as the pair file says that they may be: the delay has to outlast that.
            let slow = |node| (0, Act::Bmc { node, fault: "slow-power=700".into() });
            let mut acts = if chance.once_in(3) { Side::BOTH.map(slow).into() } else { Vec::new() };
            acts.push((100, Act::Cut { links: both_links(), from: None }));
            acts
        }
        Kind::OneWay => vec![(0, Act::Cut { links: both_links(), from: Some(node) })],
        Kind::Link => {
            let link = Link::ALL[usize::from(chance.once_in(2))];
            let from = chance.once_in(3).then_some(node);
            vec![(0, Act::Cut { links: vec![link], from })]
        }
        Kind::Freeze => {
            let mut acts = vec![(0, Act::Freeze { node })];
            // Long enough to be noticed, and back before, while or after it is fenced.
            if chance.once_in(2) {
                acts.push((500 + chance.below(6_000), Act::Thaw { node }));
            }
            acts
        }
        Kind::Etcd => vec![(0, Act::KillEtcd { node })],
        Kind::Port => {
            let port = if chance.once_in(4) { CLIENT_PORT } else { PEER_PORT };
            let mut acts = vec![(0, Act::BlockPort { node, port })];
            if chance.once_in(2) {
                acts.push((0, Act::BlockPort { node: node.other(), port }));
            }
            acts
        }
        Kind::Stall => vec![(0, Act::Stall { node })],
        Kind::SlowDisk if chance.once_in(2) => {
            vec![(0, Act::SlowDisk { node, stall_ms: 200 + chance.below(1_300) })]
        }
        Kind::SlowDisk => {
            let delay_ms = 50 + u32::try_from(chance.below(350)).unwrap_or_default();
            vec![(0, Act::SlowFsync { node, delay_ms })]
        }
        Kind::FullDisk => {
            let mut acts = vec![(0, Act::FullDisk { node })];
            // A full disk matters when etcd wants room, as after a crash.
            if chance.once_in(2) {
                acts.push((1_000, Act::KillEtcd { node }));
            }
            acts
        }
        Kind::Bmc => vec![(0, Act::Bmc { node, fault: bmc(chance, &BMC_FAULTS) })],
        Kind::NoProof => {
            let fault = bmc(chance, &BMC_FAULTS[BMC_SLOW..]);
            let lost = if chance.once_in(2) {
                Act::Freeze { node }
            } else {
                Act::Cut { links: both_links(), from: None }
            };
            let mut acts = vec![(0, Act::Bmc { node, fault })];
            // Neither can be proven off: nobody may go on until that is repaired.
            if chance.once_in(2) {
                let fault = bmc(chance, &BMC_FAULTS[BMC_SLOW..]);
                acts.push((0, Act::Bmc { node: node.other(), fault }));
            }
            acts.push((200, lost));
            acts
        }
        Kind::Stop if chance.once_in(3) => vec![(0, Act::Shutdown { node })],
        Kind::Stop => {
            let mut acts = vec![(0, Act::StopPacemaker { node })];
            if chance.once_in(4) {
                acts.push((chance.below(4_000), Act::StopPacemaker { node: node.other() }));
            }
            acts
        }
        Kind::Maintenance => vec![(0, Act::Maintenance { node })],
        // Stories fill a step of their own.
        Kind::Rejoin | Kind::OldCopy | Kind::Sensible | Kind::Careless => Vec::new(),
    }
}

fn power(node: Side, chance: &mut Chance) -> Vec<(u64, Act)> {
    match chance.below(8) {
        0..4 => vec![(0, Act::PowerOff { node })],
        4..6 => vec![(0, Act::PowerCycle { node })],
        // It takes the order to power on, and stays off until it is repaired.
        6 => vec![(0, Act::Bmc { node, fault: "do-nothing".into() }), (0, Act::PowerOff { node })],
        _ => {
            let ahead_s = 3_600 * i64::try_from(1 + chance.below(1_000)).unwrap_or(1);
            vec![(0, Act::Clock { node, ahead_s }), (0, Act::PowerCycle { node })]
        }
    }
}

/// What a BMC does wrong. The slow ones stay within what the pair file says of the BMCs (`bmcOffMs`): a BMC
/// that is slower than stated may lose both nodes of a split.
const BMC_FAULTS: [&str; 10] = [
    "slow=150",
    "slow-power=700",
    "hang",
    "refuse",
    "wrong-password",
    "do-nothing",
    "server-error",
    "malformed-json",
    "stuck-powering-off",
    "no-power-state",
];
/// So many of them are only slow: they give a proof, later.
const BMC_SLOW: usize = 2;

fn bmc(chance: &mut Chance, faults: &[&str]) -> String {
    faults[usize::try_from(chance.below(faults.len() as u64)).unwrap_or_default()].to_owned()
}

/// Steps that lead the pair into a certain state first.
fn story(kind: Kind, chance: &mut Chance) -> Vec<Timed> {
    let node = side(chance);
    let peer = node.other();
    let deaf = |node| Act::Bmc { node, fault: "do-nothing".into() };
    // The peer goes on alone meanwhile, and what is written then is on it alone.
    let back_ms = 6_000 + chance.below(4_000);
    let acts = match kind {
        Kind::Rejoin => {
            let mut acts = vec![
                (0, deaf(node)),
                (0, Act::PowerOff { node }),
                (back_ms, Act::Bmc { node, fault: "none".into() }),
            ];
            // Held up before it starts as a learner, or before it is promoted, or not at all.
            let mut lost_ms = back_ms + 3_000 + chance.below(12_000);
            match chance.below(3) {
                0 => acts.push((back_ms, Act::BlockPort { node: peer, port: PEER_PORT })),
                1 => {
                    acts.push((back_ms, Act::BlockPort { node, port: CLIENT_PORT }));
                    // It boots and catches up first.
                    lost_ms += 10_000;
                }
                _ => {}
            }
            acts.extend([
                (back_ms, Act::PowerOn { node }),
                (lost_ms, deaf(peer)),
                (lost_ms, Act::PowerOff { node: peer }),
            ]);
            // After the other was fenced, what it is is read from its disk alone.
            if chance.once_in(2) {
                acts.push((lost_ms + 6_000, Act::KillEtcd { node }));
            }
            acts
        }
        Kind::Sensible => vec![
            (0, Act::Bmc { node, fault: "refuse".into() }),
            (0, Act::PowerOff { node }),
            (back_ms, Act::SensiblePerson),
        ],
        _ => {
            let mut acts = vec![
                (0, deaf(node)),
                (0, Act::PowerOff { node }),
                (back_ms, deaf(peer)),
                (back_ms, Act::PowerOff { node: peer }),
                (back_ms + 500, Act::PowerOn { node }),
            ];
            if kind == Kind::Careless {
                acts.push((back_ms + 5_000, Act::CarelessPerson));
            }
            acts
        }
    };
    acts.into_iter().map(|(at_ms, act)| Timed { at_ms, act }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The seed alone decides; the number of faults is the one that was asked for; the acts are in order and
        /// over before the repair; a plan that was written down reads back as itself.
        #[test]
        fn a_plan_is_its_seed(seed: u64, faults in 1_u32..60) {
            let plan = Plan::draw(seed, faults, &[]);
            prop_assert_eq!(&plan, &Plan::draw(seed, faults, &[]));
            prop_assert_eq!(plan.faults(), faults as usize);
            for step in &plan.steps {
                prop_assert!(!step.acts.is_empty());
                prop_assert!(step.acts.is_sorted_by_key(|timed| timed.at_ms));
                prop_assert!(step.acts.iter().all(|timed| timed.at_ms <= step.repair_ms));
                // A step that lasts for minutes would say little per hour.
                prop_assert!(step.repair_ms <= 120_000);
            }
            let text = serde_json::to_string(&plan).unwrap();
            prop_assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        }

        /// A longer plan begins as the shorter one of the same seed, up to the step in which that one ends.
        #[test]
        fn a_longer_plan_begins_alike(seed: u64, faults in 4_u32..40) {
            let (short, long) = (Plan::draw(seed, faults, &[]), Plan::draw(seed, faults + 10, &[]));
            let same = short.steps.len() - 1;
            prop_assert_eq!(&short.steps[..same], &long.steps[..same]);
        }

        /// Only what was asked for is drawn, whatever it is.
        #[test]
        fn kinds_can_be_chosen(seed: u64, which in 0_usize..Kind::ALL.len()) {
            let kind = Kind::ALL[which].0;
            let plan = Plan::draw(seed, 6, &[kind]);
            let drawn: BTreeSet<Kind> = plan.steps.iter().flat_map(|it| it.faults.clone()).collect();
            prop_assert_eq!(drawn, BTreeSet::from([kind]));
        }
    }

    /// A long plan has every kind of fault and every act, faults that overlap, and repairs in between.
    #[test]
    fn a_long_plan_has_everything() {
        let plan = Plan::draw(1, 600, &[]);
        let kinds: BTreeSet<Kind> =
            plan.steps.iter().flat_map(|step| step.faults.clone()).collect();
        assert_eq!(kinds.len(), Kind::ALL.len(), "{kinds:?}");
        let text = plan.render();
        for words in [
            "pull node-a's plug",
            "power-cycle node-b",
            "cut link1 and link2\n",
            "one way, from node-b",
            "hang node-a",
            "let node-a go on",
            "kill etcd on node-b",
            "block port 2380",
            "block port 2379",
            "stall a connection",
            "disk stalls",
            "fsync takes",
            "fill node-b's disk",
            "s ahead",
            "BMC: hang",
            "stop Pacemaker",
            "shut node-a down",
            "maintenance of node-b",
            "a sensible person",
            "a careless person",
        ] {
            assert!(text.contains(words), "{words}");
        }
        assert!(plan.steps.iter().any(|step| step.faults.len() == 3));
        assert!(plan.steps.iter().any(|step| step.acts.iter().any(|it| it.act == Act::Repair)));
    }

    /// Each kind has a name that reads back as itself; others are refused with the list.
    #[test]
    fn names_read_back() {
        for (kind, _) in Kind::ALL {
            assert_eq!(kind.name().parse::<Kind>(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert!("fire".parse::<Kind>().unwrap_err().contains("one-way"));
    }
}
