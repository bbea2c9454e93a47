//! The process behind a lab: it holds the mounts, the switch and the BMCs, and does what it is asked.
//!
//! It runs in a mount and a network namespace of its own. Everything that it mounts or plugs together is
//! held by these two alone, so that the kernel takes all of it away when the last process of the lab ends,
//! however it ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bmc_sim::Fault;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::bmc::Bmcs;
use crate::cgroup::Cgroup;
use crate::config::{LabConfig, Link, Stack, reserved};
use crate::error::{Error, Result, chain, errno};
use crate::events::{EventKind, EventLog};
use crate::image::{Recipe, write};
use crate::network::{Cut, Network};
use crate::node::{Node, Parts};
use crate::place::Place;
use crate::protocol::{LabStatus, NodeStatus, PowerAction, Request, Response};

/// The longest request that is read: none is anywhere near.
const REQUEST_LIMIT: u64 = 64 * 1024;

/// How long a lab waits for whoever started it.
const LEASE_LIMIT: Duration = Duration::from_secs(30);

/// A running lab.
#[derive(Debug)]
struct Supervisor {
    config: LabConfig,
    place: Place,
    cgroup: Cgroup,
    home: Cgroup,
    events: Arc<EventLog>,
    network: Arc<Network>,
    nodes: [Arc<Node>; 2],
    bmcs: Bmcs,
    leased: AtomicBool,
}

/// Runs a lab until it is told to end. Must be started in namespaces of its own, as [`crate::Lab::up`] does.
pub fn supervise(name: &str) -> Result<()> {
    let place = Place::of(name);
    let config = place.config()?;
    let home = own_cgroup()?;
    contain()?;
    let cgroup = Cgroup::root()?.child(&place.cgroup());
    let seat = cgroup.child("supervisor");
    seat.create()?;
    seat.add(std::process::id())?;
    write(&place.pid_file(), &std::process::id().to_string(), 0o644)?;
    let supervisor = Arc::new(Supervisor::build(config, place, cgroup, home)?);
    let socket = supervisor.place.socket();
    let listener = UnixListener::bind(&socket).map_err(Error::io("listening on", &socket))?;
    supervisor.events.now(EventKind::Note, None, "lab started");
    supervisor.end_without_lease();
    for connection in listener.incoming().flatten() {
        let supervisor = Arc::clone(&supervisor);
        std::thread::spawn(move || supervisor.serve(connection));
    }
    Ok(())
}

/// Covers what the lab must not touch, and shows the cgroups as one tree also on a hybrid machine.
fn contain() -> Result<()> {
    let over = |kind: &'static str, target: &str| {
        mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(|error| Error::io("mounting", target)(errno(error)))
    };
    // The container manager keeps its locks and sockets in /run.
    over("tmpfs", "/run")?;
    over("cgroup2", "/sys/fs/cgroup")
}

/// The cgroup that this process was started in, as seen from [`contain`]'s mount.
fn own_cgroup() -> Result<Cgroup> {
    let path = "/proc/self/cgroup";
    let text = fs::read_to_string(path).map_err(Error::io("reading", path))?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(Cgroup::at(&Path::new("/sys/fs/cgroup").join(own)))
}

impl Supervisor {
    fn build(config: LabConfig, place: Place, cgroup: Cgroup, home: Cgroup) -> Result<Self> {
        let events = Arc::new(EventLog::open(&place.events())?);
        let network = Arc::new(Network::build(&config, &place)?);
        make_key(&place)?;
        let image = Recipe::of(&config).path();
        let certificates = crate::bmc::certificates()?;
        let pins = certificates.each_ref().map(|each| each.fingerprint().to_string());
        let bundles = match &config.stack {
            Stack::Minimal => None,
            Stack::Pair(stack) => Some(crate::pair::bundles(&config, stack, &place, &pins)?),
            Stack::Rival(_) => Some(crate::rival::certificates(&config, &place, &pins)?),
        };
        let parts = Parts {
            config: &config,
            bundles: bundles.as_ref(),
            place: &place,
            image: &image,
            cgroup: &cgroup,
            pins: &pins,
            network: &network,
            events: &events,
        };
        let nodes = [Arc::new(Node::build(&parts, 0)?), Arc::new(Node::build(&parts, 1)?)];
        let bmcs = Bmcs::start(&nodes, certificates)?;
        for node in &nodes {
            node.power_on()?;
        }
        Ok(Self {
            config,
            place,
            cgroup,
            home,
            events,
            network,
            nodes,
            bmcs,
            leased: AtomicBool::new(false),
        })
    }

    /// Whoever starts a lab takes a lease on it at once. If nobody does, the starter is dead.
    fn end_without_lease(self: &Arc<Self>) {
        let supervisor = Arc::clone(self);
        std::thread::spawn(move || {
            std::thread::sleep(LEASE_LIMIT);
            if !supervisor.leased.load(Ordering::Relaxed) {
                supervisor.end();
            }
        });
    }

