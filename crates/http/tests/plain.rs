//! The client against scripted servers on real sockets: limits, reuse, streams.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{HELLO, LONG, Server, answer_all, read_request, soon};
use dyad_http::{Client, Deadline, Endpoint, Error, Limits, Request, Scheme, Step};

/// Enough for loopback on a busy machine, short enough that a test does not drag.
const SHORT: Duration = Duration::from_millis(800);

/// The deadline ended it: not before its time, and nowhere near the servers' own patience.
fn assert_ended_by_deadline(started: Instant) {
    assert!(started.elapsed() >= SHORT, "too early: {:?}", started.elapsed());
    assert!(started.elapsed() < LONG / 2, "too late: {:?}", started.elapsed());
}

/// A body arrives whole in each framing, and a connection is used again where HTTP allows it.
#[test]
fn bodies_and_reuse() {
    for (answer, reused) in [
        (HELLO, true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
    ] {
        let server = Server::start(move |mut stream, _| answer_all(&mut stream, answer));
        let client = server.http();
        for _ in 0..3 {
            let response = client.send(&Request::get("/"), soon()).unwrap();
            assert_eq!((response.status, response.body.as_slice()), (200, &b"hello"[..]));
        }
        assert_eq!(server.connections(), if reused { 1 } else { 3 }, "{answer}");
    }
}

/// A body without length lasts until the server closes.
#[test]
fn a_body_until_close() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhel");
        let _ = stream.write_all(b"lo");
    });
    assert_eq!(server.http().send(&Request::get("/"), soon()).unwrap().body, b"hello");
}

