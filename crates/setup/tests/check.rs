//! What the checks find at real (simulated) BMCs and on a machine that is one of the nodes.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;

use bmc_sim::{Bmc, Certificate, Config, MemorySwitch, PowerState, System};
use dyad_http::Secret;
use dyad_setup::check::{self, Finding, Here, Report, Status, Subject};

const UUIDS: [&str; 2] =
    ["4c4c4544-0051-4210-8052-b4c04f573401", "4c4c4544-0051-4210-8052-b4c04f573402"];

/// Two BMCs, and a pair file that names them.
struct Bench {
    bmcs: Vec<Bmc>,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bmcs = UUIDS
            .iter()
            .map(|uuid| {
                let config = Config {
                    user: "admin".to_owned(),
                    password: Secret::new("right-password"),
                    systems: vec![System {
                        id: "1".to_owned(),
                        uuid: (*uuid).to_owned(),
                        name: "system".to_owned(),
                        switch: Arc::new(MemorySwitch::new(PowerState::On)),
                    }],
                    certificate: Some(Certificate::self_signed(&["127.0.0.1"]).unwrap()),
                };
                Bmc::start(config, TcpListener::bind("127.0.0.1:0").unwrap()).unwrap()
            })
            .collect();
        Self { bmcs, directory: tempfile::tempdir().unwrap() }
    }

    /// The pair file, with the BMCs' addresses and pins.
    fn text(&self) -> String {
        let mut text = String::from("apiVersion: dyad/v1\nkind: Pair\nname: bench\nnodes:\n");
        for (position, (bmc, name)) in self.bmcs.iter().zip(["node-a", "node-b"]).enumerate() {
            write!(
                text,
                "  - name: {name}\n    addresses: [192.0.2.{0}, 198.51.100.{0}]\n    bmc:\n      \
                 address: {1}\n      tls: {{ pin: \"{2}\" }}\n      credentials: {{ username: admin, password: right-password }}\n",
                position + 1,
                bmc.url(),
                bmc.fingerprint().unwrap(),
            )
            .unwrap();
        }
        text
    }

    fn check(&self, text: &str, host_name: &str) -> Report {
        let loaded = dyad_pair_file::load(text.as_bytes());
        assert!(loaded.is_usable(), "{:?}", loaded.problems);
        let secrets = self.directory.path().join("pair-secrets");
        let subject = Subject {
            name: "pair.yaml",
            base: self.directory.path(),
            secrets: &secrets,
            loaded: &loaded,
        };
        let here = Here { host_name: host_name.to_owned(), root: self.directory.path().to_owned() };
        let report = check::run(&subject, &here, false);
        let json = serde_json::to_string(&report).unwrap();
        assert!(!json.contains("right-password") && !json.contains("wrong-password"), "{json}");
        report
    }

    fn be_machine(&self, uuid: &str) {
        let path = self.directory.path().join("sys/class/dmi/id");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("product_uuid"), format!("{uuid}\n")).unwrap();
    }
}

fn of<'a>(report: &'a Report, id: &str, subject: &str) -> Vec<&'a Finding> {
    let wanted = |finding: &&Finding| finding.id == id && finding.subject == subject;
    report.findings.iter().filter(wanted).collect()
}

fn only<'a>(report: &'a Report, id: &str, subject: &str) -> &'a Finding {
    match &of(report, id, subject)[..] {
        [one] => one,
        other => panic!("{id} {subject}: {other:?}\nof {report:#?}"),
    }
}

/// BMCs that answer are described; away from the nodes nothing is said about this machine.
#[test]
fn bmcs_that_answer() {
    let bench = Bench::new();
    let report = bench.check(&bench.text(), "admin-machine");
    for (node, uuid) in ["node-a", "node-b"].into_iter().zip(UUIDS) {
        let finding = only(&report, "bmc", &format!("bmc {node}"));
        assert_eq!(finding.status, Status::Ok, "{finding:?}");
        assert!(finding.message.contains("power On") && finding.message.contains(uuid));
    }
    assert!(report.node.is_none() && of(&report, "disk-space", "disk").is_empty());
    assert_eq!(report.losses.len(), 2);
    assert_eq!(report.count(Status::Error), 0, "{report:#?}");
}

