//! What a recurring monitor costs: Pacemaker runs it every few seconds, for years.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Context as _;
use dyad_lab::ExecTarget;
use dyad_lab::config::Rival;

use super::Kind;
use super::pair::{COMMAND, Pair};
use super::results::{MONITOR, PROCESSES, Samples};
use crate::lab::run::failure;

impl Pair<'_> {
    /// CPU time with children, as the kernel counts it, and processes.
    pub(super) fn monitors(&self, samples: &mut Samples) -> anyhow::Result<()> {
        self.wait_whole()?;
        // Enough for a stable mean, and few enough for the slowest to be done in time.
        let times: u32 = match self.kind {
            Kind::Dyad => 40,
            Kind::Rival(Rival::ForceNewCluster) => 20,
            Kind::Rival(Rival::PodmanEtcd) => 5,
        };
        for name in self.lab.names() {
            let (settings, agent, healthy) = self.monitor_of(name);
            let script = format!(
                "{settings}\nfor i in $(seq {times}); do {agent} monitor >/dev/null 2>&1; \
                 [ $? = {healthy} ] || exit 1; done\ntimes"
            );
            let text = self.run(name, &["bash", "-c", &script])?;
            let last = text.lines().last().unwrap_or_default();
            let ms: f64 = last.split_whitespace().filter_map(seconds).sum::<f64>() * 1e3;
            samples.add(MONITOR, Some(ms / f64::from(times)));
            let one = format!("{settings}\nexec {agent} monitor");
            let without = self.started_by(name, "exec true")?;
            let with = self.started_by(name, &one)?;
            // What the script itself became is the agent's first process.
            let started = u32::try_from(with.saturating_sub(without)).unwrap_or(u32::MAX);
            samples.add(PROCESSES, Some(f64::from(started) + 1.0));
        }
        Ok(())
    }

    /// The environment that Pacemaker gives, the agent, and what it answers for a healthy voter.
    fn monitor_of(&self, node: &str) -> (String, &'static str, i32) {
        let settings = format!(
            "export OCF_ROOT=/usr/lib/ocf OCF_RESOURCE_INSTANCE=etcd OCF_RESKEY_CRM_meta_on_node={node} \
             OCF_RESKEY_CRM_meta_interval=5000"
        );
        match self.kind {
            Kind::Dyad => (settings, "/usr/libexec/dyad/dyad-node ocf", 8),
            Kind::Rival(Rival::ForceNewCluster) => {
                (settings, "/usr/lib/ocf/resource.d/rival/force-new-cluster", 0)
            }
            Kind::Rival(Rival::PodmanEtcd) => {
                let nodes = &self.lab.config().nodes;
                let map = nodes.each_ref().map(|node| format!("{}:{}", node.name, node.link1));
                let settings = format!(
                    "{settings} OCF_RESKEY_node_ip_map='{}' OCF_RESKEY_drop_in_dependency=true",
                    map.join(";")
                );
                (settings, "/usr/lib/ocf/resource.d/heartbeat/podman-etcd", 0)
            }
        }
    }

    /// How many processes a script in a node starts, whoever their parent is in the end. Threads do not count.
    fn started_by(&self, node: &str, script: &str) -> anyhow::Result<usize> {
        let words: Vec<OsString> = ["bash", "-c", script].map(OsString::from).to_vec();
        let target = ExecTarget::Node(node.to_owned());
        let command = self.lab.exec_command(&target, &words).map_err(failure)?;
        let file = tempfile::NamedTempFile::new().context("making a file for strace")?;
        let mut traced = Command::new("strace");
        traced
            .args(["-f", "-qq", "-s", "0", "-e", "trace=clone,clone3,fork,vfork", "-o"])
            .arg(file.path())
            .arg(command.get_program())
            .args(command.get_args());
        dyad_program::run(&mut traced, "", COMMAND).context("counting processes with strace")?;
        let text = std::fs::read_to_string(file.path()).context("reading what strace saw")?;
        Ok(text.lines().filter(|line| starts_process(line)).count())
    }
}

/// Whether a line of strace is the call that starts a process: not a thread, not one that failed, and not its second
/// half.
fn starts_process(line: &str) -> bool {
    let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
    let calls = ["clone(", "clone3(", "fork(", "vfork("];
    calls.iter().any(|name| call.starts_with(name))
        && !call.contains("CLONE_THREAD")
        && !call.contains(" = -1 ")
}

/// `0m1.234s`, as the shell writes it.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, rest) = text.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + rest.strip_suffix('s')?.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell's way to write times is understood, and nothing else.
    #[test]
    fn times_are_read() {
        assert_eq!(seconds("0m1.500s"), Some(1.5));
        assert_eq!(seconds("2m0.250s"), Some(120.25));
        assert_eq!(seconds("1.5"), None);
    }

    /// Processes are counted once; threads, failures and second halves are not.
    #[test]
    fn only_new_processes_count() {
        let yes = [
            "123 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 124",
            "123   vfork( <unfinished ...>",
            "123 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88) = 125",
        ];
        let no = [
            "123 clone3({flags=CLONE_VM|CLONE_THREAD|CLONE_SYSVSEM}, 88 <unfinished ...>",
            "123 <... vfork resumed>)               = 126",
            "123 clone3({flags=CLONE_VFORK}, 88)   = -1 ENOSYS (Function not implemented)",
            "123 +++ exited with 0 +++",
        ];
        assert!(yes.iter().all(|line| starts_process(line)));
        assert!(!no.iter().any(|line| starts_process(line)));
    }
}
