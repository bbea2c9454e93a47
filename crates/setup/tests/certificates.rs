//! The certificates that are rendered, tried on a real etcd.

mod common;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::Site;
use dyad_http::{Client, Deadline, Endpoint, Identity, Request, Trust};
use dyad_setup::output::{Form, write};
use dyad_setup::render::{AuthorityStep, Renewal, renew};
use etcd_fixture::Release;

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// etcd of both series starts with the rendered certificates, serves a client that shows the rendered client
/// certificate, and turns away one that shows none.
#[test]
fn etcd_takes_the_rendered_certificates() {
    let site = Site::new("usual");
    let out = site.path("out");
    let bundles = site.render().unwrap();
    write(&bundles.each_ref(), Form::Directory, &out).unwrap();
    let pki = out.join("node-a/etc/dyad/pki");
    let file = |name: &str| pki.join(name).display().to_string();
    for release in Release::ALL {
        let (client, peer) = (free_port(), free_port());
        let data = tempfile::tempdir().unwrap();
        let mut etcd = Command::new(release.binary("etcd").unwrap());
        etcd.arg("--name=node-a")
            .arg(format!("--data-dir={}", data.path().display()))
            .arg(format!("--listen-client-urls=https://127.0.0.1:{client}"))
            .arg(format!("--advertise-client-urls=https://127.0.0.1:{client}"))
            .arg(format!("--listen-peer-urls=https://127.0.0.1:{peer}"))
            .arg(format!("--initial-advertise-peer-urls=https://127.0.0.1:{peer}"))
            .arg(format!("--initial-cluster=node-a=https://127.0.0.1:{peer}"))
            .args(["--client-cert-auth", "--peer-client-cert-auth", "--logger=zap"])
            .arg(format!("--trusted-ca-file={}", file("ca.pem")))
            .arg(format!("--cert-file={}", file("server.pem")))
            .arg(format!("--key-file={}", file("server.key")))
            .arg(format!("--peer-trusted-ca-file={}", file("ca.pem")))
            .arg(format!("--peer-cert-file={}", file("peer.pem")))
            .arg(format!("--peer-key-file={}", file("peer.key")))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut running = Running(etcd.spawn().unwrap());
        let log = BufReader::new(running.0.stderr.take().unwrap());
        // etcd's log is read to its end, so that it never waits for a reader.
        std::thread::spawn(move || log.lines().count());

        let endpoint = Endpoint::parse(&format!("https://127.0.0.1:{client}")).unwrap();
        let health = |identity: Option<&str>| {
            let mut builder =
                Client::builder(endpoint.clone()).trust(Trust::CaFile(pki.join("ca.pem")));
            if let Some(name) = identity {
                builder = builder.identity(Identity {
                    certificate_file: pki.join(format!("{name}.pem")),
                    key_file: pki.join(format!("{name}.key")),
                });
            }
            let deadline = Deadline::after(Duration::from_secs(2));
            builder.build().unwrap().send(&Request::get("/health"), deadline)
        };
        for identity in ["client", "server"] {
            etcd_fixture::wait_for("etcd is healthy over the rendered certificates", || {
                let answer = health(Some(identity)).ok()?;
                String::from_utf8_lossy(&answer.body).contains("true").then_some(())
            })
            .unwrap();
        }
        assert!(health(None).is_err(), "a client without a certificate was served");
    }
}

/// From one authority to the next: at each step what a node shows is trusted by a node that is one step behind or ahead,
/// a step can be repeated, and one that comes too early is refused. In the end the old one is trusted no more.
#[test]
fn an_authority_gives_way_to_another() {
    let site = Site::new("usual");
    let out = |name: &str| {
        let bundles = site.render().unwrap();
        write(&bundles.each_ref(), Form::Directory, &site.path(name)).unwrap();
        site.path(name).join("node-a/etc/dyad/pki")
    };
    let take = |step| renew(&site.pair, &site.secrets(), Renewal::Authority(step));
    let trusts = |one: &Path, other: &Path| {
        let shown = |file| {
            dyad_http::check_certificate(&one.join("ca.pem"), &other.join(file), "10.1.0.1").is_ok()
        };
        shown("peer.pem") && shown("server.pem")
    };
    let mut steps = vec![out("0")];
    assert!(take(AuthorityStep::UseNew).is_err() && steps[0] == out("0"));
    for (number, step) in [AuthorityStep::TrustNew, AuthorityStep::UseNew, AuthorityStep::DropOld]
        .into_iter()
        .enumerate()
    {
        if step == AuthorityStep::UseNew {
            assert!(take(AuthorityStep::DropOld).is_err(), "before the new one is in use");
        }
        take(step).unwrap();
        let now = out(&(number + 1).to_string());
        if step != AuthorityStep::DropOld {
            take(step).unwrap();
            assert_eq!(
                std::fs::read(now.join("ca.pem")).unwrap(),
                std::fs::read(out("again").join("ca.pem")).unwrap()
            );
        }
        let before = steps.last().unwrap();
        assert!(trusts(before, &now) && trusts(&now, before), "{step:?}");
        steps.push(now);
    }
    assert!(!trusts(&steps[3], &steps[0]) && !trusts(&steps[0], &steps[3]), "the old one is gone");
    // Certificates alone: new ones, by the same authority.
    renew(&site.pair, &site.secrets(), Renewal::Certificates).unwrap();
    let renewed = out("4");
    assert_ne!(
        std::fs::read(renewed.join("peer.pem")).unwrap(),
        std::fs::read(steps[3].join("peer.pem")).unwrap()
    );
    assert!(trusts(&renewed, &steps[3]) && trusts(&steps[3], &renewed));
}