/// A bodiless answer (204) leaves the connection usable, and a status of failure is an answer, not an error.
#[test]
fn answers_without_body_and_of_failure() {
    let server = Server::start(|mut stream, _| {
        answer_all(&mut stream, "HTTP/1.1 204 No Content\r\n\r\n");
    });
    let client = server.http();
    for _ in 0..2 {
        assert_eq!(client.send(&Request::post("/", "x"), soon()).unwrap().status, 204);
    }
    assert_eq!(server.connections(), 1);
    let server = Server::start(|mut stream, _| {
        answer_all(&mut stream, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    });
    assert_eq!(server.http().send(&Request::get("/"), soon()).unwrap().status, 401);
}

/// A server that sends one byte at a time cannot stretch the deadline: not in the head, not in the body.
#[test]
fn a_trickle_does_not_stretch_the_deadline() {
    for (fast, step) in
        [("", Step::Head), ("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", Step::Body)]
    {
        let server = Server::start(move |mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(fast.as_bytes());
            let slow = "HTTP/1.1 200 OK\r\nX: ".bytes().chain(std::iter::repeat(b'x'));
            for byte in slow {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let started = Instant::now();
        let error = server.http().send(&Request::get("/"), Deadline::after(SHORT)).unwrap_err();
        assert!(matches!(error, Error::Deadline { step: found } if found == step), "{error:?}");
        assert_ended_by_deadline(started);
    }
}

/// A server that accepts and says nothing ends the request at the deadline; so does one that takes no bytes.
#[test]
fn silence_ends_at_the_deadline() {
    let server = Server::start(|stream, _| {
        thread::sleep(LONG);
        drop(stream);
    });
    let client = server.http();
    let started = Instant::now();
    let error = client.send(&Request::get("/"), Deadline::after(SHORT)).unwrap_err();
    assert!(matches!(error, Error::Deadline { step: Step::Head }), "{error:?}");
    assert!(error.is_time_out());
    assert_ended_by_deadline(started);

    let started = Instant::now();
    let large = Request::post("/", vec![0; 16 << 20]);
    let error = client.send(&large, Deadline::after(SHORT)).unwrap_err();
    assert!(matches!(error, Error::Deadline { step: Step::Send }), "{error:?}");
    assert_ended_by_deadline(started);
}

/// A port where nobody listens is "refused"; an address that swallows packets is "timed out".
#[test]
fn refused_is_not_timed_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = |endpoint| Client::builder(endpoint).build().unwrap();
    let closed = client(Endpoint::new(Scheme::Http, "127.0.0.1", port).unwrap());
    let error = closed.send(&Request::get("/"), soon()).unwrap_err();
    assert!(matches!(error, Error::ConnectRefused { .. }), "{error:?}");

    // A listener whose queue is full answers no further connection, as a host that is off would not.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let fill = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200));
    let held: Vec<_> = (0..4).map_while(|_| fill().ok()).collect();
    let silent = client(Endpoint::new(Scheme::Http, "127.0.0.1", address.port()).unwrap());
    let started = Instant::now();
    let error = silent.send(&Request::get("/"), Deadline::after(SHORT)).unwrap_err();
    assert!(matches!(error, Error::ConnectTimedOut { .. }), "{error:?} with {} held", held.len());
    assert_ended_by_deadline(started);
}

/// A name that does not exist is named as such. (`.invalid` never resolves, by its definition.)
#[test]
fn unknown_names() {
    let endpoint = Endpoint::parse("http://bmc.invalid").unwrap();
    let client = Client::builder(endpoint).build().unwrap();
    let error = client.send(&Request::get("/"), soon()).unwrap_err();
    assert!(matches!(&error, Error::Resolve { host, .. } if host == "bmc.invalid"), "{error:?}");
}

/// A deadline that has passed sends nothing.
#[test]
fn a_passed_deadline() {
    let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
    let error =
        server.http().send(&Request::get("/"), Deadline::after(Duration::ZERO)).unwrap_err();
    assert!(matches!(error, Error::Deadline { step: Step::Connect }), "{error:?}");
    assert_eq!(server.connections(), 0);
}

/// Neither an endless head nor an endless body fills the memory.
#[test]
fn answers_are_bounded() {
    for (start, part) in [
        ("HTTP/1.1 200 OK\r\nX: ", "head"),
        ("HTTP/1.1 200 OK\r\n\r\n", "body"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", "body"),
    ] {
        let server = Server::start(move |mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(start.as_bytes());
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        });
        let limits = Limits { head_bytes_max: 10_000, body_bytes_max: 10_000, ..Limits::default() };
        let client = Client::builder(server.endpoint(Scheme::Http)).limits(limits).build().unwrap();
        let error = client.send(&Request::get("/"), soon()).unwrap_err();
        assert!(
            matches!(error, Error::TooLarge { part: found, limit: 10_000 } if found == part),
            "{error:?}"
        );
    }
}

/// A connection that breaks in the middle of the answer is an error, and what is not HTTP is named so.
#[test]
fn broken_answers() {
    for (answer, malformed) in [
        ("", false),
        ("HTTP/1.1 200 OK\r\nContent-", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfoo\r\n", true),
        ("220 smtp ready\r\n", true),
    ] {
        let server = Server::start(move |mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(answer.as_bytes());
        });
        let error = server.http().send(&Request::get("/"), soon()).unwrap_err();
        match error {
            Error::Malformed { .. } => assert!(malformed, "{answer:?}"),
            Error::Closed { .. } => assert!(!malformed, "{answer:?}"),
            other => panic!("{answer:?}: {other:?}"),
        }
    }
}

/// When the server has closed the kept connection, the next request opens a new one, even a POST.
#[test]
fn a_connection_closed_while_idle_is_not_used() {
    let (closed, wait_closed) = mpsc::channel();
    let server = Server::start(move |mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(HELLO.as_bytes());
        drop(stream);
        let _ = closed.send(());
    });
    let client = server.http();
    for _ in 0..3 {
        assert_eq!(client.send(&Request::post("/", "x"), soon()).unwrap().status, 200);
        wait_closed.recv_timeout(LONG).unwrap();
    }
    assert_eq!(server.connections(), 3);
}

/// When the kept connection dies under a request, what may be sent twice is sent once more; a POST is not.
#[test]
fn a_connection_that_dies_under_a_request() {
    let fragile = || {
        Server::start(|mut stream, number| {
            read_request(&mut stream);
            let _ = stream.write_all(HELLO.as_bytes());
            if number == 1 {
                read_request(&mut stream);
                let _ = stream.shutdown(Shutdown::Both);
            }
        })
    };
    let again = |request: Request| {
        let server = fragile();
        let client = server.http();
        client.send(&Request::get("/"), soon()).unwrap();
        (client.send(&request, soon()), server.connections())
    };
    let (result, connections) = again(Request::get("/"));
    assert_eq!((result.unwrap().status, connections), (200, 2));
    let (result, connections) = again(Request::post("/", "x").retry_safe());
    assert_eq!((result.unwrap().status, connections), (200, 2));
    let (result, connections) = again(Request::post("/", "x"));
    assert!(matches!(result, Err(Error::Closed { step: Step::Head, .. })), "{result:?}");
    assert_eq!(connections, 1);
}

/// A request on a fresh connection that dies is not repeated: the server may have acted on it.
#[test]
fn no_retry_on_a_fresh_connection() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
    });
    let error = server.http().send(&Request::get("/"), soon()).unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error:?}");
    assert_eq!(server.connections(), 1);
}

