//! A cluster of members in one temporary directory.

use std::path::Path;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use crate::member::Member;
use crate::release::Release;
use crate::tls::Authority;
use crate::wait::{LIMIT, wait_for};

/// How the members of a cluster are started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whose binaries.
    pub release: Release,
    /// After how many entries etcd writes a snapshot. etcd's own default is 100,000.
    pub snapshot_count: u32,
    /// The leader's heartbeat.
    pub heartbeat_ms: u32,
    /// The election time-out; at least five heartbeats.
    pub election_ms: u32,
    /// The cluster's token: same names and URLs with another token are another cluster.
    pub token: String,
    /// Mutual TLS on both ports.
    pub tls: bool,
    /// Each member on a machine of its own, with a cable that can be pulled.
    pub machines: bool,
    /// Further flags of every start.
    pub arguments: Vec<String>,
}

impl Options {
    /// etcd's defaults, but for shorter raft times: a single member starts half a second sooner.
    pub fn new(release: Release) -> Self {
        Self {
            release,
            snapshot_count: 100_000,
            heartbeat_ms: 50,
            election_ms: 500,
            token: "fixture".into(),
            tls: false,
            machines: false,
            arguments: Vec::new(),
        }
    }

    /// The same with a snapshot after so many entries.
    #[must_use]
    pub fn snapshot_count(mut self, count: u32) -> Self {
        self.snapshot_count = count;
        self
    }

    /// The same with mutual TLS on both ports.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The same with each member on a machine of its own; in a test that runs
    /// [`in_own_network`](crate::in_own_network).
    #[must_use]
    pub fn machines(mut self) -> Self {
        self.machines = true;
        self
    }

    /// The same with one more flag.
    #[must_use]
    pub fn argument(mut self, flag: impl Into<String>) -> Self {
        self.arguments.push(flag.into());
        self
    }
}

/// Members that belong together. Members that were removed or killed keep their place in the list.
#[derive(Debug)]
pub struct Cluster {
    /// The members, first those of the start, then the later ones.
    pub members: Vec<Member>,
    options: Options,
    authority: Option<Authority>,
    // Dropped last: the members are dead by then.
    directory: TempDir,
}

impl Cluster {
    /// One member, ready.
    pub fn single(release: Release) -> anyhow::Result<Self> {
        Self::start(1, Options::new(release))
    }

    /// Two voters, both ready.
    pub fn pair(release: Release) -> anyhow::Result<Self> {
        Self::start(2, Options::new(release))
    }

