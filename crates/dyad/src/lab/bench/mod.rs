//! `dyad lab bench`: how long things take, on a pair of its own, with medians and spread.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use dyad_judge::clock::now_ns;
use dyad_judge::load::Report;
use dyad_judge::verdict::{Answer, Verdict};
use dyad_judge::{history, load, verdict};
use dyad_lab::config::{Link, PairStack, Stack, reserved};
use dyad_lab::progress::{Progress as _, ToStderr};
use dyad_lab::protocol::{PowerAction, Request};
use dyad_lab::timeline::{Entry, Phase, Timeline};
use dyad_lab::{ExecTarget, Lab, LabConfig, Lifetime, Supervision};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

mod rival;
mod table;

use super::BenchArgs;
use super::run::{failure, package};
use crate::exit::{Exit, Failure};
use crate::output::Format;
use rival::Kind;
use table::{Bench, Measured};

/// How long a lost node may take to be a replica again.
const RECOVERY: Duration = Duration::from_mins(4);
/// How long one command in a node may take.
const COMMAND: Duration = Duration::from_mins(1);
/// Where the copy is received that joins are compared with.
const COPY_PORT: u16 = 9999;
/// How many monitors are measured at once.
const MONITORS: u32 = 40;

/// The names of what is measured, in the order of the table.
const FAULT_TO_WRITE: &str = "node lost -> first write (ms)";
const FENCED_TO_WRITE: &str = "fencing done -> first write (ms)";
const PROOF_TO_WRITE: &str = "proof in hand -> first write (ms)";
const VOTE: &str = "stand-in vote, start to end (ms)";
const SLOWEST: &str = "node lost: slowest request of who stays (ms)";
const JOIN: &str = "learner added -> barrier passed (ms)";
const COPY: &str = "the same bytes copied by the same link (ms)";
const REJOIN: &str = "power on -> both vote and are promoted (ms)";
const STOP_GAP: &str = "planned stop: longest time without a write (ms)";
const STOP_SLOWEST: &str = "planned stop: slowest write of who stays (ms)";
const MONITOR: &str = "monitor of a healthy voter, CPU (ms)";
const CUT_TO_WRITE: &str = "both links cut -> first write (ms)";
const ONE_WAY_TO_WRITE: &str = "links cut one way -> first write (ms)";
const CUT_LOST: &str = "both links cut: acknowledged writes lost";
const ONE_WAY_LOST: &str = "links cut one way: acknowledged writes lost";

/// Samples by name.
type Samples = BTreeMap<&'static str, Vec<f64>>;

/// A pair that is measured.
struct Pair<'a> {
    lab: Lab,
    kind: Kind,
    program: PathBuf,
    directory: &'a Path,
}

/// Measures, and prints.
pub(super) fn run(arguments: &BenchArgs, format: Format) -> anyhow::Result<Exit> {
    let mut kinds = vec![Kind::Dyad];
    if arguments.compare {
        kinds.push(Kind::ForceNewCluster);
    }
    let results = kinds
        .into_iter()
        .map(|kind| measure(arguments, kind))
        .collect::<anyhow::Result<Vec<Bench>>>()?;
    table::print(&results, format)
}

