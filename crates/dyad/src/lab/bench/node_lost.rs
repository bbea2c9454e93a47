//! A node loses its power, or is stopped in good order.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use dyad_judge::clock::now_ns;
use dyad_judge::load::Counts;
use dyad_lab::ExecTarget;
use dyad_lab::protocol::PowerAction;
use dyad_lab::timeline::{Entry, Phase, Timeline};

use super::pair::Pair;
use super::results::{
    COPY, FAULT_TO_WRITE, FENCED_TO_WRITE, JOIN, LOST_WITH_NODE, PROOF_TO_WRITE, REJOIN, SLOWEST,
    STOP_FAILED, STOP_GAP, STOP_SLOWEST, Samples, VOTE,
};
use crate::lab::run::failure;

/// Where the copy is received that joins are compared with.
const COPY_PORT: u16 = 9999;

impl Pair<'_> {
    pub(super) fn node_lost(
        &mut self,
        victim: usize,
        leader: usize,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        self.wait_whole()?;
        self.lead(leader)?;
        let survivor = self.name(1 - victim).to_owned();
        let (clients, _) = self.clients()?;
        let fault_ns = now_ns();
        self.lab.power(self.name(victim), PowerAction::Off).map_err(failure)?;
        // Only what was sent after the cut shows that writes go on: what was under way may have been taken.
        let cut_ns = now_ns();
        self.wait_whole()?;
        let whole_us = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
        let seen = self.judge(clients, cut_ns)?;
        let timeline = self.lab.timeline(false).map_err(failure)?;
        let first = seen.report.first_write_after.get(&survivor).map(|write| write.after_ms);
        let first = first.with_context(|| format!("no write through {survivor}"))?
            + Duration::from_nanos(cut_ns - fault_ns).as_secs_f64() * 1e3;
        samples.add(FAULT_TO_WRITE, Some(first));
        let fenced = timeline.first(Phase::FencingDone);
        samples.add(FENCED_TO_WRITE, fenced.map(|step| first - step.ms));
        let slowest = seen.report.slowest_by_endpoint.get(&survivor);
        samples.add(SLOWEST, slowest.map(|slowest| slowest.waited_ms));
        samples.add(LOST_WITH_NODE, Some(seen.lost));
        let since = |step: &Entry| {
            let waited = u64::try_from(whole_us).unwrap_or_default().saturating_sub(step.time_us);
            Duration::from_micros(waited).as_secs_f64() * 1e3
        };
        // Real machines take minutes to boot, the lab's a second: what counts begins when Corosync sees it.
        let joined = format!("{} joined", self.name(victim));
        let back = timeline.entries.iter().find(|step| {
            step.phase == Phase::Membership && step.place == survivor && step.text == joined
        });
        samples.add(REJOIN, back.map(since));
        own_steps(&timeline, first, samples);
        Ok(())
    }

    pub(super) fn planned_stop(
        &mut self,
        leaver: usize,
        leader: usize,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        self.wait_whole()?;
        self.lead(leader)?;
        let (leaver, stays) = (self.name(leaver).to_owned(), self.name(1 - leaver).to_owned());
        let (clients, _) = self.clients()?;
        let start_ns = now_ns();
        self.run(&leaver, &["systemctl", "stop", "pacemaker"])?;
        // The clients end before its etcd is back; without it the last look at every node would wait for its limit.
        self.run(&leaver, &["systemctl", "start", "pacemaker"])?;
        let report = self.judge(clients, start_ns)?.report;
        let gap = report.longest_gap_by_endpoint.get(&stays);
        samples.add(STOP_GAP, gap.map(|gap| gap.length_ms));
        let slowest = report.slowest_by_endpoint.get(&stays);
        samples.add(STOP_SLOWEST, slowest.map(|slowest| slowest.waited_ms));
        let failed = report.writes_by_endpoint.get(&stays).map(Counts::unanswered);
        samples.add(STOP_FAILED, failed.and_then(|count| Some(u32::try_from(count).ok()?.into())));
        self.wait_whole()
    }

    /// What a plain copy of the database to the other node takes, down to its disk: no join can be faster.
    pub(super) fn copy(&self, samples: &mut Samples) -> anyhow::Result<()> {
        let to = self.lab.config().nodes[1].link1;
        let receive = format!(
            "use IO::Socket::INET; use IO::Handle; $l = IO::Socket::INET->new(LocalAddr => '{to}', \
             LocalPort => {COPY_PORT}, Listen => 1, ReuseAddr => 1) or die; $s = $l->accept; \
             open($f, '>', '/var/lib/etcd/copy'); print $f $b while sysread($s, $b, 1 << 20); \
             $f->flush; $f->sync; unlink('/var/lib/etcd/copy')"
        );
        let send = format!(
            "use IO::Socket::INET; for (1 .. 100) {{ last if $s = IO::Socket::INET->new(PeerAddr => \
             '{to}', PeerPort => {COPY_PORT}); select(undef, undef, undef, 0.05) }} open($f, '<', \
             '/var/lib/etcd/member/snap/db'); syswrite($s, $b) while sysread($f, $b, 1 << 20)"
        );
        let words: Vec<OsString> = ["perl", "-e", &receive].map(OsString::from).to_vec();
        let target = ExecTarget::Node(self.name(1).to_owned());
        let mut command = self.lab.exec_command(&target, &words).map_err(failure)?;
        let start = now_ns();
        let mut receiver = command.stdin(Stdio::null()).spawn().context("starting the receiver")?;
        self.run(self.name(0), &["perl", "-e", &send])?;
        let received = || match receiver.try_wait() {
            Ok(Some(status)) if status.success() => None,
            other => Some(format!("the receiver: {other:?}")),
        };
        let what = "the copy to be on the disk";
        self.lab.wait_until(what, super::pair::COMMAND, received).map_err(failure)?;
        let ms = Duration::from_nanos(now_ns() - start).as_secs_f64() * 1e3;
        samples.add(COPY, Some(ms));
        Ok(())
    }
}

/// The steps that Dyad tells of; a rival has none of them.
fn own_steps(timeline: &Timeline, first_ms: f64, samples: &mut Samples) {
    let steps = || timeline.entries.iter();
    let proven = |step: &&Entry| step.phase == Phase::TakeOver && step.text.starts_with("proven: ");
    samples.add(PROOF_TO_WRITE, steps().find(proven).map(|step| first_ms - step.ms));
    samples.add(VOTE, vote_ms(timeline));
    let decided =
        |step: &&Entry, action: &str| step.phase == Phase::Decision && step.text.contains(action);
    let added = steps().find(|step| decided(step, "addPeerAsLearner"));
    let barrier = steps().rev().find(|step| decided(step, "barrier"));
    samples.add(JOIN, added.zip(barrier).map(|(added, barrier)| barrier.ms - added.ms));
}

/// How long the stand-in vote took, as the agent says: `done in 22.3 ms; …`.
fn vote_ms(timeline: &Timeline) -> Option<f64> {
    let steps = timeline.entries.iter().filter(|step| step.phase == Phase::TakeOver);
    steps
        .filter_map(|step| step.text.strip_prefix("done in "))
        .find_map(|rest| rest.split_whitespace().next()?.parse().ok())
}
