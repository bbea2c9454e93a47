//! The server as its clients meet it: pages, refusals, slow and greedy clients, and the page in a real browser.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dyad_serve::watch::{Counts, Watch};
use dyad_serve::{Access, Server};
use dyad_status::Status;
use dyad_status::document::Incident;

fn status(name: &str) -> Status {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The incident of this status, and one before it.
fn incidents(now: &Status) -> Vec<Incident> {
    let before = status("protected.json").incident;
    let before = before.filter(|before| now.incident.as_ref() != Some(before));
    now.incident.iter().cloned().chain(before).collect()
}

/// A server on a free port that shows this status, and what it shows.
fn serve(name: &str, token: Option<&Path>) -> (SocketAddr, Arc<Watch>) {
    let watch = Arc::new(Watch::default());
    let status = status(name);
    watch.show(&status, &incidents(&status), Counts::default());
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let access = Access::new(free, token, false).unwrap();
    let server = Server::new(free, None, access, Arc::clone(&watch)).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    (address, watch)
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"))
}

/// Every page answers with what it is, and nothing can be changed or loaded from elsewhere.
#[test]
fn pages() {
    let (address, _) = serve("alone.json", None);
    let page = get(address, "/");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("<h1>ALONE on node-a</h1>"));
    assert!(!page.contains("https://") && !page.contains("http://"), "it loads nothing");
    for told in [
        "<li>node-b fenced <small>+3.4 s</small></li>",
        "test of node-b</td><td>passes every 60 s since ",
        "protected again after 31 s",
        "token silent for 180 ms of 1000 ms",
    ] {
        assert!(page.contains(told), "{told} is not in {page}");
    }
    let document = get(address, "/status.json?x=1");
    let body = document.split_once("\r\n\r\n").unwrap().1;
    let document: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (document["kind"].as_str(), document["state"].as_str()),
        (Some("Status"), Some("alone"))
    );
    let metrics = get(address, "/metrics");
    assert!(
        metrics.contains("dyad_redundant 0\n")
            && metrics.contains("dyad_state{state=\"alone\"} 1\n")
    );
    assert!(get(address, "/healthz").contains("ok; the pair is ALONE"));
    assert!(get(address, "/etc/passwd").starts_with("HTTP/1.1 404"));
    for method in ["POST", "PUT", "DELETE"] {
        let answer = ask(address, &format!("{method} / HTTP/1.0\r\nHost: test\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    }
    assert!(ask(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    let head = ask(address, "HEAD / HTTP/1.0\r\nHost: test\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n") && head.contains("Content-Length"));
}

/// Prometheus reads the metrics without a complaint.
#[test]
fn metrics_are_as_prometheus_wants_them() {
    let (address, _) = serve("protected.json", None);
    let metrics = get(address, "/metrics");
    let body = metrics.split_once("\r\n\r\n").unwrap().1;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("promtool is part of Debian's package prometheus: scripts/setup installs it");
    promtool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Who listens is told at once when there is something new.
#[test]
fn events_tell_what_is_new() {
    let (address, watch) = serve("protected.json", None);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut seen = String::new();
    let mut wait_for = |stream: &mut TcpStream, wanted: &str| {
        let start = Instant::now();
        let mut chunk = [0; 1024];
        while !seen.contains(wanted) {
            assert!(start.elapsed() < Duration::from_secs(10), "{wanted} is not in {seen}");
            let count = stream.read(&mut chunk).unwrap();
            seen.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    };
    wait_for(&mut stream, "data: PROTECTED");
    let alone = status("alone.json");
    watch.show(&alone, &incidents(&alone), Counts::default());
    wait_for(&mut stream, "data: ALONE");
}

/// Without the token nothing is told, not even where the pair stands.
#[test]
fn a_token_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "correct-horse-battery").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, private).unwrap();
    let (address, _) = serve("protected.json", Some(&token));
    for path in ["/", "/metrics", "/status.json", "/healthz", "/events"] {
        let answer = get(address, path);
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("PROTECTED"), "{answer}");
    }
    let shown = "GET / HTTP/1.0\r\nAuthorization: Bearer correct-horse-battery\r\n\r\n";
    assert!(ask(address, shown).starts_with("HTTP/1.1 200"));
}

/// Clients that ask a byte at a time, or for megabytes, are ended; others are served meanwhile.
#[test]
fn slow_and_greedy_clients_hold_nobody() {
    let (address, _) = serve("protected.json", None);
    let slow: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
            stream
        })
        .collect();
    for _ in 0..50 {
        assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
    }
    let greedy = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(64 << 10));
    assert!(!ask(address, &greedy).starts_with("HTTP/1.1 200"));
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        // Ended by the server: an answer or a plain end, not our own patience.
        let ended = stream.read_to_end(&mut rest);
        assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    }
}

