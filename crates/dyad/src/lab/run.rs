//! What each `dyad lab` command does.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use dyad_lab::config::{FenceAgent, Link, PairStack, Release, Rival, Stack};
use dyad_lab::place::Place;
use dyad_lab::progress::{Progress as _, ToStderr};
use dyad_lab::protocol::{PowerAction, Request};
use dyad_lab::{ExecTarget, Lab, LabConfig, Lifetime, Supervision};

use super::{
    FenceAgentArgument, LabArgs, LabCommand, LinkArgument, PowerArgument, ReleaseArgument,
    RivalArgument, UpArgs, bench, campaign, clients, print,
};
use crate::exit::{Exit, Failure};
use crate::output::Format;

/// Runs a command of `dyad lab`.
pub fn run(arguments: LabArgs, format: Format) -> anyhow::Result<Exit> {
    let name = arguments.name;
    match arguments.command {
        LabCommand::Up(up) => start(&name, up, format),
        LabCommand::Down => end(&name, format),
        LabCommand::List => print::list(&Place::all(), format),
        LabCommand::Supervise { lab } => {
            dyad_lab::supervise(&lab).map_err(failure)?;
            Ok(Exit::Ok)
        }
        LabCommand::Load(load) => clients::load(&load, format),
        LabCommand::Fill(fill) => clients::fill(&fill),
        LabCommand::Bench(arguments) => bench::run(&arguments, format),
        LabCommand::Campaign(arguments) => campaign::run(arguments, format),
        LabCommand::Judge(judge) => clients::judge(&judge, format),
        LabCommand::Status => {
            let lab = connect(&name)?;
            print::status(&lab, &lab.status().map_err(failure)?, format)
        }
        LabCommand::Exec { node, command } => exec(&connect(&name)?, node, &command),
        LabCommand::Logs { node, follow, unit } => {
            logs(&connect(&name)?, node.as_deref(), follow, unit.as_deref(), format)
        }
        LabCommand::Timeline { all, svg } => {
            let timeline = connect(&name)?.timeline(all).map_err(failure)?;
            if let Some(path) = svg {
                std::fs::write(&path, timeline.svg())
                    .with_context(|| format!("writing the picture {}", path.display()))?;
            }
            print::timeline(&timeline, format)
        }
        LabCommand::Power { node, action: PowerArgument::Status } => {
            let lab = connect(&name)?;
            let position = lab.config().position(&node).map_err(failure)?;
            print::power(&lab.status().map_err(failure)?.nodes[position], format)
        }
        other => ask(&connect(&name)?, other, format),
    }
}

fn start(name: &str, up: UpArgs, format: Format) -> anyhow::Result<Exit> {
    let config = config(name, up)?;
    let own = std::env::current_exe().context("finding this program's own file")?;
    let command = vec![own.into(), "lab".into(), "supervise".into()];
    let progress = ToStderr::default();
    let stack = match config.stack {
        Stack::Minimal => format!("fencing by {}", agent_name(&config.fence_agent)),
        Stack::Pair(_) => "a pair".to_owned(),
        Stack::Rival(rival) => format!("{rival:?} and {}", agent_name(&config.fence_agent)),
    };
    progress.step(&format!("lab {name}: {stack}"));
    let lab = Lab::up(&config, &Supervision { command }, Lifetime::UntilDown, &progress)
        .map_err(failure)?;
    print::status(&lab, &lab.status().map_err(failure)?, format)
}

