//! A lab in the hands of its user: starting it, asking it, breaking it, ending it.

mod ask;
mod exec;
mod sweep;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cgroup::Cgroup;
use crate::cluster::SERVICE;
use crate::config::{LabConfig, Link, Stack};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::image::{Recipe, write};
use crate::place::Place;
use crate::program;
use crate::progress::{Progress, Silent, wait_until};
use crate::protocol::{LabStatus, PowerAction, Request, Response};
use crate::rival;
use crate::timeline::Timeline;
use crate::timeline::journal::{self, Message};
use crate::view::ClusterView;
use dyad_program::Finished;

pub use exec::ExecTarget;

/// How long the supervisor may take to build a lab and switch both nodes on.
const BUILD_LIMIT: Duration = Duration::from_mins(1);
/// How long the pair may take until every resource runs.
const PAIR_LIMIT: Duration = Duration::from_mins(2);
/// How long the supervisor may take for one request.
const REQUEST_LIMIT: Duration = Duration::from_mins(1);
/// How long `crm_mon` may take: without a coordinator it waits.
const VIEW_LIMIT: Duration = Duration::from_secs(5);

/// The programs that a lab runs on the host.
const PROGRAMS: &[&str] = &[
    "systemd-nspawn",
    "debootstrap",
    "nft",
    "ip",
    "ss",
    "unshare",
    "nsenter",
    "setpriv",
    "setsid",
    "mkfs.ext4",
    "fsfreeze",
    "journalctl",
    "strace",
];

/// How long a lab lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as the value that was returned, and never longer than the process that holds it.
    OfCaller,
    /// Until it is told to end.
    UntilDown,
}

