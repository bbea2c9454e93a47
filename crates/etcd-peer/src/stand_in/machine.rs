//! The stand-in's protocol, without I/O: what came in and what time it is go in, what is to be sent comes out.
//!
//! The order of things, and why it is so (see also `docs/concepts/stand-in-vote.md`):
//!
//! 1. Nothing is said before both streams are attached. etcd sends entries on the append stream as long as it
//!    believes in it, and a powered-off peer's connection is believed in for 15 s: without attaching anew a
//!    leader would be elected whose entries go nowhere.
//! 2. *Ask*: a read request, then a pre-vote at term 1. The pre-vote is always rejected, and the rejection
//!    carries the term. A leader has by then answered the read request with a heartbeat; a follower of the
//!    dead member has forwarded it back to us; one without a leader has dropped it. All three come over the
//!    same stream in order, so one answer tells term and role.
//! 3. A survivor that leads is only acknowledged; nothing is ever said at a higher term. Any other is told to
//!    campaign, with one `TimeoutNow` at term + 1. Its requests for votes are granted.
//! 4. Entries are acknowledged up to the last one received and never further.
//! 5. When the term's first entry is committed, the removal of the dead member is proposed, again and again
//!    until it comes back as an entry. (Before that entry is applied raft silently drops it.)

use std::time::Duration;

use dyad_core::ids::{Index, MemberId, Term};
use prost::Message as _;

use super::report::{Role, Step};
use crate::wire::{ConfChange, ConfChangeType, Entry, EntryType, Message, MessageType, StreamKind};

/// How often what had no effect is said again.
const REPEAT: Duration = Duration::from_millis(50);
/// A question that could not even be sent for so long was lost with its connection.
const QUESTION_LOST: Duration = Duration::from_secs(2);
/// etcd opens a stream a moment before it uses it: the first answer may still go into the dead connection.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// The append stream may be this much behind the message stream.
const STREAM_SKEW: Duration = Duration::from_millis(2);
/// A leader that answers, has taken our proposal and sends no entry for so long will never send one: it waits
/// for a snapshot to arrive, or for a transfer of leadership.
const STALLED: Duration = Duration::from_millis(300);
/// The first pause between two proposals of the removal; it grows to `REPEAT`.
const PROPOSE_AGAIN: Duration = Duration::from_millis(5);
/// How many bytes of forwarded proposals are kept to be handed back.
const PARKED_BYTES_MAX: usize = 64 << 20;
/// How many bytes of proposals go into one message.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// What our read requests begin with. etcd's own are 8 bytes long; ours are 16 and cannot be taken for them.
const CONTEXT_MARK: &[u8; 8] = b"stand-in";

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Send in order.
    Send(Message),
    /// Send on the other connection: etcd does not answer a proposal before there is a leader. At most once.
    Propose(Message),
    /// Tell the caller.
    Report(Step),
}

/// What happened.
#[derive(Debug, Clone)]
pub(super) enum Input {
    /// A stream was opened, perhaps anew.
    Attached(StreamKind),
    /// A stream ended or broke.
    Detached(StreamKind),
    /// A message came.
    Received(Message),
    /// The last question has been sent.
    Asked,
    /// A proposal was sent and answered, or failed: the next may go.
    ProposalDone,
    /// It is known whether all that is committed has been applied, or that this cannot be known.
    MayCampaign(bool),
    /// Time has passed.
    Tick,
}

/// A message that no stand-in may answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message from member {from} to member {to} came; only {survivor} may speak here, to {dead}"
)]
pub struct Foreign {
    /// Who it says it is from.
    pub from: MemberId,
    /// For whom it is.
    pub to: MemberId,
    /// Who may speak.
    pub survivor: MemberId,
    /// To whom.
    pub dead: MemberId,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Not both streams are there.
    Attaching,
    /// Who leads? The second time the survivor was reminded that its follower is there.
    Asking { again: bool },
    /// It does not lead, unless it shows within the skew of the streams that it does.
    Settling { until: Duration },
    /// It was told to campaign at this term.
    Electing { term: u64, since: Duration, answers_since_campaign: u32 },
    /// It leads.
    Leading { term: u64, answers_without_proof: u32 },
}

#[derive(Debug)]
struct Question {
    asked_at: Duration,
    sent_at: Option<Duration>,
    follows_dead: bool,
    leads: bool,
}