/// One connection serves many requests, also several that come at once, and ends when its client says so.
#[test]
fn a_connection_serves_many_requests() {
    let (address, _) = serve("protected.json", None);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for _ in 0..20 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    }
    stream.write_all(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 21);
    assert_eq!(answer.matches("Connection: keep-alive").count(), 20);
    // A body is not taken for another request.
    let smuggled =
        "POST / HTTP/1.1\r\nContent-Length: 35\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = ask(address, smuggled);
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

/// A client that takes the handshake a byte at a time is ended like any other slow one.
#[test]
fn a_slow_handshake_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let made = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let made = made.self_signed(&key).unwrap();
    let (cert, private) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::write(&cert, made.pem()).unwrap();
    std::fs::write(&private, key.serialize_pem()).unwrap();
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let watch = Arc::new(Watch::default());
    let access = Access::new(free, None, true).unwrap();
    let server = Server::new(free, Some((&cert, &private)), access, watch).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    let mut stream = TcpStream::connect(address).unwrap();
    let start = Instant::now();
    // The beginning of a handshake record of 512 bytes, then a byte now and then, well within any single limit.
    stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).unwrap();
    while stream.write_all(&[0]).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(15), "the handshake goes on and on");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(start.elapsed() > Duration::from_secs(2), "it was given its time");
}

/// Stands between the browser and the server, and writes down what is asked for.
fn overheard(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                let Ok(mut other) = TcpStream::connect(server) else { return };
                let (mut answers, mut back) =
                    (other.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut answers, &mut back);
                    let _ = back.shutdown(std::net::Shutdown::Both);
                });
                let mut bytes = [0; 8192];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                    let asked = text.lines().filter(|line| line.ends_with(" HTTP/1.1"));
                    heard.lock().unwrap().extend(asked.map(str::to_owned));
                    if other.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, asked)
}

fn browse(address: SocketAddr, size: &str, extra: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args(["90", "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--hide-scrollbars", "--timeout=5000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={size}"))
        .args([extra, &format!("http://{address}/")])
        .output()
        .unwrap();
    assert!(output.status.success(), "chromium: scripts/setup installs it: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A real browser shows the answer at the width of a desk and of a phone, and its script listens for news. With
/// `DYAD_UPDATE=1` the pictures of the documentation are taken.
#[test]
fn the_page_in_a_browser() {
    let (server, _) = serve("alone.json", None);
    let (address, asked) = overheard(server);
    let directory = tempfile::tempdir().unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    let update = std::env::var_os("DYAD_UPDATE").is_some();
    for (size, name) in [("1280,1480", "status-page.png"), ("390,1720", "status-page-phone.png")] {
        let picture = if update { docs.join(name) } else { directory.path().join(name) };
        browse(address, size, &format!("--screenshot={}", picture.display()));
        assert!(std::fs::metadata(&picture).unwrap().len() > 20_000, "an empty picture");
        assert!(browse(address, size, "--dump-dom").contains("<h1>ALONE on node-a</h1>"));
    }
    let asked = asked.lock().unwrap();
    assert!(asked.iter().any(|line| line.starts_with("GET /events ")), "{asked:?}");
}
