//! Who may ask: basic authentication and Redfish sessions.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use dyad_http::Secret;

/// Sessions that may be open at once; real BMCs have as few.
const SESSIONS_MAX: usize = 16;
/// A session that was not used for so long is closed.
const SESSION_IDLE_MAX: Duration = Duration::from_mins(30);

/// The one account and its sessions.
#[derive(Debug)]
pub(crate) struct Accounts {
    user: String,
    password: Secret,
    sessions: Mutex<(Vec<Session>, u64)>,
}

#[derive(Debug)]
struct Session {
    id: u64,
    token: Secret,
    used: Instant,
}

impl Accounts {
    pub(crate) fn new(user: String, password: Secret) -> Self {
        Self { user, password, sessions: Mutex::default() }
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Whether the request's headers prove who asks.
    pub(crate) fn allows(&self, authorization: Option<&str>, token: Option<&str>) -> bool {
        if let Some(token) = token {
            return self.touch(token);
        }
        authorization
            .and_then(|value| value.strip_prefix("Basic "))
            .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text.trim()).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .and_then(|pair| pair.split_once(':').map(|(user, word)| self.is_right(user, word)))
            .unwrap_or(false)
    }

    pub(crate) fn is_right(&self, user: &str, password: &str) -> bool {
        user == self.user && password == self.password.expose()
    }

    /// Opens a session: its id and token, or nothing when too many are open.
    pub(crate) fn log_in(&self) -> Option<(u64, String)> {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        let mut token = String::new();
        for byte in bytes {
            let _ = write!(token, "{byte:02x}");
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.0.retain(|session| session.used.elapsed() < SESSION_IDLE_MAX);
        if sessions.0.len() >= SESSIONS_MAX {
            return None;
        }
        sessions.1 += 1;
        let id = sessions.1;
        sessions.0.push(Session { id, token: Secret::new(token.clone()), used: Instant::now() });
        Some((id, token))
    }

    /// Closes a session; whether there was one.
    pub(crate) fn log_out(&self, id: u64) -> bool {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sessions.0.len();
        sessions.0.retain(|session| session.id != id);
        sessions.0.len() < before
    }

    /// The open sessions.
    pub(crate) fn open(&self) -> Vec<u64> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.0.iter().map(|session| session.id).collect()
    }

    /// Closes all sessions, as a BMC that restarts does.
    pub(crate) fn forget(&self) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).0.clear();
    }

    fn touch(&self, token: &str) -> bool {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sessions.0.iter_mut().find(|session| session.token.expose() == token);
        match found {
            Some(session) if session.used.elapsed() < SESSION_IDLE_MAX => {
                session.used = Instant::now();
                true
            }
            _ => false,
        }
    }
}
