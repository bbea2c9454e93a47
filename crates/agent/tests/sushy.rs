//! The fence agent against sushy-tools, a BMC emulator of `OpenStack`: a BMC that we did not write.

mod common;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bmc_sim::Certificate;
use common::{LONG, PASSWORD, Run, run_with, write_private};

const NODE: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef001";
const OTHER: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef010";

/// The emulator's configuration is Python: accounts, Systems, and a power hook in place of its random delays.
const CONFIGURATION: &str = r#"
import bcrypt, time
from sushy_tools.emulator.resources.systems import fakedriver

SUSHY_EMULATOR_STATE_DIR = DIRECTORY
SUSHY_EMULATOR_AUTH_FILE = DIRECTORY + "/accounts"
SUSHY_EMULATOR_FAKE_SYSTEMS = [
    {"uuid": uuid, "name": name, "power_state": "On", "external_notifier": False, "nics": []}
    for uuid, name in SYSTEMS
]

with open(SUSHY_EMULATOR_AUTH_FILE, "w") as accounts:
    accounts.write("admin:" + bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode() + "\n")

def set_power_state(self, identity, state):
    with open(DIRECTORY + "/asked", "a") as asked:
        asked.write(identity + " " + state + "\n")
    wanted = {"On": "On", "ForceOff": "Off"}[state]
    apply_time = time.time() + 0.2
    self._update(self._get(identity), pending_power={"power_state": wanted, "apply_time": apply_time})

fakedriver.FakeDriver.set_power_state = set_power_state
"#;

struct Sushy {
    directory: tempfile::TempDir,
    process: Child,
    port: u16,
    certificate: Certificate,
}

impl Drop for Sushy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn emulator() -> PathBuf {
    let cache = std::env::var_os("DYAD_CACHE").unwrap_or_else(|| "/var/cache/dyad".into());
    let path = Path::new(&cache).join("sushy/bin/sushy-emulator");
    assert!(path.exists(), "{} is missing: run scripts/fetch-sushy", path.display());
    path
}

impl Sushy {
    fn start(systems: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let certificate = Certificate::self_signed(&["127.0.0.1"]).unwrap();
        fs::write(path("bmc.pem"), certificate.pem()).unwrap();
        write_private(&path("bmc.key"), &certificate.key_pem());
        write_private(&path("bmc"), &format!("username=admin\npassword={PASSWORD}\n"));
        write_private(&path("wrong"), "username=admin\npassword=wrong\n");
        let constants = format!(
            "DIRECTORY = {:?}\nPASSWORD = {PASSWORD:?}\nSYSTEMS = {:?}\n",
            directory.path().to_string_lossy(),
            systems.iter().map(|(uuid, name)| [uuid, name]).collect::<Vec<_>>()
        );
        fs::write(path("emulator.py"), constants + CONFIGURATION).unwrap();
        // The emulator cannot choose a free port itself; the one found here is free a moment later too.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(path("log")).unwrap();
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(emulator())
            .args(["--fake", "--interface", "127.0.0.1", "--port", &port.to_string()])
            .arg("--config")
            .arg(path("emulator.py"))
            .arg("--ssl-certificate")
            .arg(path("bmc.pem"))
            .arg("--ssl-key")
            .arg(path("bmc.key"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("setpriv is installed by scripts/setup");
        let sushy = Self { directory, process, port, certificate };
        sushy.wait();
        sushy
    }

    fn wait(&self) {
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < LONG, "sushy-emulator does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, action: &str, lines: &str) -> Run {
        let pin = self.certificate.fingerprint();
        self.run_trusting(action, &format!("pin={pin}\n{lines}"))
    }

    fn run_trusting(&self, action: &str, lines: &str) -> Run {
        let directory = self.directory.path().display();
        let credentials = format!("credentials_file={directory}/bmc\n");
        let credentials = if lines.contains("credentials_file") { "" } else { &credentials };
        run_with(&format!(
            "action={action}\nip=127.0.0.1\nipport={}\nrun_directory={directory}/run\n{credentials}{lines}",
            self.port
        ))
    }

    fn asked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.directory.path().join("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Every action works, over TLS with a pinned certificate and basic authentication.
#[test]
fn every_action() {
    let sushy = Sushy::start(&[(NODE, "node1")]);
    for (action, code, stdout) in [
        ("status", 0, "Status: ON\n".to_owned()),
        ("monitor", 0, String::new()),
        ("list", 0, format!("{NODE},node1\n")),
        ("off", 0, "Success: Powered OFF\n".to_owned()),
        ("off", 0, "Success: Already OFF\n".to_owned()),
        ("status", 2, "Status: OFF\n".to_owned()),
        ("on", 0, "Success: Powered ON\n".to_owned()),
        ("reboot", 0, "Success: Rebooted\n".to_owned()),
    ] {
        let run = sushy.run(action, "");
        assert_eq!((run.code, run.stdout), (code, stdout), "{action}: {}", run.stderr);
    }
    let started = Instant::now();
    while sushy.run("status", "").code != 0 {
        assert!(started.elapsed() < LONG, "the node never comes back: {:?}", sushy.asked());
    }
    let expected = ["ForceOff", "On", "ForceOff", "On"].map(|reset| format!("{NODE} {reset}"));
    assert_eq!(sushy.asked(), expected);
}

/// With two Systems only the pinned one is touched, and without a pin neither is.
#[test]
fn two_systems() {
    let sushy = Sushy::start(&[(OTHER, "node10"), (NODE, "node1")]);
    let run = sushy.run("off", "");
    assert_eq!(run.code, 23, "{run:?}");
    assert!(run.stderr.contains(NODE) && run.stderr.contains(OTHER), "{run:?}");
    assert_eq!(sushy.run("off", "system=27946b59-9e44-4fa7-8e91-f3527a1ef002\n").code, 22);
    assert!(sushy.asked().is_empty());
    let run = sushy.run("off", &format!("system={}\n", NODE.to_uppercase()));
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(sushy.asked(), [format!("{NODE} ForceOff")]);
    assert_eq!(sushy.run("status", &format!("system={OTHER}\n")).code, 0);
}

/// A wrong password, certificate or way to log in is refused as it is by our own simulator.
#[test]
fn refusals() {
    let sushy = Sushy::start(&[(NODE, "node1")]);
    let directory = sushy.directory.path().display();
    let run = sushy.run("off", &format!("credentials_file={directory}/wrong\n"));
    assert_eq!(run.code, 20, "{run:?}");
    assert_eq!(sushy.run_trusting("off", &format!("pin={}\n", "0".repeat(64))).code, 14);
    assert_eq!(sushy.run_trusting("status", &format!("ca_file={directory}/bmc.pem\n")).code, 0);
    let other = Certificate::self_signed(&["127.0.0.1"]).unwrap();
    fs::write(sushy.directory.path().join("other.pem"), other.pem()).unwrap();
    assert_eq!(sushy.run_trusting("status", &format!("ca_file={directory}/other.pem\n")).code, 13);
    // This emulator has no sessions; where they are asked for it must not look like anything else.
    let run = sushy.run("status", "auth=session\n");
    assert!([20, 21].contains(&run.code) && run.stderr.contains("log in"), "{run:?}");
    assert!(sushy.asked().is_empty());
}
