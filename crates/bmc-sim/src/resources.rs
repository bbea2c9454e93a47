//! The Redfish tree: as much of it as fence agents read.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::auth::Accounts;
use crate::events::Event;
use crate::fault::Fault;
use crate::power::{PowerState, PowerSwitch, ResetType, SwitchError};
use crate::server::Shared;
use crate::wire::{Answer, Request};

const ROOT: &str = "/redfish/v1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// One System of the BMC, and what is still to happen to it.
pub(crate) struct SystemState {
    pub(crate) id: String,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) switch: Arc<dyn PowerSwitch>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// Shown instead of the switch's state.
    shown: Option<PowerState>,
    /// Which reset this belongs to: a later one takes the place of an earlier one.
    number: u64,
}

impl SystemState {
    pub(crate) fn new(
        id: String,
        uuid: String,
        name: String,
        switch: Arc<dyn PowerSwitch>,
    ) -> Self {
        Self { id, uuid, name, switch, pending: Mutex::default() }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state to report. The switch is asked in any case: who cannot see must not pretend.
    fn state(&self) -> Result<PowerState, SwitchError> {
        let seen = self.switch.state()?;
        Ok(self.pending().shown.unwrap_or(seen))
    }

    /// Forgets that a reset got stuck.
    pub(crate) fn unstick(&self) {
        let mut pending = self.pending();
        pending.shown = None;
        pending.number += 1;
    }

    fn path(&self) -> String {
        format!("{ROOT}/Systems/{}", self.id)
    }
}

/// Answers a request; fills in what the event log should know of it.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    fault: Fault,
    request: &Request,
    event: &mut Event,
) -> Answer {
    if fault == Fault::ServerError {
        return Answer::error(500, "the BMC is out of order");
    }
    let accounts = &shared.accounts;
    let get = request.method == "GET";
    match request.path.as_str() {
        // These two are open to all, as the specification demands.
        "/redfish" if get => return Answer::json(json!({ "v1": "/redfish/v1/" })),
        ROOT if get => return Answer::json(service_root(shared)),
        SESSIONS if request.method == "POST" => return log_in(accounts, fault, &request.body),
        _ => {}
    }
    let allowed = accounts.allows(request.authorization.as_deref(), request.token.as_deref());
    if !allowed || fault == Fault::WrongPassword {
        return Answer::error(401, "the user name or password is wrong")
            .header("WWW-Authenticate", "Basic realm=\"BMC\"".to_owned());
    }
    if let Some(id) = request.path.strip_prefix(&format!("{SESSIONS}/")) {
        return session(accounts, &request.method, id);
    }
    if let Some(rest) = request.path.strip_prefix(&format!("{ROOT}/Systems/")) {
        return system(shared, fault, request, rest, event);
    }
    match fixed(shared, &request.path) {
        None => Answer::error(404, "there is no such resource"),
        Some(_) if !get => Answer::error(405, "this resource can only be read"),
        Some(body) => Answer::json(body),
    }
}

fn link(path: &str) -> Value {
    json!({ "@odata.id": path })
}

fn collection(path: &str, kind: &str, members: impl Iterator<Item = String>) -> Value {
    let members: Vec<_> = members.map(|member| link(&member)).collect();
    json!({
        "@odata.id": path,
        "@odata.type": format!("#{kind}.{kind}"),
        "Name": kind,
        "Members@odata.count": members.len(),
        "Members": members,
    })
}

fn service_root(shared: &Shared) -> Value {
    json!({
        "@odata.id": format!("{ROOT}/"),
        "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Dyad BMC simulator",
        "RedfishVersion": "1.6.0",
        "UUID": shared.systems.first().map(|system| system.uuid.clone()),
        "Systems": link(&format!("{ROOT}/Systems")),
        "Chassis": link(&format!("{ROOT}/Chassis")),
        "Managers": link(&format!("{ROOT}/Managers")),
        "SessionService": link(&format!("{ROOT}/SessionService")),
        "Links": { "Sessions": link(SESSIONS) },
    })
}

