//! One node: a disk, a boot, a plug.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dyad_setup::bundle::Bundle;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::cluster;
use crate::config::{FenceAgent, LabConfig, Stack};
use crate::disk::{Disk, pids_named};
use crate::error::{Error, Result, errno};
use crate::events::{EventKind, EventLog};
use crate::image;
use crate::network::Network;
use crate::pair;
use crate::place::Place;
use crate::program;
use crate::progress::{Silent, wait_until};
use crate::rival;

/// How long the container manager may take until the node's init runs.
const BOOT_LIMIT: Duration = Duration::from_secs(30);

/// What a node may do beyond a plain container: real-time scheduling, locked memory and its own network.
/// Not the clock, modules and raw hardware: those belong to the machine.
const CAPABILITIES: &str = "CAP_NET_ADMIN,CAP_IPC_LOCK,CAP_SYS_NICE";

/// One node of the lab, as the supervisor holds it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    position: usize,
    root: PathBuf,
    console: PathBuf,
    cgroup: Cgroup,
    pub(crate) disk: Disk,
    network: Arc<Network>,
    events: Arc<EventLog>,
    machine: Mutex<Machine>,
}

/// What changes from boot to boot.
#[derive(Debug, Default)]
struct Machine {
    container: Option<Child>,
    clock_ahead_s: i64,
}

/// What a node is built from.
pub(crate) struct Parts<'a> {
    pub(crate) config: &'a LabConfig,
    pub(crate) place: &'a Place,
    pub(crate) image: &'a Path,
    pub(crate) cgroup: &'a Cgroup,
    pub(crate) pins: &'a [String; 2],
    /// What the nodes of a pair are rendered to.
    pub(crate) bundles: Option<&'a [Bundle; 2]>,
    pub(crate) network: &'a Arc<Network>,
    pub(crate) events: &'a Arc<EventLog>,
}

impl Node {
    /// Prepares a node's disks and configuration; it stays off.
    pub(crate) fn build(parts: &Parts<'_>, position: usize) -> Result<Self> {
        let name = parts.config.nodes[position].name.clone();
        let directory = parts.place.node(&name);
        let cgroup = parts.cgroup.child(&format!("node-{name}"));
        cgroup.create()?;
        let root = mount_disk(&directory, parts.image)?;
        install(parts, position, &root)?;
        let owner = image::etcd_owner(parts.image)?;
        let disk = Disk::build(&directory, parts.config.etcd_disk_mib, owner, cgroup.clone())?;
        Ok(Self {
            name,
            position,
            root,
            console: directory.join("console.log"),
            cgroup,
            disk,
            network: Arc::clone(parts.network),
            events: Arc::clone(parts.events),
            machine: Mutex::default(),
        })
    }

    /// Whether it has power. An error means that the truth is not known.
    pub(crate) fn is_on(&self) -> Result<bool> {
        self.cgroup.populated()
    }

    /// Whether it hangs.
    pub(crate) fn is_frozen(&self) -> bool {
        self.cgroup.frozen().unwrap_or(false)
    }

    /// Gives it power; it boots on its own time. A node that is on stays on.
    pub(crate) fn power_on(&self) -> Result<()> {
        let mut machine = self.lock();
        if self.is_on()? {
            return Ok(());
        }
        reap(&mut machine);
        self.cgroup.remove_children()?;
        self.network.change(|faults| faults.dark.remove(&self.position))?;
        let mut container = self.container(machine.clock_ahead_s)?;
        self.events.now(EventKind::PowerOn, Some(&self.name), "power on");
        let booted = self.wait_for_init(&mut container);
        machine.container = Some(container);
        booted
    }

    /// Takes its power: first nothing leaves it any more, then every process ends. A dead machine sends
    /// no FIN and no RST; a process that is merely killed does.
    pub(crate) fn power_off(&self) -> Result<()> {
        let mut machine = self.lock();
        if !self.is_on()? {
            return Ok(());
        }
        self.network.change(|faults| faults.dark.insert(self.position))?;
        self.disk.without_stall(|| self.cgroup.kill())?;
        reap(&mut machine);
        self.events.now(EventKind::PowerOff, Some(&self.name), "power off");
        Ok(())
    }

