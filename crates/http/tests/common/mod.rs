//! Servers for the tests: real sockets, scripted answers.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dyad_http::{Client, Deadline, Endpoint, Fingerprint, Scheme, Trust};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// Far more than any test needs: a test that reaches it has failed.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn soon() -> Deadline {
    Deadline::after(LONG)
}

/// A server on a free loopback port, which hands each connection with its number to the script.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(script: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", script)
    }

    pub(crate) fn start_on(
        address: &str,
        script: impl Fn(TcpStream, usize) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let _ = stream.set_read_timeout(Some(LONG));
                let script = script.clone();
                thread::spawn(move || script(stream, number));
            }
        });
        Self { address, connections }
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn http(&self) -> Client {
        Client::builder(self.endpoint(Scheme::Http)).build().expect("a client")
    }

    pub(crate) fn https(&self, trust: Trust) -> Client {
        Client::builder(self.endpoint(Scheme::Https)).trust(trust).build().expect("a client")
    }

    pub(crate) fn endpoint(&self, scheme: Scheme) -> Endpoint {
        Endpoint::new(scheme, &self.address.ip().to_string(), self.address.port()).expect("valid")
    }
}

/// Reads one request: its head and a body by Content-Length. `None` when the client has gone.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            _ => return None,
        }
    }
    let head = String::from_utf8_lossy(&text).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}

/// Answers every request on the connection with this text.
pub(crate) fn answer_all(stream: &mut (impl Read + Write), answer: &str) {
    while read_request(stream).is_some() {
        if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// An authority, and a server certificate that it issued, as files.
pub(crate) struct Pki {
    pub(crate) directory: tempfile::TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
    pub(crate) server: Certificate,
}

pub(crate) struct Certificate {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) key: KeyPair,
}

impl Certificate {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.der)
    }
}

impl Pki {
    /// The server's certificate bears these names; addresses become address names.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::with(names, |_| ())
    }

    pub(crate) fn with(names: &[&str], change: impl Fn(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(vec![]).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("key")).expect("ca");
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.pem"), authority.pem()).expect("written");
        let server = issue(&authority, names, change);
        Self { directory, authority, server }
    }

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A client certificate and its key, as files.
    pub(crate) fn client_files(&self) -> (PathBuf, PathBuf) {
        let issued = issue(&self.authority, &["client"], |_| ());
        let certificate = self.directory.path().join("client.pem");
        let key = self.directory.path().join("client.key");
        let text = pem("CERTIFICATE", &issued.der);
        std::fs::write(&certificate, text).expect("written");
        std::fs::write(&key, issued.key.serialize_pem()).expect("written");
        (certificate, key)
    }

    /// A TLS server that answers every request with this text.
    pub(crate) fn serve(&self, address: &str, wants_client: bool, answer: &'static str) -> Server {
        let config = self.server_config(wants_client);
        Server::start_on(address, move |stream, _| {
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            answer_all(&mut StreamOwned::new(connection, stream), answer);
        })
    }

    pub(crate) fn server_config(&self, wants_client: bool) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.der().clone()).expect("added");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server.key.serialize_der()));
        let config = builder.with_single_cert(vec![self.server.der.clone()], key);
        Arc::new(config.expect("a server configuration"))
    }
}

fn issue(
    authority: &CertifiedIssuer<'static, KeyPair>,
    names: &[&str],
    change: impl Fn(&mut CertificateParams),
) -> Certificate {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).expect("params");
    change(&mut params);
    let key = KeyPair::generate().expect("key");
    let certificate = params.signed_by(&key, authority).expect("signed");
    Certificate { der: certificate.der().clone(), key }
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: String = text
        .as_bytes()
        .chunks(64)
        .map(|line| format!("{}\n", str::from_utf8(line).expect("ascii")))
        .collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}