fn config(name: &str, up: UpArgs) -> anyhow::Result<LabConfig> {
    let mut config = LabConfig::named(name);
    if up.ipv6 {
        config = config.ipv6();
    }
    config.release = up.release.into();
    if !matches!(up.nodes.len(), 0 | 2) {
        return Err(Failure::new(Exit::Usage, "a pair has two nodes")
            .hint("give --node twice, or not at all")
            .into());
    }
    for (node, given) in config.nodes.iter_mut().zip(up.nodes) {
        node.name = given.name;
        let mut addresses = given.addresses.into_iter();
        node.link1 = addresses.next().unwrap_or(node.link1);
        node.link2 = addresses.next().unwrap_or(node.link2);
    }
    config.token_ms = up.token_ms.unwrap_or(config.token_ms);
    config.etcd_disk_mib = up.disk_mib.unwrap_or(config.etcd_disk_mib);
    config.fence_delay_s = up.fence_delay.unwrap_or(config.fence_delay_s);
    config.etcd = !up.no_etcd;
    config.fence_agent = fence_agent(up.fence_agent)?;
    if let Some(rival) = up.rival {
        config.stack = Stack::Rival(rival.into());
        config.etcd = false;
        config.fence_agent = FenceAgent::Distribution;
    } else if !up.minimal {
        config.stack = Stack::Pair(PairStack {
            package: package(up.package)?,
            tls: up.tls,
            by_hand: up.by_hand,
            podman: up.podman,
        });
    }
    Ok(config)
}

impl From<RivalArgument> for Rival {
    fn from(argument: RivalArgument) -> Self {
        match argument {
            RivalArgument::ForceNewCluster => Self::ForceNewCluster,
            RivalArgument::PodmanEtcd => Self::PodmanEtcd,
        }
    }
}

impl From<ReleaseArgument> for Release {
    fn from(argument: ReleaseArgument) -> Self {
        match argument {
            ReleaseArgument::Trixie => Self::Trixie,
            ReleaseArgument::Bookworm => Self::Bookworm,
        }
    }
}

/// Dyad's package: the one that was named, or the one that was made beside this program. One that is older than
/// the programs would show what is no longer true.
pub(super) fn package(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return std::path::absolute(&named).context("finding the package");
    }
    let own = std::env::current_exe().context("finding this program's own file")?;
    let own = own.parent().map(PathBuf::from).unwrap_or_default();
    let package = own.with_file_name("package").join("dyad.deb");
    let refuse = |message: String| {
        Failure::new(Exit::Usage, message)
            .hint("make it with scripts/package --debug, name one with --package, or use --minimal")
    };
    let made = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified());
    let time = made(&package)
        .map_err(|error| refuse(format!("cannot use {}: {error}", package.display())))?;
    for program in ["dyad", "dyad-node", "fence_dyad_redfish"] {
        if made(&own.join(program)).is_ok_and(|program| program > time) {
            let message = format!("{} is older than {program} beside it", package.display());
            return Err(refuse(message).into());
        }
    }
    Ok(package)
}

fn fence_agent(wanted: Option<FenceAgentArgument>) -> anyhow::Result<FenceAgent> {
    let own = std::env::current_exe().context("finding this program's own file")?;
    let agent = own.with_file_name("fence_dyad_redfish");
    match wanted {
        Some(FenceAgentArgument::Distribution) => Ok(FenceAgent::Distribution),
        None if !agent.is_file() => Ok(FenceAgent::Distribution),
        Some(FenceAgentArgument::Dyad) if !agent.is_file() => {
            Err(Failure::new(Exit::Usage, format!("there is no {}", agent.display()))
                .hint("build it: cargo build --package dyad-agent")
                .into())
        }
        _ => Ok(FenceAgent::Dyad(agent)),
    }
}

fn agent_name(agent: &FenceAgent) -> &'static str {
    match agent {
        FenceAgent::Distribution => "fence_redfish, the distribution's",
        FenceAgent::Dyad(_) => "fence_dyad_redfish",
    }
}

fn end(name: &str, format: Format) -> anyhow::Result<Exit> {
    let was_there = Lab::down(name).map_err(failure)?;
    let text = if was_there {
        format!("lab {name} has ended; nothing is left of it")
    } else {
        format!("there was no lab named {name}")
    };
    print::done(&text, format)
}

/// The commands that are one request to the lab.
fn ask(lab: &Lab, command: LabCommand, format: Format) -> anyhow::Result<Exit> {
    let text = lab.request(&request(command)?).map_err(failure)?;
    print::done(&text, format)
}

