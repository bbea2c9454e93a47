//! Everything that can be wrong: a distinct message and exit code, within its limit, and never "off".

mod common;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::thread;
use std::time::Duration;

use bmc_sim::{Fault, PowerState, SwitchError};
use common::{Fixture, Run, agent, override_lines, run_with, write_private};

/// The limit that the agent is given for the BMCs that never answer.
const IMPATIENT: &str = "timeout_ms=1500\nrequest_timeout_ms=700\n";
/// The limit for those that say yes and never get there: enough to ask on a busy machine.
const PATIENT: &str = "timeout_ms=6000\n";
/// Far above these limits, below all others: whoever takes this long did not keep his.
const LIMIT_KEPT: Duration = Duration::from_secs(40);

/// One thing that is wrong.
struct Case {
    name: &'static str,
    run: Run,
    code: i32,
    says: &'static str,
}

fn check(cases: Vec<Case>) {
    let mut messages = BTreeMap::new();
    for Case { name, run, code, says } in cases {
        assert_eq!(run.code, code, "{name}: {run:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(says), "{name}: {run:?}");
        assert_eq!(run.stdout, "", "{name}");
        assert!(run.took < LIMIT_KEPT, "{name}: {run:?}");
        if let Some(other) = messages.insert(run.stderr.lines().next().unwrap().to_owned(), name) {
            panic!("{name} and {other} say the same: {}", run.stderr);
        }
    }
}

/// A plain HTTP server that answers each request from its first line.
fn scripted(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            serve(stream, &answer);
        }
    });
    format!("address=http://{address}\nssl=0\n")
}

