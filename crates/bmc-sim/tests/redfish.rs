//! The simulator as a client sees it: resources, log-in, power, and every fault.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bmc_sim::{
    Bmc, Certificate, Config, Fault, MemorySwitch, PowerState, PowerSwitch as _, ResetType,
    SwitchError, System,
};
use dyad_http::{Client, Deadline, Endpoint, Error, Method, Request, Response, Secret, Trust};
use serde_json::{Value, json};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

struct Fixture {
    bmc: Bmc,
    switch: Arc<MemorySwitch>,
    client: Client,
}

fn fixture() -> Fixture {
    let switch = Arc::new(MemorySwitch::new(PowerState::On));
    let certificate = Certificate::self_signed(&["127.0.0.1"]).unwrap();
    let system = System {
        id: "1".to_owned(),
        uuid: "0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0001".to_owned(),
        name: "node1".to_owned(),
        switch: switch.clone(),
    };
    let config = Config {
        user: "admin".to_owned(),
        password: Secret::new("right"),
        systems: vec![system],
        certificate: Some(certificate),
    };
    let bmc = Bmc::start(config, TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let client = Client::builder(Endpoint::parse(&bmc.url()).unwrap())
        .trust(Trust::Pin(bmc.fingerprint().unwrap()))
        .build()
        .unwrap();
    Fixture { bmc, switch, client }
}

impl Fixture {
    fn try_send(&self, request: Request, limit: Duration) -> Result<Response, Error> {
        let request = request.basic_auth("admin", &Secret::new("right"));
        self.client.send(&request, Deadline::after(limit))
    }

    fn send(&self, request: Request) -> Response {
        self.try_send(request, Duration::from_secs(20)).unwrap()
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let response = self.send(Request::get(path));
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    fn reset(&self, kind: &str) -> u16 {
        self.send(Request::post(RESET, json!({ "ResetType": kind }).to_string())).status
    }

    fn shown(&self) -> Value {
        self.get(SYSTEM).1["PowerState"].clone()
    }
}

/// From the service root every resource can be reached by following links, as clients must.
#[test]
fn the_tree_is_linked() {
    let fixture = fixture();
    let (_, root) = fixture.get("/redfish/v1/");
    for key in ["Systems", "Chassis", "Managers", "SessionService"] {
        let path = root[key]["@odata.id"].as_str().unwrap();
        let (status, body) = fixture.get(path);
        assert_eq!((status, &body["@odata.id"]), (200, &json!(path)));
        for member in body["Members"].as_array().into_iter().flatten() {
            assert_eq!(fixture.get(member["@odata.id"].as_str().unwrap()).0, 200);
        }
    }
    let (_, system) = fixture.get(SYSTEM);
    let action = &system["Actions"]["#ComputerSystem.Reset"];
    assert_eq!(action["target"], RESET);
    assert_eq!(
        action["ResetType@Redfish.AllowableValues"],
        json!(["On", "ForceOff", "GracefulShutdown", "ForceRestart"])
    );
    assert_eq!(fixture.get("/redfish/v1/Systems/10").0, 404);
    assert_eq!(fixture.get("/redfish/v1/Nothing").0, 404);
    assert_eq!(fixture.send(Request::post("/redfish/v1/Systems", "{}")).status, 405);
}

/// Each reset does to the switch what it says, and a wrong one does nothing.
#[test]
fn resets_reach_the_switch() {
    let fixture = fixture();
    for (kind, status, state) in [
        ("ForceOff", 204, PowerState::Off),
        ("On", 204, PowerState::On),
        ("GracefulShutdown", 204, PowerState::Off),
        ("ForceRestart", 204, PowerState::On),
        ("Nmi", 400, PowerState::On),
        ("forceoff", 400, PowerState::On),
    ] {
        assert_eq!(fixture.reset(kind), status, "{kind}");
        assert_eq!(fixture.switch.state().unwrap(), state, "{kind}");
    }
    assert_eq!(fixture.send(Request::post(RESET, "ForceOff")).status, 400);
    assert_eq!(fixture.send(Request::post(RESET, "{}")).status, 400);
    let resets: Vec<_> = fixture.bmc.events(0).iter().filter_map(|event| event.reset).collect();
    assert_eq!(&resets[..2], [ResetType::ForceOff, ResetType::On]);
}

/// Without the password there is nothing but the service root; a session's token stands for the password
/// until the session ends.
#[test]
fn log_in_is_needed() {
    let fixture = fixture();
    let send = |request: Request| {
        fixture.client.send(&request, Deadline::after(Duration::from_secs(20))).unwrap()
    };
    assert_eq!(send(Request::get("/redfish/v1/")).status, 200);
    assert_eq!(send(Request::get(SYSTEM)).status, 401);
    assert_eq!(send(Request::get(SYSTEM).basic_auth("admin", &Secret::new("wrong"))).status, 401);
    assert_eq!(send(Request::get(SYSTEM).basic_auth("other", &Secret::new("right"))).status, 401);
    assert_eq!(send(Request::get(SYSTEM).header("Authorization", "Basic !!")).status, 401);
    assert_eq!(send(Request::post(RESET, r#"{"ResetType":"ForceOff"}"#)).status, 401);
    assert_eq!(fixture.switch.state().unwrap(), PowerState::On);

    let wrong = json!({ "UserName": "admin", "Password": "wrong" }).to_string();
    assert_eq!(send(Request::post(SESSIONS, wrong)).status, 401);
    let right = json!({ "UserName": "admin", "Password": "right" }).to_string();
    let session = send(Request::post(SESSIONS, right));
    assert_eq!(session.status, 201);
    let token = Secret::new(session.headers.get("X-Auth-Token").unwrap());
    let location = session.headers.get("Location").unwrap();
    let with_token = |request: Request| send(request.secret_header("X-Auth-Token", &token));
    assert_eq!(with_token(Request::get(SYSTEM)).status, 200);
    assert_eq!(fixture.bmc.sessions(), 1);
    assert_eq!(with_token(Request::new(Method::Delete, location)).status, 204);
    assert_eq!(with_token(Request::get(SYSTEM)).status, 401);
    assert_eq!(fixture.bmc.sessions(), 0);
}

/// A BMC that cannot see the truth says so; whatever else is wrong, it never says Off.
#[test]
fn blind_is_not_off() {
    let fixture = fixture();
    fixture.switch.put(Err(SwitchError::new("the cgroup is hidden")));
    for fault in [Fault::None, Fault::StuckPoweringOff, Fault::DoNothing, Fault::NoPowerState] {
        fixture.bmc.set_fault(fault);
        let (status, body) = fixture.get(SYSTEM);
        assert_eq!((status, &body["PowerState"]), (500, &Value::Null), "{fault}");
    }
    fixture.bmc.set_fault(Fault::None);
    assert_eq!(fixture.reset("ForceOff"), 500);
}

/// Faults that answer: each gives what its name says, and healing ends it.
#[test]
fn faults_that_answer() {
    let fixture = fixture();
    let fault = |fault| fixture.bmc.set_fault(fault);

    fault(Fault::ServerError);
    assert_eq!(fixture.get(SYSTEM).0, 500);
    assert_eq!(fixture.reset("ForceOff"), 500);
    fault(Fault::WrongPassword);
    assert_eq!(fixture.get(SYSTEM).0, 401);
    assert_eq!(fixture.reset("ForceOff"), 401);
    fault(Fault::DoNothing);
    assert_eq!(fixture.reset("ForceOff"), 200);
    fault(Fault::None);
    assert_eq!(fixture.shown(), "On");

    fault(Fault::MalformedJson);
    let response = fixture.send(Request::get(SYSTEM));
    assert!(response.status == 200 && serde_json::from_slice::<Value>(&response.body).is_err());
    fault(Fault::NoPowerState);
    assert_eq!(fixture.shown(), Value::Null);

    fault(Fault::StuckPoweringOff);
    assert_eq!(fixture.shown(), "On");
    assert_eq!(fixture.reset("ForceOff"), 204);
    assert_eq!(fixture.shown(), "PoweringOff");
    assert_eq!(fixture.switch.state().unwrap(), PowerState::On);
    fault(Fault::None);
    assert_eq!(fixture.shown(), "On");
}

/// Slow power is seen on its way, and a later request takes the place of an earlier one.
#[test]
fn slow_power() {
    let fixture = fixture();
    fixture.bmc.set_fault(Fault::SlowPower(Duration::from_millis(300)));
    assert_eq!(fixture.reset("ForceOff"), 204);
    assert_eq!(fixture.shown(), "PoweringOff");
    let limit = Deadline::after(Duration::from_secs(10));
    while fixture.shown() != "Off" {
        assert!(!limit.passed(), "never off: {:?}", fixture.bmc.events(0));
    }
    fixture.bmc.set_fault(Fault::SlowPower(Duration::from_hours(1)));
    assert_eq!(fixture.reset("On"), 204);
    assert_eq!(fixture.shown(), "PoweringOn");
    fixture.bmc.set_fault(Fault::None);
    assert_eq!(fixture.reset("ForceOff"), 204);
    assert_eq!(fixture.shown(), "Off");
}

/// Faults that do not answer: slow is slow, hanging never ends, refused is refused; each can be healed.
#[test]
fn faults_that_do_not_answer() {
    let fixture = fixture();
    let impatient = || fixture.try_send(Request::get(SYSTEM), Duration::from_millis(500));
    let fault = |fault| fixture.bmc.set_fault(fault);

    fault(Fault::Slow(Duration::from_millis(100)));
    let started = std::time::Instant::now();
    assert_eq!(fixture.get(SYSTEM).0, 200);
    assert!(started.elapsed() >= Duration::from_millis(100));

    fault(Fault::Hang);
    assert!(impatient().unwrap_err().is_time_out());
    // The second time with a new connection, which is not even greeted.
    assert!(impatient().unwrap_err().is_time_out());
    fault(Fault::None);
    assert_eq!(fixture.get(SYSTEM).0, 200);

    fault(Fault::Refuse);
    let error = fixture.try_send(Request::get(SYSTEM), Duration::from_secs(20)).unwrap_err();
    assert!(matches!(error, Error::ConnectRefused { .. }), "{error:?}");
    fault(Fault::None);
    assert_eq!(fixture.get(SYSTEM).0, 200);
}

/// The log tells what was asked, when, and what came of it; nothing secret is in it.
#[test]
fn the_log() {
    let fixture = fixture();
    fixture.reset("ForceOff");
    fixture.shown();
    let right = json!({ "UserName": "admin", "Password": "right" }).to_string();
    fixture.send(Request::post(SESSIONS, right));
    let events = fixture.bmc.events(0);
    let summary: Vec<_> = events.iter().map(|event| (event.what.as_str(), event.status)).collect();
    assert_eq!(
        summary,
        [
            (format!("POST {RESET}").as_str(), Some(204)),
            (format!("GET {SYSTEM}").as_str(), Some(200)),
            (format!("POST {SESSIONS}").as_str(), Some(201)),
        ]
    );
    assert_eq!(events[1].state, Some(PowerState::Off));
    assert!(events[0].at_us <= events[1].at_us);
    assert_eq!(fixture.bmc.events(events[1].number).len(), 1);
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("right"), "{text}");
}

/// Stopping frees the port and ends every connection, even one that hangs.
#[test]
fn stopping_leaves_nothing() {
    let fixture = fixture();
    fixture.send(Request::get(SYSTEM));
    fixture.bmc.set_fault(Fault::Hang);
    let _ = fixture.try_send(Request::get(SYSTEM), Duration::from_millis(200));
    let address = fixture.bmc.address();
    drop(fixture.bmc);
    TcpListener::bind(address).unwrap();
}