/// The command that becomes a lab's supervisor: the lab's name is added as its last argument.
#[derive(Debug, Clone)]
pub struct Supervision {
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// A running lab.
#[derive(Debug)]
pub struct Lab {
    place: Place,
    config: LabConfig,
    supervisor: Option<Child>,
    lease: Option<UnixStream>,
}

impl Lab {
    /// Starts a lab and waits until the pair is complete. Whatever fails, nothing is left behind.
    pub fn up(
        config: &LabConfig,
        supervision: &Supervision,
        lifetime: Lifetime,
        progress: &dyn Progress,
    ) -> Result<Self> {
        config.validate()?;
        check_machine()?;
        let place = Place::of(&config.name);
        check_place(&place)?;
        let recipe = Recipe::of(config);
        if recipe.path().is_dir() {
            progress.step(&format!("image: Debian {}, from the cache", config.release.name()));
        }
        recipe.ensure(progress)?;
        fs::create_dir_all(place.directory.parent().unwrap_or(&place.directory))
            .map_err(Error::io("making", &place.directory))?;
        match fs::create_dir(&place.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists(config.name.clone()));
            }
            other => other.map_err(Error::io("making", &place.directory))?,
        }
        // From here on `lab` owns what there is: dropping it ends everything.
        let mut lab = Self { place, config: config.clone(), supervisor: None, lease: None };
        let started = lab.start(supervision, progress);
        if let Err(error) = started {
            lab.end();
            return Err(error);
        }
        if lifetime == Lifetime::UntilDown {
            lab.release()?;
        }
        Ok(lab)
    }

    /// The lab of this name, which is running.
    pub fn connect(name: &str) -> Result<Self> {
        check_root()?;
        let place = Place::of(name);
        let config = place.config()?;
        Ok(Self { place, config, supervisor: None, lease: None })
    }

    /// Ends the lab of this name, whatever state it is in, and checks that nothing is left. Tells whether
    /// there was one.
    pub fn down(name: &str) -> Result<bool> {
        check_root()?;
        let place = Place::of(name);
        let there = !crate::residue(&place)?.is_empty();
        if there {
            let _ = send(&place, &Request::Down);
            sweep::sweep(&place)?;
        }
        Ok(there)
    }

    /// What it was started with.
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    /// Where it keeps its things.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How it is.
    pub fn status(&self) -> Result<LabStatus> {
        match send(&self.place, &Request::Status)? {
            Response::Status(status) => Ok(status),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Asks for something and tells what was done, in words.
    pub fn request(&self, request: &Request) -> Result<String> {
        match send(&self.place, request)? {
            Response::Done(text) => Ok(text),
            Response::Failed(reason) => {
                Err(Error::Supervisor { lab: self.config.name.clone(), reason })
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// What the BMCs were told to do so far.
    pub fn bmc_events(&self) -> Result<Vec<Event>> {
        match send(&self.place, &Request::BmcEvents)? {
            Response::Events(events) => Ok(events),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Adds to the lab's record, such as what a client saw: it appears in the timeline.
    pub fn record(&self, event: Event) -> Result<String> {
        self.request(&Request::Record { event })
    }

    /// Changes a node's power.
    pub fn power(&self, node: &str, action: PowerAction) -> Result<String> {
        self.request(&Request::Power { node: node.into(), action })
    }

    /// Cuts both cluster links.
    pub fn cut_all(&self) -> Result<String> {
        self.request(&Request::Cut { links: Link::ALL.to_vec(), from: None })
    }

    /// Ends every fault but power.
    pub fn heal(&self) -> Result<String> {
        self.request(&Request::Heal)
    }

    /// Makes a node's BMC misbehave.
    pub fn bmc(&self, node: &str, fault: bmc_sim::Fault) -> Result<String> {
        self.request(&Request::Bmc { node: node.into(), fault: fault.to_string() })
    }

    /// A command in a node, or on the clients' network, for the caller to run.
    pub fn exec_command(&self, target: &ExecTarget, command: &[OsString]) -> Result<Command> {
        exec::command(&self.place, &self.config, &self.status()?, target, command)
    }

    /// Runs a command in a node, at most for `limit`.
    pub fn exec(&self, node: &str, command: &[&str], limit: Duration) -> Result<Finished> {
        let words: Vec<OsString> = command.iter().map(OsString::from).collect();
        let target = ExecTarget::Node(node.into());
        Ok(program::run(&mut self.exec_command(&target, &words)?, "", limit)?)
    }

    /// How Pacemaker on a node sees the pair.
    pub fn view(&self, node: &str) -> Result<ClusterView> {
        let finished = self.exec(node, &["crm_mon", "-1", "--output-as=xml"], VIEW_LIMIT)?;
        if !finished.success() {
            return Err(Error::Node {
                node: node.into(),
                what: "crm_mon",
                said: program::last_lines(&(finished.stderr + &finished.stdout), 3),
            });
        }
        ClusterView::parse(&finished.stdout)
    }

    /// What a node does not yet see of a complete pair: both nodes ready, every resource started.
    pub fn missing_of_pair(&self, node: &str) -> Option<String> {
        let view = match self.view(node) {
            Ok(view) => view,
            Err(error) => return Some(format!("{node}: {error}")),
        };
        if let Some(absent) = self.config.nodes.iter().find(|each| !view.is_online(&each.name)) {
            return Some(format!("{} is not online for {node}", absent.name));
        }
        let fences = self.config.nodes.iter().map(|each| format!("fence-{}", each.name));
        let service = match self.config.stack {
            Stack::Minimal => Some(SERVICE.to_owned()),
            Stack::Rival(_) => {
                let runs = |node: &str| {
                    view.started.iter().any(|(id, on)| id == rival::RESOURCE && on == node)
                };
                if let Some(each) = self.config.nodes.iter().find(|each| !runs(&each.name)) {
                    return Some(format!("etcd is not started on {}", each.name));
                }
                None
            }
            Stack::Pair(_) => {
                let promoted = view.promoted("etcd");
                if let Some(each) =
                    self.config.nodes.iter().find(|each| !promoted.contains(&each.name.as_str()))
                {
                    return Some(format!("etcd is not promoted on {}", each.name));
                }
                None
            }
        };
        let stopped = fences.chain(service).find(|id| view.runs_on(id).is_none());
        stopped.map(|id| format!("{id} is not started"))
    }

    /// Waits until both nodes have set themselves up; a set-up that fails ends the wait.
    pub fn wait_for_setup(&self, progress: &dyn Progress) -> Result<()> {
        let mut failed = None;
        wait_until("the set-up of both nodes", PAIR_LIMIT, progress, || {
            self.config.nodes.iter().find_map(|node| {
                match crate::pair::missing_of_setup(&self.place, &node.name) {
                    Ok(missing) => missing,
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                }
            })
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Waits until the pair is complete as both nodes see it.
    pub fn wait_for_pair(&self, progress: &dyn Progress) -> Result<()> {
        wait_until("the pair to be complete", PAIR_LIMIT, progress, || {
            self.config.nodes.iter().find_map(|node| self.missing_of_pair(&node.name))
        })
    }

    /// Waits until a condition holds: it gives what is missing, in words, or nothing.
    pub fn wait_until(
        &self,
        what: &str,
        limit: Duration,
        missing: impl FnMut() -> Option<String>,
    ) -> Result<()> {
        wait_until(what, limit, &Silent, missing)
    }

    /// What happened since the last fault, or since the start.
    pub fn timeline(&self, all: bool) -> Result<Timeline> {
        // A lab whose supervisor is gone still has its journals.
        let bmc = self.bmc_events().unwrap_or_default();
        Timeline::read(&self.place, &self.config, &bmc, all)
    }

    /// Keeps what both nodes wrote in a file that is named after the running test; says where.
    pub fn keep_journals(&self) -> String {
        let scenario = std::thread::current().name().unwrap_or("lab").replace("::", "-");
        self.keep_journals_in(&std::env::temp_dir().join(format!("dyad-{scenario}.journal")))
    }

    /// Keeps what both nodes wrote in this file; says where.
    pub fn keep_journals_in(&self, path: &std::path::Path) -> String {
        let line = |message: &Message| {
            let Message { time_us, node, program, text, .. } = message;
            format!("{time_us} {node} {program}: {text}\n")
        };
        let text: String = self.journals(0).unwrap_or_default().iter().map(line).collect();
        match fs::write(path, text) {
            Ok(()) => format!("the journals of both nodes: {}", path.display()),
            Err(error) => format!("no journals: {error}"),
        }
    }

    /// The journals of both nodes since a time, merged.
    pub fn journals(&self, since_us: u64) -> Result<Vec<Message>> {
        journal::read(&self.place, &self.config, since_us)
    }

    /// The CPU time that the whole lab has used.
    pub fn cpu_time(&self) -> Result<Duration> {
        Cgroup::root()?.child(&self.place.cgroup()).cpu_time()
    }

    fn start(&mut self, supervision: &Supervision, progress: &dyn Progress) -> Result<()> {
        let config = serde_json::to_string_pretty(&self.config).unwrap_or_default();
        write(&self.place.config_file(), &config, 0o644)?;
        progress.step("switching both nodes on");
        self.supervisor = Some(spawn(&self.place, supervision)?);
        let mut ended = None;
        wait_until("the lab's supervisor", BUILD_LIMIT, progress, || {
            let status = self.supervisor.as_mut().and_then(|child| child.try_wait().ok()?);
            if status.is_some() {
                ended = status;
                return None;
            }
            // The lease is the first thing: if this process ends before the pair is complete, so does the
            // lab. A socket that is there need not listen yet.
            match take_lease(&self.place) {
                Ok(lease) => {
                    self.lease = Some(lease);
                    None
                }
                Err(error) => Some(error.to_string()),
            }
        })?;
        if ended.is_some() {
            let said = fs::read_to_string(self.place.supervisor_log()).unwrap_or_default();
            return Err(Error::Supervisor {
                lab: self.config.name.clone(),
                reason: program::last_lines(&said, 3),
            });
        }
        if let Stack::Pair(stack) = &self.config.stack {
            if stack.by_hand {
                progress.step("both nodes boot; `dyad setup` is up to you");
                return Ok(());
            }
            progress.step("dyad setup on both nodes, at their first boot");
            self.wait_for_setup(progress)?;
        }
        progress.step("waiting for the pair: membership, quorum, fencing devices, service");
        self.wait_for_pair(progress)?;
        progress.step("the pair is complete");
        Ok(())
    }

    /// Lets the lab live on after this process.
    fn release(&mut self) -> Result<()> {
        if let Some(mut lease) = self.lease.take() {
            lease
                .write_all(b"k")
                .map_err(Error::io("giving up the lease on", &self.place.directory))?;
        }
        self.supervisor = None;
        Ok(())
    }

    fn end(&mut self) {
        self.lease = None;
        if self.supervisor.is_some() {
            let _ = send(&self.place, &Request::Down);
            let _ = sweep::sweep(&self.place);
        }
        if let Some(mut supervisor) = self.supervisor.take() {
            let _ = supervisor.kill();
            let _ = supervisor.wait();
        }
        let _ = fs::remove_dir_all(&self.place.directory);
    }

    fn unexpected(&self, response: &Response) -> Error {
        let reason = match response {
            Response::Failed(reason) => reason.clone(),
            other => format!("an unexpected answer: {other:?}"),
        };
        Error::Supervisor { lab: self.config.name.clone(), reason }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.supervisor.is_some() {
            self.end();
        }
    }
}

/// Whether the caller is root.
fn check_root() -> Result<()> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(Error::NotRoot) }
}

/// What the machine must have. Told all at once, before anything is touched.
fn check_machine() -> Result<()> {
    check_root()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    let missing: Vec<String> = PROGRAMS
        .iter()
        .filter(|program| !directories.iter().any(|directory| directory.join(program).is_file()))
        .map(|program| (*program).to_owned())
        .collect();
    if !missing.is_empty() {
        return Err(Error::MissingPrograms(missing));
    }
    Cgroup::root()?;
    Ok(())
}

/// Overlay options are separated by commas and colons, and /run is covered in the lab.
fn check_place(place: &Place) -> Result<()> {
    let path = place.directory.to_string_lossy();
    if path.contains([',', ':', ' ']) || !path.starts_with('/') || path.starts_with("/run/") {
        return Err(Error::Config(format!(
            "a lab cannot be kept in {path}: an absolute path outside of /run, without commas, colons \
             and blanks, is needed (DYAD_LAB_DIR)"
        )));
    }
    Ok(())
}

/// Starts the supervisor in a session, a mount and a network namespace of its own.
fn spawn(place: &Place, supervision: &Supervision) -> Result<Child> {
    let path = place.supervisor_log();
    let log = File::create(&path).map_err(Error::io("making", &path))?;
    let second = log.try_clone().map_err(Error::io("making", &path))?;
    Command::new("setsid")
        .args(["unshare", "--mount", "--net", "--propagation", "private", "--"])
        .args(&supervision.command)
        .arg(&place.name)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(second)
        .spawn()
        .map_err(Error::io("starting the supervisor of", &place.directory))
}

fn take_lease(place: &Place) -> Result<UnixStream> {
    let mut stream = connect(place)?;
    exchange(place, &mut stream, &Request::Lease)?;
    Ok(stream)
}

fn send(place: &Place, request: &Request) -> Result<Response> {
    exchange(place, &mut connect(place)?, request)
}

fn connect(place: &Place) -> Result<UnixStream> {
    let stream = UnixStream::connect(place.socket()).map_err(|error| Error::Supervisor {
        lab: place.name.clone(),
        reason: format!("its supervisor does not answer: {error}"),
    })?;
    let limited = stream.set_read_timeout(Some(REQUEST_LIMIT));
    limited.map_err(Error::io("limiting", place.socket()))?;
    Ok(stream)
}

fn exchange(place: &Place, stream: &mut UnixStream, request: &Request) -> Result<Response> {
    let failed = |reason: String| Error::Supervisor { lab: place.name.clone(), reason };
    let mut line = serde_json::to_string(request).map_err(|error| failed(error.to_string()))?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(|error| failed(error.to_string()))?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(|error| failed(format!("its supervisor does not answer: {error}")))?;
    serde_json::from_str(&answer).map_err(|error| failed(format!("not understood: {error}")))
}