/// The resources that only need to be there.
fn fixed(shared: &Shared, path: &str) -> Option<Value> {
    let systems = || shared.systems.iter().map(SystemState::path);
    let system_links: Vec<_> = systems().map(|path| link(&path)).collect();
    let one = |kind: &str| std::iter::once(format!("{ROOT}/{kind}/1"));
    Some(match path.strip_prefix(ROOT)? {
        "/Systems" => collection(path, "ComputerSystemCollection", systems()),
        "/Chassis" => collection(path, "ChassisCollection", one("Chassis")),
        "/Managers" => collection(path, "ManagerCollection", one("Managers")),
        "/Chassis/1" => json!({
            "@odata.id": path,
            "@odata.type": "#Chassis.v1_10_0.Chassis",
            "Id": "1",
            "Name": "Chassis",
            "ChassisType": "RackMount",
            "Links": { "ComputerSystems": system_links },
        }),
        "/Managers/1" => json!({
            "@odata.id": path,
            "@odata.type": "#Manager.v1_5_0.Manager",
            "Id": "1",
            "Name": "BMC",
            "ManagerType": "BMC",
            "Links": { "ManagerForServers": system_links },
        }),
        "/SessionService" => json!({
            "@odata.id": path,
            "@odata.type": "#SessionService.v1_1_8.SessionService",
            "Id": "SessionService",
            "Name": "Session Service",
            "ServiceEnabled": true,
            "Sessions": link(SESSIONS),
        }),
        "/SessionService/Sessions" => {
            let open = shared.accounts.open();
            collection(path, "SessionCollection", open.iter().map(|id| format!("{SESSIONS}/{id}")))
        }
        _ => return None,
    })
}

fn log_in(accounts: &Accounts, fault: Fault, body: &[u8]) -> Answer {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return Answer::error(400, "the body is not JSON");
    };
    let text = |key: &str| body[key].as_str().unwrap_or_default();
    let right = accounts.is_right(text("UserName"), text("Password"));
    if !right || fault == Fault::WrongPassword {
        return Answer::error(401, "the user name or password is wrong");
    }
    let Some((id, token)) = accounts.log_in() else {
        return Answer::error(503, "too many sessions are open");
    };
    let path = format!("{SESSIONS}/{id}");
    let mut answer = Answer::json(session_body(&path, id, accounts.user()));
    answer.status = 201;
    answer.header("X-Auth-Token", token).header("Location", path)
}

fn session_body(path: &str, id: u64, user: &str) -> Value {
    json!({
        "@odata.id": path,
        "@odata.type": "#Session.v1_3_0.Session",
        "Id": id.to_string(),
        "Name": "User Session",
        "UserName": user,
    })
}

fn session(accounts: &Accounts, method: &str, id: &str) -> Answer {
    let known = id.parse().ok().filter(|id| accounts.open().contains(id));
    match (method, known) {
        (_, None) => Answer::error(404, "there is no such session"),
        ("DELETE", Some(id)) => {
            accounts.log_out(id);
            Answer::empty(204)
        }
        ("GET", Some(id)) => {
            Answer::json(session_body(&format!("{SESSIONS}/{id}"), id, accounts.user()))
        }
        _ => Answer::error(405, "a session can be read and deleted"),
    }
}

fn system(
    shared: &Arc<Shared>,
    fault: Fault,
    request: &Request,
    rest: &str,
    event: &mut Event,
) -> Answer {
    let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
    let Some(system) = shared.systems.iter().position(|system| system.id == id) else {
        return Answer::error(404, "there is no such System");
    };
    event.system = Some(id.to_owned());
    match (request.method.as_str(), action) {
        ("GET", "") => show(&shared.systems[system], fault, event),
        ("POST", "Actions/ComputerSystem.Reset") => {
            reset(shared, system, fault, &request.body, event)
        }
        ("GET", "LogServices" | "LogServices/Log" | "LogServices/Log/Entries") => {
            Answer::json(log(shared, &shared.systems[system], action))
        }
        (_, "" | "Actions/ComputerSystem.Reset") => Answer::error(405, "not with this method"),
        _ => Answer::error(404, "there is no such resource"),
    }
}

