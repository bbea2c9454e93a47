//! A network of one's own, in which a member can lose its power.
//!
//! A killed process still says goodbye: the kernel sends FIN or RST on its connections. A machine that loses
//! power does not, and much of what goes wrong then is hidden by the goodbye. So a test that needs a real
//! power loss runs in a network namespace of its own, which is a switch; each member has a namespace of its
//! own too, which is its machine; a cable runs from one to the other, and can be pulled.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, ensure};

use crate::wait::wait_for;

/// Set in a test that runs in its own network.
const MARK: &str = "ETCD_FIXTURE_OWN_NETWORK";
/// The switch that all cables lead to.
const SWITCH: &str = "switch";

/// Whether this process is in a network of its own.
pub fn is_own_network() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs this very test again in a network of its own and says how it went; in that second run it returns
/// `true` at once. `test` is the test's name as the harness knows it.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// if !etcd_fixture::in_own_network("a_power_loss")? {
///     return Ok(()); // ran below, and passed
/// }
/// // ... the test itself, with `Options::machines`
/// # Ok(())
/// # }
/// ```
pub fn in_own_network(test: &str) -> anyhow::Result<bool> {
    if is_own_network() {
        set_up_switch()?;
        return Ok(true);
    }
    let output = own_network_command(&std::env::current_exe()?)
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .output()
        .context("running a test in its own network")?;
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{out}");
    eprint!("{err}");
    ensure!(output.status.success(), "{test} failed in its own network");
    ensure!(!out.contains(" 0 passed"), "there is no test named {test}");
    Ok(false)
}

/// A command that runs in a network of its own. It calls [`set_up_switch`] first.
pub fn own_network_command(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    // Without root, a user namespace gives the right to a network.
    let root = rustix::process::getuid().is_root();
    let flags: &[&str] = if root { &["--net"] } else { &["--net", "--map-root-user"] };
    command.args(flags).arg("--").arg(program).env(MARK, "1");
    command
}

/// Sets up the switch of this network, once.
pub fn set_up_switch() -> anyhow::Result<()> {
    ensure!(is_own_network(), "only in a network of one's own");
    if Path::new("/proc/sys/net/ipv4/conf").join(SWITCH).exists() {
        return Ok(());
    }
    run("ip", &["link", "set", "lo", "up"])?;
    run("ip", &["link", "add", SWITCH, "type", "bridge"])?;
    run("ip", &["address", "add", "10.99.0.254/24", "dev", SWITCH])?;
    run("ip", &["link", "set", SWITCH, "up"])
}

/// A member's machine: a network namespace with one address and one cable.
#[derive(Debug)]
pub(crate) struct Machine {
    /// A process that does nothing; the namespace lives as long as it does.
    holder: Child,
    cable: String,
    address: Ipv4Addr,
}

impl Machine {
    pub(crate) fn new() -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        set_up_switch()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = Ipv4Addr::new(10, 99, 0, u8::try_from(number % 250)? + 1);
        let holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--"])
            .args(["sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .context("starting the holder of a network namespace")?;
        let machine = Self { holder, cable: format!("cable{number}"), address };
        machine.plug_in().context("plugging in a machine")?;
        Ok(machine)
    }

    fn plug_in(&self) -> anyhow::Result<()> {
        let own = std::fs::read_link("/proc/self/ns/net")?;
        let space = self.namespace();
        wait_for("a network namespace", || {
            std::fs::read_link(&space).ok().filter(|found| *found != own)
        })?;
        let pid = self.holder.id().to_string();
        let cable = &self.cable;
        run("ip", &["link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", &pid])?;
        run("ip", &["link", "set", cable, "master", SWITCH])?;
        run("ip", &["link", "set", cable, "up"])?;
        let address = format!("{}/24", self.address);
        for command in [
            &["ip", "link", "set", "lo", "up"][..],
            &["ip", "address", "add", &address, "dev", "eth0"],
            &["ip", "link", "set", "eth0", "up"],
        ] {
            let inside = format!("--net={}", space.display());
            let mut arguments = vec![inside.as_str(), "--"];
            arguments.extend(command);
            run("nsenter", &arguments)?;
        }
        Ok(())
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The file that stands for the namespace.
    pub(crate) fn namespace(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.holder.id()).into()
    }

    pub(crate) fn pull_cable(&self) -> anyhow::Result<()> {
        run("ip", &["link", "set", &self.cable, "down"])
    }

    pub(crate) fn plug_cable(&self) -> anyhow::Result<()> {
        run("ip", &["link", "set", &self.cable, "up"])
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        // The cable goes with the namespace, but not at once; another test's machine may want its name.
        let _ = run("ip", &["link", "delete", &self.cable]);
    }
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("running {program}"))?;
    ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
