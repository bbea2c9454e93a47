//! One etcd process and its directory.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::Options;
use crate::gateway::Gateway;
use crate::network::Machine;
use crate::release::Release;
use crate::slow::SlowDisk;
use crate::tls::{Authority, TlsFiles};
use crate::wait::wait_for;

/// One etcd member: its settings, its directory and, while it runs, its process.
#[derive(Debug)]
pub struct Member {
    name: String,
    release: Release,
    options: Options,
    data_dir: PathBuf,
    log: PathBuf,
    address: Ipv4Addr,
    client_port: u16,
    peer_port: u16,
    tls: Option<TlsFiles>,
    initial_cluster: String,
    initial_state: &'static str,
    process: Option<Child>,
    machine: Option<Machine>,
}

/// What `etcdctl endpoint status` says of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The cluster's id.
    pub cluster_id: u64,
    /// The member's own id.
    pub member_id: u64,
    /// The leader's id; 0 if there is none.
    pub leader: u64,
    /// The revision of the key space.
    pub revision: u64,
    /// The raft term.
    pub raft_term: u64,
    /// The last committed index that the member knows.
    pub raft_index: u64,
    /// The last applied index.
    pub applied_index: u64,
    /// The size of the database file.
    pub db_size_bytes: u64,
    /// Whether it is a learner.
    pub learner: bool,
}

/// One row of `etcdctl member list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedMember {
    /// Its id.
    #[serde(rename = "ID")]
    pub id: u64,
    /// Its name; empty until it has started.
    #[serde(default)]
    pub name: String,
    /// Where its peers reach it.
    #[serde(rename = "peerURLs", default)]
    pub peer_urls: Vec<String>,
    /// Whether it only listens.
    #[serde(rename = "isLearner", default)]
    pub learner: bool,
}

/// An address that no other member of this or another test process has, and two free ports on it.
fn pick_address() -> anyhow::Result<(Ipv4Addr, u16, u16)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let octet = |value: u32| u8::try_from(value % 254).map_or(1, |value| value + 1);
    let address = Ipv4Addr::new(127, octet(process / 254), octet(process), octet(number));
    let first = TcpListener::bind((address, 0)).context("looking for a free port")?;
    let second = TcpListener::bind((address, 0)).context("looking for a free port")?;
    Ok((address, first.local_addr()?.port(), second.local_addr()?.port()))
}

impl Member {
    pub(crate) fn new(
        name: &str,
        options: &Options,
        root: &Path,
        authority: Option<&Authority>,
    ) -> anyhow::Result<Self> {
        let machine = options.machines.then(Machine::new).transpose()?;
        let (address, client_port, peer_port) = match &machine {
            Some(machine) => (machine.address(), 2379, 2380),
            None => pick_address()?,
        };
        let tls = authority.map(|authority| authority.issue(root, name, address)).transpose()?;
        Ok(Self {
            name: name.to_owned(),
            release: options.release,
            options: options.clone(),
            data_dir: root.join(name),
            log: root.join(format!("{name}.log")),
            address,
            client_port,
            peer_port,
            tls,
            initial_cluster: String::new(),
            initial_state: "new",
            process: None,
            machine,
        })
    }

    pub(crate) fn set_initial(&mut self, cluster: String, state: &'static str) {
        self.initial_cluster = cluster;
        self.initial_state = state;
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its data directory; it exists once the member has been started.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// `host:port` for clients.
    pub fn client_host(&self) -> String {
        format!("{}:{}", self.address, self.client_port)
    }

    /// `host:port` for peers.
    pub fn peer_host(&self) -> String {
        format!("{}:{}", self.address, self.peer_port)
    }

    /// The URL that clients use.
    pub fn client_url(&self) -> String {
        format!("{}://{}", self.scheme(), self.client_host())
    }

    /// The URL that peers use.
    pub fn peer_url(&self) -> String {
        format!("{}://{}", self.scheme(), self.peer_host())
    }

    fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Its certificate, with which a client may come too; `None` without TLS.
    pub fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    /// From now on this release's binaries are used: an upgrade, at the next start.
    pub fn set_release(&mut self, release: Release) {
        self.release = release;
    }

    /// The process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Starts it; does not wait for anything. See [`Member::wait_ready`].
    pub fn start(&mut self) -> anyhow::Result<()> {
        self.start_with(&[])
    }

    /// Starts it with further flags, for example `--force-new-cluster`.
    pub fn start_with(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        ensure!(self.process.is_none(), "{} runs already", self.name);
        let log = File::options().append(true).create(true).open(&self.log)?;
        let mut command = match self.namespace() {
            None => Command::new("setpriv"),
            Some(namespace) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", namespace.display())).args(["--", "setpriv"]);
                command
            }
        };
        let child = command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(self.release.binary("etcd")?)
            .args(self.flags())
            .args(flags)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting etcd through setpriv")?;
        self.process = Some(child);
        Ok(())
    }

