//! The password is in the credentials file and on the wire to the BMC, and nowhere else.

mod common;

use std::fs;
use std::time::{Duration, Instant};

use base64::Engine as _;
use bmc_sim::Fault;
use common::{Fixture, LONG, PASSWORD, finish, start_with};

/// Every run, good or bad, at any verbosity: nothing of the password on stdout or stderr, in the arguments or the
/// environment of any process of the agent, or in the files that it writes.
#[test]
fn the_password_is_nowhere() {
    let fixture = Fixture::new();
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("admin:{PASSWORD}"));
    let assert_clean = |text: &str, place: &str| {
        assert!(!text.contains(PASSWORD) && !text.contains(&encoded), "{place}: {text}");
    };
    for fault in [
        Fault::None,
        Fault::WrongPassword,
        Fault::ServerError,
        Fault::MalformedJson,
        Fault::DoNothing,
        Fault::Hang,
        Fault::Refuse,
        Fault::Slow(Duration::from_millis(30)),
    ] {
        fixture.bmc.set_fault(fault);
        let all: &[_] =
            &["status", "off", "reboot", "monitor", "on", "list", "metadata", "validate-all"];
        for auth in ["basic", "session"] {
            // Where nothing is wrong, every action; else those that matter most.
            for action in if fault == Fault::None { all } else { &all[..3] } {
                let lines = format!("auth={auth}\nverbose=1\ntimeout_ms=300\non_timeout_ms=300\n");
                let (child, started) = start_with(&fixture.lines(action, &lines));
                let process = format!("/proc/{}", child.id());
                for name in ["cmdline", "environ"] {
                    let seen = fs::read(format!("{process}/{name}")).unwrap_or_default();
                    assert_clean(&String::from_utf8_lossy(&seen), &format!("{action}: {name}"));
                }
                let run = finish((child, started));
                assert_clean(&format!("{run:?}"), &format!("{action} with {fault}"));
            }
        }
    }
    for file in fs::read_dir(fixture.path("run")).unwrap() {
        assert_clean(&fs::read_to_string(file.unwrap().path()).unwrap(), "run directory");
    }
}

/// The process that powers on after a reboot gets nothing secret either.
#[test]
fn the_power_on_process_has_no_secret_arguments() {
    let fixture = Fixture::new();
    fixture.switch.put(Ok(bmc_sim::PowerState::Off));
    fixture.bmc.set_fault(Fault::DoNothing);
    assert_eq!(fixture.run_also("reboot", "on_timeout_ms=20000\n").code, 0);
    let started = Instant::now();
    let directory = fixture.directory.path().display().to_string();
    // It is the one whose stdin named this test's directory; find it by its option and its open BMC port.
    let seen = loop {
        let found: Vec<_> = processes_with("--power-on-after-reboot");
        if !found.is_empty() {
            break found;
        }
        assert!(started.elapsed() < LONG, "the process never appears for {directory}");
    };
    for (arguments, environment) in seen {
        assert!(!arguments.contains(PASSWORD) && !environment.contains(PASSWORD), "{arguments}");
        assert_eq!(environment, "");
    }
    // Ends it.
    fixture.bmc.set_fault(Fault::None);
    fixture.wait_for_power(bmc_sim::PowerState::On);
}

fn processes_with(option: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let read = |path: std::path::PathBuf| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ")).ok()
    };
    entries
        .filter_map(|entry| {
            let arguments = read(entry.path().join("cmdline"))?;
            arguments.contains(option).then_some(())?;
            Some((arguments, read(entry.path().join("environ"))?))
        })
        .collect()
}

/// A BMC that quotes the password in its complaint does not bring it into the log.
#[test]
fn an_indiscreet_bmc() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let body = format!(r#"{{"error":{{"message":"bad password {PASSWORD}"}}}}"#);
            let head = format!(
                "HTTP/1.1 418 No\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    let fixture = Fixture::new();
    let run = common::run_with(&format!(
        "action=status\naddress=http://{address}\nssl=0\n{}",
        fixture.files()
    ));
    assert_eq!(run.code, 21, "{run:?}");
    assert!(run.stderr.contains("(redacted)") && !run.stderr.contains(PASSWORD), "{run:?}");
}
