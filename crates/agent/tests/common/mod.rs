//! A BMC, its credentials file, and the agent to run against it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bmc_sim::{Bmc, Certificate, Config, MemorySwitch, PowerState, PowerSwitch as _, System};
use dyad_http::Secret;

pub(crate) const PASSWORD: &str = "Xyzzy-hunter2-plugh";
pub(crate) const UUID: &str = "0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0001";
/// A test that waits this long has failed.
pub(crate) const LONG: Duration = Duration::from_mins(1);

pub(crate) struct Fixture {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) bmc: Bmc,
    pub(crate) switch: Arc<MemorySwitch>,
    pub(crate) ca_file: PathBuf,
}

/// How a run of the agent ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

pub(crate) fn agent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fence_dyad_redfish"))
}

/// Runs the agent with these lines on stdin.
pub(crate) fn run_with(lines: &str) -> Run {
    finish(start_with(lines))
}

pub(crate) fn start_with(lines: &str) -> (Child, Instant) {
    let started = Instant::now();
    let mut child = agent()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("it reads");
    (child, started)
}

/// Waits for the end, as Pacemaker does: for the exit and for the end of both pipes.
pub(crate) fn finish((mut child, started): (Child, Instant)) -> Run {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut stdout).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    let status = child.wait().expect("it ends");
    Run { code: status.code().expect("no signal"), stdout, stderr, took: started.elapsed() }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with_systems(&["1"])
    }

    pub(crate) fn with_systems(ids: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let switch = Arc::new(MemorySwitch::new(PowerState::On));
        let certificate = Certificate::self_signed(&["127.0.0.1"]).expect("a certificate");
        let ca_file = directory.path().join("ca.pem");
        std::fs::write(&ca_file, certificate.pem()).expect("written");
        let system = |(index, id): (usize, &&str)| System {
            id: (*id).to_owned(),
            uuid: format!("{}{}", &UUID[..UUID.len() - 1], index + 1),
            name: format!("node{}", index + 1),
            // The first System is the one that is looked at; the others must never be touched.
            switch: if index == 0 {
                switch.clone()
            } else {
                Arc::new(MemorySwitch::new(PowerState::On))
            },
        };
        let config = Config {
            user: "admin".to_owned(),
            password: Secret::new(PASSWORD),
            systems: ids.iter().enumerate().map(system).collect(),
            certificate: Some(certificate),
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let bmc = Bmc::start(config, listener).expect("it starts");
        let fixture = Self { directory, bmc, switch, ca_file };
        fixture.write_credentials("admin", PASSWORD);
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write_credentials(&self, user: &str, password: &str) {
        write_private(&self.path("bmc"), &format!("username={user}\npassword={password}\n"));
    }

    /// Address, pin, credentials and a run directory of this test's own; limits for a busy machine.
    pub(crate) fn parameters(&self) -> String {
        format!(
            "address={}\npin={}\n{}",
            self.bmc.url(),
            self.bmc.fingerprint().expect("it has TLS"),
            self.files()
        )
    }

    /// Only the files and limits.
    pub(crate) fn files(&self) -> String {
        let directory = self.directory.path().display();
        format!(
            "credentials_file={directory}/bmc\nrun_directory={directory}/run\nrequest_timeout_ms=20000\ntimeout_ms=60000\n"
        )
    }

    pub(crate) fn run(&self, action: &str) -> Run {
        self.run_also(action, "")
    }

    /// With these lines too; they go before the fixture's own.
    pub(crate) fn run_also(&self, action: &str, lines: &str) -> Run {
        run_with(&self.lines(action, lines))
    }

    /// The parameters, where these lines take the place of the fixture's own of the same name.
    pub(crate) fn lines(&self, action: &str, lines: &str) -> String {
        override_lines(&format!("action={action}\n{}", self.parameters()), lines)
    }

    pub(crate) fn power(&self) -> PowerState {
        self.switch.state().expect("it sees")
    }

    pub(crate) fn wait_for_power(&self, wanted: PowerState) {
        let started = Instant::now();
        while self.power() != wanted {
            assert!(started.elapsed() < LONG, "never {wanted:?}: {:#?}", self.bmc.events(0));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The resets that the BMC was asked for.
    pub(crate) fn resets(&self) -> Vec<&'static str> {
        self.bmc
            .events(0)
            .iter()
            .filter_map(|event| event.reset)
            .map(bmc_sim::ResetType::as_str)
            .collect()
    }
}

/// Lines that replace others of the same name.
pub(crate) fn override_lines(text: &str, lines: &str) -> String {
    let name = |line: &str| line.split('=').next().unwrap_or_default().to_owned();
    let replaced: Vec<_> = lines.lines().map(name).collect();
    let kept = text.lines().filter(|line| !replaced.contains(&name(line)));
    kept.chain(lines.lines()).map(|line| format!("{line}\n")).collect()
}

pub(crate) fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("closed");
}
