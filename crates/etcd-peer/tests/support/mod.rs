//! Shared by the tests of the stand-in: a pair, its writers, its losses.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dyad_core::ids::{ClusterId, MemberId};
use etcd_fixture::{Cluster, Options, wait_for};
use etcd_peer::client::{Client, Consistency, Deadline, Outcome, Range};
use etcd_peer::stand_in::{Error, Limits, Report, StandIn, Step, Survivor};
use etcd_peer::{Identity, Tls};

/// The patience of a client that is not asked about its slowest request.
pub const SHORT: Duration = Duration::from_secs(3);

/// A generous deadline.
pub fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

/// Which of the two is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    Leader,
    Follower,
}

/// A pair of voters and who is who in it.
pub struct Pair {
    pub cluster: Cluster,
    pub dead: usize,
    pub survivor: usize,
    pub target: Survivor,
}

/// The TLS settings of one member, if it has any.
pub fn tls_of(cluster: &Cluster, place: usize) -> Option<Tls> {
    cluster.members[place].tls().map(|files| Tls {
        ca_file: files.ca.clone(),
        identity: Some(Identity {
            certificate_file: files.certificate.clone(),
            key_file: files.key.clone(),
        }),
    })
}

/// A client of one member.
pub fn client_of(cluster: &Cluster, place: usize) -> Client {
    let tls = tls_of(cluster, place);
    Client::new(&cluster.members[place].client_url(), tls.as_ref()).unwrap()
}

impl Pair {
    pub fn start(options: Options, lost: Lost) -> Self {
        let mut cluster = Cluster::start(2, options).unwrap();
        let leader = cluster.leader().unwrap();
        let (dead, survivor) = match lost {
            Lost::Leader => (leader, 1 - leader),
            Lost::Follower => (1 - leader, leader),
        };
        let status = |place: usize| cluster.members[place].status().unwrap();
        let target = Survivor {
            cluster: ClusterId(status(survivor).cluster_id),
            survivor: MemberId(status(survivor).member_id),
            dead: MemberId(status(dead).member_id),
            peer_url: cluster.members[survivor].peer_url(),
            tls: tls_of(&cluster, survivor),
        };
        Self { cluster, dead, survivor, target }
    }

    pub fn lock(&self) -> PathBuf {
        self.cluster.directory().join("stand-in.lock")
    }

    pub fn client(&self) -> Client {
        client_of(&self.cluster, self.survivor)
    }

    pub fn stand_in(&self, total: Duration) -> StandIn {
        StandIn::new(self.target.clone(), self.lock(), Limits { total })
    }

    /// Casts the vote, on the survivor's own machine if it has one.
    pub fn take_over(&self) -> Result<Report, Error> {
        let stand_in = self.stand_in(Duration::from_secs(20)).client(self.client());
        let machine = self.cluster.members[self.survivor].namespace();
        let voting = std::thread::spawn(move || {
            if let Some(machine) = machine {
                let machine = std::fs::File::open(machine).unwrap();
                let network = Some(rustix::thread::LinkNameSpaceType::Network);
                rustix::thread::move_into_link_name_space(machine.as_fd(), network).unwrap();
            }
            stand_in.run(&mut |_| {})
        });
        voting.join().unwrap()
    }

    /// The survivor serves alone and knows nobody else.
    pub fn assert_alone(&self) {
        let client = self.client();
        client.put(b"alone", b"1", soon()).unwrap();
        let members = client.members_linearizable(soon()).unwrap();
        let ids: Vec<_> = members.members.iter().map(|member| member.id).collect();
        assert_eq!(ids, [self.target.survivor]);
    }

    pub fn wait_leaderless(&self) {
        let client = self.client();
        wait_for("the survivor to have no leader", || {
            client.status(soon()).ok().filter(|status| status.leader.is_none())
        })
        .unwrap();
    }
}

/// When a step happened, in milliseconds since the stand-in began.
pub fn at(report: &Report, wanted: impl Fn(&Step) -> bool) -> Option<f64> {
    report.steps.iter().find(|timed| wanted(&timed.step)).map(|timed| timed.ms)
}

/// The steps with their times, in one line.
pub fn steps(report: &Report) -> String {
    let steps: Vec<_> =
        report.steps.iter().map(|timed| format!("{} ms {:?}", timed.ms, timed.step)).collect();
    steps.join(", ")
}

/// Clients that write to the survivor without a pause.
pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Written>>,
}

/// What one writer saw.
#[derive(Default)]
pub struct Written {
    /// Keys whose write was acknowledged, and when.
    pub acknowledged: Vec<(String, Instant)>,
    /// The slowest write, acknowledged or not.
    pub slowest: Duration,
    /// Writes that failed and may or may not be there.
    pub unknown: usize,
    /// Writes that nobody took.
    pub refused: usize,
}

impl Writers {
    /// `patience` is how long one write may take. A write that was forwarded to the dead leader is lost, and
    /// etcd tells after 7 s only.
    pub fn start(count: usize, patience: Duration, client: impl Fn() -> Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..count)
            .map(|writer| {
                let (stop, client) = (Arc::clone(&stop), client());
                std::thread::spawn(move || write(writer, patience, &client, &stop))
            })
            .collect();
        Self { stop, threads }
    }

    /// Ends them and says what they wrote.
    pub fn stop(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Written::default();
        for thread in self.threads {
            let one = thread.join().unwrap();
            all.acknowledged.extend(one.acknowledged);
            all.slowest = all.slowest.max(one.slowest);
            all.unknown += one.unknown;
            all.refused += one.refused;
        }
        all
    }
}

fn write(writer: usize, patience: Duration, client: &Client, stop: &AtomicBool) -> Written {
    let mut written = Written::default();
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        let key = format!("w{writer}/{number}");
        number += 1;
        let began = Instant::now();
        let outcome = client.put(key.as_bytes(), key.as_bytes(), Deadline::after(patience));
        written.slowest = written.slowest.max(began.elapsed());
        match outcome {
            Ok(_) => written.acknowledged.push((key, Instant::now())),
            Err(error) if error.outcome() == Outcome::Unknown => written.unknown += 1,
            Err(_) => {
                written.refused += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    written
}

impl Written {
    /// P2: every acknowledged write is there; and the survivor's client port never closed.
    pub fn assert_all_there(&self, client: &Client) {
        let range = client.range(&Range::prefix("w"), soon()).unwrap();
        let there: std::collections::BTreeSet<_> = range.kvs.into_iter().map(|kv| kv.key).collect();
        let lost: Vec<_> =
            self.acknowledged.iter().filter(|(key, _)| !there.contains(key.as_bytes())).collect();
        assert!(lost.is_empty(), "{} acknowledged writes lost: {lost:?}", lost.len());
        assert!(!self.acknowledged.is_empty());
        assert_eq!(self.refused, 0, "the survivor did not serve all the time");
    }

    /// How long after this moment the first write was acknowledged.
    pub fn first_after(&self, moment: Instant) -> Option<Duration> {
        self.acknowledged.iter().filter_map(|(_, at)| at.checked_duration_since(moment)).min()
    }
}

/// Waits until so many writes more have been acknowledged, by looking at the survivor.
pub fn wait_written(client: &Client, count: u64) {
    let counting =
        Range { count_only: true, consistency: Consistency::Serializable, ..Range::prefix("w") };
    let before = client.range(&counting, soon()).unwrap().count;
    wait_for("writes to be made", || {
        (client.range(&counting, soon()).unwrap().count >= before + count).then_some(())
    })
    .unwrap();
}
