//! Deliberately broken rules, for checking the checker.
//!
//! Compiled only with the feature `broken-variants`, which no shipped build has. Without it the macro
//! `broken!` is the constant `false` and none of the names below exist.

/// One rule, left out or turned round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broken {
    /// The yield mark is forgotten (V6).
    YieldDoesNotLast,
    /// The take-over mark is not believed (V10a).
    NoTakeOverMark,
    /// A `Pair` dataset found on disk is enough (V3).
    PairIsAlwaysEligible,
    /// The record of an earlier boot counts (V3).
    EligibilityOutlivesTheBoot,
    /// The record counts whoever the other voter is now (V8).
    EligibleWithWhomever,
    /// What the peer said to an earlier boot, or before it went away, is taken for now.
    StaleStatementsAreTrusted,
    /// A proof is kept though the peer was seen again (V1).
    ProofOutlivesSight,
    /// A peer that is absent for long is dead.
    TimeOutIsProof,
    /// A past success of fencing is a proof (V1).
    FencingHistoryIsProof,
    /// A proof or statement about one member is used against another (V8).
    ProofNamesNoMember,
    /// A person's confirmation has no effect.
    ConfirmIsIgnored,
    /// "Offline and clean" counts though fencing is off.
    TakeOverWithoutFencing,
    /// The stand-in votes before the mark and the statement (V2).
    ActBeforeAnnouncing,
    /// A learner may go on alone.
    LearnerTakesOver,
    /// Proof of death is enough, whatever the own copy is (V3).
    ProofIsEnough,
    /// A removal that is only in the tail counts as a leave (V7a).
    UncommittedLeaveCounts,
    /// The peer's leave is enough, though its log was newer (V7).
    StatementIsEnough,
    /// A peer without data and without a record is taken over (V7c).
    NoRecordNeeded,
    /// The barrier is skipped: promoted is eligible (V4).
    PromotedIsEligible,
    /// A promoted learner is eligible while its voter's take-over mark stands.
    BarrierBeforeMarkIsCleared,
    /// Two deaf nodes both yield.
    BothYield,
    /// Another cluster's dataset is taken for the own.
    ForeignClusterIsTaken,
    /// A disk older than what the peer remembers is used.
    RollbackIsTaken,
    /// A lone node with a `Pair` dataset forces its peer off and goes on.
    PairBootsAlone,
    /// Between two histories the larger log wins.
    LargerCounterWins,
    /// Two pairs at rest: one forces itself instead of starting plainly.
    ForceOnPlainCrash,
    /// Logs are compared at rest though a tail may have ended the pair (V10d).
    LooseComparison,
    /// A node moves its data aside before the peer serves (V10b).
    JoinBeforePeerServes,
    /// A node moves its data aside before it was added (V10b).
    MoveAsideFirst,
    /// A recovery's stop removes the member.
    EveryStopLeaves,
    /// Both nodes stop and both remove themselves.
    BothLeave,
    /// The last voter removes itself.
    LastVoterLeaves,
    /// A node leaves though the other is not eligible.
    LeaveToAnyone,
    /// A leader removes itself without handing over (V10c).
    LeaveWhileLeading,
    /// A lone node forces its peer off at once.
    NoLoneBootDelay,
    /// A person's word lets an old copy go on without a warning.
    ConfirmNeedsNoAcceptance,
    /// The class is read from the last entry alone (V5a).
    ClassFromTail,
    /// The class is read from the commit mark alone (V5b).
    ClassFromCommitMark,
    /// The barrier is a read: no entry carries the commit mark to disk (V9).
    BarrierIsARead,
    /// The old data are deleted, not moved aside, before the join has worked.
    DeleteBeforeJoin,
    /// A post-stop notification is taken for a proof of death.
    NotificationIsProof,
    /// A node that serves alone yields to another that claims the same.
    ServedHistoryYields,
    /// A deaf node yields though a change of the membership is in its tail.
    YieldsInMidChange,
    /// A voter that was stopped for good keeps its vote.
    StoppedForGoodHoldsOn,
    /// Two that yielded to each other both wait.
    BothYieldsStand,
    /// An etcd that answers nothing is left alone for ever.
    SilentEtcdIsLeftAlone,
    /// A healthy node yields to one whose etcd answers nothing.
    YieldsToTheSilent,
}