/// One pair of one kind, from its start to its end.
fn measure(arguments: &BenchArgs, kind: Kind) -> anyhow::Result<Bench> {
    let progress = ToStderr::default();
    let own = std::env::current_exe().context("finding this program's own file")?;
    let mut config = LabConfig::named(&format!("bench-{}", std::process::id()));
    config.token_ms = arguments.token_ms;
    // The data, its log, a snapshot on its way, a copy aside, and a new one.
    config.etcd_disk_mib = config.etcd_disk_mib.max(arguments.database_mb * 6);
    config = match kind {
        Kind::Dyad => {
            let package = package(None)?;
            let stack = PairStack { package, tls: false, by_hand: false, podman: false };
            LabConfig { stack: Stack::Pair(stack), ..config }
        }
        Kind::ForceNewCluster => rival::config(config),
    };
    let supervision =
        Supervision { command: vec![own.clone().into(), "lab".into(), "supervise".into()] };
    progress.step(&format!("measuring {}", kind.name()));
    let lab = Lab::up(&config, &supervision, Lifetime::OfCaller, &progress).map_err(failure)?;
    let directory = std::env::temp_dir().join(format!("dyad-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).context("making a directory for the histories")?;
    let pair = Pair { lab, kind, program: own, directory: &directory };
    let mut samples = Samples::new();
    let measured = pair.rounds(arguments, &progress, &mut samples);
    drop(pair);
    let _ = std::fs::remove_dir_all(&directory);
    measured?;
    Ok(bench(arguments, kind, &config, samples))
}

impl Pair<'_> {
    fn rounds(
        &self,
        arguments: &BenchArgs,
        progress: &ToStderr,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        if self.kind == Kind::ForceNewCluster {
            rival::install(&self.lab)?;
        }
        self.wait_whole()?;
        if arguments.database_mb > 0 {
            progress.step(&format!("filling the database with {} MB", arguments.database_mb));
            self.fill(arguments.database_mb)?;
        }
        for round in 0..arguments.rounds {
            progress.step(&format!("round {} of {}", round + 1, arguments.rounds));
            for (victim, leader) in [(0, 0), (1, 0), (1, 1), (0, 1)] {
                self.node_lost(victim, leader, samples)?;
            }
            if arguments.compare {
                self.cut(None, (CUT_TO_WRITE, CUT_LOST), samples)?;
                self.cut(Some(0), (ONE_WAY_TO_WRITE, ONE_WAY_LOST), samples)?;
                self.cut(Some(1), (ONE_WAY_TO_WRITE, ONE_WAY_LOST), samples)?;
            }
            if self.kind == Kind::Dyad {
                for (leaver, leader) in [(0, 0), (1, 0)] {
                    self.planned_stop(leaver, leader, samples)?;
                }
                self.copy(samples)?;
            }
            self.monitors(samples)?;
        }
        Ok(())
    }

    fn name(&self, position: usize) -> &str {
        &self.lab.config().nodes[position].name
    }

    fn run(&self, node: &str, command: &[&str]) -> anyhow::Result<String> {
        let finished = self.lab.exec(node, command, COMMAND).map_err(failure)?;
        anyhow::ensure!(finished.success(), "{command:?} on {node}: {}", finished.stderr);
        Ok(finished.stdout)
    }

    fn wait_whole(&self) -> anyhow::Result<()> {
        if self.kind == Kind::ForceNewCluster {
            return self.wait_rival_whole();
        }
        let nodes = &self.lab.config().nodes;
        let missing = || nodes.iter().find_map(|node| self.lab.missing_of_pair(&node.name));
        self.lab.wait_until("the pair to be whole", RECOVERY, missing).map_err(failure)
    }

    /// Makes a node's etcd the leader.
    fn lead(&self, position: usize) -> anyhow::Result<()> {
        let url = |position: usize| {
            format!("--endpoints=http://{}:2379", self.lab.config().nodes[position].link1)
        };
        let name = self.name(position);
        let status = |position| -> anyhow::Result<serde_json::Value> {
            let own = url(position);
            let words = ["etcdctl", &own, "endpoint", "status", "--write-out=json"];
            Ok(serde_json::from_str::<serde_json::Value>(&self.run(name, &words)?)?[0]["Status"]
                .take())
        };
        let wanted = status(position)?["header"]["member_id"].as_u64().unwrap_or_default();
        if status(position)?["leader"].as_u64() != Some(wanted) {
            self.run(
                name,
                &["etcdctl", &url(1 - position), "move-leader", &format!("{wanted:x}")],
            )?;
        }
        Ok(())
    }

    fn clients(&self) -> anyhow::Result<(Child, PathBuf)> {
        let path = self.directory.join(format!("{}.jsonl", now_ns()));
        let mut words: Vec<OsString> = vec![self.program.clone().into()];
        words.extend(["lab", "load", "--clients", "32", "--rate", "300"].map(OsString::from));
        for position in 0..2 {
            let address = reserved::node_for_clients(position);
            let endpoint = format!("{}=http://{address}:2379", self.name(position));
            words.extend(["--endpoint".into(), endpoint.into()]);
        }
        words.push(path.clone().into());
        let mut command = self.lab.exec_command(&ExecTarget::Client, &words).map_err(failure)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("starting the clients")?;
        let begun = || {
            let written = std::fs::metadata(&path).map_or(0, |file| file.len());
            (written < 50_000).then(|| "they have not begun".to_owned())
        };
        self.lab.wait_until("the clients to write", COMMAND, begun).map_err(failure)?;
        Ok((child, path))
    }

    /// Fills the database with keys of a thousand bytes.
    fn fill(&self, mb: u32) -> anyhow::Result<()> {
        let address = reserved::node_for_clients(0);
        let mut words: Vec<OsString> = vec![self.program.clone().into()];
        words.extend(["lab", "fill", "--endpoint"].map(OsString::from));
        words.push(format!("http://{address}:2379").into());
        words.extend(["--keys".into(), (u64::from(mb) * 1000).to_string().into()]);
        let mut command = self.lab.exec_command(&ExecTarget::Client, &words).map_err(failure)?;
        command.stdin(Stdio::null());
        let status = command.status().context("filling the database")?;
        anyhow::ensure!(status.success(), "filling the database failed");
        Ok(())
    }

    /// What a plain copy of the database to the other node takes, down to its disk: no join can be faster.
    fn copy(&self, samples: &mut Samples) -> anyhow::Result<()> {
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
        self.lab.wait_until("the copy to be on the disk", COMMAND, received).map_err(failure)?;
        let ms = Duration::from_nanos(now_ns() - start).as_secs_f64() * 1e3;
        samples.entry(COPY).or_default().push(ms);
        Ok(())
    }

    /// Ends the clients; what they saw must be good, or no number counts.
    fn judge(&self, child: Child, path: &Path, since_ns: u64) -> anyhow::Result<Report> {
        let (report, verdict) = self.heard(child, path, since_ns)?;
        if verdict.answer != Answer::Good && self.kind == Kind::Dyad {
            return Err(Failure::new(Exit::No, verdict.render()).into());
        }
        Ok(report)
    }

    /// Ends the clients; what they saw, and whether it was good.
    fn heard(
        &self,
        mut child: Child,
        path: &Path,
        since_ns: u64,
    ) -> anyhow::Result<(Report, Verdict)> {
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM)?;
        let ended = || match child.try_wait() {
            Ok(Some(_)) => None,
            _ => Some("they still run".to_owned()),
        };
        self.lab.wait_until("the clients to end", 2 * COMMAND, ended).map_err(failure)?;
        let history = history::read(path)?;
        let verdict = verdict::judge(&history, dyad_judge::linearizable::Limits::default());
        Ok((load::report(&history, Some(since_ns)), verdict))
    }

    /// Cuts the links, both ways or what one node sends, until one node goes on alone.
    fn cut(
        &self,
        from: Option<usize>,
        (to_write, lost): (&'static str, &'static str),
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        self.wait_whole()?;
        let (child, path) = self.clients()?;
        let cut_ns = now_ns();
        let from = from.map(|position| self.name(position).to_owned());
        let request = Request::Cut { links: Link::ALL.to_vec(), from };
        self.lab.request(&request).map_err(failure)?;
        let mut survivor = None;
        let alone = || {
            survivor = (0..2).find(|position| self.voters(*position) == 1);
            survivor.is_none().then(|| "neither node goes on alone".to_owned())
        };
        self.lab.wait_until("a node to go on", RECOVERY, alone).map_err(failure)?;
        self.lab.heal().map_err(failure)?;
        self.wait_whole()?;
        let (report, verdict) = self.heard(child, &path, cut_ns)?;
        if self.kind == Kind::Dyad && verdict.answer != Answer::Good {
            return Err(Failure::new(Exit::No, verdict.render()).into());
        }
        let survivor = survivor.map(|position| self.name(position));
        let first = survivor.and_then(|name| report.first_write_after.get(name));
        samples.entry(to_write).or_default().extend(first.map(|write| write.after_ms));
        let findings = u32::try_from(verdict.lost.findings.len()).unwrap_or(u32::MAX);
        samples.entry(lost).or_default().push(f64::from(findings));
        Ok(())
    }

    fn node_lost(&self, victim: usize, leader: usize, samples: &mut Samples) -> anyhow::Result<()> {
        self.wait_whole()?;
        self.lead(leader)?;
        let survivor = self.name(1 - victim).to_owned();
        let (child, path) = self.clients()?;
        let fault_ns = now_ns();
        self.lab.power(self.name(victim), PowerAction::Off).map_err(failure)?;
        // Only what was sent after the cut shows that writes go on: what was under way may have been taken.
        let cut_ns = now_ns();
        let mut timeline = None;
        let taken_over = || {
            timeline = self.lab.timeline(false).ok();
            let done = match self.kind {
                Kind::Dyad => timeline.as_ref().is_some_and(|found| vote_ms(found).is_some()),
                Kind::ForceNewCluster => self.voters(1 - victim) == 1,
            };
            (!done).then(|| format!("{survivor} has not taken over"))
        };
        self.lab.wait_until("the take-over", RECOVERY, taken_over).map_err(failure)?;
        self.wait_whole()?;
        let report = self.judge(child, &path, cut_ns)?;
        let timeline = self.lab.timeline(false).map_err(failure)?;
        let first = report.first_write_after.get(&survivor).map(|write| write.after_ms);
        let first = first.with_context(|| format!("no write through {survivor}"))?
            + Duration::from_nanos(cut_ns - fault_ns).as_secs_f64() * 1e3;
        let mut add = |what, value: Option<f64>| samples.entry(what).or_default().extend(value);
        add(FAULT_TO_WRITE, Some(first));
        add(FENCED_TO_WRITE, timeline.first(Phase::FencingDone).map(|step| first - step.ms));
        let steps = || timeline.entries.iter();
        let proven =
            |step: &&Entry| step.phase == Phase::TakeOver && step.text.starts_with("proven: ");
        add(PROOF_TO_WRITE, steps().find(proven).map(|step| first - step.ms));
        add(VOTE, vote_ms(&timeline));
        let slowest = report.slowest_by_endpoint.get(&survivor);
        add(SLOWEST, slowest.map(|slowest| slowest.waited_ms));
        let decided = |step: &&Entry, action: &str| {
            step.phase == Phase::Decision && step.text.contains(action)
        };
        let added = steps().find(|step| decided(step, "addPeerAsLearner"));
        let barrier = steps().rev().find(|step| decided(step, "barrier"));
        add(JOIN, added.zip(barrier).map(|(added, barrier)| barrier.ms - added.ms));
        let on = timeline.first(Phase::PowerOn).map(|step| step.ms);
        let last = timeline.entries.iter().rev().find(|step| step.phase == Phase::Started);
        add(REJOIN, on.zip(last).map(|(on, last)| last.ms - on));
        Ok(())
    }

    fn planned_stop(
        &self,
        leaver: usize,
        leader: usize,
        samples: &mut Samples,
    ) -> anyhow::Result<()> {
        self.wait_whole()?;
        self.lead(leader)?;
        let (leaver, stays) = (self.name(leaver), self.name(1 - leaver));
        let (child, path) = self.clients()?;
        let start_ns = now_ns();
        self.run(leaver, &["systemctl", "stop", "pacemaker"])?;
        let report = self.judge(child, &path, start_ns)?;
        self.run(leaver, &["systemctl", "start", "pacemaker"])?;
        let gap = report.longest_gap_by_endpoint.get(stays).map(|gap| gap.length_ms);
        samples.entry(STOP_GAP).or_default().extend(gap);
        let slowest = report.slowest_by_endpoint.get(stays);
        samples.entry(STOP_SLOWEST).or_default().extend(slowest.map(|slowest| slowest.waited_ms));
        self.wait_whole()
    }

    /// The CPU time of a recurring monitor, children included, as the kernel counts it.
    fn monitors(&self, samples: &mut Samples) -> anyhow::Result<()> {
        for position in 0..2 {
            let name = self.name(position);
            let (agent, healthy) = match self.kind {
                Kind::Dyad => ("/usr/libexec/dyad/dyad-node ocf", 8),
                Kind::ForceNewCluster => ("/usr/lib/ocf/resource.d/bench/etcd", 0),
            };
            let script = format!(
                "export OCF_RESKEY_CRM_meta_on_node={name} OCF_RESKEY_CRM_meta_interval=5000\n\
                 for i in $(seq {MONITORS}); do {agent} monitor; [ $? = {healthy} ] || exit 1; done\ntimes"
            );
            let text = self.run(name, &["bash", "-c", &script])?;
            let last = text.lines().last().unwrap_or_default();
            let ms: f64 = last.split_whitespace().filter_map(seconds).sum::<f64>() * 1e3;
            samples.entry(MONITOR).or_default().push(ms / f64::from(MONITORS));
        }
        Ok(())
    }
}

