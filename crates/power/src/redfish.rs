//! Asking a BMC.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyad_http::{Client, Deadline, Method, Request, Response, Secret};
use serde_json::{Value, json};

use crate::credentials::Credentials;
use crate::error::Error;
use crate::system::{ResetType, System, SystemName, printable};

const ROOT: &str = "/redfish/v1/";
/// Bounds on what a BMC may list.
const PAGES_MAX: usize = 16;
const SYSTEMS_MAX: usize = 64;
/// How long logging out may take: it is a courtesy, nobody waits for it longer.
const LOG_OUT_MAX: Duration = Duration::from_secs(1);

/// How the BMC is told who asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Authentication {
    /// User name and password with each request: one round trip less.
    #[default]
    Basic,
    /// A session is opened, and closed at the end: for BMCs that switched basic authentication off.
    Session,
}

/// A client of one BMC.
#[derive(Debug)]
pub struct Redfish {
    http: Client,
    credentials: Credentials,
    authentication: Authentication,
    request_limit: Duration,
    session: Mutex<Option<Session>>,
}

#[derive(Debug, Clone)]
struct Session {
    token: Secret,
    path: Option<String>,
}

impl Redfish {
    /// A client that gives each single request at most this much time.
    pub fn new(
        http: Client,
        credentials: Credentials,
        authentication: Authentication,
        request_limit: Duration,
    ) -> Self {
        Self { http, credentials, authentication, request_limit, session: Mutex::default() }
    }

    /// The one System that is meant: the pinned one, or the only one there is. Never just the last one.
    pub fn find_system(
        &self,
        wanted: Option<&SystemName>,
        deadline: Deadline,
    ) -> Result<System, Error> {
        if let Some(path) = wanted.and_then(SystemName::path) {
            return self.read_system(path, deadline);
        }
        let paths = self.system_paths(deadline)?;
        match (wanted, paths.as_slice()) {
            (None, [only]) => self.read_system(only, deadline),
            (None, []) => Err(Error::NoSuchSystem { wanted: "at all".to_owned(), found: vec![] }),
            (None, _) => Err(Error::SeveralSystems { found: last_segments(&paths) }),
            (Some(wanted), _) => self.pinned(wanted, &paths, deadline),
        }
    }

    /// Every System of the BMC.
    pub fn systems(&self, deadline: Deadline) -> Result<Vec<System>, Error> {
        let paths = self.system_paths(deadline)?;
        paths.iter().map(|path| self.read_system(path, deadline)).collect()
    }

    /// Reads the System again. An answer for another System is an error.
    pub fn read_again(&self, system: &System, deadline: Deadline) -> Result<System, Error> {
        let now = self.read_system(&system.path, deadline)?;
        if now.id != system.id || now.uuid != system.uuid {
            let why = format!("it was System {} before and is {} now", system.id, now.id);
            return Err(Error::Malformed { what: format!("read {}", system.path), why });
        }
        Ok(now)
    }

    /// Asks the BMC to switch, once. What the power is afterwards is another question.
    pub fn reset(
        &self,
        system: &System,
        reset: ResetType,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let what = format!("ask for {}", reset.as_str());
        let Some(path) = &system.reset_path else {
            let why = "the System has no reset action".to_owned();
            return Err(Error::Malformed { what, why });
        };
        let offered = self.offered(system, deadline)?;
        if !offered.iter().any(|offered| offered == reset.as_str()) {
            return Err(Error::NotOffered { wanted: reset.as_str(), offered });
        }
        let body = json!({ "ResetType": reset.as_str() }).to_string();
        // Switching to a state twice is the same as once, so a dead kept connection may be replaced.
        let request = || {
            Request::post(path, body.clone())
                .header("Content-Type", "application/json")
                .header("Accept", "application/json")
                .retry_safe()
        };
        let response = self.send(&what, request, deadline)?;
        if response.is_success() {
            return Ok(());
        }
        Err(match self.status_error(what, &response) {
            Error::Status { status, message, .. } => {
                Error::Refused { wanted: reset.as_str(), status, message }
            }
            other => other,
        })
    }