/// A leader has taken our proposal: it owes us an entry.
#[derive(Debug, Clone, Copy)]
struct Owed {
    since: Duration,
    /// How many questions of a later time it has answered.
    answers: u32,
}

/// The protocol's state.
#[derive(Debug)]
pub(super) struct Machine {
    survivor: MemberId,
    dead: MemberId,
    attached: (bool, bool),
    phase: Phase,
    /// The highest term that the survivor has shown.
    term: u64,
    question: Option<Question>,
    questions: u64,
    ask_at: Duration,
    may_campaign: bool,
    role_reported: bool,
    /// Whether an election was ours: then the term's first entry must be seen committed before the proposal.
    elected: bool,
    first_of_term: Option<u64>,
    commit: u64,
    commit_reported: bool,
    removal_seen: bool,
    led_since: Duration,
    proposals: u32,
    /// Proposals on their way.
    proposing: u32,
    propose_at: Duration,
    owed: Option<Owed>,
    forced: bool,
    parked: Vec<Entry>,
    parked_bytes: usize,
    actions: Vec<Action>,
}

impl Machine {
    pub(super) fn new(survivor: MemberId, dead: MemberId) -> Self {
        Self {
            survivor,
            dead,
            attached: (false, false),
            phase: Phase::Attaching,
            term: 0,
            question: None,
            questions: 0,
            ask_at: Duration::ZERO,
            may_campaign: true,
            role_reported: false,
            elected: false,
            first_of_term: None,
            commit: 0,
            commit_reported: false,
            removal_seen: false,
            led_since: Duration::ZERO,
            proposals: 0,
            proposing: 0,
            propose_at: Duration::ZERO,
            owed: None,
            forced: false,
            parked: Vec::new(),
            parked_bytes: 0,
            actions: Vec::new(),
        }
    }

    /// One step. `now` never goes back.
    pub(super) fn step(&mut self, now: Duration, input: Input) -> Result<Vec<Action>, Foreign> {
        match input {
            Input::Attached(kind) => self.attach(now, kind),
            Input::Detached(kind) => self.detach(kind),
            Input::Received(message) => self.receive(now, message)?,
            Input::Asked => {
                if let Some(question) = &mut self.question {
                    question.sent_at.get_or_insert(now);
                }
            }
            Input::ProposalDone => self.proposal_done(now),
            Input::MayCampaign(may) => self.permit(now, may),
            Input::Tick => {}
        }
        self.go_on(now);
        Ok(std::mem::take(&mut self.actions))
    }

    /// When to call [`step`](Self::step) with a tick, if nothing happens before.
    pub(super) fn wake_at(&self) -> Duration {
        let mut at = self.ask_at;
        if let Phase::Settling { until } = self.phase {
            at = at.min(until);
        }
        if matches!(self.phase, Phase::Leading { .. }) && !self.removal_seen && self.proposing == 0
        {
            at = at.min(self.propose_at);
        }
        at
    }

