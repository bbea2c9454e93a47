//! What is gathered, step by step.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use dyad_node::Node;
use dyad_program::{command, run};
use dyad_status::look::{PATIENT, look};

use super::{FILE_BYTES_MAX, STEP_HEADROOM, STEP_LIMIT};
use crate::cli::GatherArguments;

/// The other node gathers as we do: every step of it has a limit of its own.
pub(super) const OTHER_LIMIT: Duration = Duration::from_mins(3);

/// One step.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Where it goes in the bundle.
    pub(super) file: String,
    /// What it shows.
    pub(super) what: &'static str,
    pub(super) source: Source,
}

/// Where a step's content comes from.
pub(super) enum Source {
    /// What a program says, on both its outputs.
    Program(Vec<String>),
    /// The end of a file.
    File(PathBuf),
    /// What was looked at from within.
    Text(Box<dyn Fn() -> Result<String, String> + Send>),
    /// The bundle of the other node.
    Other { node: String, address: String },
}

impl Source {
    /// The other node, if this is its bundle: packed already, and cleaned where it was made.
    pub(super) fn other(&self) -> Option<String> {
        match self {
            Self::Other { node, .. } => Some(node.clone()),
            _ => None,
        }
    }

    /// When it is cut off. A program is ended by its own limit, which tells more.
    pub(super) fn limit(&self) -> Duration {
        match self {
            Self::Program(_) => STEP_LIMIT + STEP_HEADROOM,
            Self::File(_) | Self::Text(_) => STEP_LIMIT,
            Self::Other { .. } => OTHER_LIMIT + STEP_HEADROOM,
        }
    }

    /// Gets it, or says why not.
    pub(super) fn take(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Program(words) => program(words),
            Self::File(path) => file(path).map_err(|error| format!("{}: {error}", path.display())),
            Self::Text(look) => look().map(String::into_bytes),
            Self::Other { address, .. } => other(address),
        }
    }
}

fn program(words: &[String]) -> Result<Vec<u8>, String> {
    let (name, arguments) = words.split_first().ok_or("no program")?;
    let finished =
        run(&mut command(name, arguments), "", STEP_LIMIT).map_err(|error| error.to_string())?;
    let mut text = format!("$ {}\n{}", words.join(" "), finished.stdout);
    if !finished.stderr.is_empty() {
        text.push_str("\n---- stderr\n");
        text.push_str(&finished.stderr);
    }
    let _ = writeln!(text, "\n---- exit {}", finished.code);
    Ok(text.into_bytes())
}

/// The end of a file: the newer part of a log.
fn file(path: &PathBuf) -> std::io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        // Nobody has confirmed anything yet: that is an answer.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(FILE_BYTES_MAX as u64)))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Asks the other node for its own bundle, by SSH, if root there lets root here in. Nothing is asked for.
fn other(address: &str) -> Result<Vec<u8>, String> {
    let target = format!("root@{address}");
    let options =
        ["-o", "BatchMode=yes", "-o", "ConnectTimeout=3", "-o", "StrictHostKeyChecking=accept-new"];
    let mut ssh = Command::new("timeout");
    ssh.arg(OTHER_LIMIT.as_secs().to_string()).arg("ssh").args(options).arg(target);
    ssh.args(["dyad", "gather", "--only-here", "--stdout"]).stdin(Stdio::null());
    let output = ssh.output().map_err(|error| format!("ssh: {error}"))?;
    if output.status.success() && !output.stdout.is_empty() {
        return Ok(output.stdout);
    }
    let said = dyad_program::last_lines(&String::from_utf8_lossy(&output.stderr), 1);
    Err(format!("not reached by SSH ({said}); run dyad gather there too"))
}

fn words(line: &str) -> Source {
    Source::Program(line.split_whitespace().map(str::to_owned).collect())
}

/// All steps, the quick ones first: if somebody loses patience, most is there.
pub(super) fn all(node: &Node, arguments: &GatherArguments) -> Vec<Step> {
    let mut steps = vec![
        looked("status", "status.json", "the pair as this node sees it", node, status),
        looked("facts", "facts.json", "what decisions rest on now: `dyad decide`", node, facts),
    ];
    steps.extend(programs());
    steps.extend(files(node));
    steps.push(journal(node, arguments));
    steps.push(looked(
        "BMC log here",
        "bmc/own.txt",
        "what this node's BMC wrote down",
        node,
        |node| bmc_log(&node.own().bmc),
    ));
    steps.push(looked(
        "BMC log there",
        "bmc/other.txt",
        "what the other node's BMC wrote down",
        node,
        |node| bmc_log(&node.peer().bmc),
    ));
    if !arguments.only_here {
        let address = node.peer().addresses.first().map(ToString::to_string).unwrap_or_default();
        let peer = node.peer().name.to_string();
        let (what, file) = ("the other node's own bundle", format!("{peer}.tar.zst"));
        let source = Source::Other { node: peer, address };
        steps.push(Step { name: "other node", file, what, source });
    }
    steps
}

fn looked(
    name: &'static str,
    file: &str,
    what: &'static str,
    node: &Node,
    look: fn(&Arc<Node>) -> Result<String, String>,
) -> Step {
    let own = (node.place.clone(), node.own().name.clone());
    let source = Source::Text(Box::new(move || {
        let node = Node::open(own.0.clone(), &own.1).map_err(|error| error.to_string())?;
        look(&Arc::new(node))
    }));
    Step { name, file: file.to_owned(), what, source }
}

