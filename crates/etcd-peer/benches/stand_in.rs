//! How long a take-over lasts, from the proof of death to the first accepted write and to the removal, with a
//! peer that really lost its power; and how long a restart with `--force-new-cluster` takes instead.
//!
//! Not a test: it prints medians and spread and asserts nothing but that no acknowledged write is lost.
//! `DYAD_BENCH_ROUNDS` (5) and `DYAD_BENCH_MB` (1; several, separated by commas) change what is run.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use etcd_fixture::{
    Options, Release, is_own_network, own_network_command, set_up_switch, wait_for,
};
use etcd_peer::client::{Client, Deadline};
use etcd_peer::stand_in::Step;
use support::{Lost, Pair, Writers, at, client_of, soon};

/// What the survivor is when the proof comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Leads,
    Follows,
    Leaderless,
    ForceNewCluster,
}

impl Case {
    const ALL: [Self; 4] = [Self::Leads, Self::Follows, Self::Leaderless, Self::ForceNewCluster];

    fn name(self) -> &'static str {
        match self {
            Self::Leads => "stand-in, survivor leads",
            Self::Follows => "stand-in, survivor follows the dead",
            Self::Leaderless => "stand-in, survivor without leader",
            Self::ForceNewCluster => "restart with --force-new-cluster",
        }
    }
}

/// One take-over.
struct Sample {
    first_write: Duration,
    /// Nothing is removed by a restart.
    removed: Option<Duration>,
    slowest: Duration,
}