    fn flags(&self) -> Vec<String> {
        let options = &self.options;
        let mut flags = vec![
            format!("--name={}", self.name),
            format!("--data-dir={}", self.data_dir.display()),
            format!("--listen-client-urls={}", self.client_url()),
            format!("--advertise-client-urls={}", self.client_url()),
            format!("--listen-peer-urls={}", self.peer_url()),
            format!("--initial-advertise-peer-urls={}", self.peer_url()),
            format!("--initial-cluster={}", self.initial_cluster),
            format!("--initial-cluster-state={}", self.initial_state),
            format!("--initial-cluster-token={}", options.token),
            format!("--snapshot-count={}", options.snapshot_count),
            format!("--heartbeat-interval={}", options.heartbeat_ms),
            format!("--election-timeout={}", options.election_ms),
        ];
        flags.extend(self.tls.iter().flat_map(tls_flags));
        flags.extend(options.arguments.iter().cloned());
        flags
    }

    /// Waits until it answers and knows a leader.
    pub fn wait_ready(&mut self) -> anyhow::Result<Status> {
        let what = format!("{} to answer and to know a leader", self.name);
        let mut exited = None;
        let answer = wait_for(&what, || {
            if let Some(status) = self.exited() {
                exited = Some(status);
                return Some(None);
            }
            self.status().ok().filter(|status| status.leader != 0).map(Some)
        });
        match (answer, exited) {
            (Ok(Some(status)), None) => Ok(status),
            (Err(error), _) => Err(error.context(self.log_tail())),
            (_, exited) => {
                bail!("{} ended ({exited:?}) instead of serving\n{}", self.name, self.log_tail())
            }
        }
    }

    /// Waits until a write through it succeeds: right after an election the first ones may time out.
    pub fn wait_writable(&mut self) -> anyhow::Result<()> {
        self.wait_ready()?;
        let what = format!("{} to accept a write", self.name);
        wait_for(&what, || self.gateway().ok()?.put("writable", b"").ok())
            .map_err(|error| error.context(self.log_tail()))
    }

    /// Waits until the process has ended by itself.
    pub fn wait_exit(&mut self) -> anyhow::Result<ExitStatus> {
        let what = format!("{} to end by itself", self.name);
        wait_for(&what, || self.exited()).map_err(|error| error.context(self.log_tail()))
    }

