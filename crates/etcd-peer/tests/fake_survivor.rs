//! The stand-in against a survivor that no etcd would be: it must end the matter, not answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dyad_core::ids::{ClusterId, MemberId};
use etcd_peer::stand_in::{Error, Limits, StandIn, Survivor, Veto};
use etcd_peer::wire::{Message, MessageType, encode_message};

const CLUSTER: ClusterId = ClusterId(0xc);
const SURVIVOR: MemberId = MemberId(0xa);
const DEAD: MemberId = MemberId(0xd);

/// What the fake says.
#[derive(Clone)]
struct Fake {
    cluster: &'static str,
    version: &'static str,
    members: &'static str,
    /// On the message stream, as soon as it is open.
    message: Option<Message>,
    /// Ends each stream in order right after it was opened.
    ends_streams: bool,
    /// Everything that was posted to it.
    posted: Arc<Mutex<Vec<Message>>>,
    /// Every path that was asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn new() -> Self {
        Self {
            cluster: "c",
            version: "3.5.16",
            members: r#"[{"id":10},{"id":13}]"#,
            message: None,
            ends_streams: false,
            posted: Arc::default(),
            asked: Arc::default(),
        }
    }

    /// Serves until the process ends, and lets a stand-in at it.
    fn meet(self) -> Error {
        let lock = tempfile::NamedTempFile::new().unwrap();
        self.stand_in(lock.path()).run(&mut |_| {}).unwrap_err()
    }

    /// Serves until the process ends; a stand-in that is to meet it.
    fn stand_in(self, lock: &Path) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer_url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let fake = self.clone();
                std::thread::spawn(move || fake.serve(connection.unwrap()));
            }
        });
        let target =
            Survivor { cluster: CLUSTER, survivor: SURVIVOR, dead: DEAD, peer_url, tls: None };
        StandIn::new(target, lock, Limits { total: Duration::from_secs(5) })
    }

    fn serve(&self, connection: TcpStream) {
        let mut out = connection.try_clone().unwrap();
        let mut input = BufReader::new(connection);
        while let Some((path, body)) = read_request(&mut input) {
            self.asked.lock().unwrap().push(path.clone());
            let head = format!(
                "X-Etcd-Cluster-ID: {}\r\nX-Server-Version: {}\r\n",
                self.cluster, self.version
            );
            if path.starts_with("/raft/stream/") {
                let _ = write!(out, "HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n");
                if let (Some(message), true) = (&self.message, path.contains("/message/")) {
                    let frame = encode_message(message);
                    let _ = write!(out, "{:x}\r\n", frame.len());
                    let _ = out.write_all(&frame);
                    let _ = write!(out, "\r\n");
                }
                if self.ends_streams {
                    let _ = write!(out, "0\r\n\r\n");
                    continue;
                }
                // Open until the other side has had enough.
                let _ = input.read(&mut [0]);
                return;
            }
            let reply = if path == "/members" {
                let members = self.members;
                format!(
                    "HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n{members}",
                    members.len()
                )
            } else {
                self.posted.lock().unwrap().push(prost::Message::decode(&*body).unwrap());
                format!("HTTP/1.1 204 No Content\r\n{head}\r\n")
            };
            let _ = out.write_all(reply.as_bytes());
        }
    }
}

fn read_request(input: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok()?;
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((path, body))
}

/// A request for a vote that is not from the survivor, or not for the dead member, is not granted: it ends
/// the stand-in.
#[test]
fn foreign_messages_end_it() {
    for (from, to) in [(MemberId(1), DEAD), (SURVIVOR, MemberId(1)), (DEAD, SURVIVOR)] {
        let message = Message {
            kind: MessageType::Vote.into(),
            from: from.0,
            to: to.0,
            term: 5,
            ..Message::default()
        };
        let fake = Fake { message: Some(message), ..Fake::new() };
        let posted = Arc::clone(&fake.posted);
        let error = fake.meet();
        assert!(matches!(error, Error::Foreign(_)), "{error:?}");
        let posted = posted.lock().unwrap();
        assert!(posted.iter().all(|message| message.kind() != MessageType::VoteResp), "{posted:?}");
    }
}

/// Connected and not yet released, it asks for the membership and for nothing else, whatever time passes; dropped, it
/// gives the lock back and never has said a word.
#[test]
fn nothing_is_said_before_it_is_released() {
    let fake = Fake::new();
    let (posted, asked) = (Arc::clone(&fake.posted), Arc::clone(&fake.asked));
    let lock = tempfile::NamedTempFile::new().unwrap();
    let connected = fake.clone().stand_in(lock.path()).connect().unwrap();
    let busy = fake.clone().stand_in(lock.path()).connect().unwrap_err();
    assert!(matches!(busy, Error::Busy(_)), "{busy:?}");
    // Both streams, and whoever sends: each opens its connection.
    let limit = Instant::now() + Duration::from_secs(10);
    while asked.lock().unwrap().len() < 3 {
        assert!(Instant::now() < limit, "{asked:?}");
        std::thread::yield_now();
    }
    drop(connected);
    assert!(asked.lock().unwrap().iter().all(|path| path == "/members"), "{asked:?}");
    assert_eq!(posted.lock().unwrap().len(), 0);
    drop(fake.stand_in(lock.path()).connect().unwrap());
}

/// Another cluster at the peer URL is not spoken to.
#[test]
fn another_cluster_ends_it() {
    let fake = Fake { cluster: "cc", ..Fake::new() };
    let posted = Arc::clone(&fake.posted);
    let error = fake.meet();
    assert!(matches!(error, Error::WrongCluster { .. }), "{error:?}");
    assert!(posted.lock().unwrap().is_empty());
}

/// Streams that somebody else takes again and again mean that the dead member lives.
#[test]
fn a_living_dead_member_ends_it() {
    let error = Fake { ends_streams: true, ..Fake::new() }.meet();
    assert!(matches!(error, Error::Displaced(DEAD)), "{error:?}");
}

/// An etcd that could lose what a lone member acknowledged is not made one.
#[test]
fn an_old_etcd_ends_it() {
    let fake = Fake { version: "3.5.4", ..Fake::new() };
    let posted = Arc::clone(&fake.posted);
    let error = fake.meet();
    assert!(matches!(error, Error::Vetoed(Veto::TooOld(_))), "{error:?}");
    assert!(posted.lock().unwrap().is_empty());
}

/// What answers with nonsense is waited for up to the limit, never voted for.
#[test]
fn nonsense_is_not_answered() {
    let fake = Fake { members: "{}", ..Fake::new() };
    let posted = Arc::clone(&fake.posted);
    let error = fake.meet();
    assert!(matches!(error, Error::TimedOut { burnt: false, .. }), "{error:?}");
    assert!(posted.lock().unwrap().is_empty());
}