    fn serve(&self, connection: UnixStream) {
        let Ok(reader) = connection.try_clone() else { return };
        let mut reader = BufReader::new(reader);
        let mut writer = connection;
        let mut line = String::new();
        while (&mut reader).take(REQUEST_LIMIT).read_line(&mut line).is_ok_and(|read| read > 0) {
            let request = serde_json::from_str::<Request>(&line);
            line.clear();
            let response = match &request {
                Ok(request) => self.answer(request),
                Err(error) => Response::Failed(format!("not understood: {error}")),
            };
            let mut text = serde_json::to_string(&response).unwrap_or_default();
            text.push('\n');
            let told = writer.write_all(text.as_bytes());
            match request {
                Ok(Request::Down) => self.end(),
                Ok(Request::Lease) => {
                    // Ends when the holder does, however it does; a byte from it gives the lab its freedom.
                    if !matches!(reader.read(&mut [0; 1]), Ok(1)) {
                        self.end();
                    }
                    return;
                }
                _ => {}
            }
            if told.is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> Response {
        match self.act(request) {
            Ok(response) => response,
            Err(error) => Response::Failed(chain(&error)),
        }
    }

    fn act(&self, request: &Request) -> Result<Response> {
        let done = match request {
            Request::Status => return Ok(Response::Status(self.status()?)),
            Request::Lease => {
                self.leased.store(true, Ordering::Relaxed);
                "lease taken".into()
            }
            Request::Down => "going down".into(),
            Request::Power { node, action } => self.power(node, *action)?,
            Request::Cut { links, from } => self.cut(links, from.as_deref())?,
            Request::Heal => self.heal()?,
            Request::Record { event } => {
                self.events.record(event);
                "recorded".into()
            }
            Request::BmcEvents => return Ok(Response::Events(self.bmcs.events())),
            Request::Bmc { node, fault } => self.break_bmc(node, fault)?,
            other => self.break_node(other)?,
        };
        Ok(Response::Done(done))
    }

    fn power(&self, name: &str, action: PowerAction) -> Result<String> {
        let node = self.node(name)?;
        if matches!(action, PowerAction::Off | PowerAction::Cycle) {
            self.fault(Some(name), "plug pulled".into());
            node.power_off()?;
        }
        if matches!(action, PowerAction::On | PowerAction::Cycle) {
            node.power_on()?;
        }
        let state = if node.is_on()? { "on" } else { "off" };
        Ok(format!("{name} is {state}"))
    }

    fn cut(&self, links: &[Link], from: Option<&str>) -> Result<String> {
        let senders = match from {
            Some(name) => vec![self.config.position(name)?],
            None => vec![0, 1],
        };
        let names: Vec<_> = links.iter().map(|link| link.name()).collect();
        let text = match from {
            Some(name) => format!("cut {}: nothing from {name} arrives", names.join(" and ")),
            None => format!("cut {}", names.join(" and ")),
        };
        // Recorded first: times are counted from before the fault, never from after it.
        self.fault(None, text.clone());
        self.network.change(|faults| {
            for link in links {
                faults.cuts.extend(senders.iter().map(|from| Cut { link: *link, from: *from }));
            }
        })?;
        Ok(text)
    }

    fn heal(&self) -> Result<String> {
        self.events.now(EventKind::Heal, None, "everything healed");
        self.network.change(crate::network::Faults::heal)?;
        for (position, node) in self.nodes.iter().enumerate() {
            node.disk.heal()?;
            self.bmcs.set_fault(position, Fault::None);
            if node.is_on()? && node.is_frozen() {
                node.set_frozen(false)?;
            }
        }
        Ok("everything healed; power is as it was".into())
    }

    /// Faults inside one node.
    fn break_node(&self, request: &Request) -> Result<String> {
        let text = match request {
            Request::Freeze { node } => {
                let text = self.fault(Some(node), "frozen".into());
                self.node(node)?.set_frozen(true)?;
                text
            }
            Request::Thaw { node } => {
                self.node(node)?.set_frozen(false)?;
                self.events.now(EventKind::Heal, Some(node), "thawed");
                "thawed".into()
            }
            Request::KillEtcd { node } => {
                self.fault(Some(node), "etcd killed".into());
                match self.node(node)?.kill_etcd() {
                    0 => return Err(self.refused(format!("no etcd runs on {node}"))),
                    count => format!("{count} etcd process killed on {node}"),
                }
            }
            Request::BlockPort { node, port } => {
                let position = self.config.position(node)?;
                let text = self.fault(Some(node), format!("TCP port {port} blocked"));
                self.network.change(|faults| faults.blocked.insert((position, *port)))?;
                text
            }
            Request::Stall { node, port } => self.stall(node, *port)?,
            Request::SlowDisk { node, stall_ms } => {
                let found = self.node(node)?;
                let text = self.fault(Some(node), format!("disk stalls for {stall_ms} ms"));
                found.disk.slow(Duration::from_millis(*stall_ms));
                text
            }
            Request::SlowFsync { node, delay_ms } => {
                let found = self.node(node)?;
                let text = self.fault(Some(node), format!("fsync {delay_ms} ms slower"));
                found.disk.slow_fsync(*delay_ms);
                text
            }
            Request::FullDisk { node } => {
                let found = self.node(node)?;
                let text = self.fault(Some(node), "disk full".into());
                found.disk.fill()?;
                text
            }
            Request::Clock { node, ahead_s } => {
                self.node(node)?.set_clock(*ahead_s);
                format!("{node}: monotonic clock {ahead_s} s ahead from its next boot on")
            }
            other => return Err(self.refused(format!("no fault of a node: {other:?}"))),
        };
        Ok(text)
    }

    fn break_bmc(&self, node: &str, fault: &str) -> Result<String> {
        let position = self.config.position(node)?;
        let parsed: Fault = fault.parse().map_err(Error::Config)?;
        // A BMC that misbehaves is no fault of the pair yet: times are not counted from here.
        self.events.now(EventKind::Note, Some(node), format!("BMC {fault}"));
        self.bmcs.set_fault(position, parsed);
        Ok(format!("BMC of {node}: {fault}"))
    }

    fn stall(&self, node: &str, port: u16) -> Result<String> {
        let position = self.config.position(node)?;
        let Some(connection) = self.network.connection(position, port)? else {
            return Err(self.refused(format!("{node} has no connection with port {port}")));
        };
        let (local, remote) = (connection.local, connection.remote);
        let text = self.fault(Some(node), format!("connection {local} to {remote} stalled"));
        self.network.change(|faults| faults.stalled.insert(connection))?;
        Ok(text)
    }

    fn status(&self) -> Result<LabStatus> {
        let mut nodes = Vec::new();
        for (position, node) in self.nodes.iter().enumerate() {
            let config = &self.config.nodes[position];
            let mut faults = node.disk.faults();
            faults.extend(self.bmcs.fault(position));
            if node.clock_ahead_s() != 0 {
                faults.push(format!("monotonic clock {} s ahead", node.clock_ahead_s()));
            }
            nodes.push(NodeStatus {
                name: node.name.clone(),
                on: node.is_on()?,
                frozen: node.is_frozen(),
                init: node.init(),
                links: [config.link1, config.link2],
                bmc: format!("https://{}", reserved::bmc(position)),
                client: reserved::node_for_clients(position).into(),
                faults,
            });
        }
        Ok(LabStatus {
            name: self.config.name.clone(),
            release: self.config.release,
            nodes,
            network_faults: self.network_faults(),
            supervisor: std::process::id(),
        })
    }

    fn network_faults(&self) -> Vec<String> {
        let faults = self.network.faults();
        let name = |position: usize| &self.config.nodes[position].name;
        let cuts = faults
            .cuts
            .iter()
            .map(|cut| format!("{}: nothing from {} arrives", cut.link.name(), name(cut.from)));
        let blocked = faults
            .blocked
            .iter()
            .map(|(node, port)| format!("{}: port {port} blocked", name(*node)));
        let stalled =
            faults.stalled.iter().map(|each| format!("{} to {} stalled", each.local, each.remote));
        cuts.chain(blocked).chain(stalled).collect()
    }

    fn node(&self, name: &str) -> Result<&Arc<Node>> {
        Ok(&self.nodes[self.config.position(name)?])
    }

    fn fault(&self, node: Option<&str>, text: String) -> String {
        self.events.now(EventKind::Fault, node, &text);
        text
    }

    fn refused(&self, reason: String) -> Error {
        Error::Supervisor { lab: self.config.name.clone(), reason }
    }

    /// Ends the nodes, then the lab's cgroup, then this process; its namespaces end with it.
    fn end(&self) -> ! {
        for node in &self.nodes {
            let ended = node.disk.heal().and_then(|()| node.power_off());
            if let Err(error) = ended {
                eprintln!("ending {}: {}", node.name, chain(&error));
            }
        }
        let left = self.home.add(std::process::id()).and_then(|()| self.cgroup.remove());
        if let Err(error) = left {
            eprintln!("leaving: {}", chain(&error));
        }
        unmount_below(&self.place.directory);
        if let Err(error) = fs::remove_dir_all(&self.place.directory) {
            eprintln!("removing {}: {error}", self.place.directory.display());
        }
        std::process::exit(0);
    }
}

/// Takes every mount below a directory out of this mount namespace: a mount point cannot be removed.
fn unmount_below(directory: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let targets = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    let mut below: Vec<_> = targets.filter(|target| target.starts_with(directory)).collect();
    below.reverse();
    for target in below {
        if let Err(error) = umount2(target, MntFlags::MNT_DETACH) {
            eprintln!("unmounting {}: {error}", target.display());
        }
    }
}

/// Corosync's key, new for each lab.
fn make_key(place: &Place) -> Result<()> {
    let mut key = [0; 256];
    let source = "/dev/urandom";
    let mut file = fs::File::open(source).map_err(Error::io("opening", source))?;
    file.read_exact(&mut key).map_err(Error::io("reading", source))?;
    let path = place.directory.join("corosync.key");
    fs::write(&path, key).map_err(Error::io("writing", path))
}