    /// Its exit status if it has ended by itself since it was started.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.process.as_mut()?.try_wait().ok().flatten();
        if status.is_some() {
            self.process = None;
        }
        status
    }

    /// Whether its process is there (running or paused).
    pub fn is_running(&mut self) -> bool {
        self.exited();
        self.process.is_some()
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let child =
            self.process.as_ref().with_context(|| format!("{} is not running", self.name))?;
        kill_process(Pid::from_child(child), signal)
            .with_context(|| format!("signalling {}", self.name))
    }

    /// SIGKILL: what it had not yet written is lost. Does nothing if it is not running.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.process.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn machine(&self) -> anyhow::Result<&Machine> {
        self.machine.as_ref().with_context(|| format!("{} has no machine of its own", self.name))
    }

    /// A power loss: the cable goes first, so that nobody hears it die, then SIGKILL.
    pub fn lose_power(&mut self) -> anyhow::Result<()> {
        self.pull_cable()?;
        self.kill()
    }

    /// Cuts its machine off; it runs on.
    pub fn pull_cable(&self) -> anyhow::Result<()> {
        self.machine()?.pull_cable()
    }

    /// Plugs the cable in again.
    pub fn plug_cable(&self) -> anyhow::Result<()> {
        self.machine()?.plug_cable()
    }

    /// The network namespace of its machine, as a file.
    pub fn namespace(&self) -> Option<PathBuf> {
        self.machine.as_ref().map(Machine::namespace)
    }

    /// From now on each sync of its disk takes so much longer, until the guard is dropped.
    pub fn slow_disk(&self, delay: Duration) -> anyhow::Result<SlowDisk> {
        let pid = self.pid().with_context(|| format!("{} is not running", self.name))?;
        SlowDisk::syncing(pid, delay)
    }

    /// From now on each rename of a file waits so long before it happens, until the guard is dropped.
    pub fn slow_renames(&self, delay: Duration) -> anyhow::Result<SlowDisk> {
        let pid = self.pid().with_context(|| format!("{} is not running", self.name))?;
        SlowDisk::renaming(pid, delay)
    }

    /// SIGTERM, and waits for the end.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)?;
        self.wait_exit().map(drop)
    }

    /// SIGSTOP: it hangs, with its connections open. When this returns nothing of it runs any more.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)?;
        let pid = self.pid().with_context(|| format!("{} is not running", self.name))?;
        // On a busy machine its threads go on until one of them has taken the signal.
        wait_for(&format!("{} to hang", self.name), || is_stopped(pid).then_some(()))
    }

    /// SIGCONT.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    /// `etcdctl` on this member alone; its JSON answer.
    pub fn ctl(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let text = self.ctl_as("json", arguments)?;
        // Some commands (defrag) answer with a sentence.
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// `etcdctl` on this member alone; its answer for people. (The JSON printer of 3.4 crashes on `member
    /// promote`, after the promotion.)
    pub fn ctl_text(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.ctl_as("simple", arguments)
    }

    fn ctl_as(&self, format: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(self.release.binary("etcdctl")?)
            .arg(format!("--write-out={format}"))
            .args(["--dial-timeout=5s", "--command-timeout=10s"])
            .arg(format!("--endpoints={}", self.client_url()))
            .args(self.tls.iter().flat_map(ctl_tls_flags))
            .args(arguments)
            .env_clear()
            .env("ETCDCTL_API", "3")
            .stdin(Stdio::null())
            .output()
            .context("running etcdctl")?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "etcdctl {} on {}: {}{text}",
            arguments.join(" "),
            self.name,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(text.into_owned())
    }

    /// `etcdctl endpoint status`.
    pub fn status(&self) -> anyhow::Result<Status> {
        let answer = self.ctl(&["endpoint", "status"])?;
        let status = &answer[0]["Status"];
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        Ok(Status {
            cluster_id: number(&status["header"]["cluster_id"]),
            member_id: number(&status["header"]["member_id"]),
            leader: number(&status["leader"]),
            revision: number(&status["header"]["revision"]),
            raft_term: number(&status["raftTerm"]),
            raft_index: number(&status["raftIndex"]),
            applied_index: number(&status["raftAppliedIndex"]),
            db_size_bytes: number(&status["dbSize"]),
            learner: status["isLearner"].as_bool().unwrap_or_default(),
        })
    }

    /// `etcdctl member list`, in the order of the ids. A learner does not answer it.
    pub fn member_list(&self) -> anyhow::Result<Vec<ListedMember>> {
        let answer = self.ctl(&["member", "list"])?;
        let mut members: Vec<ListedMember> = serde_json::from_value(answer["members"].clone())?;
        members.sort_by_key(|member| member.id);
        Ok(members)
    }

    /// Writes one key with `etcdctl`. For many use [`Member::gateway`].
    pub fn put(&self, key: &str, value: &str) -> anyhow::Result<()> {
        self.ctl(&["put", "--", key, value]).map(drop)
    }

    /// How many keys begin with this prefix, by a linearizable read.
    pub fn count(&self, prefix: &str) -> anyhow::Result<u64> {
        self.gateway()?.count(prefix)
    }

    /// A connection to its JSON gateway, for fast writing.
    pub fn gateway(&self) -> anyhow::Result<Gateway> {
        Gateway::connect(&self.client_host())
    }

    /// Writes `count` keys `<prefix>0`, `<prefix>1`, ... with values of `bytes` bytes, one entry each. A write
    /// that an election swallowed is repeated.
    pub fn put_many(&self, prefix: &str, count: u32, bytes: usize) -> anyhow::Result<()> {
        let mut gateway = self.gateway()?;
        let value = vec![b'v'; bytes];
        for number in 0..count {
            let key = format!("{prefix}{number}");
            if gateway.put(&key, &value).is_err() {
                gateway = wait_for(&format!("{} to accept {key}", self.name), || {
                    let mut gateway = self.gateway().ok()?;
                    gateway.put(&key, &value).ok().map(|()| gateway)
                })?;
            }
        }
        Ok(())
    }

    /// The end of its log, for the message of a failed test.
    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(20)..];
        format!("the end of {}'s log:\n{}", self.name, tail.join("\n"))
    }
}

/// etcd's flags for mutual TLS on both ports.
fn tls_flags(tls: &TlsFiles) -> Vec<String> {
    let mut flags = vec!["--client-cert-auth".to_owned(), "--peer-client-cert-auth".to_owned()];
    for prefix in ["", "peer-"] {
        flags.push(format!("--{prefix}trusted-ca-file={}", tls.ca.display()));
        flags.push(format!("--{prefix}cert-file={}", tls.certificate.display()));
        flags.push(format!("--{prefix}key-file={}", tls.key.display()));
    }
    flags
}

/// The same for `etcdctl`.
fn ctl_tls_flags(tls: &TlsFiles) -> Vec<String> {
    vec![
        format!("--cacert={}", tls.ca.display()),
        format!("--cert={}", tls.certificate.display()),
        format!("--key={}", tls.key.display()),
    ]
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Whether every thread of a process is stopped.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state stands behind the name, which is in parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
    })
}