    /// A new cluster of so many voters, all ready.
    pub fn start(count: usize, options: Options) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("etcd-fixture-").tempdir()?;
        let root = directory.path();
        let authority = options.tls.then(|| Authority::new(root)).transpose()?;
        let mut members = (0..count)
            .map(|number| Member::new(&format!("node{number}"), &options, root, authority.as_ref()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let initial = initial_cluster(&members);
        for member in &mut members {
            member.set_initial(initial.clone(), "new");
            member.start()?;
        }
        for member in &mut members {
            member.wait_ready()?;
        }
        Ok(Self { members, options, authority, directory })
    }

    /// The directory that holds everything; gone when the cluster is dropped.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A member that runs and is a voter: the one to ask for changes of the membership.
    fn voter(&mut self) -> anyhow::Result<&Member> {
        let found = self.members.iter_mut().position(|member| {
            member.is_running() && member.status().is_ok_and(|status| !status.learner)
        });
        found.map(|found| &self.members[found]).context("no voter is running")
    }

    /// The place of the leader.
    pub fn leader(&mut self) -> anyhow::Result<usize> {
        wait_for("a leader", || {
            self.members.iter_mut().position(|member| {
                member.is_running()
                    && member.status().is_ok_and(|status| status.leader == status.member_id)
            })
        })
    }

    /// Adds a learner, starts it and waits until it knows the leader. Returns its place.
    pub fn add_learner(&mut self) -> anyhow::Result<usize> {
        let place = self.add(true)?;
        self.members[place].start()?;
        self.members[place].wait_ready()?;
        Ok(place)
    }

    /// Adds a voter, starts it and waits until it knows the leader. Returns its place.
    pub fn add_voter(&mut self) -> anyhow::Result<usize> {
        let place = self.add(false)?;
        self.members[place].start()?;
        self.members[place].wait_ready()?;
        Ok(place)
    }

    /// Adds a member without starting it. Returns its place.
    pub fn add(&mut self, learner: bool) -> anyhow::Result<usize> {
        let place = self.members.len();
        let name = format!("node{place}");
        let (root, authority) = (self.directory.path(), self.authority.as_ref());
        let mut member = Member::new(&name, &self.options, root, authority)?;
        let url = format!("--peer-urls={}", member.peer_url());
        let mut command = vec!["member", "add", &name, &url];
        if learner {
            command.push("--learner");
        }
        // etcd refuses for a while after a change: "unhealthy cluster".
        let mut refusal = None;
        let listed = wait_for("etcd to accept a new member", || {
            let voter = self.voter().ok()?;
            match voter.ctl(&command) {
                Ok(_) => voter.member_list().ok(),
                // Added by a call that seemed to fail.
                Err(error) if error.to_string().contains("already exist") => {
                    voter.member_list().ok()
                }
                Err(error) => {
                    refusal = Some(error);
                    None
                }
            }
        });
        let listed = listed.map_err(|error| match refusal {
            Some(refusal) => refusal.context(error.to_string()),
            None => error,
        })?;
        let mut names: Vec<String> = listed
            .iter()
            .filter(|listed| !listed.name.is_empty())
            .flat_map(|listed| {
                listed.peer_urls.iter().map(move |url| format!("{}={url}", listed.name))
            })
            .collect();
        names.push(format!("{name}={}", member.peer_url()));
        member.set_initial(names.join(","), "existing");
        self.members.push(member);
        Ok(place)
    }

    /// The id of a member, by its peer URL in the member list; it need not have started.
    pub fn id_of(&mut self, place: usize) -> anyhow::Result<u64> {
        let url = self.members[place].peer_url();
        let listed = self.voter()?.member_list()?;
        let found = listed.iter().find(|member| member.peer_urls.contains(&url));
        found.map(|member| member.id).with_context(|| format!("{url} is not in the member list"))
    }

    /// Promotes a learner, as soon as etcd finds it caught up.
    pub fn promote(&mut self, place: usize) -> anyhow::Result<()> {
        let id = format!("{:x}", self.id_of(place)?);
        let promoted = wait_for("the learner to catch up", || {
            let voter = self.voter().ok()?;
            match voter.ctl_text(&["member", "promote", &id]) {
                Ok(_) => Some(Ok(())),
                Err(error) if is_passing(&error.to_string()) => None,
                Err(error) => Some(Err(error)),
            }
        })?;
        promoted.context("promoting a learner")
    }

    /// Removes a member through another one. A running one ends by itself afterwards.
    pub fn remove(&mut self, place: usize) -> anyhow::Result<()> {
        let id = format!("{:x}", self.id_of(place)?);
        let removed = wait_for("etcd to accept the removal", || {
            let other = self.other_voter(place)?;
            match other.ctl(&["member", "remove", &id]) {
                Ok(_) => Some(Ok(())),
                Err(error) if is_passing(&error.to_string()) => None,
                // Removed by a call that seemed to fail.
                Err(error) if error.to_string().contains("not found") => Some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        })?;
        removed.context("removing a member")
    }

    fn other_voter(&mut self, place: usize) -> Option<&Member> {
        let found = (0..self.members.len()).find(|&other| {
            let member = &mut self.members[other];
            other != place
                && member.is_running()
                && member.status().is_ok_and(|status| !status.learner)
        });
        found.map(|found| &self.members[found])
    }

    /// Waits until every running member has applied what the most advanced one has.
    pub fn wait_applied(&mut self) -> anyhow::Result<()> {
        ensure!(!self.members.is_empty(), "a cluster without members");
        wait_for("all members to have applied the same entries", || {
            let mut applied = Vec::new();
            for member in &mut self.members {
                if member.is_running() {
                    applied.push(member.status().ok()?.revision);
                }
            }
            applied.windows(2).all(|two| two[0] == two[1]).then_some(())
        })
        .with_context(|| format!("the limit of {} s", LIMIT.as_secs()))
    }
}

fn is_passing(message: &str) -> bool {
    // What etcd says while a learner catches up, or while it counts connections after a change.
    [
        "in sync with leader",
        "unhealthy cluster",
        "too many",
        "timed out",
        "no leader",
        "DeadlineExceeded",
    ]
    .iter()
    .any(|passing| message.contains(passing))
}

fn initial_cluster(members: &[Member]) -> String {
    let names: Vec<_> =
        members.iter().map(|member| format!("{}={}", member.name(), member.peer_url())).collect();
    names.join(",")
}
