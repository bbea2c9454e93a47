//! `dyad gather`: one file with everything that somebody needs who has to find out what happened.
//!
//! Named steps, each with a limit: one that fails or hangs is noted and the rest goes on. Secrets are removed from
//! everything. The bundle says itself what is where.

mod index;
mod redact;
mod steps;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use super::this_node;
use crate::cli::GatherArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
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
    let mut bundle = Bundle::new(&name);
    let mut done = Vec::new();
    for step in &steps {
        done.push(take(step, &secrets, &mut bundle));
    }
    let page = index::page(&node, &done, &bundle.files);
    bundle.add("index.html", page.as_bytes())?;
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
fn take(step: &Step, secrets: &Secrets, bundle: &mut Bundle) -> Done {
    anstream::eprint!("{:<20}", step.name);
    let start = Instant::now();
    let (content, mut trouble) = match step.source.take() {
        Ok(content) => (content, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    // The other node has removed its own.
    let mut content = if step.source.is_packed() { content } else { secrets.remove(&content) };
    if content.len() > FILE_BYTES_MAX && !step.source.is_packed() {
        content.drain(..content.len() - FILE_BYTES_MAX);
        trouble = Some(format!("only the last {} MiB are here", FILE_BYTES_MAX >> 20));
    }
    if !content.is_empty()
        && let Err(why) = bundle.add(&step.file, &content)
    {
        trouble = Some(why.to_string());
    }
    let trouble =
        trouble.map(|why| String::from_utf8_lossy(&secrets.remove(why.as_bytes())).into());
    let took = start.elapsed();
    let whole = if content.is_empty() { "there is none" } else { "ok" };
    let said: &str = trouble.as_ref().map_or(whole, |why: &String| why.as_str());
    anstream::eprintln!("{:>6} ms  {said}", took.as_millis());
    Done {
        name: step.name,
        file: step.file.clone(),
        what: step.what,
        bytes: content.len(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        trouble,
    }
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
    name: String,
    archive: tar::Builder<Vec<u8>>,
    bytes: usize,
    /// What is in it so far, for the index: name and text.
    files: Vec<(String, Vec<u8>)>,
}

impl Bundle {
    fn new(name: &str) -> Self {
        let archive = tar::Builder::new(Vec::new());
        Self { name: name.to_owned(), archive, bytes: 0, files: Vec::new() }
    }

    fn add(&mut self, file: &str, content: &[u8]) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.bytes + content.len() <= BUNDLE_BYTES_MAX,
            "left out: the bundle would be larger than {} MiB",
            BUNDLE_BYTES_MAX >> 20
        );
        self.bytes += content.len();
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(dyad_node::journal::now_ms() / 1_000);
        let path = format!("{}/{file}", self.name);
        self.archive.append_data(&mut header, path, content)?;
        if index::is_part_of_the_timeline(file) {
            self.files.push((file.to_owned(), content.to_owned()));
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<Vec<u8>> {
        let tar = self.archive.into_inner().context("ending the archive")?;
        zstd::encode_all(tar.as_slice(), 3).context("compressing the bundle")
    }
}

/// How long one step may take.
const STEP_LIMIT: Duration = Duration::from_secs(15);
