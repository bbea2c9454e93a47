//! What `dyad serve` costs under load: 1,000 requests a second from clients that keep their connections, the same from
//! clients that make a new one each time, and slow clients all the while.
//!
//! The server is a process of its own (this program, run again), so that its memory and its processor time are its own.
//! `cargo bench -p dyad-serve --bench serve [-- SECONDS]`

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyad_serve::watch::{Counts, Watch};
use dyad_serve::{Access, Server};
use dyad_status::Status;

const REQUESTS_PER_SECOND: u32 = 1000;
const CLIENTS: u32 = 8;
const SLOW_CLIENTS: usize = 24;
const PATHS: [&str; 4] = ["/", "/metrics", "/status.json", "/healthz"];
/// How often the server's own process makes everything anew, as with `--interval 1`.
const INTERVAL: Duration = Duration::from_secs(1);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|word| word == "--server") {
        return server();
    }
    let seconds = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(20);
    println!(
        "{:<34} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "clients", "requests", "failed", "CPU", "kernel", "RSS", "p99"
    );
    for (name, keep, slow) in [
        ("kept connections", true, 0),
        ("kept connections, 24 slow clients", true, SLOW_CLIENTS),
        ("new connections", false, 0),
        ("new connections, 24 slow clients", false, SLOW_CLIENTS),
    ] {
        measure(name, keep, slow, Duration::from_secs(seconds));
    }
}

/// The server as it runs on a node, but for the look at the pair, which is no request's business.
fn server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/alone.json");
    let status: Status = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let watch = Arc::new(Watch::default());
    watch.show(&status, &[], Counts::default());
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let access = Access::new(free, None, false).unwrap();
    let server = Server::new(free, None, access, Arc::clone(&watch)).unwrap();
    println!("{}", server.address().unwrap());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(INTERVAL);
            watch.show(&status, &[], Counts::default());
        }
    });
    server.run();
}

/// Ticks of processor time of a process so far, its own and the kernel's for it; there are a hundred in a second.
fn ticks(pid: u32) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    [fields[11], fields[12]].map(|field| field.parse().unwrap())
}

/// The most memory that a process has had, in kB.
fn memory_kb(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn measure(name: &str, keep: bool, slow: usize, time: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("--server")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address: SocketAddr = line.trim().parse().unwrap();
    let (end, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let slow: Vec<_> = (0..slow).map(|_| slow_client(address, Arc::clone(&end))).collect();
    let (before, start) = (ticks(child.id()), Instant::now());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let failed = Arc::clone(&failed);
            std::thread::spawn(move || client(address, number, keep, time, &failed))
        })
        .collect();
    let mut took: Vec<Duration> =
        clients.into_iter().flat_map(|each| each.join().unwrap()).collect();
    let elapsed = start.elapsed();
    let after = ticks(child.id());
    #[allow(clippy::cast_precision_loss, reason = "a share of some thousand ticks")]
    let [own, kernel] =
        [0, 1].map(|which| (after[which] - before[which]) as f64 / elapsed.as_secs_f64());
    let share = own + kernel;
    let memory = memory_kb(child.id());
    end.store(true, Ordering::Relaxed);
    for each in slow {
        each.join().unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
    println!(
        "{name:<34} {:>7}/s {:>8} {share:>6.1} % {kernel:>6.1} % {:>6.1} MB {:>6.2} ms",
        took.len() as u64 / elapsed.as_secs().max(1),
        failed.load(Ordering::Relaxed),
        memory / 1024.0,
        p99.as_secs_f64() * 1000.0
    );
}

/// Asks at its share of the rate, whatever the answers take.
fn client(
    address: SocketAddr,
    number: u32,
    keep: bool,
    time: Duration,
    failed: &AtomicU64,
) -> Vec<Duration> {
    let pause = Duration::from_secs(1) * CLIENTS / REQUESTS_PER_SECOND;
    let begin = Instant::now() + pause * number / CLIENTS;
    let mut took = Vec::new();
    let mut connection: Option<TcpStream> = None;
    for turn in 0.. {
        let due = begin + pause * turn;
        if due.duration_since(begin) >= time {
            return took;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let path = PATHS[turn as usize % PATHS.len()];
        let start = Instant::now();
        if ask(&mut connection, address, path, keep).is_ok() {
            took.push(start.elapsed());
        } else {
            connection = None;
            failed.fetch_add(1, Ordering::Relaxed);
        }
    }
    took
}

fn ask(
    kept: &mut Option<TcpStream>,
    address: SocketAddr,
    path: &str,
    keep: bool,
) -> std::io::Result<()> {
    let mut stream = match kept.take() {
        Some(stream) => stream,
        None => TcpStream::connect(address)?,
    };
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let close = if keep { "" } else { "Connection: close\r\n" };
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n{close}\r\n").as_bytes())?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    let mut whole = None;
    while whole.is_none_or(|whole| bytes.len() < whole) {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..count]);
        if whole.is_none() {
            whole = length(&bytes);
        }
    }
    // A connection has its number of requests.
    if keep && bytes.windows(10).any(|window| window == b"keep-alive") {
        *kept = Some(stream);
    }
    Ok(())
}

/// How long an answer is, head and body, once its head is there.
fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let line = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
    Some(end + line.parse::<usize>().ok()?)
}

/// Asks a byte at a time, for as long as it is let.
fn slow_client(address: SocketAddr, end: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !end.load(Ordering::Relaxed) {
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nX: ");
            while !end.load(Ordering::Relaxed) && stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    })
}
