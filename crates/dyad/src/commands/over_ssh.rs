//! `dyad setup --over-ssh`: the set-up of both nodes from another machine, with the user's own `ssh`.
//!
//! It does what a person would do: render, copy each node its bundle, run `dyad setup` there, on both at the same
//! time. Bundles hold secrets: they go through standard input, never through arguments.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyad_setup::bundle::Bundle;
use dyad_setup::output::{Form, write};
use dyad_setup::{SecretsDir, secrets_path};
use serde::Serialize;

use super::pair_file;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// The set-up's own limits together, and the copying.
const LIMIT: Duration = Duration::from_mins(35);
/// What runs there. The bundle is gone when it is installed; `dyad setup` says what went wrong and ends so.
const REMOTE: &str = "set -e; umask 077; dir=$(mktemp -d /root/dyad-bundle.XXXXXX); \
                      trap 'rm -rf \"$dir\"' EXIT; base64 -d | tar -x -C \"$dir\"; dyad setup --bundle \"$dir\"";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    nodes: Vec<NodeReport>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeReport {
    node: String,
    exit_code: Option<i32>,
}

/// Sets both nodes up; the answer is yes only if both are ready.
pub(super) fn run(file: &Path, format: Format) -> anyhow::Result<Exit> {
    let (description, pair) = pair_file::load_usable(file)?;
    let base = pair_file::base(file)?;
    let failed = |error: dyad_setup::Error| {
        let hint = error.hint();
        Failure { exit: Exit::Failed, message: format!("{:#}", anyhow::Error::new(error)), hint }
    };
    let secrets = SecretsDir::open(&secrets_path(file)).map_err(failed)?;
    let bundles =
        dyad_setup::render::render(&description, &pair, &base, &secrets).map_err(failed)?;
    let archives = archives(&bundles)?;
    let nodes: Vec<NodeReport> = std::thread::scope(|scope| {
        let jobs: Vec<_> = bundles
            .iter()
            .zip(&archives)
            .map(|(bundle, archive)| scope.spawn(|| set_up(&bundle.node, archive)))
            .collect();
        jobs.into_iter()
            .zip(&bundles)
            .map(|(job, bundle)| NodeReport {
                node: bundle.node.clone(),
                exit_code: job.join().ok().flatten(),
            })
            .collect()
    });
    let unready: Vec<_> = nodes.iter().filter(|node| node.exit_code != Some(0)).cloned().collect();
    if format == Format::Json {
        output::print_json("SetupOverSshReport", Report { nodes })?;
    } else if unready.is_empty() {
        output::print_data(&format!("both nodes of the pair {} are ready\n", pair.name))?;
    }
    match unready.first() {
        None => Ok(Exit::Ok),
        Some(first) => {
            let code = first
                .exit_code
                .map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
            let message =
                format!("{} is not ready ({code}); what it said stands above", first.node);
            let hint =
                "it can be run again: what is done is not done twice; 255 is ssh's own failure";
            Err(Failure::new(Exit::Failed, message).hint(hint).into())
        }
    }
}

/// Each node's bundle as text that a terminal could carry.
fn archives(bundles: &[Bundle; 2]) -> anyhow::Result<Vec<String>> {
    // Only its owner can look into a temporary directory; it goes with its handle.
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let both: Vec<&Bundle> = bundles.iter().collect();
    let written = write(&both, Form::Tar, directory.path()).map_err(anyhow::Error::new)?;
    let read = |path: &std::path::PathBuf| {
        let content = std::fs::read(path).context("reading a bundle")?;
        Ok(STANDARD.encode(content))
    };
    written.paths.iter().map(read).collect()
}

/// Sets one node up and gives its exit code; what it says is shown with its name.
fn set_up(node: &str, archive: &str) -> Option<i32> {
    let told = |text: &str| anstream::eprintln!("{node}: {text}");
    // A master that stays behind would hold the pipes, and nothing here would end.
    let spawned = Command::new("ssh")
        .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ControlMaster=no"])
        .args([node, REMOTE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            told(&format!("ssh could not be started: {error}"));
            return None;
        }
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // An ssh that ends early says why by itself.
            let _ = stdin.map(|mut stdin| stdin.write_all(archive.as_bytes()));
        });
        scope.spawn(|| show(stdout, &told));
        scope.spawn(|| show(stderr, &told));
        let begin = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if begin.elapsed() < LIMIT => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                _ => {
                    told(&format!("did not end within {} min", LIMIT.as_secs() / 60));
                    let _ = child.kill();
                    return child.wait().ok()?.code();
                }
            }
        }
    })
}

fn show(pipe: Option<impl Read>, told: &dyn Fn(&str)) {
    let Some(pipe) = pipe else { return };
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        told(&line);
    }
}