    /// Asks it to shut itself down, and waits until it has.
    pub(crate) fn shut_down(&self, limit: Duration) -> Result<()> {
        if let Some(init) = self.init() {
            // SIGRTMIN+4 is systemd's power button.
            let mut press = program::command("sh", ["-c", "kill -38 \"$1\"", "sh"]);
            program::output(press.arg(init.to_string()), "", program::QUICK)?;
        }
        wait_until(&format!("{} to shut down", self.name), limit, &Silent, || match self.is_on() {
            Ok(false) => None,
            Ok(true) => Some("its processes still run".into()),
            Err(error) => Some(error.to_string()),
        })
    }

    /// Stops every process of it, or lets them go on.
    pub(crate) fn set_frozen(&self, frozen: bool) -> Result<()> {
        let _machine = self.lock();
        if !self.is_on()? {
            return Err(Error::NodeOff(self.name.clone()));
        }
        self.cgroup.set_frozen(frozen)
    }

    /// Ends its etcd as a crash would.
    pub(crate) fn kill_etcd(&self) -> usize {
        let pids = pids_named(&self.cgroup, "etcd");
        for pid in &pids {
            // One that ended by itself meanwhile is as good.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        pids.len()
    }

    /// From the next boot on its monotonic clock and its uptime are ahead by this much.
    pub(crate) fn set_clock(&self, ahead_s: i64) {
        self.lock().clock_ahead_s = ahead_s;
    }

    /// How far its monotonic clock is ahead, from the next boot on.
    pub(crate) fn clock_ahead_s(&self) -> i64 {
        self.lock().clock_ahead_s
    }

    /// The process that is number 1 in it.
    pub(crate) fn init(&self) -> Option<u32> {
        init_of(&self.cgroup)
    }

    fn container(&self, clock_ahead_s: i64) -> Result<Child> {
        let console = OpenOptions::new().create(true).append(true).open(&self.console);
        let console = console.map_err(Error::io("opening", &self.console))?;
        let second = console.try_clone().map_err(Error::io("opening", &self.console))?;
        let mut command = Command::new("sh");
        // Into the cgroup first, so that there is no moment in which it runs outside.
        command
            .args(["-c", "echo $$ > \"$1/cgroup.procs\" && shift && exec \"$@\"", "sh"])
            .arg(self.cgroup.path());
        // The container manager mounts /sys before it enters the network: it must be there already, or the
        // node would see the switch's interfaces in /sys/class/net.
        let mut inside = OsString::from("--net=");
        inside.push(self.network.namespace(self.position));
        command.arg("nsenter").arg(inside).arg("--");
        if clock_ahead_s != 0 {
            let ahead = clock_ahead_s.to_string();
            command.args(["unshare", "--time", "--fork", "--monotonic", &ahead]);
            command.args(["--boottime", &ahead, "--"]);
        }
        let mut bind = OsString::from("--bind=");
        bind.push(self.disk.mount());
        bind.push(":/var/lib/etcd");
        let mut network = OsString::from("--network-namespace-path=");
        network.push(self.network.namespace(self.position));
        command
            .args(["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot"])
            .args(["--link-journal=no", "--resolv-conf=off", "--timezone=off"])
            .args(["--console=read-only", &format!("--capability={CAPABILITIES}")])
            .args([&format!("--machine={}", self.name), &format!("--hostname={}", self.name)])
            .args([network, bind])
            .arg("--directory")
            .arg(&self.root)
            .env("SYSTEMD_LOG_LEVEL", "notice")
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(second);
        command.spawn().map_err(Error::io("starting the container of", &self.root))
    }

    fn wait_for_init(&self, container: &mut Child) -> Result<()> {
        let start = Instant::now();
        while self.init().is_none() {
            let ended = matches!(container.try_wait(), Ok(Some(_)));
            if ended || start.elapsed() > BOOT_LIMIT {
                let said = fs::read_to_string(&self.console).unwrap_or_default();
                return Err(Error::Node {
                    node: self.name.clone(),
                    what: "its boot",
                    said: program::last_lines(&said, 4),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes note of the end of a container, so that no dead process is left.
fn reap(machine: &mut Machine) {
    if let Some(mut container) = machine.container.take() {
        let _ = container.kill();
        let _ = container.wait();
    }
}

/// The process of a cgroup that is number 1 in a process namespace right below the machine's.
pub(crate) fn init_of(cgroup: &Cgroup) -> Option<u32> {
    cgroup.pids().into_iter().find(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|numbers| {
            let numbers: Vec<_> = numbers.split_whitespace().collect();
            numbers.len() == 2 && numbers[1] == "1"
        })
    })
}

/// The node's disk lies over the image and survives power cycles.
fn mount_disk(directory: &Path, image: &Path) -> Result<PathBuf> {
    let [upper, work, root] = ["upper", "work", "root"].map(|name| directory.join(name));
    for each in [&upper, &work, &root] {
        fs::create_dir_all(each).map_err(Error::io("making", each))?;
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        image.display(),
        upper.display(),
        work.display()
    );
    mount(Some("overlay"), &root, Some("overlay"), MsFlags::empty(), Some(options.as_str()))
        .map_err(|error| Error::io("mounting", &root)(errno(error)))?;
    Ok(root)
}

/// Writes the node's configuration onto its disk.
fn install(parts: &Parts<'_>, position: usize, root: &Path) -> Result<()> {
    let Parts { config, place, image, .. } = parts;
    let node = &config.nodes[position];
    let write = |path: &str, text: &str, mode| image::write(&root.join(path), text, mode);
    write("etc/hostname", &format!("{}\n", node.name), 0o644)?;
    write("etc/hosts", &cluster::hosts(config), 0o644)?;
    write("etc/machine-id", &machine_id(), 0o444)?;
    fs::create_dir_all(root.join("var/log/journal")).map_err(Error::io("making", root))?;
    if let (Stack::Pair(stack), Some(bundles)) = (&config.stack, parts.bundles) {
        return pair::install(stack, &bundles[position], root);
    }
    write("etc/corosync/corosync.conf", &cluster::corosync_conf(config), 0o644)?;
    let key = place.directory.join("corosync.key");
    let target = root.join("etc/corosync/authkey");
    fs::copy(&key, &target).map_err(Error::io("copying to", &target))?;
    fs::set_permissions(&target, fs::Permissions::from_mode(0o400))
        .map_err(Error::io("setting the mode of", &target))?;
    let cib = "var/lib/pacemaker/cib/cib.xml";
    write(cib, &cluster::cib(config, parts.pins), 0o600)?;
    let (user, group) = image::owner(image, "hacluster")?;
    chown(root.join(cib), Some(user), Some(group)).map_err(Error::io("giving away", cib))?;
    if config.etcd {
        write("etc/default/etcd", &cluster::etcd_defaults(config, position), 0o644)?;
        // What `systemctl enable` would do.
        let wants = root.join("etc/systemd/system/multi-user.target.wants");
        fs::create_dir_all(&wants).map_err(Error::io("making", &wants))?;
        let link = wants.join("etcd.service");
        std::os::unix::fs::symlink("/usr/lib/systemd/system/etcd.service", &link)
            .map_err(Error::io("enabling", &link))?;
    }
    if let (Stack::Rival(rival), Some(bundles)) = (&config.stack, parts.bundles) {
        rival::install(config, *rival, position, &bundles[position], (image, root))?;
    }
    let credentials = cluster::BMC_CREDENTIALS.trim_start_matches('/');
    write(credentials, &cluster::bmc_credentials(), 0o600)?;
    if let FenceAgent::Dyad(agent) = &config.fence_agent {
        let target = root.join("usr/sbin/fence_dyad_redfish");
        fs::copy(agent, &target).map_err(Error::io("copying to", &target))?;
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755))
            .map_err(Error::io("setting the mode of", &target))?;
    }
    Ok(())
}

/// A new identity for each node of each lab.
fn machine_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    id.trim().replace('-', "") + "\n"
}
