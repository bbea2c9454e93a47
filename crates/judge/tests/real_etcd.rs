//! The generator and the judge on real etcd: a pair that lives through hangs and crashes is good; one that was
//! rolled back, or split in two, is caught.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use dyad_judge::history::{self, History};
use dyad_judge::linearizable::Limits;
use dyad_judge::load::{self, Config, Ended, Endpoint, LoadError, Run, report};
use dyad_judge::lost::Kind;
use dyad_judge::verdict::{Answer, Verdict, judge};
use etcd_fixture::{Cluster, Release, wait_for};

/// How long a node that answers at all takes to be read in the end, at most.
const FINAL_LIMIT: Duration = Duration::from_secs(20);

fn config(pair: &Cluster, seed: u64) -> Config {
    let endpoints = pair
        .members
        .iter()
        .map(|member| Endpoint { name: member.name().to_owned(), url: member.client_url() })
        .collect();
    Config {
        clients: 12,
        rate: 600,
        registers: 4,
        request_limit: Duration::from_secs(2),
        // Only a bound: the test ends it.
        duration: Some(Duration::from_mins(2)),
        ..Config::new(endpoints, seed)
    }
}

/// Waits for so many more acknowledged writes through this member.
fn more_writes(run: &Run, endpoint: &str, count: u64) -> Result<()> {
    let wanted = run.acknowledged(endpoint) + count;
    wait_for(&format!("{count} more writes through {endpoint}"), || {
        (run.acknowledged(endpoint) >= wanted).then_some(())
    })
}

fn judged(path: &Path) -> Result<(History, Verdict)> {
    let history = history::read(path)?;
    let verdict = judge(&history, Limits::default());
    Ok((history, verdict))
}

/// etcd keeps its promises while its members hang, are killed and come back: the judge finds nothing, though
/// requests failed and outcomes remained unknown.
#[test]
fn a_pair_that_lives_through_faults_is_good() -> Result<()> {
    for release in Release::ALL {
        let mut pair = Cluster::pair(release)?;
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("history.jsonl");
        let names: Vec<String> = pair.members.iter().map(|it| it.name().to_owned()).collect();
        let run = load::start(config(&pair, 11), &path)?;
        let all = |run: &Run| names.iter().try_for_each(|name| more_writes(run, name, 100));
        all(&run)?;
        for place in [0, 1] {
            pair.members[place].pause()?;
            // Long enough for its clients to give up.
            run.stop_handle().wait(Duration::from_millis(2500));
            pair.members[place].resume()?;
            all(&run)?;
            pair.members[place].kill()?;
            run.stop_handle().wait(Duration::from_millis(300));
            pair.members[place].start()?;
            pair.members[place].wait_ready()?;
            all(&run)?;
        }
        let ended = run.finish(FINAL_LIMIT)?;
        assert_eq!(ended, Ended { read: names.clone(), unread: Vec::new() });

        let (history, verdict) = judged(&path)?;
        assert_eq!(verdict.answer, Answer::Good, "{}", verdict.render());
        let told = report(&history, None);
        eprintln!("{}{}", told.render(), verdict.render());
        assert!(told.total.failed > 0 && told.total.unknown > 0, "{}", told.render());
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A member whose old data directory was put back, and which was then made to go on alone, has lost what
/// was acknowledged since: the judge says so, and names the writes.
#[test]
fn a_rolled_back_member_is_caught() -> Result<()> {
    let mut pair = Cluster::pair(Release::Trixie)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let (gone, back) = (pair.members[0].name().to_owned(), pair.members[1].name().to_owned());
    let run = load::start(config(&pair, 12), &path)?;
    more_writes(&run, &back, 50)?;
    pair.members[1].stop()?;
    let old = directory.path().join("old");
    copy(pair.members[1].data_dir(), &old)?;
    pair.members[1].start()?;
    pair.members[1].wait_ready()?;
    more_writes(&run, &gone, 50)?;

    pair.members[0].kill()?;
    pair.members[1].kill()?;
    fs::remove_dir_all(pair.members[1].data_dir())?;
    copy(&old, pair.members[1].data_dir())?;
    pair.members[1].start_with(&["--force-new-cluster"])?;
    pair.members[1].wait_ready()?;
    more_writes(&run, &back, 100)?;
    let ended = run.finish(Duration::from_secs(3))?;
    assert_eq!(ended.read, [back]);
    assert_eq!(ended.unread.len(), 1);

    let (_, verdict) = judged(&path)?;
    eprintln!("{}", verdict.render());
    assert_eq!(verdict.answer, Answer::Bad);
    assert!(verdict.lost.counts[&Kind::LostAcknowledgement] > 0);
    assert!(verdict.lost.counts[&Kind::RevisionWentBack] > 0);
    assert!(verdict.lost.counts[&Kind::TwoHistories] > 0);
    assert!(!verdict.linearizability.violations.is_empty());
    Ok(())
}

/// Two members that each were made to go on alone have two histories, and the judge shows both.
#[test]
fn a_split_pair_is_caught() -> Result<()> {
    let mut pair = Cluster::pair(Release::Trixie)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let names: Vec<String> = pair.members.iter().map(|it| it.name().to_owned()).collect();
    let run = load::start(config(&pair, 13), &path)?;
    more_writes(&run, &names[1], 50)?;
    for member in &mut pair.members {
        member.kill()?;
    }
    pair.members[0].start_with(&["--force-new-cluster"])?;
    pair.members[0].wait_ready()?;
    more_writes(&run, &names[0], 50)?;
    // Could it answer, it would tell the other one that it was removed, and that one would end.
    pair.members[0].pause()?;
    pair.members[1].start_with(&["--force-new-cluster"])?;
    pair.members[1].wait_ready()?;
    more_writes(&run, &names[1], 50)?;
    pair.members[0].resume()?;
    for name in &names {
        more_writes(&run, name, 50)?;
    }
    let ended = run.finish(FINAL_LIMIT)?;
    assert_eq!(ended.read, names);

    let (_, verdict) = judged(&path)?;
    eprintln!("{}", verdict.render());
    assert_eq!(verdict.answer, Answer::Bad);
    assert!(verdict.lost.counts[&Kind::TwoHistories] > 0);
    assert!(!verdict.linearizability.violations.is_empty());
    for violation in &verdict.linearizability.violations {
        assert!(violation.operations.len() <= 12, "{}", verdict.render());
    }
    Ok(())
}

/// Keys that are already there are refused: the judge would hold them against the store.
#[test]
fn a_prefix_in_use_is_refused() -> Result<()> {
    let single = Cluster::single(Release::Trixie)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let config = config(&single, 14);
    single.members[0].put(&format!("{}x", config.prefix), "1")?;
    let refused = load::start(config, &path);
    assert!(matches!(refused, Err(LoadError::NotEmpty { .. })), "{refused:?}");
    assert!(!path.exists());
    Ok(())
}

/// A run of a fixed number of requests makes exactly so many, and ends by itself.
#[test]
fn a_run_ends_after_its_requests() -> Result<()> {
    let single = Cluster::single(Release::Bookworm)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("history.jsonl");
    let mut run = load::start(Config { operations: Some(500), ..config(&single, 15) }, &path)?;
    run.wait()?;
    run.finish(FINAL_LIMIT)?;
    let (history, verdict) = judged(&path)?;
    assert_eq!(history.operations.len(), 500);
    assert_eq!(verdict.answer, Answer::Good, "{}", verdict.render());
    Ok(())
}
