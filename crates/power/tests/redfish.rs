//! The Redfish client as a library, against the simulator and its faults.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bmc_sim::{Bmc, Certificate, Config, Fault, MemorySwitch, PowerSwitch as _};
use dyad_http::{Client, Deadline, Endpoint, Secret, Trust};
use dyad_power::{Authentication, Credentials, Error, OffProof, PowerState, Redfish, SystemName};

struct Fixture {
    bmc: Bmc,
    switch: Arc<MemorySwitch>,
    redfish: Redfish,
}

fn fixture(authentication: Authentication) -> Fixture {
    let switch = Arc::new(MemorySwitch::new(bmc_sim::PowerState::On));
    let system = bmc_sim::System {
        id: "1".to_owned(),
        uuid: "0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0001".to_owned(),
        name: "node1".to_owned(),
        switch: switch.clone(),
    };
    let config = Config {
        user: "admin".to_owned(),
        password: Secret::new("right"),
        systems: vec![system],
        certificate: Some(Certificate::self_signed(&["127.0.0.1"]).unwrap()),
    };
    let bmc = Bmc::start(config, TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let http = Client::builder(Endpoint::parse(&bmc.url()).unwrap())
        .trust(Trust::Pin(bmc.fingerprint().unwrap()))
        .build()
        .unwrap();
    let credentials = Credentials { username: "admin".to_owned(), password: Secret::new("right") };
    let redfish = Redfish::new(http, credentials, authentication, Duration::from_secs(20));
    Fixture { bmc, switch, redfish }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_mins(1))
}

/// Off is proven by reading it back, on is too, and what is already so is not asked for.
#[test]
fn off_and_on() {
    for authentication in [Authentication::Basic, Authentication::Session] {
        let Fixture { bmc, redfish, .. } = fixture(authentication);
        let look = || redfish.look(None, soon()).unwrap();
        assert_eq!(redfish.force_off(&look(), soon()).unwrap(), OffProof::ForcedOff);
        assert_eq!(redfish.force_off(&look(), soon()).unwrap(), OffProof::AlreadyOff);
        redfish.power_on(&look(), soon()).unwrap();
        redfish.power_on(&look(), soon()).unwrap();
        assert_eq!(look().power, PowerState::On);
        let resets = bmc.events(0).iter().filter(|event| event.reset.is_some()).count();
        assert_eq!(resets, 2);
        redfish.log_out(soon());
        assert_eq!(bmc.sessions(), 0);
    }
}

/// A BMC that restarts forgets its sessions; the client opens another and goes on.
#[test]
fn a_forgotten_session() {
    let Fixture { bmc, redfish, .. } = fixture(Authentication::Session);
    let system = redfish.look(None, soon()).unwrap();
    bmc.forget_sessions();
    assert_eq!(redfish.force_off(&system, soon()).unwrap(), OffProof::ForcedOff);
    assert_eq!(bmc.sessions(), 1);
}

/// The power that takes its time is waited for; `PoweringOff` on the way is not off.
#[test]
fn slow_power_is_waited_for() {
    let Fixture { bmc, switch, redfish } = fixture(Authentication::Basic);
    bmc.set_fault(Fault::SlowPower(Duration::from_millis(400)));
    let system = redfish.look(None, soon()).unwrap();
    assert_eq!(redfish.force_off(&system, soon()).unwrap(), OffProof::ForcedOff);
    assert_eq!(switch.state().unwrap(), bmc_sim::PowerState::Off);
    let states: Vec<_> = bmc.events(0).iter().filter_map(|event| event.state).collect();
    assert!(states.contains(&bmc_sim::PowerState::PoweringOff), "{states:?}");
}

/// A BMC that fails for a moment, in any of these ways, is asked again until it does what it should.
#[test]
fn passing_faults_are_outlived() {
    for fault in [Fault::ServerError, Fault::Refuse, Fault::DoNothing, Fault::MalformedJson] {
        let Fixture { bmc, redfish, .. } = fixture(Authentication::Basic);
        let system = redfish.look(None, soon()).unwrap();
        bmc.set_fault(fault);
        thread::scope(|scope| {
            let off = scope.spawn(|| redfish.force_off(&system, soon()));
            thread::sleep(Duration::from_millis(500));
            bmc.set_fault(Fault::None);
            assert_eq!(off.join().unwrap().unwrap(), OffProof::ForcedOff, "{fault}");
        });
    }
}

/// A refused password ends everything at once: trying again would lock the account.
#[test]
fn a_refused_password_is_not_tried_again() {
    for authentication in [Authentication::Basic, Authentication::Session] {
        let Fixture { bmc, redfish, .. } = fixture(authentication);
        bmc.set_fault(Fault::WrongPassword);
        let error = redfish.look(None, soon()).unwrap_err();
        assert!(matches!(error, Error::Unauthorized { status: 401, .. }), "{error:?}");
        let refused = bmc.events(0).iter().filter(|event| event.status == Some(401)).count();
        assert_eq!(refused, 1, "{:?}", bmc.events(0));
    }
}

/// A System that is named but not there is an error with the list of those that are.
#[test]
fn names() {
    let Fixture { bmc: _bmc, redfish, .. } = fixture(Authentication::Basic);
    for name in ["10", "0", "node1", "0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0002"] {
        let error = redfish.look(Some(&SystemName::new(name).unwrap()), soon()).unwrap_err();
        assert!(
            matches!(&error, Error::NoSuchSystem { found, .. } if found == &["1"]),
            "{error:?}"
        );
    }
}

/// When the BMC suddenly speaks of another System, its Off is not ours.
#[test]
fn another_system_in_the_same_place() {
    let Fixture { bmc: _bmc, switch, redfish } = fixture(Authentication::Basic);
    let mut system = redfish.look(None, soon()).unwrap();
    switch.put(Ok(bmc_sim::PowerState::Off));
    system.uuid = Some("0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0002".to_owned());
    let error = redfish.read_again(&system, soon()).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error:?}");
}

/// What the BMC wrote down itself is read, from every log that it names; a BMC without logs has none.
#[test]
fn logs_are_read() {
    let Fixture { bmc: _bmc, redfish, .. } = fixture(Authentication::Basic);
    let system = redfish.find_system(None, soon()).unwrap();
    assert_eq!(redfish.log_entries(&system, soon()).unwrap(), []);
    redfish.force_off(&system, soon()).unwrap();
    let entries = redfish.log_entries(&system, soon()).unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(
        (entries[0].message.as_str(), entries[0].log.as_str()),
        ("ForceOff was asked for", "Log")
    );
}