fn serve(mut stream: TcpStream, answer: &impl Fn(&str) -> String) {
    let mut text = Vec::new();
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => text.extend_from_slice(&chunk[..count]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let _ = stream.write_all(answer(text.lines().next().unwrap_or_default()).as_bytes());
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A BMC with one System whose description is this, and whose reset is answered with that.
fn one_system(system: &'static str, reset: &'static str) -> String {
    scripted(move |request| match request.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/redfish/v1/"] => ok(r#"{"Systems":{"@odata.id":"/s"}}"#),
        ["GET", "/s"] => ok(r#"{"Members":[{"@odata.id":"/s/1"}]}"#),
        ["GET", "/s/1"] => ok(system),
        _ => reset.to_owned(),
    })
}

/// Parameters: each wrong one is named, and nothing is asked of anybody.
#[test]
fn parameters() {
    let fixture = Fixture::new();
    let good = fixture.parameters();
    // Added at the end, so that what contradicts the rest really does.
    let with = |lines: &str| run_with(&format!("action=off\n{good}{lines}\n"));
    let without = |name: &str| {
        let kept: Vec<_> = good.lines().filter(|line| !line.starts_with(name)).collect();
        run_with(&format!("action=off\n{}\n", kept.join("\n")))
    };
    let case = |name, run, code, says| Case { name, run, code, says };
    check(vec![
        case("no action", run_with(&good), 4, "action is missing"),
        case(
            "unknown action",
            run_with(&format!("action=explode\n{good}")),
            3,
            "unsupported action",
        ),
        case("no address", without("address"), 4, "address is missing"),
        case("no trust", without("pin"), 4, "which certificate"),
        case("no credentials", without("credentials_file"), 4, "credentials_file is missing"),
        case("two kinds of trust", with("insecure=1"), 3, "only one of"),
        case("contradicting address", with("ip=10.0.0.1"), 3, "address is given twice"),
        case("contradicting port", with("ipport=1"), 3, "ipport=1 contradict"),
        case("contradicting scheme", with("ssl=0"), 3, "ssl=0 contradict"),
        case("port that is no number", with("ipport=x"), 3, "ipport is \"x\""),
        case("wrong flag", with("ssl=perhaps"), 3, "ssl is \"perhaps\""),
        case("wrong choice", with("auth=digest"), 3, "basic, session"),
        case("time with a unit", with("split_delay_ms=5s"), 3, "split_delay_ms is \"5s\""),
        case("no time at all", fixture.run_also("off", "timeout_ms=0\n"), 3, "timeout_ms must be"),
        case("blank in a System", with("system=a b"), 3, "system is \"a b\""),
        case("a password", with("password=x"), 5, "parameter password is refused"),
        case("a user name", with("login=x"), 5, "parameter login is refused"),
        case("a delay", with("delay=5"), 5, "parameter delay is refused"),
        case("another node", with("node=node1\nnodename=node10"), 8, "node10"),
        case("too much", with(&"x".repeat(70_000)), 3, "exceed"),
    ]);
    let mut odd = agent();
    odd.args(["--action=off", "--frobnicate=1"]);
    let output = odd.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(fixture.bmc.events(0).is_empty(), "the BMC was asked");
    assert_eq!(with("frobnicate=1").code, 0, "an unknown name must not stop fencing");
    assert_eq!(fixture.run_also("validate-all", "frobnicate=1\n").code, 3);
}

/// Files: one that cannot be used is refused before anybody is asked.
#[test]
fn files() {
    let fixture = Fixture::new();
    let text = std::fs::read_to_string(fixture.path("bmc")).unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        write_private(&fixture.path(name), text);
        std::fs::set_permissions(fixture.path(name), std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    file("open", &text, 0o644);
    file("group", &text, 0o640);
    file("broken", "username=admin\npasword=x\n", 0o600);
    file("empty", "", 0o600);
    file("not.pem", "hello\n", 0o600);
    symlink(fixture.path("bmc"), fixture.path("link")).unwrap();
    let with_file = |name: &str| {
        let own = format!("credentials_file={}", fixture.path("bmc").display());
        let other = format!("credentials_file={}", fixture.path(name).display());
        run_with(&format!("action=off\n{}", fixture.parameters().replace(&own, &other)))
    };
    let with_ca = |name: &str| {
        let ca_file = fixture.path(name);
        let address = fixture.bmc.url();
        run_with(&format!(
            "action=off\naddress={address}\nca_file={}\n{}",
            ca_file.display(),
            fixture.files()
        ))
    };
    let case = |name, run, code, says| Case { name, run, code, says };
    check(vec![
        case("readable by all", with_file("open"), 6, "mode is 0644"),
        case("readable by a group", with_file("group"), 6, "mode is 0640"),
        case("a link", with_file("link"), 6, "symbolic link"),
        case("a directory", with_file(""), 6, "regular"),
        case("none", with_file("none"), 6, "does not exist"),
        case("typing error", with_file("broken"), 6, "line 2"),
        case("empty", with_file("empty"), 6, "no username"),
        case("no CA file", with_ca("none.pem"), 7, "none.pem"),
        case("CA file without certificate", with_ca("not.pem"), 7, "no certificate"),
    ]);
    assert!(fixture.bmc.events(0).is_empty(), "the BMC was asked");
}

/// Roads: each way in which the BMC cannot be reached or trusted.
#[test]
fn roads() {
    let fixture = Fixture::new();
    let files = fixture.files();
    let to = |lines: &str| run_with(&override_lines(&format!("action=off\n{files}"), lines));
    let url = fixture.bmc.url();
    let other = Fixture::new();

    let silent = socket_that_swallows();
    let closing = TcpListener::bind("127.0.0.1:0").unwrap();
    let closing_address = closing.local_addr().unwrap();
    thread::spawn(move || closing.incoming().map_while(Result::ok).for_each(drop));
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain_as_tls = format!("address=https://{}\ninsecure=1", plain.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in plain.incoming().map_while(Result::ok) {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    let garbage = scripted(|_| "220 smtp ready\r\n\r\n".to_owned());

    let mut cases = vec![
        Case {
            name: "unknown name",
            run: to("address=bmc.invalid\ninsecure=1"),
            code: 10,
            says: "resolve",
        },
        Case {
            name: "unreachable",
            run: to(&format!("address=https://{}\ninsecure=1\n{IMPATIENT}", silent.1)),
            code: 12,
            says: "timed out",
        },
        Case {
            name: "another authority",
            run: to(&format!("address={url}\nca_file={}", other.ca_file.display())),
            code: 13,
            says: "not issued by an accepted authority",
        },
        Case {
            name: "another certificate",
            run: to(&format!("address={url}\npin={}", other.bmc.fingerprint().unwrap())),
            code: 14,
            says: "not the pinned one",
        },
        Case { name: "no TLS there", run: to(&plain_as_tls), code: 15, says: "TLS" },
        Case {
            name: "closes at once",
            run: to(&format!("address=https://{closing_address}\ninsecure=1")),
            code: 17,
            says: "connection broke",
        },
        Case { name: "not HTTP", run: to(&garbage), code: 18, says: "not valid HTTP" },
    ];
    for (name, fault, code, says) in
        [("refuses", Fault::Refuse, 11, "refused"), ("hangs", Fault::Hang, 16, "time ran out")]
    {
        fixture.bmc.set_fault(fault);
        cases.push(Case { name, run: to(&format!("address={url}\ninsecure=1")), code, says });
    }
    check(cases);
    assert_eq!(fixture.power(), PowerState::On);
}

/// A port whose queue is full: it answers no connection, as a machine that is off would not.
fn socket_that_swallows() -> (Vec<TcpStream>, std::net::SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        held.push(stream);
        assert!(held.len() < 10_000, "the queue is never full");
    }
    (held, address, listener)
}

/// Answers: each way in which a BMC that answers does not do what it should.
#[test]
fn answers() {
    let fixture = Fixture::new();
    let several = Fixture::with_systems(&["1", "10"]);
    let off = |lines: &str| fixture.run_also("off", lines);
    let mut cases = Vec::new();
    for (name, fault, code, says) in [
        (
            "wrong password",
            Fault::WrongPassword,
            20,
            "refused the user name or password (HTTP 401)",
        ),
        ("server error", Fault::ServerError, 21, "HTTP 500"),
        ("malformed", Fault::MalformedJson, 18, "not JSON"),
        ("does nothing", Fault::DoNothing, 27, "the BMC says On"),
        ("stuck", Fault::StuckPoweringOff, 27, "the BMC says PoweringOff"),
    ] {
        fixture.bmc.set_fault(fault);
        let run = off(if code == 27 { PATIENT } else { "" });
        cases.push(Case { name, run, code, says });
        assert_eq!(fixture.power(), PowerState::On, "{name}");
    }
    fixture.bmc.set_fault(Fault::None);
    cases.push(Case {
        name: "no such System",
        run: off("system=2\n"),
        code: 22,
        says: "it has: 1",
    });
    cases.push(Case { name: "several Systems", run: several.run("off"), code: 23, says: "1, 10" });
    cases.push(Case {
        name: "no such path",
        run: off("system=/redfish/v1/Systems/7\n"),
        code: 21,
        says: "HTTP 404",
    });
    cases.push(Case {
        name: "not a System",
        run: off("system=/redfish/v1/Chassis/1\n"),
        code: 18,
        says: "not a ComputerSystem",
    });
    fixture.bmc.set_fault(Fault::NoPowerState);
    cases.push(Case {
        name: "no state",
        run: fixture.run("status"),
        code: 24,
        says: "neither On nor Off: null",
    });
    fixture.bmc.set_fault(Fault::None);
    fixture.switch.put(Err(SwitchError::new("no cgroup")));
    cases.push(Case {
        name: "blind",
        run: fixture.run("status"),
        code: 21,
        says: "cannot be read: no cgroup",
    });
    check(cases);
    assert!(fixture.resets().iter().all(|reset| *reset == "ForceOff"));
    assert!(several.resets().is_empty());
}

const GRACEFUL: &str = r##"{"Id":"1","PowerState":"On","Actions":{"#ComputerSystem.Reset":{"target":"/r","ResetType@Redfish.AllowableValues":["On","GracefulShutdown"]}}}"##;
const PLAIN: &str =
    r##"{"Id":"1","PowerState":"On","Actions":{"#ComputerSystem.Reset":{"target":"/r"}}}"##;
const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\nContent-Length: 30\r\nConnection: close\r\n\r\n{\"error\":{\"message\":\"locked\"}}";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Answers of BMCs that do not offer or refuse what is needed.
#[test]
fn unwilling() {
    let fixture = Fixture::new();
    let files = fixture.files();
    let off = |lines: &str| run_with(&format!("action=off\n{lines}{files}"));
    let off_soon =
        |lines: &str| run_with(&override_lines(&format!("action=off\n{lines}{files}"), PATIENT));
    let monitor = |lines: &str| run_with(&format!("action=monitor\n{lines}{files}"));
    check(vec![
        Case {
            name: "only graceful",
            run: off(&one_system(GRACEFUL, "")),
            code: 25,
            says: "does not offer ForceOff",
        },
        Case {
            name: "refuses",
            run: off(&one_system(PLAIN, REFUSAL)),
            code: 26,
            says: "HTTP 400: locked",
        },
        Case { name: "busy", run: off_soon(&one_system(PLAIN, BUSY)), code: 26, says: "HTTP 503" },
        Case {
            name: "no action",
            run: off(&one_system(r#"{"PowerState":"On"}"#, "")),
            code: 18,
            says: "no reset action",
        },
        Case {
            name: "no members",
            run: off(&scripted(|_| ok("{}"))),
            code: 18,
            says: "names no Systems",
        },
        Case {
            name: "a list",
            run: off(&one_system("[]", "")),
            code: 18,
            says: "not a JSON object",
        },
    ]);
    // What would fail when it is needed is told while there is time.
    let run = monitor(&one_system(GRACEFUL, ""));
    assert_eq!(run.code, 25, "{run:?}");
}
