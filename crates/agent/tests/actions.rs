//! The fence agent against the simulator: every action, as Pacemaker calls it.

mod common;

use std::time::{Duration, Instant};

use bmc_sim::{Fault, PowerState, SwitchError};
use common::{Fixture, LONG, UUID, agent, finish, run_with, start_with};

/// Each action ends as the fence-agent interface says, and the power follows.
#[test]
fn every_action() {
    let fixture = Fixture::new();
    for (action, code, stdout, power) in [
        ("status", 0, "Status: ON\n", PowerState::On),
        ("monitor", 0, "", PowerState::On),
        ("list", 0, "1,node1\n", PowerState::On),
        ("validate-all", 0, "", PowerState::On),
        ("on", 0, "Success: Powered ON\n", PowerState::On),
        ("off", 0, "Success: Powered OFF\n", PowerState::Off),
        ("off", 0, "Success: Already OFF\n", PowerState::Off),
        ("status", 2, "Status: OFF\n", PowerState::Off),
        ("monitor", 0, "", PowerState::Off),
        ("on", 0, "Success: Powered ON\n", PowerState::On),
    ] {
        let run = fixture.run(action);
        assert_eq!((run.code, run.stdout.as_str()), (code, stdout), "{action}: {run:?}");
        assert_eq!(run.stderr, "", "{action}");
        assert_eq!(fixture.power(), power, "{action}");
    }
    assert_eq!(fixture.resets(), ["ForceOff", "On"]);
}

/// A reboot ends with Off proven, and the node comes back on by itself.
#[test]
fn reboot_powers_on_afterwards() {
    for off_first in [false, true] {
        let fixture = Fixture::new();
        if off_first {
            fixture.switch.put(Ok(PowerState::Off));
        }
        let run = fixture.run("reboot");
        assert_eq!((run.code, run.stdout.as_str()), (0, "Success: Rebooted\n"), "{run:?}");
        fixture.wait_for_power(PowerState::On);
        let expected: &[_] = if off_first { &["On"] } else { &["ForceOff", "On"] };
        assert_eq!(fixture.resets(), expected);
    }
}

/// The proof does not wait for the power-on: with a BMC that takes its time, reboot ends while the node is
/// still off, and both of its pipes are closed.
#[test]
fn reboot_does_not_wait_for_the_power_on() {
    let fixture = Fixture::new();
    fixture.bmc.set_fault(Fault::SlowPower(Duration::from_millis(1500)));
    let run = fixture.run("reboot");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(fixture.power(), PowerState::Off);
    fixture.wait_for_power(PowerState::On);
}

/// A power-on that fails is reported, and the proof stands: reboot succeeded. monitor tells it until the
/// node is on again.
#[test]
fn a_failed_power_on_is_told() {
    let fixture = Fixture::new();
    fixture.switch.put(Ok(PowerState::Off));
    fixture.bmc.set_fault(Fault::DoNothing);
    assert_eq!(fixture.run_also("reboot", "on_timeout_ms=300\n").code, 0);
    let started = Instant::now();
    let warning = loop {
        let monitor = fixture.run("monitor");
        assert_eq!(monitor.code, 0, "{monitor:?}");
        if !monitor.stderr.is_empty() {
            break monitor.stderr;
        }
        assert!(started.elapsed() < LONG, "the failure is never told");
    };
    assert!(warning.contains("powering on after the last fencing failed"), "{warning}");
    fixture.bmc.set_fault(Fault::None);
    assert_eq!(fixture.run("on").code, 0);
    assert_eq!(fixture.run("monitor").stderr, "");
}

