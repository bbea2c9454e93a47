//! `dyad etcd inspect`: what a data directory holds, for people and for machines.

use std::fmt::Write as _;
use std::path::Path;

use dyad_core::dataset::{Class, Dataset, Member, OwnRemoval};

use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::wrap::wrap;

/// Where lines of text end.
const WIDTH: usize = 80;
/// The width of the column with the names of the facts.
const LABEL_WIDTH: usize = 10;

pub(super) fn run(dir: &Path, format: Format) -> anyhow::Result<Exit> {
    let dataset = etcd_disk::read(dir).map_err(failure)?;
    match format {
        Format::Text => output::print_data(&text(dir, &dataset))?,
        Format::Json => output::print_json("Dataset", &dataset)?,
    }
    Ok(if dataset.class == Class::Broken { Exit::No } else { Exit::Ok })
}

/// What an unreadable directory means to a script.
pub(super) fn failure(error: etcd_disk::Error) -> Failure {
    let message = match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    match error {
        etcd_disk::Error::Denied { .. } => {
            Failure::new(Exit::Permission, message).hint("run it as root, or as etcd's user")
        }
        etcd_disk::Error::Unsettled { .. } => {
            Failure::new(Exit::TimedOut, message).hint("try again, or stop etcd first")
        }
        etcd_disk::Error::Io { .. } => Failure::new(Exit::Failed, message),
    }
}

fn text(dir: &Path, dataset: &Dataset) -> String {
    let mut text = headline(dataset);
    paragraph(&mut text, "", &format!("{}.", dataset.reason));
    text.push('\n');
    fact(&mut text, "directory", &directory(dir, dataset));
    if let (Some(cluster), Some(member)) = (dataset.cluster_id, dataset.member_id) {
        fact(&mut text, "cluster", &cluster.to_string());
        fact(&mut text, "member", &own(dataset, &member.to_string()));
    }
    if !matches!(dataset.class, Class::None | Class::Broken) {
        facts(&mut text, dataset);
    }
    if !dataset.problems.is_empty() {
        text.push_str("\nproblems:\n");
        for problem in &dataset.problems {
            paragraph(&mut text, "  - ", problem);
        }
    }
    if let Some(advice) = advice(dataset) {
        text.push('\n');
        paragraph(&mut text, "", advice);
    }
    text
}

fn headline(dataset: &Dataset) -> String {
    let meaning = match dataset.class {
        Class::None => "there is no etcd data here",
        Class::Pair => "a copy of two, each of which may have the newest data",
        Class::Alone => "the only voter's copy",
        Class::Learner => "a copy that was still catching up; it may lack data",
        Class::Left => match dataset.own_removal {
            Some(OwnRemoval::Committed) => "the copy of a member that was removed",
            _ => "the copy of a member that may have been removed",
        },
        Class::Broken => "damaged, not to be relied on",
    };
    format!("{}: {meaning}\n", dataset.class)
}

fn directory(dir: &Path, dataset: &Dataset) -> String {
    let live = if dataset.live { " (in use: an etcd runs on it)" } else { "" };
    format!("{}{live}", dir.display())
}

fn own(dataset: &Dataset, id: &str) -> String {
    let own = dataset.members.iter().find(|member| Some(member.id) == dataset.member_id);
    match own {
        Some(member) if !member.name.is_empty() => format!("{id} ({})", member.name),
        _ => id.to_owned(),
    }
}

fn facts(text: &mut String, dataset: &Dataset) {
    let raft = &dataset.raft;
    let vote = raft.vote.map_or_else(|| "nobody".into(), |id| id.to_string());
    fact(text, "raft", &format!("term {}, voted for {vote}", raft.term));
    let behind = raft.last_index.0.saturating_sub(raft.commit.0);
    let tail = match behind {
        0 => "all committed".to_owned(),
        1 => "the last one not known to be committed".to_owned(),
        behind => format!("the last {behind} not known to be committed"),
    };
    let log = format!("entry {} of term {}, {tail}", raft.last_index, raft.last_term);
    fact(text, "log ends", &log);
    let database = format!(
        "revision {}, applied up to entry {}, {}",
        dataset.revision,
        dataset.consistent_index,
        size(dataset.db_size_bytes)
    );
    fact(text, "database", &database);
    if !dataset.removed.is_empty() {
        let removed: Vec<_> = dataset.removed.iter().map(ToString::to_string).collect();
        fact(text, "removed", &removed.join(" "));
    }
    text.push('\n');
    members(text, &dataset.members);
}

fn members(text: &mut String, members: &[Member]) {
    if members.is_empty() {
        fact(text, "members", "none in the log yet");
        return;
    }
    let name = |member: &Member| {
        if member.name.is_empty() { "(not started)".to_owned() } else { member.name.clone() }
    };
    let widest = members.iter().map(|member| name(member).len()).max().unwrap_or_default().max(4);
    let _ = writeln!(text, "{:<16}  {:<widest$}  {:<7}  PEER URL", "MEMBER", "NAME", "ROLE");
    for member in members {
        let role = if member.learner { "learner" } else { "voter" };
        let mut urls = member.peer_urls.iter().map(String::as_str);
        let first = urls.next().unwrap_or("-");
        let _ = writeln!(
            text,
            "{:<16}  {:<widest$}  {role:<7}  {first}",
            member.id.to_string(),
            name(member)
        );
        for url in urls {
            let _ = writeln!(text, "{:1$}{url}", "", 16 + 2 + widest + 2 + 7 + 2);
        }
    }
}