    /// What it waits for, in words.
    pub(super) fn waits_for(&self) -> &'static str {
        match self.phase {
            Phase::Attaching => "the streams of the survivor's peer port",
            Phase::Asking { .. } | Phase::Settling { .. } => "the survivor to say its term",
            Phase::Electing { .. } if !self.may_campaign => {
                "the survivor to apply all that is committed, before it campaigns"
            }
            Phase::Electing { .. } => {
                "the survivor to campaign and lead (a learner, or one with an unapplied change of the \
                 membership, does not)"
            }
            Phase::Leading { .. } if self.removal_seen => "the survivor to apply the removal",
            Phase::Leading { .. } => "the survivor to take the removal into its log",
        }
    }

    /// Whether anything was said that the dead member would have to stand by.
    pub(super) fn is_committed_to(&self) -> bool {
        self.elected || matches!(self.phase, Phase::Leading { .. })
    }

    fn attach(&mut self, now: Duration, kind: StreamKind) {
        match kind {
            StreamKind::Message => self.attached.0 = true,
            StreamKind::MsgApp => self.attached.1 = true,
        }
        if self.attached == (true, true) {
            self.actions.push(Action::Report(Step::Attached));
            self.phase = Phase::Asking { again: false };
            self.ask(now);
        }
    }

    /// Without both streams nothing that comes can be relied on: begin anew when they are back.
    fn detach(&mut self, kind: StreamKind) {
        match kind {
            StreamKind::Message => self.attached.0 = false,
            StreamKind::MsgApp => self.attached.1 = false,
        }
        self.phase = Phase::Attaching;
        self.question = None;
        self.owed = None;
    }

    fn permit(&mut self, now: Duration, may: bool) {
        self.may_campaign = may;
        if let Phase::Electing { term, .. } = self.phase
            && may
            && !self.forced
        {
            self.urge(now, term);
        }
    }

    fn proposal_done(&mut self, now: Duration) {
        self.proposing = self.proposing.saturating_sub(1);
        if matches!(self.phase, Phase::Leading { .. }) && !self.removal_seen && self.proposals > 0 {
            self.owed.get_or_insert(Owed { since: now, answers: 0 });
        }
    }

    fn message(&self, kind: MessageType, term: u64) -> Message {
        Message {
            kind: kind.into(),
            from: self.dead.0,
            to: self.survivor.0,
            term,
            ..Message::default()
        }
    }

    fn send(&mut self, message: Message) {
        self.actions.push(Action::Send(message));
    }

    /// Asks for term and role; see the head of this file.
    fn ask(&mut self, now: Duration) {
        self.questions += 1;
        let mut context = CONTEXT_MARK.to_vec();
        context.extend(self.questions.to_be_bytes());
        let mut read = self.message(MessageType::ReadIndex, 0);
        read.entries = vec![Entry { data: context, ..Entry::default() }];
        self.send(read);
        self.send(self.message(MessageType::PreVote, 1));
        self.question =
            Some(Question { asked_at: now, sent_at: None, follows_dead: false, leads: false });
        self.ask_at = now + self.pause();
    }

    /// How long to wait before the next question.
    fn pause(&self) -> Duration {
        if matches!(self.phase, Phase::Asking { .. }) { ASK_AGAIN } else { REPEAT }
    }

    /// Whether this context is that of one of our questions. Which one does not matter: what comes back for
    /// an earlier one comes before its answer, so it is as new as that.
    fn is_own_context(context: &[u8]) -> bool {
        context.len() == 2 * CONTEXT_MARK.len() && context.starts_with(CONTEXT_MARK)
    }

    fn receive(&mut self, now: Duration, message: Message) -> Result<(), Foreign> {
        if self.is_own_question(&message) {
            if let Some(question) = &mut self.question {
                question.follows_dead = true;
            }
            return Ok(());
        }
        if message.from != self.survivor.0 || message.to != self.dead.0 {
            return Err(Foreign {
                from: MemberId(message.from),
                to: MemberId(message.to),
                survivor: self.survivor,
                dead: self.dead,
            });
        }
        if self.attached != (true, true) {
            return Ok(());
        }
        match message.kind() {
            MessageType::App if message.term >= self.term => self.receive_entries(now, &message),
            MessageType::Heartbeat if message.term >= self.term => {
                self.receive_heartbeat(now, message);
            }
            MessageType::Vote if message.term >= self.term => self.grant_vote(now, &message),
            MessageType::PreVote => self.grant_pre_vote(&message),
            MessageType::PreVoteResp => self.receive_answer(now, &message),
            MessageType::Prop => self.park(message.entries),
            // Answers to what the dead member itself once said, or what only a live follower could use.
            _ => self.term = self.term.max(message.term),
        }
        Ok(())
    }

    /// A follower of the dead member sends our own read request on to its leader: us. etcd 3.5 leaves the
    /// first sender in it, 3.4 puts itself there.
    fn is_own_question(&self, message: &Message) -> bool {
        message.kind() == MessageType::ReadIndex
            && message.to == self.dead.0
            && [self.dead.0, self.survivor.0].contains(&message.from)
            && message.entries.first().is_some_and(|entry| Self::is_own_context(&entry.data))
    }

    fn receive_entries(&mut self, now: Duration, message: &Message) {
        // Exactly as far as this message reaches: 3.4 and 3.5 would commit before their own fsync else.
        let Some(last) = message.index.checked_add(message.entries.len() as u64) else { return };
        self.lead(now, message.term);
        let mut answer = self.message(MessageType::AppResp, message.term);
        answer.index = last;
        self.send(answer);
        if message.log_term == message.term {
            self.first_of_term.get_or_insert(message.index);
        }
        for entry in &message.entries {
            if entry.term == message.term {
                self.first_of_term.get_or_insert(entry.index);
            }
            self.look_for_removal(entry);
        }
        self.owed = None;
        self.commit = self.commit.max(message.commit);
    }

    fn look_for_removal(&mut self, entry: &Entry) {
        let removal = |change: ConfChange| {
            change.kind() == ConfChangeType::RemoveNode && change.node_id == self.dead.0
        };
        if !self.removal_seen && entry.conf_change().is_some_and(removal) {
            self.removal_seen = true;
            self.actions.push(Action::Report(Step::RemovalInLog { index: Index(entry.index) }));
        }
    }

    fn receive_heartbeat(&mut self, now: Duration, message: Message) {
        self.lead(now, message.term);
        self.commit = self.commit.max(message.commit);
        if Self::is_own_context(&message.context)
            && let Some(question) = &mut self.question
        {
            question.leads = true;
        }
        let mut answer = self.message(MessageType::HeartbeatResp, message.term);
        // Linearizable reads wait for their own context to come back.
        answer.context = message.context;
        self.send(answer);
    }

    fn grant_vote(&mut self, now: Duration, message: &Message) {
        self.term = message.term;
        self.report_role(Role::Candidate);
        self.elected = true;
        // It campaigns already.
        self.forced = true;
        self.send(self.message(MessageType::VoteResp, message.term));
        let term = message.term.saturating_sub(1);
        self.phase = Phase::Electing { term, since: now, answers_since_campaign: 0 };
    }

    /// A granted pre-vote carries the asker's future term, and changes nobody's.
    fn grant_pre_vote(&mut self, message: &Message) {
        self.report_role(Role::Candidate);
        self.send(self.message(MessageType::PreVoteResp, message.term));
    }

    /// The survivor leads at this term.
    fn lead(&mut self, now: Duration, term: u64) {
        self.term = term;
        match &mut self.phase {
            Phase::Leading { term: known, answers_without_proof } if *known == term => {
                *answers_without_proof = 0;
                return;
            }
            _ => self.phase = Phase::Leading { term, answers_without_proof: 0 },
        }
        self.first_of_term = None;
        self.proposals = 0;
        self.propose_at = now;
        self.owed = None;
        self.led_since = now;
        self.report_role(Role::Leader);
        self.actions.push(Action::Report(Step::Leads { term: Term(term) }));
        // What it sent into the dead connection is sent again when it hears from its follower.
        self.send(self.message(MessageType::HeartbeatResp, term));
        self.hand_back();
    }

    fn report_role(&mut self, role: Role) {
        if !self.role_reported {
            self.role_reported = true;
            self.actions.push(Action::Report(Step::RoleKnown { role, term: Term(self.term) }));
        }
    }

    /// The answer to our question: a rejected pre-vote with the survivor's term.
    fn receive_answer(&mut self, now: Duration, message: &Message) {
        self.term = self.term.max(message.term);
        let Some(question) = self.question.take() else { return };
        if let Some(owed) = self.owed.as_mut().filter(|owed| question.asked_at >= owed.since) {
            owed.answers += 1;
        }
        match &mut self.phase {
            Phase::Attaching | Phase::Settling { .. } => {}
            Phase::Asking { .. } if question.follows_dead => {
                self.report_role(Role::Follower);
                self.campaign(now);
            }
            Phase::Asking { again: false } => {
                self.phase = Phase::Asking { again: true };
                self.send(self.message(MessageType::HeartbeatResp, self.term));
                self.ask(now);
            }
            Phase::Asking { again: true } => {
                self.phase = Phase::Settling { until: now + STREAM_SKEW };
            }
            Phase::Electing { term, answers_since_campaign, .. } => {
                if self.term > *term {
                    *answers_since_campaign += 1;
                }
            }
            Phase::Leading { answers_without_proof, .. } => {
                // A leader would have answered the read request first. (One that has not yet committed in its
                // term cannot, but sends entries.)
                *answers_without_proof =
                    if question.leads { 0 } else { *answers_without_proof + 1 };
            }
        }
    }

    fn campaign(&mut self, now: Duration) {
        let term = self.term + 1;
        self.phase = Phase::Electing { term, since: now, answers_since_campaign: 0 };
        self.forced = false;
        if self.may_campaign {
            self.urge(now, term);
        }
    }

    /// Says the same again; at the same term that changes nothing for a survivor that is already at it.
    fn urge(&mut self, now: Duration, term: u64) {
        if !self.forced {
            self.forced = true;
            self.actions.push(Action::Report(Step::ElectionForced { term: Term(term) }));
        }
        self.send(self.message(MessageType::TimeoutNow, term));
        self.ask(now);
    }

    fn go_on(&mut self, now: Duration) {
        self.question.take_if(|question| {
            now >= question.asked_at + QUESTION_LOST
                || question.sent_at.is_some_and(|at| now >= at + ASK_AGAIN)
        });
        let may_ask = self.question.is_none() && now >= self.ask_at;
        match self.phase {
            Phase::Attaching => self.ask_at = now + REPEAT,
            Phase::Settling { until } if now >= until => {
                self.report_role(Role::Leaderless);
                self.campaign(now);
            }
            Phase::Asking { .. } if may_ask => self.ask(now),
            Phase::Electing { term, since, answers_since_campaign } if may_ask => {
                // It did campaign, had our vote, answers, and yet does not lead: the vote was lost.
                if answers_since_campaign >= 3 && now >= since + STALLED {
                    self.campaign(now);
                } else if self.may_campaign {
                    self.urge(now, term);
                } else {
                    self.ask(now);
                }
            }
            Phase::Leading { answers_without_proof, .. } => {
                self.acknowledge_progress();
                self.propose(now);
                // Once the removal is in the log an answer without proof may well come from a survivor that
                // has just applied it.
                let answers_max = if self.removal_seen { 20 } else { 3 };
                if self.is_stalled(now) || answers_without_proof >= answers_max {
                    self.campaign(now);
                } else if may_ask {
                    self.ask(now);
                }
            }
            _ => {}
        }
        if now >= self.ask_at {
            self.ask_at = now + self.pause();
        }
    }

    fn is_stalled(&self, now: Duration) -> bool {
        self.owed.is_some_and(|owed| owed.answers >= 3 && now >= owed.since + STALLED)
    }

    fn acknowledge_progress(&mut self) {
        if !self.commit_reported && self.first_of_term.is_some_and(|first| self.commit >= first) {
            self.commit_reported = true;
            self.actions.push(Action::Report(Step::Committed { index: Index(self.commit) }));
        }
    }

    /// Proposes the removal, if it is time.
    fn propose(&mut self, now: Duration) {
        let committed = self.first_of_term.is_some_and(|first| self.commit >= first);
        // A leader that we found again may have nothing to send that would show how far it has committed.
        let ready = committed || !self.elected || now >= self.led_since + REPEAT;
        if self.removal_seen || self.proposing > 0 || !ready || now < self.propose_at {
            return;
        }
        let change = ConfChange {
            kind: ConfChangeType::RemoveNode.into(),
            node_id: self.dead.0,
            ..ConfChange::default()
        };
        let mut proposal = self.message(MessageType::Prop, 0);
        proposal.entries = vec![Entry {
            kind: EntryType::ConfChange.into(),
            data: change.encode_to_vec(),
            ..Entry::default()
        }];
        if self.proposals == 0 {
            self.actions.push(Action::Report(Step::RemovalProposed));
        }
        self.put_forward(proposal);
        self.proposals += 1;
        self.propose_at = now + (PROPOSE_AGAIN * self.proposals).min(REPEAT);
    }

    fn put_forward(&mut self, proposal: Message) {
        self.actions.push(Action::Propose(proposal));
        self.proposing += 1;
    }

    /// Keeps what clients proposed while the survivor still took the dead member for its leader. Changes of
    /// the membership are not kept: their time is over.
    fn park(&mut self, entries: Vec<Entry>) {
        for entry in entries.into_iter().filter(|entry| entry.kind() == EntryType::Normal) {
            let bytes = entry.data.len();
            if bytes > 0 && self.parked_bytes + bytes <= PARKED_BYTES_MAX {
                self.parked_bytes += bytes;
                self.parked.push(entry);
            }
        }
        if matches!(self.phase, Phase::Leading { .. }) {
            self.hand_back();
        }
    }

    /// Hands forwarded proposals to the new leader, each once: a second time could undo a later write.
    fn hand_back(&mut self) {
        let parked = std::mem::take(&mut self.parked);
        if parked.is_empty() {
            return;
        }
        self.parked_bytes = 0;
        self.actions.push(Action::Report(Step::HandedBack { proposals: parked.len() }));
        let mut batch = self.message(MessageType::Prop, 0);
        let mut bytes = 0;
        for entry in parked {
            if bytes > 0 && bytes + entry.data.len() > BATCH_BYTES_MAX {
                let next = self.message(MessageType::Prop, 0);
                self.put_forward(std::mem::replace(&mut batch, next));
                bytes = 0;
            }
            bytes += entry.data.len();
            batch.entries.push(entry);
        }
        self.put_forward(batch);
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
