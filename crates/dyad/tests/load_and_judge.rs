//! `dyad lab load` and `dyad lab judge`, as a person or a script calls them.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use anyhow::Result;
use etcd_fixture::{Cluster, Release, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn dyad() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dyad"))
}

fn judge(path: &Path, format: &str) -> Result<Output> {
    Ok(dyad().args(["-o", format, "lab", "judge"]).arg(path).output()?)
}

fn load(cluster: &Cluster, history: &Path, more: &[&str]) -> Command {
    let mut command = dyad();
    command.args(["lab", "load"]).arg(history).args(["--clients", "4", "--rate", "400"]).args(more);
    for member in &cluster.members {
        command.args(["--endpoint", &format!("{}={}", member.name(), member.client_url())]);
    }
    command
}

const HEADER: &str =
    r#"{"line":"header","apiVersion":"dyad/v1","startedNs":0,"startedUnixMs":0,"endpoints":["a"]}"#;
const PUT: &str = r#"{"line":"invoke","id":1,"client":1,"endpoint":"a","key":"k","action":{"type":"put","value":"x"},"timeNs":0}
{"line":"complete","id":1,"timeNs":10,"outcome":{"ok":{"revision":2,"applied":true}}}"#;
const STALE: &str = r#"{"line":"invoke","id":2,"client":2,"endpoint":"a","key":"k","action":{"type":"get"},"timeNs":20}
{"line":"complete","id":2,"timeNs":30,"outcome":{"ok":{"revision":2}}}"#;
const FINAL: &str = r#"{"line":"final","endpoint":"a","prefix":"k","revision":2,"items":{"k":{"value":"x","createRevision":2,"modRevision":2,"version":1}}}
{"line":"end"}"#;

/// 0 is good, 3 is bad, 1 is undecided; the text begins with the word, the document carries it.
#[test]
fn the_verdict_is_the_exit_code() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let cases = [
        (format!("{HEADER}\n{PUT}\n{FINAL}\n"), 0, "good"),
        (format!("{HEADER}\n{PUT}\n{STALE}\n{FINAL}\n"), 3, "bad"),
        (format!("{HEADER}\n{PUT}\n"), 1, "undecided"),
    ];
    for (text, code, answer) in cases {
        fs::write(&path, text)?;
        let told = judge(&path, "text")?;
        let stdout = String::from_utf8_lossy(&told.stdout);
        assert_eq!(told.status.code(), Some(code), "{stdout}");
        assert!(stdout.starts_with(answer), "{stdout}");
        let document: Value = serde_json::from_slice(&judge(&path, "json")?.stdout)?;
        assert_eq!(document["apiVersion"], "dyad/v1");
        assert_eq!(document["kind"], "Judgement");
        assert_eq!(document["answer"], answer);
    }
    fs::write(&path, format!("{HEADER}\n{PUT}\n{STALE}\n{FINAL}\n"))?;
    let document: Value = serde_json::from_slice(&judge(&path, "json")?.stdout)?;
    let violation = &document["linearizability"]["violations"][0];
    assert_eq!(violation["culprit"], 2);
    assert_eq!(violation["operations"][0]["action"]["value"], "x");
    Ok(())
}

/// What is not a history is refused with file and line.
#[test]
fn what_is_not_a_history_is_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    fs::write(&path, format!("{HEADER}\nnonsense\n{PUT}\n"))?;
    let refused = judge(&path, "text")?;
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("history.jsonl, line 2: not a record of a history"), "{stderr}");
    assert!(refused.stdout.is_empty());
    Ok(())
}

/// A load of so many requests on a real pair ends, reports, and is judged good.
#[test]
fn a_load_is_judged() -> Result<()> {
    let pair = Cluster::pair(Release::Trixie)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let ended = load(&pair, &path, &["--operations", "200", "-o", "json"]).output()?;
    let document: Value = serde_json::from_slice(&ended.stdout)?;
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(document["kind"], "LoadReport");
    assert_eq!(document["total"]["ok"], 200, "{document}");
    let told = judge(&path, "text")?;
    assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stdout));

    // The same file a second time: it may be the only record of a run.
    let again = load(&pair, &path, &["--operations", "1"]).output()?;
    assert_eq!(again.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("hint: the history must be a new file")
    );
    Ok(())
}

/// The process, which is ended with the test whatever comes of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command, history: &Path) -> Result<Running> {
    let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    wait_for("acknowledged writes in the history", || {
        let text = fs::read_to_string(history).unwrap_or_default();
        (text.matches("\"applied\":true").count() > 20).then_some(())
    })?;
    Ok(running)
}

/// An interrupt ends the load in good order, with the final state of each node.
#[test]
fn an_interrupted_load_ends_in_good_order() -> Result<()> {
    let pair = Cluster::pair(Release::Trixie)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let mut running = start(&mut load(&pair, &path, &["--duration", "2m"]), &path)?;
    kill(Pid::from_raw(running.0.id().cast_signed()), Signal::SIGINT)?;
    let status = wait_for("the end of the load", || running.0.try_wait().ok().flatten())?;
    assert_eq!(status.code(), Some(0));
    let told = judge(&path, "text")?;
    assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stdout));
    Ok(())
}

/// A load that is killed leaves a history that can be judged as far as it goes: nothing bad is made up from
/// requests that were under way, and without a final state it is not called good.
#[test]
fn a_killed_load_leaves_a_history() -> Result<()> {
    let pair = Cluster::pair(Release::Trixie)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let mut running = start(&mut load(&pair, &path, &["--duration", "2m"]), &path)?;
    running.0.kill()?;
    running.0.wait()?;
    let told = judge(&path, "text")?;
    let stdout = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("the generator did not end in good order"), "{stdout}");
    assert!(stdout.contains("the history holds no final state"), "{stdout}");
    Ok(())
}