/// After an off the node stays off, though an earlier reboot was still trying to power it on.
#[test]
fn off_cancels_the_power_on_of_an_earlier_reboot() {
    let fixture = Fixture::new();
    fixture.switch.put(Ok(PowerState::Off));
    // The power-on is asked for again and again, because nothing ever happens.
    fixture.bmc.set_fault(Fault::DoNothing);
    assert_eq!(fixture.run("reboot").code, 0);
    let started = Instant::now();
    while !fixture.resets().contains(&"On") {
        assert!(started.elapsed() < LONG, "the power-on never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(fixture.run("off").code, 0);
    let asked = fixture.resets().len();
    fixture.bmc.set_fault(Fault::None);
    // Longer than the process waits before it asks again.
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(fixture.power(), PowerState::Off, "{:?}", fixture.resets());
    assert_eq!(fixture.resets().len(), asked);
}

/// The delay that decides a split is waited for, and not a moment longer than the node is on.
#[test]
fn the_split_delay() {
    let fixture = Fixture::new();
    let run = fixture.run_also("off", "split_delay_ms=700\n");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.took >= Duration::from_millis(700), "{run:?}");

    // Off already: the delay, an hour, is skipped.
    let run = fixture.run_also("off", "split_delay_ms=3600000\n");
    assert_eq!((run.code, run.stdout.as_str()), (0, "Success: Already OFF\n"));
    assert!(run.took < LONG, "{run:?}");

    // Goes off meanwhile: the rest of the delay is skipped.
    fixture.switch.put(Ok(PowerState::On));
    let waiting = start_with(&fixture.lines("off", "split_delay_ms=3600000\n"));
    let before = fixture.bmc.events(0).len();
    while fixture.bmc.events(0).len() == before {
        assert!(waiting.1.elapsed() < LONG, "the agent never looked");
        std::thread::sleep(Duration::from_millis(5));
    }
    fixture.switch.put(Ok(PowerState::Off));
    let run = finish(waiting);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.took < LONG, "{run:?}");

    // Nobody waits before powering on or looking.
    for action in ["on", "status", "monitor"] {
        assert!(fixture.run_also(action, "split_delay_ms=3600000\n").took < LONG);
    }
}

/// A BMC that is out of reach during the delay and answers after it does not stop the fencing.
#[test]
fn a_bmc_that_comes_back_during_the_delay() {
    let fixture = Fixture::new();
    fixture.bmc.set_fault(Fault::Refuse);
    let waiting = start_with(&format!("action=off\n{}split_delay_ms=1500\n", fixture.parameters()));
    std::thread::sleep(Duration::from_millis(500));
    fixture.bmc.set_fault(Fault::None);
    let run = finish(waiting);
    assert_eq!((run.code, fixture.power()), (0, PowerState::Off), "{run:?}");
}

/// The System is pinned by id, UUID or path; the others of the same BMC are never touched.
#[test]
fn the_system_is_pinned() {
    let fixture = Fixture::with_systems(&["1", "10", "2"]);
    let path = "/redfish/v1/Systems/1".to_owned();
    for name in ["1".to_owned(), UUID.to_owned(), UUID.to_uppercase(), path] {
        fixture.switch.put(Ok(PowerState::On));
        let run = fixture.run_also("off", &format!("system={name}\n"));
        assert_eq!((run.code, fixture.power()), (0, PowerState::Off), "{name}: {run:?}");
    }
    let touched: Vec<_> = fixture
        .bmc
        .events(0)
        .into_iter()
        .filter(|e| e.reset.is_some())
        .filter_map(|e| e.system)
        .collect();
    assert_eq!(touched, ["1", "1", "1", "1"]);
}

/// Sessions work, survive a BMC that forgets them, and are closed at the end.
#[test]
fn sessions() {
    let fixture = Fixture::new();
    for (action, code) in [("status", 0), ("off", 0), ("status", 2), ("on", 0), ("monitor", 0)] {
        let run = fixture.run_also(action, "auth=session\n");
        assert_eq!(run.code, code, "{action}: {run:?}");
    }
    assert_eq!(fixture.bmc.sessions(), 0);
}

/// The other ways to trust and to name the BMC work too.
#[test]
fn trust_and_addresses() {
    let fixture = Fixture::new();
    let port = fixture.bmc.address().port();
    let ca_file = fixture.ca_file.display();
    for lines in [
        format!("ip=127.0.0.1\nipport={port}\nca_file={ca_file}\n"),
        format!("ip=127.0.0.1:{port}\nssl_insecure=1\n"),
        format!("address=https://localhost:{port}\nca_file={ca_file}\ntls_name=127.0.0.1\n"),
    ] {
        let run = run_with(&format!("action=status\n{lines}{}", fixture.files()));
        assert_eq!(run.code, 0, "{lines}: {run:?}");
    }
}