/// The log of a System: every reset that was asked for.
fn log(shared: &Shared, system: &SystemState, part: &str) -> Value {
    let path = format!("{}/{part}", system.path());
    match part {
        "LogServices" => {
            collection(&path, "LogServiceCollection", std::iter::once(format!("{path}/Log")))
        }
        "LogServices/Log" => json!({
            "@odata.id": path,
            "@odata.type": "#LogService.v1_1_0.LogService",
            "Id": "Log",
            "Name": "Event log",
            "Entries": link(&format!("{path}/Entries")),
        }),
        _ => {
            let events = shared.log.after(0);
            let own = events.iter().filter(|event| event.system.as_ref() == Some(&system.id));
            let entries: Vec<Value> = own
                .filter_map(|event| Some((event, event.reset?)))
                .enumerate()
                .map(|(number, (event, reset))| {
                    json!({
                        "@odata.id": format!("{path}/{number}"),
                        "Id": number.to_string(),
                        "Created": (event.at_us / 1_000_000).to_string(),
                        "Severity": if event.error.is_some() { "Critical" } else { "OK" },
                        "Message": format!("{} was asked for", reset.as_str()),
                    })
                })
                .collect();
            json!({
                "@odata.id": path,
                "@odata.type": "#LogEntryCollection.LogEntryCollection",
                "Name": "Entries",
                "Members@odata.count": entries.len(),
                "Members": entries,
            })
        }
    }
}

fn show(system: &SystemState, fault: Fault, event: &mut Event) -> Answer {
    let state = match system.state() {
        Ok(state) => state,
        // The rule above all: who cannot see the truth does not say Off.
        Err(error) => {
            event.error = Some(error.to_string());
            return Answer::error(500, &format!("the power state cannot be read: {error}"));
        }
    };
    event.state = Some(state);
    let shown = (fault != Fault::NoPowerState).then(|| state.as_str());
    let path = system.path();
    Answer::json(json!({
        "@odata.id": path,
        "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
        "Id": system.id,
        "Name": system.name,
        "HostName": system.name,
        "UUID": system.uuid,
        "SystemType": "Physical",
        "Status": { "State": "Enabled", "Health": "OK" },
        "PowerState": shown,
        "LogServices": link(&format!("{path}/LogServices")),
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": format!("{path}/Actions/ComputerSystem.Reset"),
                "ResetType@Redfish.AllowableValues": ResetType::ALL.map(ResetType::as_str),
            }
        },
        "Links": {
            "Chassis": [link("/redfish/v1/Chassis/1")],
            "ManagedBy": [link("/redfish/v1/Managers/1")],
        },
    }))
}

fn reset(
    shared: &Arc<Shared>,
    position: usize,
    fault: Fault,
    body: &[u8],
    event: &mut Event,
) -> Answer {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return Answer::error(400, "the body is not JSON");
    };
    let Some(reset) = body["ResetType"].as_str().and_then(|text| text.parse().ok()) else {
        return Answer::error(400, "the ResetType is missing or not one of the allowed values");
    };
    event.reset = Some(reset);
    let system = &shared.systems[position];
    match fault {
        Fault::DoNothing => Answer::json(json!({ "Message": "Success" })),
        Fault::StuckPoweringOff if reset.under_way() == PowerState::PoweringOff => {
            let mut pending = system.pending();
            pending.number += 1;
            pending.shown = Some(PowerState::PoweringOff);
            Answer::empty(204)
        }
        Fault::SlowPower(delay) => {
            switch_later(shared, position, reset, delay);
            Answer::empty(204)
        }
        _ => {
            system.unstick();
            match system.switch.set(reset) {
                Ok(()) => Answer::empty(204),
                Err(error) => {
                    event.error = Some(error.to_string());
                    Answer::error(500, &format!("the power could not be switched: {error}"))
                }
            }
        }
    }
}

/// Does what was asked for after a while, unless something else is asked for before.
fn switch_later(shared: &Arc<Shared>, position: usize, reset: ResetType, delay: Duration) {
    let number = {
        let mut pending = shared.systems[position].pending();
        pending.number += 1;
        pending.shown = Some(reset.under_way());
        pending.number
    };
    let shared = shared.clone();
    thread::spawn(move || {
        if shared.wait_for_stop(delay) {
            return;
        }
        let system = &shared.systems[position];
        let mut pending = system.pending();
        if pending.number != number {
            return;
        }
        let mut event = Event::now("switched", delay);
        event.error = system.switch.set(reset).err().map(|error| error.to_string());
        pending.shown = None;
        drop(pending);
        event.system = Some(system.id.clone());
        event.reset = Some(reset);
        shared.log.push(event);
    });
}