fn main() -> anyhow::Result<()> {
    if !is_own_network() {
        // cargo's own flags for benchmarks mean nothing here.
        let status = own_network_command(&std::env::current_exe()?).status()?;
        anyhow::ensure!(status.success(), "the benchmark failed");
        return Ok(());
    }
    set_up_switch()?;
    let rounds = setting("DYAD_BENCH_ROUNDS", "5").parse().context("DYAD_BENCH_ROUNDS")?;
    let sizes = setting("DYAD_BENCH_MB", "1");
    println!("| etcd | database | take-over | first write ms | removed ms | slowest request ms |");
    println!("|---|---|---|---|---|---|");
    for size in sizes.split(',') {
        let megabytes = size.trim().parse().context("DYAD_BENCH_MB")?;
        for release in Release::ALL {
            measure(release, megabytes, rounds)?;
        }
    }
    Ok(())
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn measure(release: Release, megabytes: u64, rounds: usize) -> anyhow::Result<()> {
    let mut options = Options::new(release).machines().argument("--quota-backend-bytes=8589934592");
    (options.heartbeat_ms, options.election_ms) = (100, 1000);
    let mut pair = Pair::start(options, Lost::Leader);
    fill(&pair, megabytes)?;
    for place in [0, 1] {
        pair.cluster.members[place].stop()?;
    }
    let kept = keep(&pair)?;
    let mut medians = Vec::new();
    for case in Case::ALL {
        let samples: Vec<Sample> = (0..rounds)
            .map(|_| {
                restore(&mut pair, &kept)?;
                one(&mut pair, case)
            })
            .collect::<anyhow::Result<_>>()?;
        let column = |pick: fn(&Sample) -> Duration| spread(samples.iter().map(pick).collect());
        println!(
            "| {release} | {megabytes} MB | {} | {} | {} | {} |",
            case.name(),
            column(|sample| sample.first_write),
            spread(samples.iter().filter_map(|sample| sample.removed).collect()),
            column(|sample| sample.slowest),
        );
        medians.push(median(samples.iter().map(|sample| sample.first_write).collect()));
    }
    let ratio = medians[3].as_secs_f64() / medians[2].as_secs_f64();
    println!("| {release} | {megabytes} MB | ratio, without leader | {ratio:.0} x | | |");
    Ok(())
}

/// Keys of 1 kB, a hundred to a transaction.
fn fill(pair: &Pair, megabytes: u64) -> anyhow::Result<()> {
    let mut gateway = pair.cluster.members[0].gateway()?;
    let value = vec![b'v'; 1000];
    for batch in 0..megabytes * 10 {
        let keys: Vec<_> = (0..100).map(|n| format!("fill/{batch:07}/{n:02}")).collect();
        gateway.put_all(keys.iter().map(|key| (key.as_str(), &value[..])))?;
    }
    Ok(())
}

/// A copy of both data directories, to begin each round from.
fn keep(pair: &Pair) -> anyhow::Result<PathBuf> {
    let kept = pair.cluster.directory().join("kept");
    std::fs::create_dir(&kept)?;
    for member in &pair.cluster.members {
        copy(member.data_dir(), &kept.join(member.name()))?;
    }
    Ok(kept)
}

fn restore(pair: &mut Pair, kept: &Path) -> anyhow::Result<()> {
    for member in &mut pair.cluster.members {
        member.kill()?;
        member.plug_cable()?;
        if member.data_dir().exists() {
            std::fs::remove_dir_all(member.data_dir())?;
        }
        copy(&kept.join(member.name()), member.data_dir())?;
        member.start()?;
    }
    for member in &mut pair.cluster.members {
        member.wait_ready()?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to).status()?;
    anyhow::ensure!(status.success(), "copying {}", from.display());
    Ok(())
}

fn one(pair: &mut Pair, case: Case) -> anyhow::Result<Sample> {
    let (dead, survivor) = (pair.dead, pair.survivor);
    let leader = if case == Case::Leads { survivor } else { dead };
    lead(pair, leader)?;
    let writers = Writers::start(4, Duration::from_secs(15), || pair.client());
    support::wait_written(&pair.client(), 50);
    pair.cluster.members[dead].lose_power()?;
    if matches!(case, Case::Leaderless | Case::ForceNewCluster) {
        pair.wait_leaderless();
    }
    let proof = Instant::now();
    let probe = Probe::start(pair, proof);
    let removed = if case == Case::ForceNewCluster {
        pair.cluster.members[survivor].stop()?;
        pair.cluster.members[survivor].start_with(&["--force-new-cluster"])?;
        None
    } else {
        let report = pair.take_over()?;
        let ms = at(&report, |step| *step == Step::Removed).context("not removed")?;
        Some(Duration::from_secs_f64(ms / 1000.0))
    };
    let first_write = probe.first()?;
    if case == Case::ForceNewCluster {
        pair.cluster.members[survivor].wait_ready()?;
    }
    let written = writers.stop();
    if case != Case::ForceNewCluster {
        written.assert_all_there(&pair.client());
        pair.assert_alone();
    }
    Ok(Sample { first_write, removed, slowest: written.slowest })
}

fn lead(pair: &mut Pair, wanted: usize) -> anyhow::Result<()> {
    let leader = pair.cluster.leader()?;
    if leader != wanted {
        let id = client_of(&pair.cluster, wanted).status(soon())?.member;
        client_of(&pair.cluster, leader).move_leader(id, soon())?;
        wait_for("the wanted leader", || (pair.cluster.leader().ok()? == wanted).then_some(()))?;
    }
    Ok(())
}

/// New clients, one every two milliseconds: whichever is answered first. (A request that a survivor forwards
/// to the dead leader hangs for 7 s; those that come after the election do not.)
struct Probe {
    answers: mpsc::Receiver<Duration>,
}

impl Probe {
    fn start(pair: &Pair, proof: Instant) -> Self {
        let (sender, answers) = mpsc::channel();
        let url = pair.cluster.members[pair.survivor].client_url();
        std::thread::spawn(move || {
            // At most half a minute; dropped receivers end it sooner.
            for number in 0_u32..15_000 {
                let (answer, url) = (sender.clone(), url.clone());
                std::thread::spawn(move || {
                    let client = Client::new(&url, None).ok()?;
                    let key = format!("probe/{number}");
                    let deadline = Deadline::after(Duration::from_secs(2));
                    client.put(key.as_bytes(), b"1", deadline).ok()?;
                    answer.send(proof.elapsed()).ok()
                });
                let due = proof + Duration::from_millis(2) * number;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if proof.elapsed() > Duration::from_millis(200) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                if sender.send(Duration::MAX).is_err() {
                    return;
                }
            }
        });
        Self { answers }
    }

    fn first(self) -> anyhow::Result<Duration> {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left).context("no write was accepted")? {
                // A sign that the prober still runs.
                Duration::MAX => {}
                answer => return Ok(answer),
            }
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    if times.is_empty() {
        return "-".to_owned();
    }
    let ms = |time: &Duration| format!("{:.0}", time.as_secs_f64() * 1000.0);
    format!(
        "{} ({} to {})",
        ms(&times[times.len() / 2]),
        ms(&times[0]),
        ms(&times[times.len() - 1])
    )
}
