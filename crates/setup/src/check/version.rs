//! Whether the programs that Dyad runs on are there, and new enough.

use std::time::Duration;

use dyad_cluster::pair::{Pair, Runner};

use super::Finding;
use super::probe::Probe;

const LIMIT: Duration = Duration::from_secs(5);

/// A program, how to ask for its version, and from where on it is good.
struct Program {
    name: &'static str,
    command: &'static str,
    argument: &'static str,
    packages: &'static str,
    judge: fn(&[u32]) -> Verdict,
}

/// What is thought of a version.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Untried(&'static str),
    TooOld(&'static str),
}

const COROSYNC: Program = Program {
    name: "Corosync",
    command: "corosync",
    argument: "-v",
    packages: "package corosync",
    judge: corosync,
};
const PACEMAKER: Program = Program {
    name: "Pacemaker",
    command: "pacemakerd",
    argument: "--version",
    packages: "package pacemaker",
    judge: pacemaker,
};
const ETCD: Program = Program {
    name: "etcd",
    command: "etcd",
    argument: "--version",
    packages: "package etcd-server on Debian, etcd elsewhere",
    judge: etcd,
};
const PODMAN: Program = Program {
    name: "podman",
    command: "podman",
    argument: "--version",
    packages: "package podman",
    judge: |_| Verdict::Good,
};

fn corosync(version: &[u32]) -> Verdict {
    if version < &[3, 1] { Verdict::TooOld("3.1") } else { Verdict::Good }
}

fn pacemaker(version: &[u32]) -> Verdict {
    if version < &[2, 1, 5] { Verdict::TooOld("2.1.5") } else { Verdict::Good }
}

/// A single member of an older etcd can lose what it has acknowledged.
fn etcd(version: &[u32]) -> Verdict {
    match version {
        [3, 4, patch, ..] if *patch >= 21 => Verdict::Good,
        [3, 5, patch, ..] if *patch >= 5 => Verdict::Good,
        [3, 4, ..] => Verdict::TooOld("3.4.21"),
        [3, 5, ..] => Verdict::TooOld("3.5.5"),
        newer if newer >= &[3, 6] => Verdict::Untried("3.4 and 3.5"),
        _ => Verdict::TooOld("3.4.21 or 3.5.5"),
    }
}

pub(crate) fn probes(pair: &Pair) -> Vec<Probe> {
    let runner = match pair.etcd.runner {
        Runner::Systemd => ETCD,
        Runner::Podman { .. } => PODMAN,
    };
    let programs = [COROSYNC, PACEMAKER, runner];
    programs
        .into_iter()
        .map(|program| Probe::new("version", program.name, move || vec![look(&program)]))
        .collect()
}

fn look(program: &Program) -> Finding {
    let mut command = dyad_program::command(program.command, [program.argument]);
    let finished = match dyad_program::run(&mut command, "", LIMIT) {
        Ok(finished) => finished,
        Err(dyad_program::Error::NotStarted { .. }) => {
            let message = format!("{} is not installed", program.command);
            return Finding::error("version", program.name, message)
                .hint(format!("install it: {}", program.packages));
        }
        Err(error) => return Finding::error("version", program.name, error.to_string()),
    };
    let text = format!("{}\n{}", finished.stdout, finished.stderr);
    let Some(version) = version_in(&text) else {
        let message = format!("{} {} names no version", program.command, program.argument);
        return Finding::warning("version", program.name, message);
    };
    judged(program, &version)
}

fn judged(program: &Program, version: &[u32]) -> Finding {
    let shown = version.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    match (program.judge)(version) {
        Verdict::Good => Finding::ok("version", program.name, format!("version {shown}")),
        Verdict::Untried(tried) => {
            let message =
                format!("version {shown} is newer than what Dyad is tested with ({tried})");
            Finding::warning("version", program.name, message).hint("try it in the lab first")
        }
        Verdict::TooOld(least) => {
            let message = format!("version {shown} is too old; {least} or newer is needed");
            Finding::error("version", program.name, message).hint("update the package")
        }
    }
}

/// The first thing that looks like a version: numbers with dots.
fn version_in(text: &str) -> Option<Vec<u32>> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let parts: Vec<u32> =
            word.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (parts.len() >= 2).then_some(parts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the programs really print is understood.
    #[test]
    fn versions_as_programs_print_them() {
        for (text, version) in [
            ("Corosync Cluster Engine, version '3.1.9'\nCopyright (c) 2006-2021", vec![3, 1, 9]),
            ("Pacemaker 3.0.0-5.el10\nWritten by Andrew Beekhof", vec![3, 0, 0]),
            ("etcd Version: 3.5.16\nGit SHA: Not provided\nGo Version: go1.24.4", vec![3, 5, 16]),
            ("podman version 5.4.2", vec![5, 4, 2]),
        ] {
            assert_eq!(version_in(text), Some(version), "{text}");
        }
        assert_eq!(version_in("no version 3 here"), None);
    }

    /// The oldest versions that are safe are good, the ones before are not.
    #[test]
    fn versions_that_are_safe() {
        for (version, verdict) in [
            (vec![3, 4, 21], Verdict::Good),
            (vec![3, 4, 20], Verdict::TooOld("3.4.21")),
            (vec![3, 5, 5], Verdict::Good),
            (vec![3, 5, 4], Verdict::TooOld("3.5.5")),
            (vec![3, 3, 30], Verdict::TooOld("3.4.21 or 3.5.5")),
            (vec![3, 6, 1], Verdict::Untried("3.4 and 3.5")),
        ] {
            assert_eq!(etcd(&version), verdict, "{version:?}");
        }
        assert_eq!(pacemaker(&[2, 1, 5]), Verdict::Good);
        assert_eq!(pacemaker(&[2, 1, 4]), Verdict::TooOld("2.1.5"));
        assert_eq!(corosync(&[3, 0, 4]), Verdict::TooOld("3.1"));
    }
}
