//! Running commands in a node or beside the pair.

use std::ffi::OsString;
use std::fs::read_link;
use std::process::Command;

use crate::cgroup::Cgroup;
use crate::config::LabConfig;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::protocol::LabStatus;

/// Capabilities that a node does not have. Entering its namespaces from outside does not take them away,
/// and the clock, the modules and the hardware are the machine's: `date -s` in a node must fail.
const WITHHELD: &str = "--bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_pacct,-mac_override,\
                        -mac_admin,-syslog,-wake_alarm,-block_suspend,-audit_read,-perfmon,-bpf,\
                        -checkpoint_restore";

/// Where a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecTarget {
    /// In a node, as one of its processes.
    Node(String),
    /// On the machine, in the network where clients of the pair are: cuts of the cluster links do not
    /// reach it.
    Client,
}

/// Builds the command line.
pub(super) fn command(
    place: &Place,
    config: &LabConfig,
    status: &LabStatus,
    target: &ExecTarget,
    words: &[OsString],
) -> Result<Command> {
    let name = match target {
        ExecTarget::Client => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/proc/{}/ns/net", status.supervisor)).arg("--").args(words);
            return Ok(command);
        }
        ExecTarget::Node(name) => name,
    };
    let position = config.position(name)?;
    let init = status.nodes[position].init.ok_or_else(|| Error::NodeOff(name.clone()))?;
    // Its own corner of the node's cgroup: it dies and hangs with the node.
    let cgroup =
        Cgroup::root()?.child(&place.cgroup()).child(&format!("node-{name}")).child("exec");
    cgroup.create()?;
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo $$ > \"$1/cgroup.procs\" && shift && exec \"$@\"", "sh"])
        .arg(cgroup.path())
        .args(["setpriv", WITHHELD, "--"])
        .args(["nsenter", "--target", &init.to_string(), "--mount", "--uts", "--ipc", "--net"])
        .args(["--pid", "--cgroup", "--root", "--wd"])
        .args(has_own_clock(init).then_some("--time"))
        .arg("--")
        .args(["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])
        .args(["HOME=/root", "LANG=C.UTF-8", "TERM=xterm"])
        .args(words);
    Ok(command)
}

/// Whether a process was started with a shifted monotonic clock. Not every kernel can do that.
fn has_own_clock(init: u32) -> bool {
    let clock = |process: &str| read_link(format!("/proc/{process}/ns/time")).ok();
    clock("self") != clock(&init.to_string())
}