fn request(command: LabCommand) -> anyhow::Result<Request> {
    Ok(match command {
        LabCommand::Power { node, action } => {
            let action = match action {
                PowerArgument::On => PowerAction::On,
                PowerArgument::Cycle => PowerAction::Cycle,
                PowerArgument::Off | PowerArgument::Status => PowerAction::Off,
            };
            Request::Power { node, action }
        }
        LabCommand::Cut { link, one_way } => {
            let links = match link {
                LinkArgument::Link1 => vec![Link::Link1],
                LinkArgument::Link2 => vec![Link::Link2],
                LinkArgument::All => Link::ALL.to_vec(),
            };
            Request::Cut { links, from: one_way }
        }
        LabCommand::Heal => Request::Heal,
        LabCommand::Freeze { node } => Request::Freeze { node },
        LabCommand::Thaw { node } => Request::Thaw { node },
        LabCommand::KillEtcd { node } => Request::KillEtcd { node },
        LabCommand::BlockPort { node, port } => Request::BlockPort { node, port },
        LabCommand::Stall { node, port } => Request::Stall { node, port },
        LabCommand::SlowDisk { node, stall_ms } => Request::SlowDisk { node, stall_ms },
        LabCommand::SlowFsync { node, delay_ms } => Request::SlowFsync { node, delay_ms },
        LabCommand::FullDisk { node } => Request::FullDisk { node },
        LabCommand::Clock { node, ahead } => Request::Clock { node, ahead_s: ahead },
        LabCommand::Bmc { node, fault } => Request::Bmc { node, fault },
        other => anyhow::bail!("{other:?} is not a request"),
    })
}

/// Becomes a command in a node, with this program's own input and output.
fn exec(lab: &Lab, node: String, words: &[OsString]) -> anyhow::Result<Exit> {
    let target = if node == "client" { ExecTarget::Client } else { ExecTarget::Node(node) };
    // This process becomes the command: its exit code and the signals that it gets are its own.
    let error = lab.exec_command(&target, words).map_err(failure)?.exec();
    Err(anyhow::Error::new(error).context("running the command"))
}

fn logs(
    lab: &Lab,
    node: Option<&str>,
    follow: bool,
    unit: Option<&str>,
    format: Format,
) -> anyhow::Result<Exit> {
    if let Some(node) = node {
        lab.config().position(node).map_err(failure)?;
    }
    let unit =
        unit.map(|unit| if unit.contains('.') { unit.into() } else { format!("{unit}.service") });
    if follow {
        return follow_logs(lab, node, unit.as_deref(), format);
    }
    let mut messages = lab.journals(0).map_err(failure)?;
    messages.retain(|message| {
        node.is_none_or(|node| message.node == node)
            && unit.as_ref().is_none_or(|unit| message.unit.as_ref() == Some(unit))
    });
    print::logs(&messages, format)
}

/// Hands over to journalctl, which waits for more; what comes at the same time is not put in order.
fn follow_logs(
    lab: &Lab,
    node: Option<&str>,
    unit: Option<&str>,
    format: Format,
) -> anyhow::Result<Exit> {
    let mut command = Command::new("journalctl");
    command.args(["--quiet", "--no-pager", "--follow", "--output"]);
    command.arg(if format == Format::Json { "json" } else { "short-precise" });
    for each in lab.config().nodes.iter().filter(|each| node.is_none_or(|node| node == each.name)) {
        let journal = lab.place().journal(&each.name);
        command.arg(format!("--file={}/*/*.journal", journal.display()));
    }
    command.args(unit.map(|unit| format!("_SYSTEMD_UNIT={unit}")));
    let status = command.status().context("running journalctl")?;
    Ok(if status.success() { Exit::Ok } else { Exit::Failed })
}

fn connect(name: &str) -> anyhow::Result<Lab> {
    Lab::connect(name).map_err(failure)
}

/// The lab's errors with this program's exit codes.
pub(super) fn failure(error: dyad_lab::Error) -> anyhow::Error {
    use dyad_lab::Error;
    let exit = match &error {
        Error::NotRoot => Exit::Permission,
        Error::Config(_) | Error::NoSuchNode { .. } | Error::NotFound(_) | Error::Exists(_) => {
            Exit::Usage
        }
        Error::TimedOut { .. } => Exit::TimedOut,
        _ => Exit::Failed,
    };
    let mut failure = Failure::new(exit, dyad_lab::error::chain(&error));
    failure.hint = error.hint();
    failure.into()
}
