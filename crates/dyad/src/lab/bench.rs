//! `dyad lab bench`: how long things take, on a pair of its own, with medians and spread.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use dyad_judge::clock::now_ns;
use dyad_judge::load::Report;
use dyad_judge::verdict::Answer;
use dyad_judge::{history, load, verdict};
use dyad_lab::config::{PairStack, Stack, reserved};
use dyad_lab::progress::{Progress as _, ToStderr};
use dyad_lab::protocol::PowerAction;
use dyad_lab::timeline::{Entry, Phase, Timeline};
use dyad_lab::{ExecTarget, Lab, LabConfig, Lifetime, Supervision};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use super::BenchArgs;
use super::run::{failure, package};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

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

/// One measured quantity.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    what: &'static str,
    rounds: usize,
    median: f64,
    min: f64,
    max: f64,
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bench {
    token_ms: u32,
    database_mb: u32,
    rounds: u32,
    processors: usize,
    kernel: String,
    release: &'static str,
    optimised: bool,
    measured: Vec<Measured>,
}

/// Samples by name.
type Samples = BTreeMap<&'static str, Vec<f64>>;

/// A pair that is measured.
struct Pair<'a> {
    lab: Lab,
    program: PathBuf,
    directory: &'a Path,
}

/// Measures, and prints.
pub(super) fn run(arguments: &BenchArgs, format: Format) -> anyhow::Result<Exit> {
    let progress = ToStderr::default();
    let package = package(None)?;
    let own = std::env::current_exe().context("finding this program's own file")?;
    let mut config = LabConfig::named(&format!("bench-{}", std::process::id()));
    config.token_ms = arguments.token_ms;
    // The data, its log, a snapshot on its way, a copy aside, and a new one.
    config.etcd_disk_mib = config.etcd_disk_mib.max(arguments.database_mb * 6);
    config.stack = Stack::Pair(PairStack { package, tls: false, by_hand: false, podman: false });
    let supervision =
        Supervision { command: vec![own.clone().into(), "lab".into(), "supervise".into()] };
    let lab = Lab::up(&config, &supervision, Lifetime::OfCaller, &progress).map_err(failure)?;
    let directory = std::env::temp_dir().join(format!("dyad-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).context("making a directory for the histories")?;
    let pair = Pair { lab, program: own, directory: &directory };
    let mut samples = Samples::new();
    let measured = (|| {
        if arguments.database_mb > 0 {
            progress.step(&format!("filling the database with {} MB", arguments.database_mb));
            pair.fill(arguments.database_mb)?;
        }
        for round in 0..arguments.rounds {
            progress.step(&format!("round {} of {}", round + 1, arguments.rounds));
            for (victim, leader) in [(0, 0), (1, 0), (1, 1), (0, 1)] {
                pair.node_lost(victim, leader, &mut samples)?;
            }
            for (leaver, leader) in [(0, 0), (1, 0)] {
                pair.planned_stop(leaver, leader, &mut samples)?;
            }
            pair.monitors(&mut samples)?;
            pair.copy(&mut samples)?;
        }
        Ok::<(), anyhow::Error>(())
    })();
    drop(pair);
    let _ = std::fs::remove_dir_all(&directory);
    measured?;
    print(&bench(arguments, &config, samples), format)
}

impl Pair<'_> {
    fn name(&self, position: usize) -> &str {
        &self.lab.config().nodes[position].name
    }

    fn run(&self, node: &str, command: &[&str]) -> anyhow::Result<String> {
        let finished = self.lab.exec(node, command, COMMAND).map_err(failure)?;
        anyhow::ensure!(finished.success(), "{command:?} on {node}: {}", finished.stderr);
        Ok(finished.stdout)
    }

    fn wait_whole(&self) -> anyhow::Result<()> {
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
    fn judge(&self, mut child: Child, path: &Path, since_ns: u64) -> anyhow::Result<Report> {
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM)?;
        let ended = || match child.try_wait() {
            Ok(Some(_)) => None,
            _ => Some("they still run".to_owned()),
        };
        self.lab.wait_until("the clients to end", 2 * COMMAND, ended).map_err(failure)?;
        let history = history::read(path)?;
        let verdict = verdict::judge(&history, dyad_judge::linearizable::Limits::default());
        if verdict.answer != Answer::Good {
            return Err(Failure::new(Exit::No, verdict.render()).into());
        }
        Ok(load::report(&history, Some(since_ns)))
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
            let done = timeline.as_ref().is_some_and(|timeline| vote_ms(timeline).is_some());
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
            let script = format!(
                "export OCF_RESKEY_CRM_meta_on_node={name} OCF_RESKEY_CRM_meta_interval=5000\n\
                 for i in $(seq {MONITORS}); do /usr/libexec/dyad/dyad-node ocf monitor; \
                 [ $? = 8 ] || exit 1; done\ntimes"
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

fn bench(arguments: &BenchArgs, config: &LabConfig, mut samples: Samples) -> Bench {
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

fn print(bench: &Bench, format: Format) -> anyhow::Result<Exit> {
    if format == Format::Json {
        output::print_json("LabBench", bench)?;
        return Ok(Exit::Ok);
    }
    let build = if bench.optimised { "optimised" } else { "DEBUG BUILD" };
    let mut text = format!(
        "token {} ms, database {} MB, {} processors, Linux {}, Debian {}, {build}\n\n{:<48} {:>4} {:>8} {:>8} {:>8}\n",
        bench.token_ms,
        bench.database_mb,
        bench.processors,
        bench.kernel,
        bench.release,
        "WHAT",
        "N",
        "MEDIAN",
        "MIN",
        "MAX"
    );
    for each in &bench.measured {
        let Measured { what, rounds, median, min, max } = each;
        writeln!(text, "{what:<48} {rounds:>4} {median:>8.1} {min:>8.1} {max:>8.1}")?;
    }
    output::print_data(&text)?;
    Ok(Exit::Ok)
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
