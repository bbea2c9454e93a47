//! The fence agent and the distribution's `fence_redfish` against the same simulated BMC, in turns, in one run.
//!
//! Prints a table in Markdown: wall time of the whole process, from its start to its end, as Pacemaker would
//! wait for it, and the peak of its memory. `ROUNDS=100` changes how often.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bmc_sim::{Bmc, Certificate, Config, Fault, MemorySwitch, PowerState, System};
use dyad_http::Secret;

struct Contestant {
    program: &'static str,
    name: &'static str,
    parameters: String,
}

impl Contestant {
    fn start(&self, action: &str) -> Child {
        let mut child = Command::new(self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the agent starts");
        let lines = format!("action={action}\n{}", self.parameters);
        child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("it reads");
        child
    }

    fn time(&self, action: &str) -> Duration {
        let started = Instant::now();
        let status = self.start(action).wait().expect("it ends");
        assert!(status.success(), "{} {action}: {status}", self.name);
        started.elapsed()
    }

    /// The peak of its memory, read while a slow BMC keeps it waiting: handshake and request are behind it then.
    fn memory_kib(&self) -> u64 {
        let mut child = self.start("status");
        let path = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().expect("it runs").is_none() {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            peak = peak.max(number.unwrap_or(0));
            std::thread::sleep(Duration::from_millis(2));
        }
        peak
    }
}

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let directory = std::env::temp_dir().join(format!("dyad-bench-{}", std::process::id()));
    fs::create_dir(&directory).expect("a directory");
    let switch = Arc::new(MemorySwitch::new(PowerState::On));
    let bmc = bmc(&switch);
    let contestants = contestants(&bmc, &directory);
    println!("| action | agent | median ms | fastest ms | slowest ms | ratio of medians |");
    println!("|---|---|---|---|---|---|");
    for action in ["status", "off", "reboot"] {
        measure(action, &contestants, &switch, rounds);
    }
    bmc.set_fault(Fault::Slow(Duration::from_millis(200)));
    switch.put(Ok(PowerState::On));
    println!("\n| agent | peak memory |\n|---|---|");
    for contestant in &contestants {
        let kib = contestant.memory_kib();
        println!("| `{}` | {}.{} MB |", contestant.name, kib / 1000, kib % 1000 / 100);
    }
    fs::remove_dir_all(&directory).expect("removed");
}

fn bmc(switch: &Arc<MemorySwitch>) -> Bmc {
    let system = System {
        id: "1".to_owned(),
        uuid: "0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0001".to_owned(),
        name: "node1".to_owned(),
        switch: switch.clone(),
    };
    let config = Config {
        user: "admin".to_owned(),
        password: Secret::new("secret"),
        systems: vec![system],
        certificate: Some(Certificate::self_signed(&["127.0.0.1"]).expect("a certificate")),
    };
    Bmc::start(config, TcpListener::bind("127.0.0.1:0").expect("a port")).expect("it starts")
}

fn contestants(bmc: &Bmc, directory: &std::path::Path) -> [Contestant; 2] {
    let credentials = directory.join("bmc");
    fs::write(&credentials, "username=admin\npassword=secret\n").expect("written");
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600)).expect("closed");
    let port = bmc.address().port();
    let pin = bmc.fingerprint().expect("it has TLS");
    let ours = format!(
        "ip=127.0.0.1\nipport={port}\npin={pin}\ncredentials_file={}\nrun_directory={}\n",
        credentials.display(),
        directory.join("run").display()
    );
    let theirs =
        format!("ip=127.0.0.1\nipport={port}\nssl_insecure=1\nusername=admin\npassword=secret\n");
    [
        Contestant {
            program: env!("CARGO_BIN_EXE_fence_dyad_redfish"),
            name: "fence_dyad_redfish",
            parameters: ours,
        },
        Contestant {
            program: "/usr/sbin/fence_redfish",
            name: "fence_redfish",
            parameters: theirs,
        },
    ]
}

/// Both in turns, so that whatever else the machine does hits both alike.
fn measure(action: &str, contestants: &[Contestant; 2], switch: &MemorySwitch, rounds: usize) {
    let mut times = [vec![], vec![]];
    for _ in 0..rounds {
        for (contestant, times) in contestants.iter().zip(&mut times) {
            switch.put(Ok(PowerState::On));
            times.push(contestant.time(action));
        }
    }
    let median = |times: &[Duration]| times[times.len() / 2].as_secs_f64() * 1000.0;
    for times in &mut times {
        times.sort();
    }
    let theirs = median(&times[1]);
    for (contestant, times) in contestants.iter().zip(&times) {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        println!(
            "| {action} | `{}` | {:.1} | {:.1} | {:.1} | {:.1} |",
            contestant.name,
            median(times),
            ms(times[0]),
            ms(times[times.len() - 1]),
            theirs / median(times)
        );
    }
}