fn status(node: &Arc<Node>) -> Result<String, String> {
    let status = look(node, PATIENT).status;
    serde_json::to_string_pretty(&status).map_err(|error| error.to_string())
}

fn facts(node: &Arc<Node>) -> Result<String, String> {
    let facts = look(node, PATIENT).gathered.facts;
    serde_json::to_string_pretty(&facts).map_err(|error| error.to_string())
}

/// A BMC's own log, a line for each entry. That it keeps none is an answer.
fn bmc_log(bmc: &dyad_cluster::pair::Bmc) -> Result<String, String> {
    let entries =
        dyad_node::power::log_entries(bmc).map_err(|error| dyad_node::gather::words(&*error))?;
    let mut text = format!("{} entries\n", entries.len());
    for entry in entries {
        let dyad_power::LogEntry { created, severity, message, log } = entry;
        let _ = writeln!(text, "{created} {log} {severity}: {message}");
    }
    Ok(text)
}

/// What programs are asked.
const PROGRAMS: &[(&str, &str, &str, &str)] = &[
    (
        "corosync quorum",
        "corosync/quorum.txt",
        "membership and quorum",
        "corosync-quorumtool -s -p",
    ),
    ("corosync links", "corosync/links.txt", "links to the other node", "corosync-cfgtool -n"),
    ("corosync map", "corosync/map.txt", "Corosync's whole state", "corosync-cmapctl"),
    (
        "corosync blackbox",
        "corosync/blackbox.txt",
        "its last thousands of steps",
        "corosync-blackbox",
    ),
    (
        "crm_mon",
        "pacemaker/crm_mon.txt",
        "Pacemaker's view",
        "crm_mon --one-shot --inactive --show-detail --operations --failcounts",
    ),
    ("cib", "pacemaker/cib.txt", "the CIB in use", "cibadmin --query"),
    (
        "fencing history",
        "pacemaker/fencing.txt",
        "who was fenced, when",
        "stonith_admin --history * --verbose",
    ),
    (
        "attributes",
        "pacemaker/attributes.txt",
        "what the nodes have said",
        "attrd_updater --query --all --name dyad-statement",
    ),
    (
        "units",
        "system/units.txt",
        "the units of the pair",
        "systemctl status --no-pager --lines=0 corosync pacemaker dyad-etcd dyad-follow dyad-lone-boot",
    ),
    (
        "failed units",
        "system/failed.txt",
        "units that failed",
        "systemctl list-units --failed --no-pager",
    ),
    ("network", "system/network.txt", "addresses and counters", "ip -s address"),
    ("disk", "system/disk.txt", "room on the disks", "df -h"),
    ("uptime", "system/uptime.txt", "load and boot", "uptime"),
    ("kernel", "system/kernel.txt", "kernel", "uname -a"),
    ("version corosync", "versions/corosync.txt", "its version", "corosync -v"),
    ("version pacemaker", "versions/pacemaker.txt", "its version", "pacemakerd --version"),
    ("version etcd", "versions/etcd.txt", "its version", "etcd --version"),
    ("version dyad", "versions/dyad.txt", "its version", "dyad --version"),
];

fn programs() -> impl Iterator<Item = Step> {
    PROGRAMS.iter().map(|(name, file, what, line)| Step {
        name,
        file: (*file).to_owned(),
        what,
        source: words(line),
    })
}

fn files(node: &Node) -> Vec<Step> {
    let step = |name, file: &str, what, path: PathBuf| Step {
        name,
        file: file.to_owned(),
        what,
        source: Source::File(path),
    };
    let log = &node.place.log;
    let corosync = PathBuf::from("/etc/corosync/corosync.conf");
    vec![
        step(
            "decisions",
            "dyad/decisions.jsonl",
            "every decision with its facts",
            log.join("decisions.jsonl"),
        ),
        step(
            "older decisions",
            "dyad/decisions.1.jsonl",
            "the ones before",
            log.join("decisions.1.jsonl"),
        ),
        step(
            "events",
            "dyad/events.jsonl",
            "fencing, and nodes that came and went",
            PathBuf::from("/var/spool/dyad/events.jsonl"),
        ),
        step("acts", "dyad/acts.jsonl", "what people did", log.join("acts.jsonl")),
        step(
            "confirmations",
            "dyad/confirmations.jsonl",
            "what people confirmed",
            log.join("confirmations.jsonl"),
        ),
        step("pair", "config/pair.json", "the pair as it was set up", node.place.pair_file()),
        step("corosync.conf", "config/corosync.conf", "Corosync's configuration", corosync),
    ]
}

fn journal(node: &Node, arguments: &GatherArguments) -> Step {
    let mut line = vec![
        "journalctl".to_owned(),
        "--no-pager".to_owned(),
        "--output=short-iso-precise".to_owned(),
        format!("--since=-{}min", arguments.minutes),
    ];
    let units = ["corosync", "pacemaker", "dyad-*"].map(str::to_owned).into_iter();
    let units = units.chain(node.pair.units_before.iter().chain(&node.pair.units_after).cloned());
    line.extend(units.map(|unit| format!("--unit={unit}")));
    Step {
        name: "journal",
        file: "system/journal.txt".to_owned(),
        what: "the system log of the pair's units",
        source: Source::Program(line),
    }
}