    /// Ends the session, if one was opened and there is time. A BMC forgets the others by itself.
    pub fn log_out(&self, deadline: Deadline) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Session { token, path: Some(path) }) = session {
            let request = Request::new(Method::Delete, path).secret_header("X-Auth-Token", &token);
            let _ = self.http.send(&request, deadline.within(LOG_OUT_MAX.min(self.request_limit)));
        }
    }

    /// The reset types on offer: from the System, or from where it points to. Without either, what is
    /// needed is assumed to be there.
    fn offered(&self, system: &System, deadline: Deadline) -> Result<Vec<String>, Error> {
        if !system.offered.is_empty() {
            return Ok(system.offered.clone());
        }
        let any =
            || [ResetType::On, ResetType::ForceOff].map(|reset| reset.as_str().to_owned()).to_vec();
        let Some(path) = &system.action_info else {
            return Ok(any());
        };
        let info = self.get("read the reset types", path, deadline)?;
        let parameters = info["Parameters"].as_array().into_iter().flatten();
        let values = parameters
            .filter(|parameter| parameter["Name"] == "ResetType")
            .filter_map(|parameter| parameter["AllowableValues"].as_array())
            .flatten()
            .filter_map(Value::as_str);
        let offered: Vec<_> = values.map(printable).collect();
        Ok(if offered.is_empty() { any() } else { offered })
    }

    fn pinned(
        &self,
        wanted: &SystemName,
        paths: &[String],
        deadline: Deadline,
    ) -> Result<System, Error> {
        // The path usually ends with the id: look there first, then everywhere.
        let likely = |path: &&String| path.rsplit('/').next() == Some(wanted.as_str());
        if let Some(path) = paths.iter().find(likely) {
            let system = self.read_system(path, deadline)?;
            if wanted.means(&system) {
                return Ok(system);
            }
        }
        let mut found = Vec::new();
        let mut ids = Vec::new();
        for path in paths {
            let system = self.read_system(path, deadline)?;
            ids.push(system.id.clone());
            if wanted.means(&system) {
                found.push(system);
            }
        }
        match (found.pop(), found.is_empty()) {
            (Some(system), true) => Ok(system),
            // Blades with a copied UUID: there is no telling which one is meant.
            (Some(_), false) => Err(Error::SeveralSystems { found: ids }),
            (None, _) => {
                Err(Error::NoSuchSystem { wanted: wanted.as_str().to_owned(), found: ids })
            }
        }
    }

    fn system_paths(&self, deadline: Deadline) -> Result<Vec<String>, Error> {
        let what = "list the Systems";
        let malformed = |why: &str| Error::Malformed { what: what.to_owned(), why: why.to_owned() };
        let root = self.root(deadline)?;
        let mut next = link(&root["Systems"]);
        if next.is_none() {
            return Err(malformed("the service root names no Systems"));
        }
        let mut paths = Vec::new();
        for _ in 0..PAGES_MAX {
            let Some(path) = next else { return Ok(paths) };
            let page = self.get(what, &path, deadline)?;
            let members =
                page["Members"].as_array().ok_or_else(|| malformed("it has no members"))?;
            for member in members {
                paths.push(link(member).ok_or_else(|| malformed("a member has no path"))?);
            }
            if paths.len() > SYSTEMS_MAX {
                return Err(malformed("it has too many members"));
            }
            next = page["Members@odata.nextLink"].as_str().map(str::to_owned);
        }
        Err(malformed("it has too many pages"))
    }

    fn root(&self, deadline: Deadline) -> Result<Value, Error> {
        // Open to all by the specification; the password is not sent where it is not needed.
        let what = "read the service root";
        let request = Request::get(ROOT).header("Accept", "application/json");
        let response = self.exchange(what, &request, deadline)?;
        self.json(what, &response)
    }

    fn read_system(&self, path: &str, deadline: Deadline) -> Result<System, Error> {
        let what = format!("read {path}");
        let body = self.get(&what, path, deadline)?;
        System::parse(path, &body).map_err(|why| Error::Malformed { what, why })
    }

    pub(crate) fn get(&self, what: &str, path: &str, deadline: Deadline) -> Result<Value, Error> {
        let request = || Request::get(path).header("Accept", "application/json");
        let response = self.send(what, request, deadline)?;
        self.json(what, &response)
    }

    fn json(&self, what: &str, response: &Response) -> Result<Value, Error> {
        if response.status != 200 {
            return Err(self.status_error(what.to_owned(), response));
        }
        serde_json::from_slice(&response.body).map_err(|error| Error::Malformed {
            what: what.to_owned(),
            // The parser's message quotes no content, only what it expected and where.
            why: format!("it is not JSON: {error}"),
        })
    }

    /// Sends a request as someone: with the password, or with a session that is opened if there is none
    /// and once more if the BMC has forgotten it.
    fn send(
        &self,
        what: &str,
        request: impl Fn() -> Request,
        deadline: Deadline,
    ) -> Result<Response, Error> {
        if self.authentication == Authentication::Basic {
            let Credentials { username, password } = &self.credentials;
            return self.exchange(what, &request().basic_auth(username, password), deadline);
        }
        let (session, is_new) = self.session(deadline)?;
        let send = |session: Session| {
            let request = request().secret_header("X-Auth-Token", &session.token);
            self.exchange(what, &request, deadline)
        };
        let response = send(session)?;
        if response.status != 401 || is_new {
            return Ok(response);
        }
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
        send(self.session(deadline)?.0)
    }

    /// The session, and whether it was opened just now.
    fn session(&self, deadline: Deadline) -> Result<(Session, bool), Error> {
        let mut slot = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = slot.as_ref() {
            return Ok((session.clone(), false));
        }
        let what = "log in";
        let root = self.root(deadline)?;
        let path = link(&root["Links"]["Sessions"])
            .unwrap_or_else(|| "/redfish/v1/SessionService/Sessions".to_owned());
        let Credentials { username, password } = &self.credentials;
        let body = json!({ "UserName": username, "Password": password.expose() }).to_string();
        let request = Request::post(path, body)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json");
        let response = self.exchange(what, &request, deadline)?;
        if !response.is_success() {
            return Err(self.status_error(what.to_owned(), &response));
        }
        let Some(token) = response.headers.get("X-Auth-Token") else {
            let why = "it has no token".to_owned();
            return Err(Error::Malformed { what: what.to_owned(), why });
        };
        let path = response.headers.get("Location").map(path_of);
        let session = Session { token: Secret::new(token), path };
        *slot = Some(session.clone());
        Ok((session, true))
    }

    fn exchange(
        &self,
        what: &str,
        request: &Request,
        deadline: Deadline,
    ) -> Result<Response, Error> {
        self.http
            .send(request, deadline.within(self.request_limit))
            .map_err(|source| Error::Http { what: what.to_owned(), source })
    }

    fn status_error(&self, what: String, response: &Response) -> Error {
        let status = response.status;
        if matches!(status, 401 | 403) {
            return Error::Unauthorized { what, status };
        }
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let error = &body["error"];
        let said =
            error["@Message.ExtendedInfo"][0]["Message"].as_str().or(error["message"].as_str());
        let message = printable(said.unwrap_or_default());
        // A BMC that quotes the request in its complaint must not bring the password into a log.
        let message = message.replace(self.credentials.password.expose(), "(redacted)");
        Error::Status { what, status, message }
    }
}

/// The path that a Redfish link leads to. Anything but a path of this BMC is no link to follow.
pub(crate) fn link(value: &Value) -> Option<String> {
    let path = value["@odata.id"].as_str()?;
    path.starts_with('/').then(|| path.to_owned())
}

/// The path of a Location header, which may be a whole URL.
fn path_of(location: &str) -> String {
    match location.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]).to_owned(),
        None => location.to_owned(),
    }
}

fn last_segments(paths: &[String]) -> Vec<String> {
    let last = |path: &String| path.trim_end_matches('/').rsplit('/').next().map(printable);
    paths.iter().filter_map(last).collect()
}
