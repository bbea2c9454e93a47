//! Where a node stands: what its dataset, its marks and its record say together.

use crate::dataset::Class;
use crate::facts::{EtcdState, Facts, LiveMember, LogPosition, TakeOverMark};
use crate::ids::MemberId;
use crate::statement::{Listed, Place, Statement};

/// What a node's dataset, marks and record say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The class, marks taken into account.
    pub(crate) class: Class,
    /// The yield mark is about this dataset.
    pub(crate) yielded: bool,
    /// The class is `Alone` by the take-over mark only: the log still holds another voter.
    pub(crate) by_mark: bool,
    /// The other voter, if at some prefix of the log there is exactly one.
    pub(crate) other: Option<MemberId>,
    /// Somebody else than the pair may vote.
    pub(crate) third: bool,
    /// A `Pair` node that may go on alone.
    pub(crate) eligible: bool,
    /// The last entry of the log.
    pub(crate) last: LogPosition,
}

impl Standing {
    /// Reads the facts.
    pub(crate) fn of(facts: &Facts) -> Self {
        let dataset = &facts.dataset;
        let own = dataset.member_id;
        let mark = take_over_mark(facts);
        let without: &[MemberId] = mark.map_or(&[], |mark| mark.without.as_slice());

        // Everyone who votes at some prefix may be voting now (V5). Members that the mark names are not
        // needed: they matter only if nobody else is there.
        let mut others: [Option<MemberId>; 2] = [None; 2];
        let mut third = false;
        for prefix in &dataset.prefixes {
            for voter in prefix.membership.voters().filter(|id| Some(*id) != own) {
                match &mut others {
                    [Some(one), _] if *one == voter => {}
                    [_, Some(two)] if *two == voter => {}
                    [slot @ None, _] | [_, slot @ None] => *slot = Some(voter),
                    _ => third = true,
                }
            }
        }
        let promoting = mark.and_then(|mark| mark.promoting);
        let covered = |id: &MemberId| without.contains(id) || promoting == Some(*id);
        let all_covered = !third && others.iter().flatten().all(covered);
        // Of two, the later one is the present one if the earlier is known to be out.
        let other = match others {
            [Some(first), Some(second)] if covered(&first) => Some(second),
            [first, None] => first,
            [Some(_), Some(_)] => {
                third = true;
                None
            }
            [None, second] => second,
        };

        let yielded = facts.marks.yielded.as_ref().is_some_and(|mark| {
            Some(mark.member) == own && Some(mark.cluster) == dataset.cluster_id
        }) && !broken!(facts, YieldDoesNotLast);
        let by_mark = dataset.class == Class::Pair
            && mark.is_some()
            && all_covered
            && !broken!(facts, NoTakeOverMark);
        let class = match dataset.class {
            class @ (Class::None | Class::Broken) => class,
            _ if yielded => Class::Left,
            Class::Pair if by_mark => Class::Alone,
            class => class,
        };
        let last = LogPosition { term: dataset.raft.last_term, index: dataset.raft.last_index };
        let eligible = class == Class::Pair && record_holds(facts, other);
        Self { class, yielded, by_mark, other, third, eligible, last }
    }
}

/// The take-over mark, if it is about this dataset.
fn take_over_mark(facts: &Facts) -> Option<&TakeOverMark> {
    facts.marks.take_over.as_ref().filter(|mark| {
        Some(mark.member) == facts.dataset.member_id
            && Some(mark.cluster) == facts.dataset.cluster_id
    })
}

/// Eligibility: earned in the present run of the stack in the present boot, by this member, with this other voter (V3, V8).
fn record_holds(facts: &Facts, other: Option<MemberId>) -> bool {
    if broken!(facts, PairIsAlwaysEligible) {
        return true;
    }
    facts.eligibility.as_ref().is_some_and(|record| {
        let now = record.boot == facts.boot && record.run == facts.run;
        (now || broken!(facts, EligibilityOutlivesTheBoot))
            && Some(record.member) == facts.dataset.member_id
            && (Some(record.with) == other || broken!(facts, EligibleWithWhomever))
    })
}

impl Facts {
    /// R2a: whether these facts still hold after an announcement, if Corosync now says this and nothing else was
    /// asked again; quorum only if it was.
    pub fn still_hold(&self, ring: &crate::ids::RingId, quorate: Option<bool>) -> bool {
        crate::rules::take_over::still_holds(self, ring, quorate)
    }

    /// The other voter of the own dataset, if there is exactly one: the member that a proof has to name (V8).
    pub fn other_voter(&self) -> Option<MemberId> {
        Standing::of(self).other
    }

    /// The peer's statement, if it is about the present: the peer is visible, the statement is its own
    /// (R10), and it answers this node's present boot.
    pub(crate) fn heard(&self) -> Option<&Statement> {
        let statement = self.peer.statement.as_ref()?;
        let current = self.peer.present && statement.answers.as_ref() == Some(&self.boot);
        let from_peer = statement.node == self.peer.name;
        (from_peer && (current || broken!(self, StaleStatementsAreTrusted))).then_some(statement)
    }

    /// Whether this node goes first where both could: as the policy says, else by its name.
    pub(crate) fn comes_first(&self) -> bool {
        match &self.policy.survivor {
            Some(survivor) if *survivor == self.node => true,
            Some(survivor) if *survivor == self.peer.name => false,
            _ => self.node < self.peer.name,
        }
    }

    /// Whether a process runs.
    pub(crate) fn etcd_runs(&self) -> bool {
        self.etcd.state != EtcdState::Stopped
    }

    /// Whether the live etcd lists the peer's as one that has started.
    pub fn live_peer_is_started(&self) -> bool {
        self.live_peer().is_some_and(|member| member.started)
    }

    /// The peer's entry in the applied membership of the live etcd.
    pub(crate) fn live_peer(&self) -> Option<&LiveMember> {
        self.etcd.members.iter().find(|member| member.node.as_ref() == Some(&self.peer.name))
    }

    /// What the peer is in this node's membership: as its live etcd says, or else its log.
    pub(crate) fn listed_peer(&self, standing: &Standing) -> Option<Listed> {
        let live = self.live_peer().map(|peer| (peer.id, peer.learner));
        let logged = || standing.other.filter(|_| self.etcd.members.is_empty());
        let (member, learner) = live.or_else(|| logged().map(|id| (id, false)))?;
        let place = match (self.is_burnt(member), learner) {
            (true, _) => Place::Burnt,
            (false, true) => Place::Learner,
            (false, false) => Place::Voter,
        };
        Some(Listed { member, place })
    }

    /// Whether the take-over mark names this member as one that goes on no more.
    pub(crate) fn is_burnt(&self, member: MemberId) -> bool {
        take_over_mark(self).is_some_and(|mark| mark.without.contains(&member))
    }

    /// Whether the take-over mark stands for this dataset.
    pub(crate) fn is_marked(&self) -> bool {
        take_over_mark(self).is_some()
    }
}
