//! `dyad gather`: one file with everything that somebody needs who has to find out what happened.
//!
//! Named steps, each with a limit: one that fails or hangs is noted and the rest goes on. Secrets are removed from
//! everything. The bundle says itself what is where.

mod index;
mod redact;
mod steps;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use super::this_node;
use crate::cli::GatherArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use index::Record;
use redact::Secrets;
use steps::Step;

/// One file of the bundle is cut off at this size: its end, which is the newer part, is kept.
const FILE_BYTES_MAX: usize = 8 << 20;
/// The whole bundle, before it is compressed.
const BUNDLE_BYTES_MAX: usize = 96 << 20;

/// What became of a step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    name: &'static str,
    file: String,
    what: &'static str,
    bytes: usize,
    took_ms: u64,
    /// Why it is missing or not whole.
    trouble: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    file: String,
    bytes: usize,
    steps: Vec<Done>,
}

/// Gathers, and writes one file.
pub(super) fn run(arguments: &GatherArguments, format: Format) -> anyhow::Result<Exit> {
    let node = this_node::open()?;
    if let Some(path) = arguments.out.as_ref().filter(|path| path.exists()) {
        return Err(exists(path).into());
    }
    let steps = steps::all(&node, arguments);
    let secrets = Secrets::of(&node);
    let name = format!("dyad-{}-{}", node.own().name, stamp());
    let mut bundle = Bundle::new(&node.own().name.0, &name);
    let done: Vec<Done> = steps.into_iter().map(|step| take(step, &secrets, &mut bundle)).collect();
    let page = index::page(&node, &done, &bundle.records);
    bundle.put("index.html", page.as_bytes())?;
    let packed = bundle.finish()?;
    if arguments.stdout {
        std::io::stdout().write_all(&packed).context("writing the bundle")?;
        return Ok(Exit::Ok);
    }
    let path = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.zst")));
    write_new(&path, &packed)?;
    let body = Body { file: path.display().to_string(), bytes: packed.len(), steps: done };
    match format {
        Format::Json => output::print_json("Bundle", &body)?,
        Format::Text => output::print_data(&told(&body))?,
    }
    Ok(Exit::Ok)
}

fn stamp() -> String {
    dyad_status::words::moment(dyad_node::journal::now_ms()).replace(' ', "-").replace(':', "")
}

/// Does one step; whatever comes of it, the bundle says so.
fn take(step: Step, secrets: &Secrets, bundle: &mut Bundle) -> Done {
    let limit = step.source.limit();
    take_within(limit, step, secrets, bundle)
}

fn take_within(limit: Duration, step: Step, secrets: &Secrets, bundle: &mut Bundle) -> Done {
    anstream::eprint!("{:<20}", step.name);
    let start = Instant::now();
    let other = step.source.other();
    let is_packed = other.is_some();
    let (content, mut trouble) = match within(limit, move || step.source.take()) {
        Ok(content) => (content, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    // The other node has removed its own.
    let mut content = if is_packed { content } else { secrets.remove(&content) };
    if content.len() > FILE_BYTES_MAX && !is_packed {
        content.drain(..content.len() - FILE_BYTES_MAX);
        trouble = Some(format!("only the last {} MiB are here", FILE_BYTES_MAX >> 20));
    }
    if !content.is_empty()
        && let Err(why) = bundle.add(&step.file, &content)
    {
        trouble = Some(why.to_string());
    }
    if let (Some(node), false) = (&other, content.is_empty())
        && let Err(why) = bundle.open_other(node, &content)
    {
        trouble = Some(format!("{why:#}"));
    }
    let trouble =
        trouble.map(|why| String::from_utf8_lossy(&secrets.remove(why.as_bytes())).into());
    let took = start.elapsed();
    let whole = if content.is_empty() { "there is none" } else { "ok" };
    let said: &str = trouble.as_ref().map_or(whole, |why: &String| why.as_str());
    anstream::eprintln!("{:>6} ms  {said}", took.as_millis());
    Done {
        name: step.name,
        file: step.file,
        what: step.what,
        bytes: content.len(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        trouble,
    }
}

/// What the source gives within the limit. A read from a disk that is stuck cannot be ended: it is left behind.
fn within(
    limit: Duration,
    source: impl FnOnce() -> Result<Vec<u8>, String> + Send + 'static,
) -> Result<Vec<u8>, String> {
    let (sender, answer) = channel();
    thread::spawn(move || {
        let _ = sender.send(source());
    });
    answer.recv_timeout(limit).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => Err(format!("cut off: no end within {limit:?}")),
        RecvTimeoutError::Disconnected => Err("the step failed".to_owned()),
    })
}

/// Never over a file that is there: a bundle may be the only trace of what it shows.
fn write_new(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match file {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(exists(path).into());
        }
        other => other.with_context(|| format!("creating {}", path.display()))?,
    };
    file.write_all(content).with_context(|| format!("writing {}", path.display()))
}

fn exists(path: &Path) -> Failure {
    Failure::new(Exit::Usage, format!("{} exists", path.display())).hint("--out FILE")
}

fn told(body: &Body) -> String {
    let missing = body.steps.iter().filter(|step| step.trouble.is_some()).count();
    let all = body.steps.len();
    format!(
        "{} ({}), {} of {all} steps complete; it opens with index.html\n",
        body.file,
        dyad_status::words::bytes(body.bytes as u64),
        all - missing
    )
}