fn advice(dataset: &Dataset) -> Option<&'static str> {
    match dataset.class {
        Class::Broken if dataset.live => None,
        Class::Broken => Some(
            "Do not delete it: it may be the only copy. Keep the directory aside; the node joins its peer \
             anew, or a backup is restored.",
        ),
        Class::Pair if !dataset.live => Some(
            "The other voter may hold newer data. Start both; going on with this copy alone needs proof.",
        ),
        _ => None,
    }
}

/// A size as people say it, with the unit that leaves one to three digits before the point.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let mut unit = 0;
    let mut divisor = 1_u64;
    while bytes / divisor >= 1000 && unit + 1 < UNITS.len() {
        unit += 1;
        divisor *= 1000;
    }
    if unit == 0 {
        return format!("{bytes} B");
    }
    let tenths = u128::from(bytes) * 10 / u128::from(divisor);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

fn fact(text: &mut String, label: &str, value: &str) {
    paragraph(text, &format!("{label:<LABEL_WIDTH$} "), value);
}

/// A text under a label, with later lines under the first one's text.
fn paragraph(text: &mut String, label: &str, words: &str) {
    let _ = writeln!(text, "{label}{}", wrap(words, WIDTH, label.len()));
}

#[cfg(test)]
mod tests {
    use dyad_core::dataset::Raft;
    use dyad_core::ids::{ClusterId, Index, MemberId, Revision, Term};

    use super::*;

    fn member(id: u64, name: &str, learner: bool) -> Member {
        let peer_urls = vec![format!("https://10.0.0.{}:2380", id & 0xff)];
        Member { id: MemberId(id), name: name.into(), peer_urls, learner }
    }

    fn pair() -> Dataset {
        Dataset {
            live: false,
            cluster_id: Some(ClusterId(0xcdf8_181e_3a64_6f1c)),
            member_id: Some(MemberId(0x8e9e_05c5_2164_6901)),
            raft: Raft {
                term: Term(7),
                vote: Some(MemberId(0x8e9e_05c5_2164_6901)),
                commit: Index(40_312),
                last_index: Index(40_315),
                last_term: Term(7),
            },
            consistent_index: Index(40_312),
            revision: Revision(38_220),
            members: vec![
                member(0x8e9e_05c5_2164_6901, "north", false),
                member(0x9f01_ab13_77aa_0002, "south", false),
            ],
            removed: vec![MemberId(0x1234)],
            db_size_bytes: 104_857_600,
            ..Dataset::empty(
                Class::Pair,
                "north (8e9e05c521646901) is a voter, and so is south (9f01ab1377aa0002)",
            )
        }
    }

    fn shown(dataset: &Dataset) -> String {
        let text = text(Path::new("/var/lib/etcd"), dataset);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        text
    }

    /// What a person reads of a pair at three in the morning.
    #[test]
    fn a_pair_as_text() {
        insta::assert_snapshot!(shown(&pair()));
    }

    /// In use, with a learner, and with something that does not fit together.
    #[test]
    fn a_lone_voter_as_text() {
        let mut dataset = pair();
        dataset.class = Class::Alone;
        dataset.reason =
            "north (8e9e05c521646901) is the only voter; 9f01ab1377aa0002 is a learner".into();
        dataset.live = true;
        dataset.raft.commit = dataset.raft.last_index;
        dataset.removed.clear();
        dataset.members[1] = Member {
            peer_urls: vec!["https://10.0.0.2:2380".into(), "https://[fd00::2]:2380".into()],
            ..member(0x9f01_ab13_77aa_0002, "", true)
        };
        dataset.problems = vec![
            "member/snap/db: the meta at byte 4096 is damaged: its checksum fails; the other one is used".into(),
        ];
        insta::assert_snapshot!(shown(&dataset));
    }

    /// Damage: where it is, whose data it was, and what not to do.
    #[test]
    fn a_broken_one_as_text() {
        let mut dataset = Dataset::empty(
            Class::Broken,
            "member/wal/0000000000000003-0000000000009c41.wal at byte 1048576: the checksum of a record is 0x1badb002, it should be 0xdeadbeef",
        );
        dataset.cluster_id = pair().cluster_id;
        dataset.member_id = pair().member_id;
        insta::assert_snapshot!(shown(&dataset));
    }

    /// No data is no damage.
    #[test]
    fn nothing_as_text() {
        insta::assert_snapshot!(shown(&Dataset::empty(
            Class::None,
            "/var/lib/etcd does not exist"
        )));
    }

    /// A machine's view: exactly the keys of the interface, in this order, and nothing renamed.
    #[test]
    fn a_pair_as_json() {
        let mut dataset = pair();
        dataset.prefixes = vec![dyad_core::dataset::Prefix {
            index: Index(40_312),
            membership: dyad_core::dataset::Membership::new(
                dataset.members.iter().map(|member| member.id),
                [],
            ),
        }];
        let document = output::Document::new("Dataset", &dataset);
        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    }

    /// Sizes are said with one digit behind the point.
    #[test]
    fn sizes() {
        for (bytes, said) in [
            (0, "0 B"),
            (999, "999 B"),
            (16_384, "16.3 kB"),
            (1_000_000, "1.0 MB"),
            (1_073_741_824, "1.0 GB"),
            (u64::MAX, "18446744073.7 GB"),
        ] {
            assert_eq!(size(bytes), said);
        }
    }
}