impl Broken {
    /// All of them, with what each leaves out.
    pub const ALL: &[(Self, &str)] = &[
        (Self::YieldDoesNotLast, "The yield mark is forgotten (V6)."),
        (Self::NoTakeOverMark, "The take-over mark is not believed (V10a)."),
        (Self::PairIsAlwaysEligible, "A `Pair` dataset found on disk is enough (V3)."),
        (Self::EligibilityOutlivesTheBoot, "The record of an earlier boot counts (V3)."),
        (Self::EligibleWithWhomever, "The record counts whoever the other voter is now (V8)."),
        (
            Self::StaleStatementsAreTrusted,
            "What the peer said to an earlier boot, or before it went away, is taken for now.",
        ),
        (Self::ProofOutlivesSight, "A proof is kept though the peer was seen again (V1)."),
        (Self::TimeOutIsProof, "A peer that is absent for long is dead."),
        (Self::FencingHistoryIsProof, "A past success of fencing is a proof (V1)."),
        (
            Self::ProofNamesNoMember,
            "A proof or statement about one member is used against another (V8).",
        ),
        (Self::ConfirmIsIgnored, "A person's confirmation has no effect."),
        (Self::TakeOverWithoutFencing, "\"Offline and clean\" counts though fencing is off."),
        (Self::ActBeforeAnnouncing, "The stand-in votes before the mark and the statement (V2)."),
        (Self::LearnerTakesOver, "A learner may go on alone."),
        (Self::ProofIsEnough, "Proof of death is enough, whatever the own copy is (V3)."),
        (
            Self::UncommittedLeaveCounts,
            "A removal that is only in the tail counts as a leave (V7a).",
        ),
        (Self::StatementIsEnough, "The peer's leave is enough, though its log was newer (V7)."),
        (Self::NoRecordNeeded, "A peer without data and without a record is taken over (V7c)."),
        (Self::PromotedIsEligible, "The barrier is skipped: promoted is eligible (V4)."),
        (
            Self::BarrierBeforeMarkIsCleared,
            "A promoted learner is eligible while its voter's take-over mark stands.",
        ),
        (Self::BothYield, "Two deaf nodes both yield."),
        (Self::ForeignClusterIsTaken, "Another cluster's dataset is taken for the own."),
        (Self::RollbackIsTaken, "A disk older than what the peer remembers is used."),
        (
            Self::PairBootsAlone,
            "A lone node with a `Pair` dataset forces its peer off and goes on.",
        ),
        (Self::LargerCounterWins, "Between two histories the larger log wins."),
        (
            Self::ForceOnPlainCrash,
            "Two pairs at rest: one forces itself instead of starting plainly.",
        ),
        (
            Self::LooseComparison,
            "Logs are compared at rest though a tail may have ended the pair (V10d).",
        ),
        (Self::JoinBeforePeerServes, "A node moves its data aside before the peer serves (V10b)."),
        (Self::MoveAsideFirst, "A node moves its data aside before it was added (V10b)."),
        (Self::EveryStopLeaves, "A recovery's stop removes the member."),
        (Self::BothLeave, "Both nodes stop and both remove themselves."),
        (Self::LastVoterLeaves, "The last voter removes itself."),
        (Self::LeaveToAnyone, "A node leaves though the other is not eligible."),
        (Self::LeaveWhileLeading, "A leader removes itself without handing over (V10c)."),
        (Self::NoLoneBootDelay, "A lone node forces its peer off at once."),
        (
            Self::ConfirmNeedsNoAcceptance,
            "A person's word lets an old copy go on without a warning.",
        ),
        (Self::ClassFromTail, "The class is read from the last entry alone (V5a)."),
        (Self::ClassFromCommitMark, "The class is read from the commit mark alone (V5b)."),
        (
            Self::BarrierIsARead,
            "The barrier is a read: no entry carries the commit mark to disk (V9).",
        ),
        (
            Self::DeleteBeforeJoin,
            "The old data are deleted, not moved aside, before the join has worked.",
        ),
        (Self::NotificationIsProof, "A post-stop notification is taken for a proof of death."),
        (
            Self::ServedHistoryYields,
            "A node that serves alone yields to another that claims the same.",
        ),
        (
            Self::YieldsInMidChange,
            "A deaf node yields though a change of the membership is in its tail.",
        ),
        (Self::StoppedForGoodHoldsOn, "A voter that was stopped for good keeps its vote."),
        (Self::BothYieldsStand, "Two that yielded to each other both wait."),
        (Self::SilentEtcdIsLeftAlone, "An etcd that answers nothing is left alone for ever."),
        (Self::YieldsToTheSilent, "A healthy node yields to one whose etcd answers nothing."),
    ];
}