/// IPv6 literals work, and the local address can be chosen.
#[test]
fn ipv6_and_local_address() {
    let server = Server::start_on("[::1]:0", |mut stream, _| {
        let peer = stream.peer_addr().unwrap().ip().to_string();
        let request = read_request(&mut stream).unwrap();
        let host = request.lines().find(|line| line.starts_with("Host: ")).unwrap();
        let body = format!("{peer} {host}");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all((head + &body).as_bytes());
    });
    let url = format!("http://[::1]:{}", server.address.port());
    let client = Client::builder(Endpoint::parse(&url).unwrap()).build().unwrap();
    let body = client.send(&Request::get("/"), soon()).unwrap().body;
    let expected = format!("::1 Host: [::1]:{}", server.address.port());
    assert_eq!(String::from_utf8(body).unwrap(), expected);

    let server = Server::start(|mut stream, _| {
        let peer = stream.peer_addr().unwrap().ip().to_string();
        read_request(&mut stream);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", peer.len());
        let _ = stream.write_all((head + &peer).as_bytes());
    });
    let client = Client::builder(server.endpoint(Scheme::Http))
        .bind("127.0.0.77".parse().unwrap())
        .build()
        .unwrap();
    assert_eq!(client.send(&Request::get("/"), soon()).unwrap().body, b"127.0.0.77");
}

/// A stream yields what has arrived while the server goes on, survives read time-outs, and ends cleanly.
#[test]
fn streams_are_read_while_they_are_written() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        let head = "HTTP/1.1 200 OK\r\nX-Etcd: yes\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(b"5\r\nhel");
        thread::sleep(Duration::from_millis(200));
        let _ = stream.write_all(b"lo\r\n1\r\n!\r\n0\r\n\r\n");
    });
    let mut stream = server.http().open_stream(&Request::get("/"), soon()).unwrap();
    assert_eq!((stream.status, stream.headers.get("x-etcd")), (200, Some("yes")));
    stream.set_read_timeout(Some(Duration::from_millis(20)));
    let (mut all, mut time_outs) = (Vec::new(), 0);
    loop {
        let mut buffer = [0; 64];
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => time_outs += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(time_outs < 1000, "the stream never ends");
    }
    assert_eq!(all, b"hello!");
    assert!(time_outs > 0);
}

/// Another thread can end a stream that waits without limit.
#[test]
fn another_thread_ends_a_stream() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        thread::sleep(LONG);
    });
    let request = Request::post("/v3/watch", "{}");
    let mut stream = server.http().open_stream(&request, soon()).unwrap();
    let handle = stream.handle();
    let reader = thread::spawn(move || stream.read(&mut [0; 16]));
    thread::sleep(Duration::from_millis(50));
    assert!(!handle.is_closed());
    handle.close();
    handle.close();
    let error = reader.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
}

/// The body of an error answer to a stream request can be had, within limits.
#[test]
fn the_rest_of_a_stream() {
    let server = Server::start(|mut stream, _| {
        answer_all(&mut stream, "HTTP/1.1 410 Gone\r\nContent-Length: 5\r\n\r\nhello");
    });
    let open = || server.http().open_stream(&Request::get("/"), soon()).unwrap();
    assert_eq!(open().read_rest(soon(), 100).unwrap(), b"hello");
    assert!(matches!(open().read_rest(soon(), 4), Err(Error::TooLarge { .. })));
}
