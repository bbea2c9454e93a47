//! Trust: who is believed, who is not, and what the refusal is called.

mod common;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use common::{HELLO, LONG, Pki, Server, soon};
use dyad_http::{Client, Deadline, Error, Fingerprint, Identity, Request, Scheme, Step, Trust};

const GET: fn() -> Request = || Request::get("/");

/// A certificate for the server's address, from the trusted authority, is accepted: IPv4 and IPv6.
#[test]
fn an_authority_vouches_for_addresses() {
    let pki = Pki::new(&["127.0.0.1", "::1"]);
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let server = pki.serve(address, false, HELLO);
        let client = server.https(Trust::CaFile(pki.ca_file()));
        for _ in 0..3 {
            assert_eq!(client.send(&GET(), soon()).unwrap().body, b"hello");
        }
        assert_eq!(server.connections(), 1);
    }
}

/// A certificate for another address or name is refused, unless that name was asked for.
#[test]
fn the_name_counts() {
    let pki = Pki::new(&["127.0.0.2", "bmc1"]);
    let server = pki.serve("127.0.0.1:0", false, HELLO);
    let trust = Trust::CaFile(pki.ca_file());
    let error = server.https(trust.clone()).send(&GET(), soon()).unwrap_err();
    assert!(
        matches!(&error, Error::Certificate { why, .. } if why.contains("another name")),
        "{error}"
    );
    for (name, works) in [("bmc1", true), ("127.0.0.2", true), ("bmc10", false)] {
        let client = Client::builder(server.endpoint(Scheme::Https))
            .trust(trust.clone())
            .tls_name(name)
            .build()
            .unwrap();
        assert_eq!(client.send(&GET(), soon()).is_ok(), works, "{name}");
    }
}

/// Another authority, and an expired certificate, are refused with their reasons.
#[test]
fn untrusted_and_expired() {
    let pki = Pki::new(&["127.0.0.1"]);
    let server = pki.serve("127.0.0.1:0", false, HELLO);
    let other = Pki::new(&["127.0.0.1"]);
    let error = server.https(Trust::CaFile(other.ca_file())).send(&GET(), soon()).unwrap_err();
    assert!(
        matches!(&error, Error::Certificate { why, .. } if why.contains("authority")),
        "{error}"
    );

    let pki = Pki::with(&["127.0.0.1"], |params| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    });
    let server = pki.serve("127.0.0.1:0", false, HELLO);
    let error = server.https(Trust::CaFile(pki.ca_file())).send(&GET(), soon()).unwrap_err();
    assert!(matches!(&error, Error::Certificate { why, .. } if why.contains("expired")), "{error}");
}

/// The pinned certificate is accepted whatever it bears; any other is refused and its fingerprint told.
#[test]
fn the_pin_counts_and_nothing_else() {
    let pki = Pki::with(&["elsewhere"], |params| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    });
    let server = pki.serve("127.0.0.1:0", false, HELLO);
    let pin = pki.server.fingerprint();
    assert_eq!(server.https(Trust::Pin(pin)).send(&GET(), soon()).unwrap().status, 200);
    let error = server.https(Trust::Pin(Fingerprint::of(b"x"))).send(&GET(), soon()).unwrap_err();
    assert!(matches!(&error, Error::PinMismatch { found, .. } if *found == pin), "{error}");
    assert!(error.to_string().contains(&pin.to_string()));
}

/// Any certificate is accepted only where that was asked for by name; without any trust nothing is sent.
#[test]
fn insecure_only_by_name() {
    let pki = Pki::new(&["elsewhere"]);
    let server = pki.serve("127.0.0.1:0", false, HELLO);
    let client = server.https(Trust::InsecureAcceptAnyCertificate);
    assert_eq!(client.send(&GET(), soon()).unwrap().status, 200);
    let error = Client::builder(server.endpoint(Scheme::Https)).build().unwrap_err();
    assert!(matches!(error, Error::TlsSetup { .. }), "{error}");
}

/// A server that wants a client certificate gets it; without one it refuses, and we say it was TLS.
#[test]
fn client_certificates() {
    let pki = Pki::new(&["127.0.0.1"]);
    let server = pki.serve("127.0.0.1:0", true, HELLO);
    let trust = Trust::CaFile(pki.ca_file());
    let (certificate_file, key_file) = pki.client_files();
    let client = Client::builder(server.endpoint(Scheme::Https))
        .trust(trust.clone())
        .identity(Identity { certificate_file, key_file })
        .build()
        .unwrap();
    assert_eq!(client.send(&GET(), soon()).unwrap().status, 200);
    let error = server.https(trust).send(&GET(), soon()).unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error:?}");
}

/// A server that does not speak TLS, and one that never answers the handshake.
#[test]
fn no_tls_there() {
    let server = Server::start(|mut stream, _| {
        use std::io::Write as _;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let client = server.https(Trust::InsecureAcceptAnyCertificate);
    let error = client.send(&GET(), soon()).unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error:?}");

    let server = Server::start(|stream, _| {
        thread::sleep(LONG);
        drop(stream);
    });
    let client = server.https(Trust::InsecureAcceptAnyCertificate);
    let started = Instant::now();
    let error = client.send(&GET(), Deadline::after(Duration::from_millis(300))).unwrap_err();
    assert!(matches!(error, Error::Deadline { step: Step::Handshake }), "{error:?}");
    assert!(started.elapsed() < LONG / 2);
}

/// A file that cannot be used is named, with the reason, and nothing of it is quoted.
#[test]
fn unusable_files() {
    let pki = Pki::new(&["127.0.0.1"]);
    let server = pki.serve("127.0.0.1:0", false, HELLO);
    let empty = pki.directory.path().join("empty.pem");
    fs::write(&empty, "password: hunter2\n").unwrap();
    let broken = pki.directory.path().join("broken.pem");
    fs::write(&broken, "-----BEGIN CERTIFICATE-----\nhunter2!\n-----END CERTIFICATE-----\n")
        .unwrap();
    for path in [empty.clone(), broken, pki.directory.path().join("missing.pem")] {
        let result = Client::builder(server.endpoint(Scheme::Https))
            .trust(Trust::CaFile(path.clone()))
            .build();
        let error = result.unwrap_err();
        assert!(matches!(error, Error::TlsFile { .. }), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(path.to_str().unwrap()) && !text.contains("hunter2"), "{text}");
    }
    let (certificate_file, _) = pki.client_files();
    let error = Client::builder(server.endpoint(Scheme::Https))
        .trust(Trust::InsecureAcceptAnyCertificate)
        .identity(Identity { certificate_file, key_file: empty })
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("private key"), "{error}");
}