/// Each way in which a BMC can be wrong is told apart, with advice that helps.
#[test]
fn bmcs_that_are_wrong() {
    let bench = Bench::new();
    let good = bench.text();
    let pin = bench.bmcs[0].fingerprint().unwrap().to_string();
    let other_pin = "sha256:".to_owned() + &"0".repeat(64);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases = [
        ("password", good.replacen("right-password", "wrong-password", 1), "refused", "password"),
        ("pin", good.replacen(&pin, &other_pin, 1), "fingerprint", pin.as_str()),
        (
            "address",
            good.replacen(&bench.bmcs[0].url(), &format!("https://{closed}"), 1),
            "127.0.0.1",
            "address",
        ),
        (
            "system",
            good.replacen("      tls:", "      system: \"7\"\n      tls:", 1),
            "no System",
            "system",
        ),
    ];
    for (what, text, message, hint) in cases {
        assert_ne!(text, good, "{what}");
        let report = bench.check(&text, "admin-machine");
        let finding = only(&report, "bmc", "bmc node-a");
        assert_eq!(finding.status, Status::Error, "{what}: {finding:?}");
        assert!(finding.message.contains(message), "{what}: {finding:?}");
        assert!(finding.hint.as_ref().unwrap().contains(hint), "{what}: {finding:?}");
        assert_eq!(only(&report, "bmc", "bmc node-b").status, Status::Ok, "{what}");
    }
}

/// On a node, its BMC must be the one in the machine: right, another one, and swapped are told apart.
#[test]
fn the_bmc_is_the_one_in_this_machine() {
    let bench = Bench::new();
    for (uuid, status) in [
        (UUIDS[0], Status::Ok),
        (UUIDS[1], Status::Error),
        ("4c4c4544-0051-4210-8052-b4c04f573499", Status::Error),
    ] {
        bench.be_machine(uuid);
        let report = bench.check(&bench.text(), "node-a");
        assert_eq!(report.node.as_deref(), Some("node-a"));
        assert_eq!(only(&report, "bmc-identity", "bmc node-a").status, status, "{uuid}");
    }
    bench.be_machine(UUIDS[0]);
    let swapped = bench.check(&bench.text(), "node-b");
    let finding = only(&swapped, "bmc-identity", "bmc node-b");
    assert!(finding.hint.as_ref().unwrap().contains("swapped"), "{finding:?}");
}

/// On a node the machine is looked at too; node1 is not node10.
#[test]
fn the_machine_itself() {
    let bench = Bench::new();
    bench.be_machine(UUIDS[0]);
    let report = bench.check(&bench.text(), "node-a");
    // These addresses are nobody's: the documentation's own.
    for link in ["link 0", "link 1"] {
        assert_eq!(only(&report, "address", link).status, Status::Error);
    }
    for (id, subject) in [("disk-space", "disk"), ("disk-latency", "disk"), ("ports", "ports")] {
        only(&report, id, subject);
    }
    assert_eq!(report.findings.iter().filter(|finding| finding.id == "version").count(), 3);
    let other = bench.check(&bench.text(), "node-a1");
    assert!(other.node.is_none());
}

/// Two BMC entries that lead to one machine are refused, also when their addresses differ.
#[test]
fn two_bmcs_of_one_machine() {
    let bench = Bench::new();
    let text = bench.text();
    let [first, second] = &bench.bmcs[..] else { panic!("two BMCs") };
    // localhost and 127.0.0.1 are two names of the first BMC.
    let pin = |bmc: &Bmc| bmc.fingerprint().unwrap().to_string();
    let text = text
        .replace(&second.url(), &first.url().replace("127.0.0.1", "localhost"))
        .replace(&pin(second), &pin(first));
    let report = bench.check(&text, "admin-machine");
    assert_eq!(only(&report, "bmc-identity", "bmc").status, Status::Error);
}

/// Credentials that cannot be used are a finding with the reason, before anything is asked.
#[test]
fn credentials_that_cannot_be_used() {
    let bench = Bench::new();
    let text = bench
        .text()
        .replace("{ username: admin, password: right-password }", "{ file: pair-secrets/bmc }");
    let report = bench.check(&text, "admin-machine");
    let finding = only(&report, "credentials", "bmc node-a");
    assert!(finding.message.contains("does not exist"), "{finding:?}");
}
