//! The lab's cables and switches.
//!
//! The supervisor's own network namespace is the switch: one bridge per cluster link, one for the BMCs and
//! one for clients. Each node has a namespace of its own that outlives its power cycles. Every cut is a
//! filter rule in the switch, where the nodes cannot see or undo it: a cable that is cut between two
//! switches leaves the carrier up and is simply silent.

mod filter;
mod stall;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::{LabConfig, Link, NodeConfig, prefix_length, reserved};
use crate::error::{Error, Result};
use crate::place::Place;
use crate::program::{self, QUICK};

pub(crate) use filter::{Connection, Cut, Faults};

/// The switch with its bridges and the nodes' ports.
#[derive(Debug)]
pub(crate) struct Network {
    namespaces: [PathBuf; 2],
    faults: Mutex<Faults>,
}

/// The bridges: the cluster links, the BMCs and the clients.
const BRIDGES: [&str; 4] = ["link1", "link2", "bmc", "client"];

/// The name of a node's port on a bridge, in the switch.
fn port(position: usize, bridge: &str) -> String {
    format!("n{}-{bridge}", position + 1)
}

impl Network {
    /// Builds everything, in the network namespace of this process.
    pub(crate) fn build(config: &LabConfig, place: &Place) -> Result<Self> {
        let directory = place.directory.join("net");
        fs::create_dir_all(&directory).map_err(Error::io("making", &directory))?;
        program::output(&mut program::words("ip -batch -"), &switch_commands(), QUICK)?;
        let namespaces = [0, 1].map(|position| directory.join(&config.nodes[position].name));
        for (position, namespace) in namespaces.iter().enumerate() {
            make_namespace(namespace)?;
            let cables = cable_commands(position, namespace);
            program::output(&mut program::words("ip -batch -"), &cables, QUICK)?;
            let addresses = address_commands(position, &config.nodes[position]);
            let mut ip = inside(namespace);
            program::output(ip.args(["ip", "-batch", "-"]), &addresses, QUICK)?;
        }
        let network = Self { namespaces, faults: Mutex::default() };
        network.change(|_| ())?;
        Ok(network)
    }

    /// A node's namespace.
    pub(crate) fn namespace(&self, position: usize) -> &Path {
        &self.namespaces[position]
    }

    /// Changes what is broken; all of it takes effect at once.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> Result<T> {
        let mut faults = self.lock();
        let result = change(&mut faults);
        program::output(&mut program::words("nft -f -"), &faults.ruleset(), QUICK)?;
        Ok(result)
    }

    /// What is broken.
    pub(crate) fn faults(&self) -> Faults {
        self.lock().clone()
    }

    /// Finds the busiest established connection from or to a port of a node.
    pub(crate) fn connection(&self, position: usize, port: u16) -> Result<Option<Connection>> {
        let mut list = inside(self.namespace(position));
        list.args(["ss", "-HtniO", "state", "established"]);
        Ok(stall::pick(&program::output(&mut list, "", QUICK)?, port))
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command inside a namespace. Not `ip netns exec`: that remounts /sys and hides the cgroups.
fn inside(namespace: &Path) -> std::process::Command {
    let mut net = std::ffi::OsString::from("--net=");
    net.push(namespace);
    program::command("nsenter", [net, "--".into()])
}

/// Makes a network namespace that is held by a file in this mount namespace, and ends with it.
fn make_namespace(path: &Path) -> Result<()> {
    File::create(path).map_err(Error::io("making", path))?;
    let mut option = std::ffi::OsString::from("--net=");
    option.push(path);
    program::output(&mut program::command("unshare", [option, "true".into()]), "", QUICK)?;
    Ok(())
}

fn switch_commands() -> String {
    let mut commands = String::from("link set lo up\n");
    for bridge in BRIDGES {
        // No learning delays, no multicast tricks: a plain switch.
        let _ =
            writeln!(commands, "link add {bridge} type bridge forward_delay 0 mcast_snooping 0");
        let _ = writeln!(commands, "link set {bridge} up");
    }
    for position in 0..2 {
        let _ = writeln!(commands, "addr add {}/24 dev bmc", reserved::bmc(position));
    }
    let _ = writeln!(commands, "addr add {}/24 dev client", reserved::CLIENT);
    commands
}

fn cable_commands(position: usize, namespace: &Path) -> String {
    let mut commands = String::new();
    for bridge in BRIDGES {
        let port = port(position, bridge);
        let namespace = namespace.display();
        let _ =
            writeln!(commands, "link add {port} type veth peer name {bridge} netns {namespace}");
        let _ = writeln!(commands, "link set {port} master {bridge} up");
    }
    commands
}

fn address_commands(position: usize, node: &NodeConfig) -> String {
    let addresses: [(&str, IpAddr); 4] = [
        (Link::Link1.name(), node.link1),
        (Link::Link2.name(), node.link2),
        ("bmc", reserved::node_on_bmc_network(position).into()),
        ("client", reserved::node_for_clients(position).into()),
    ];
    let mut commands = String::from("link set lo up\n");
    for (interface, address) in addresses {
        let length = prefix_length(address);
        // The lab's addresses are unique: waiting for IPv6 to find that out would only delay the start.
        let flag = if address.is_ipv6() { " nodad" } else { "" };
        let _ = writeln!(commands, "addr add {address}/{length} dev {interface}{flag}");
        let _ = writeln!(commands, "link set {interface} up");
    }
    commands
}
