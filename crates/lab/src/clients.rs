//! Clients that write and read through both nodes while things fail, in a process of their own.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use dyad_judge::history::{self, History};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::config::reserved;
use crate::error::{Error, Result, chain};
use crate::{ExecTarget, Lab};

/// How long the first writes may take.
const BEGIN_LIMIT: Duration = Duration::from_mins(2);
/// How long the nodes may take to be read in the end, and then the process to end.
const FINAL_LIMIT: &str = "60s";
const END_LIMIT: Duration = Duration::from_secs(90);
/// How long filling a database may take.
const FILL_LIMIT: Duration = Duration::from_mins(10);
/// This much history shows that the clients have begun: not before is there anything to lose.
const BEGUN_BYTES: u64 = 20_000;

/// What the clients do.
#[derive(Debug, Clone)]
pub struct Load {
    /// The program that becomes the clients: `dyad`.
    pub program: PathBuf,
    /// How many clients.
    pub clients: u32,
    /// How many requests a second, all of them together.
    pub rate: u32,
    /// Seed of all choices; a new one if not given.
    pub seed: Option<u64>,
    /// Where the keys lie; a place of their own if not given.
    pub prefix: Option<String>,
}

impl Load {
    /// The usual load of a scenario.
    pub fn usual(program: &Path) -> Self {
        Self { program: program.to_owned(), clients: 8, rate: 150, seed: None, prefix: None }
    }
}

/// Clients at work. They end when this does.
#[derive(Debug)]
pub struct Clients {
    child: Child,
    history: PathBuf,
    log: PathBuf,
}

impl Clients {
    /// Starts them, on the network that cuts of the cluster links do not reach. Returns when they write.
    pub fn start(lab: &Lab, load: &Load, history: &Path) -> Result<Self> {
        let words = words(lab, load, history)?;
        let log = history.with_extension("log");
        let file = File::create(&log).map_err(Error::io("making", &log))?;
        let second = file.try_clone().map_err(Error::io("making", &log))?;
        let child = lab
            .exec_command(&ExecTarget::Client, &words)?
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(second)
            .spawn()
            .map_err(Error::io("starting the clients of", &log))?;
        let mut clients = Self { child, history: history.to_owned(), log };
        let mut ended = None;
        lab.wait_until("the clients to write", BEGIN_LIMIT, || {
            if let Ok(Some(status)) = clients.child.try_wait() {
                ended = Some(status);
                return None;
            }
            let written = std::fs::metadata(&clients.history).map_or(0, |file| file.len());
            (written < BEGUN_BYTES).then(|| format!("{written} bytes of history"))
        })?;
        match ended {
            Some(status) => Err(clients.failed(&format!("they ended with {status}"))),
            None => Ok(clients),
        }
    }

    /// Ends them, after they have read what each node holds, and gives what they saw.
    pub fn end(mut self, lab: &Lab) -> Result<History> {
        let id = Pid::from_raw(self.child.id().cast_signed());
        // One that is gone already shows below.
        let _ = kill(id, Signal::SIGINT);
        lab.wait_until("the clients to end", END_LIMIT, || match self.child.try_wait() {
            Ok(Some(_)) => None,
            _ => Some("they still run".into()),
        })?;
        history::read(&self.history).map_err(|error| self.failed(&chain(&error)))
    }

    fn failed(&self, why: &str) -> Error {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        Error::Machine(format!("the clients: {why}; {}", crate::program::last_lines(&said, 3)))
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn words(lab: &Lab, load: &Load, history: &Path) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> = vec![load.program.clone().into()];
    words.extend(["lab", "load", "--request-limit", "5s", "--final-limit"].map(OsString::from));
    words.push(FINAL_LIMIT.into());
    words.extend(["--clients".into(), load.clients.to_string().into()]);
    words.extend(["--rate".into(), load.rate.to_string().into()]);
    if let Some(seed) = load.seed {
        words.extend(["--seed".into(), seed.to_string().into()]);
    }
    if let Some(prefix) = &load.prefix {
        words.extend(["--prefix".into(), prefix.into()]);
    }
    for (position, node) in lab.config().nodes.iter().enumerate() {
        let endpoint = format!("{}={}", node.name, url(lab, position));
        words.extend(["--endpoint".into(), endpoint.into()]);
    }
    words.extend(certificates(lab, history)?);
    words.push(history.into());
    Ok(words)
}

/// Where clients reach a node's etcd.
fn url(lab: &Lab, position: usize) -> String {
    let scheme = if lab.config().stack.tls() { "https" } else { "http" };
    format!("{scheme}://{}:2379", reserved::node_for_clients(position))
}

/// Fills the database with keys of a thousand bytes, through the first node. `copies` is a file beside which copies of the
/// certificates may lie.
pub fn fill(lab: &Lab, program: &Path, megabytes: u32, copies: &Path) -> Result<()> {
    let mut words: Vec<OsString> = vec![program.into()];
    words.extend(["lab", "fill", "--endpoint"].map(OsString::from));
    words.push(url(lab, 0).into());
    words.extend(["--keys".into(), (u64::from(megabytes) * 1000).to_string().into()]);
    words.extend(certificates(lab, copies)?);
    let mut command = lab.exec_command(&ExecTarget::Client, &words)?;
    crate::program::output(&mut command, "", FILL_LIMIT)?;
    Ok(())
}

/// A client's certificate, as one outside of the pair would have it: a copy that does not change with the nodes' own.
fn certificates(lab: &Lab, history: &Path) -> Result<Vec<OsString>> {
    if !lab.config().stack.tls() {
        return Ok(Vec::new());
    }
    let pki = lab.place().node(&lab.config().nodes[0].name).join("upper/etc/dyad/pki");
    let mut words = Vec::new();
    for (flag, file) in [("--ca", "ca.pem"), ("--cert", "client.pem"), ("--key", "client.key")] {
        let copy = history.with_file_name(file);
        std::fs::copy(pki.join(file), &copy).map_err(Error::io("copying to", &copy))?;
        words.extend([flag.into(), copy.into()]);
    }
    Ok(words)
}