/// A tar archive in the making.
struct Bundle {
    /// The node that makes it.
    node: String,
    name: String,
    archive: tar::Builder<Vec<u8>>,
    bytes: usize,
    /// What the timeline of the index is made of, of both nodes.
    records: Vec<Record>,
}

impl Bundle {
    fn new(node: &str, name: &str) -> Self {
        let archive = tar::Builder::new(Vec::new());
        let (node, name) = (node.to_owned(), name.to_owned());
        Self { node, name, archive, bytes: 0, records: Vec::new() }
    }

    fn add(&mut self, file: &str, content: &[u8]) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.bytes + content.len() <= BUNDLE_BYTES_MAX,
            "left out: the bundle would be larger than {} MiB",
            BUNDLE_BYTES_MAX >> 20
        );
        self.bytes += content.len();
        self.put(file, content)
    }

    /// Puts it in whatever there is already: so does the index, without which nobody finds anything.
    fn put(&mut self, file: &str, content: &[u8]) -> anyhow::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(dyad_node::journal::now_ms() / 1_000);
        let path = format!("{}/{file}", self.name);
        self.archive.append_data(&mut header, path, content)?;
        if index::is_part_of_the_timeline(file) {
            let (node, file) = (self.node.clone(), file.to_owned());
            self.records.push(Record { node, file, content: content.to_owned() });
        }
        Ok(())
    }

    /// Takes the other node's records into the timeline. Its bundle stays as it came.
    fn open_other(&mut self, node: &str, packed: &[u8]) -> anyhow::Result<()> {
        let records = index::records_in(node, packed, 2 * BUNDLE_BYTES_MAX as u64);
        self.records.extend(records.context("the other node's bundle cannot be opened")?);
        Ok(())
    }

    fn finish(self) -> anyhow::Result<Vec<u8>> {
        let tar = self.archive.into_inner().context("ending the archive")?;
        zstd::encode_all(tar.as_slice(), 3).context("compressing the bundle")
    }
}

/// How long one step may take.
const STEP_LIMIT: Duration = Duration::from_secs(15);
/// What a step may take beyond the limit that its own source keeps.
const STEP_HEADROOM: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use steps::Source;

    fn step(file: &str, source: Source) -> Step {
        Step { name: "a step", file: file.to_owned(), what: "something", source }
    }

    fn text(text: String) -> Source {
        Source::Text(Box::new(move || Ok(text.clone())))
    }

    /// P6: a file whose disk is stuck (here: a pipe that nobody writes to) is cut off and noted, and the rest goes on.
    #[test]
    fn a_stuck_file_is_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let stuck = directory.path().join("decisions.jsonl");
        nix::unistd::mkfifo(&stuck, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let source = Source::File(stuck);
        assert_eq!(source.limit(), STEP_LIMIT);
        let (start, limit) = (Instant::now(), Duration::from_millis(50));
        let (none, mut bundle) = (Secrets::default(), Bundle::new("node-a", "dyad-node-a-2026"));
        let step_done = take_within(limit, step("dyad/stuck", source), &none, &mut bundle);
        assert_eq!(step_done.trouble.as_deref(), Some("cut off: no end within 50ms"));
        assert!(start.elapsed() < Duration::from_secs(10));
        let next = take(step("next.txt", text("here".into())), &none, &mut bundle);
        assert_eq!((next.bytes, next.trouble), (4, None));
        let failed = within(STEP_LIMIT, || panic!("a bug"));
        assert_eq!(failed, Err("the step failed".to_owned()));
    }

    /// Every step has a limit, also where its source keeps one: then it is the longer one.
    #[test]
    fn every_source_has_a_limit() {
        assert!(Source::Program(vec!["true".into()]).limit() > STEP_LIMIT);
        assert_eq!(text(String::new()).limit(), STEP_LIMIT);
        let other = Source::Other { node: "node-b".into(), address: "::1".into() };
        assert!(other.limit() > steps::OTHER_LIMIT);
    }

    /// A file keeps its end; a bundle that is full says what was left out, and stays whole.
    #[test]
    fn size_is_bounded() {
        let none = Secrets::default();
        let mut bundle = Bundle::new("node-a", "dyad-node-a-2026");
        let mut long = "old ".repeat(FILE_BYTES_MAX / 4);
        long.push_str("the end");
        let done = take(step("long.txt", text(long)), &none, &mut bundle);
        assert_eq!((done.bytes, bundle.bytes), (FILE_BYTES_MAX, FILE_BYTES_MAX));
        assert!(done.trouble.unwrap().contains("only the last 8 MiB"));
        let mib = "x".repeat(FILE_BYTES_MAX);
        let steps = (1..=12).map(|n| step(&format!("{n}.txt"), text(mib.clone())));
        let troubles: Vec<_> =
            steps.map(|step| take(step, &none, &mut bundle).trouble.is_some()).collect();
        assert_eq!(troubles.iter().filter(|left_out| **left_out).count(), 1, "{troubles:?}");
        assert_eq!(bundle.bytes, BUNDLE_BYTES_MAX);
        // The index comes last, and must not be the one that is left out.
        bundle.put("index.html", b"<!doctype html>").unwrap();
        let packed = bundle.finish().unwrap();
        let tar = zstd::decode_all(packed.as_slice()).unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        assert_eq!(archive.entries().unwrap().count(), 13);
    }
}