/// People use options; they mean the same.
#[test]
fn options_for_people() {
    let fixture = Fixture::new();
    let option = |name: &str, value: &str| format!("--{name}={value}");
    let pin = fixture.bmc.fingerprint().unwrap().to_string();
    let output = agent()
        .args(["-o", "off", "-a", &fixture.bmc.url(), "--verbose"])
        .args([
            option("pin", &pin),
            option("credentials-file", &fixture.path("bmc").display().to_string()),
        ])
        .arg(option("run-directory", &fixture.path("run").display().to_string()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the BMC said Off"), "{output:?}");
    assert_eq!(fixture.power(), PowerState::Off);
    for (argument, word) in
        [("--help", "split-delay-ms"), ("-h", "validate-all"), ("--version", "0.1")]
    {
        let output = agent().arg(argument).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains(word), "{argument}");
    }
}

/// A device that names its node fences that node only, and tells Pacemaker which one it is.
#[test]
fn a_device_of_one_node() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run_also("list", "node=node1\n").stdout, "node1,\n");
    let other = fixture.run_also("off", "node=node1\nnodename=node10\n");
    assert_eq!((other.code, fixture.power()), (8, PowerState::On), "{other:?}");
    let own =
        fixture.run_also("off", "node=node1\nnodename=node1\nplug=node1\nport=node1\nnodeid=1\n");
    assert_eq!((own.code, own.stderr.as_str(), fixture.power()), (0, "", PowerState::Off));
}

/// A run directory that cannot be used does not stop the fencing, and an Off is then not simply believed.
#[test]
fn without_a_run_directory() {
    let fixture = Fixture::new();
    fixture.switch.put(Ok(PowerState::Off));
    let lines = fixture.parameters().replace("/run\n", "/bmc/run\n");
    let run = run_with(&format!("action=off\n{lines}"));
    assert_eq!((run.code, run.stdout.as_str()), (0, "Success: Powered OFF\n"), "{run:?}");
    assert!(run.stderr.contains("cannot take turns"), "{run:?}");
    assert_eq!(fixture.resets(), ["ForceOff"]);
    let run = run_with(&format!("action=reboot\n{lines}"));
    assert_eq!((run.code, fixture.power()), (0, PowerState::On), "{run:?}");
}

/// Whatever the BMC says that is not exactly Off, nothing calls it off: neither status nor off.
#[test]
fn never_off_by_accident() {
    let fixture = Fixture::new();
    let cases: [(&str, &dyn Fn()); 6] = [
        ("null", &|| fixture.bmc.set_fault(Fault::NoPowerState)),
        ("malformed", &|| {
            fixture.switch.put(Ok(PowerState::Off));
            fixture.bmc.set_fault(Fault::MalformedJson);
        }),
        ("blind", &|| fixture.switch.put(Err(SwitchError::new("no cgroup")))),
        ("powering off", &|| fixture.switch.put(Ok(PowerState::PoweringOff))),
        ("powering on", &|| fixture.switch.put(Ok(PowerState::PoweringOn))),
        ("500", &|| fixture.bmc.set_fault(Fault::ServerError)),
    ];
    for (name, set) in cases {
        fixture.bmc.set_fault(Fault::None);
        fixture.switch.put(Ok(PowerState::On));
        set();
        let run = fixture.run("status");
        assert!(![0, 2].contains(&run.code) && run.stdout.is_empty(), "{name}: {run:?}");
    }
}

/// A BMC that says yes and never gets there: off and reboot end at their limit, without a proof.
#[test]
fn an_off_that_never_comes() {
    // Long enough for a busy machine to get as far as asking, so all at once.
    std::thread::scope(|scope| {
        for fault in [Fault::DoNothing, Fault::StuckPoweringOff, Fault::NoPowerState] {
            for action in ["off", "reboot"] {
                scope.spawn(move || {
                    let fixture = Fixture::new();
                    fixture.bmc.set_fault(fault);
                    let run = fixture.run_also(action, "timeout_ms=5000\n");
                    assert_eq!(run.code, 27, "{action} with {fault}: {run:?}");
                    assert!(run.stderr.contains("timed out waiting for power Off"), "{run:?}");
                    assert_eq!(run.stdout, "");
                });
            }
        }
    });
}