/// `0m1.234s`, as the shell writes it.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, rest) = text.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + rest.strip_suffix('s')?.parse::<f64>().ok()?)
}

/// How long the stand-in vote took, as the agent says: `done in 22.3 ms; …`.
fn vote_ms(timeline: &Timeline) -> Option<f64> {
    let steps = timeline.entries.iter().filter(|step| step.phase == Phase::TakeOver);
    steps
        .filter_map(|step| step.text.strip_prefix("done in "))
        .find_map(|rest| rest.split_whitespace().next()?.parse().ok())
}

fn bench(arguments: &BenchArgs, kind: Kind, config: &LabConfig, mut samples: Samples) -> Bench {
    let order = [
        FAULT_TO_WRITE,
        FENCED_TO_WRITE,
        PROOF_TO_WRITE,
        VOTE,
        SLOWEST,
        REJOIN,
        JOIN,
        COPY,
        STOP_GAP,
        STOP_SLOWEST,
        CUT_TO_WRITE,
        ONE_WAY_TO_WRITE,
        CUT_LOST,
        ONE_WAY_LOST,
        MONITOR,
    ];
    let measured = order
        .into_iter()
        .filter_map(|what| {
            let mut values = samples.remove(what).filter(|values| !values.is_empty())?;
            values.sort_by(f64::total_cmp);
            let (min, max) = (values[0], values[values.len() - 1]);
            let median = values[values.len() / 2];
            Some(Measured { what, rounds: values.len(), median, min, max })
        })
        .collect();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Bench {
        what: kind.name(),
        token_ms: config.token_ms,
        database_mb: arguments.database_mb,
        rounds: arguments.rounds,
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        kernel: kernel.trim().to_owned(),
        release: config.release.name(),
        optimised: !cfg!(debug_assertions),
        measured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell's way to write times is understood, and nothing else.
    #[test]
    fn times_are_read() {
        assert_eq!(seconds("0m1.500s"), Some(1.5));
        assert_eq!(seconds("2m0.250s"), Some(120.25));
        assert_eq!(seconds("1.5"), None);
    }
}
