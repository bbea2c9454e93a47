//! etcd's client port, over its JSON gateway: membership, state, keys.
//!
//! A [`Client`] speaks to exactly one member; which one answers matters to Dyad. Each call takes a
//! [`Deadline`], and each error tells whether the request can still take effect ([`Error::outcome`]).
//!
//! The gateway is on unless etcd was started from a configuration file without `enable-grpc-gateway: true`.

mod cluster;
mod error;
mod json;
mod kv;

use std::sync::Arc;

use dyad_http::Request;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use cluster::{Alarm, AlarmKind, Health, Member, Members, Status, Versions};
pub use dyad_http::Deadline;
pub use error::{Error, Outcome, Reason, Refusal};
pub use kv::{
    Compare, Consistency, KeyValue, Operation, OperationResult, Range, RangeResult, Target, Txn,
    TxnResult,
};

use crate::tls::{self, Tls};

/// The most that is taken of an answer: a range of large values.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A client of one member. It can be shared between threads; each request under way has its own connection.
#[derive(Debug)]
pub struct Client {
    /// Without it every request fails in the same way.
    http: Result<dyad_http::Client, Arc<dyad_http::Error>>,
    endpoint: String,
}

/// Whether a request may be sent a second time if a kept connection turns out to be dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
}

impl Client {
    /// A client for the member at this URL. Connects to nobody yet.
    pub fn new(endpoint: &str, tls: Option<&Tls>) -> Result<Self, Error> {
        let client = Self::even_if_unusable(endpoint, tls);
        client.fault().map_or(Ok(client), Err)
    }

    /// The same, for somebody who has other things to do if the TLS files are no good: then every request fails
    /// with [`Error::Setup`], and [`Self::fault`] says why beforehand.
    pub fn even_if_unusable(endpoint: &str, tls: Option<&Tls>) -> Self {
        let limits =
            dyad_http::Limits { body_bytes_max: ANSWER_BYTES_MAX, ..dyad_http::Limits::default() };
        let http = tls::builder(endpoint, tls)
            .and_then(|builder| builder.limits(limits).build())
            .map_err(Arc::new);
        Self { http, endpoint: endpoint.to_owned() }
    }

    /// Why no request can be made, if none can.
    pub fn fault(&self) -> Option<Error> {
        let source = self.http.as_ref().err()?.clone();
        Some(Error::Setup { endpoint: self.endpoint.clone(), source })
    }

    /// The URL of the member.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn call<T: DeserializeOwned>(
        &self,
        step: &'static str,
        path: &str,
        body: &impl Serialize,
        effect: Effect,
        deadline: Deadline,
    ) -> Result<T, Error> {
        let body =
            serde_json::to_vec(body).map_err(|error| self.not_etcd(step, error.to_string()))?;
        let mut request = Request::post(path, body).header("Content-Type", "application/json");
        if effect == Effect::Reads {
            request = request.retry_safe();
        }
        let response = self.exchange(step, &request, deadline)?;
        if response.status == 200 {
            return self.parse(step, &response.body);
        }
        Err(match serde_json::from_slice::<ErrorBody>(&response.body) {
            Ok(ErrorBody { code, message }) => {
                Error::Refused { step, refusal: Refusal::new(code, message) }
            }
            Err(_) => self.not_etcd(step, format!("HTTP status {}", response.status)),
        })
    }

    fn exchange(
        &self,
        step: &'static str,
        request: &Request,
        deadline: Deadline,
    ) -> Result<dyad_http::Response, Error> {
        let setup = |source: &Arc<_>| Error::Setup {
            endpoint: self.endpoint.clone(),
            source: Arc::clone(source),
        };
        let http = self.http.as_ref().map_err(setup)?;
        http.send(request, deadline)
            .map_err(|source| Error::of_exchange(step, self.endpoint.clone(), source))
    }

    fn parse<T: DeserializeOwned>(&self, step: &'static str, body: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(body).map_err(|error| self.not_etcd(step, error.to_string()))
    }

    fn not_etcd(&self, step: &'static str, why: String) -> Error {
        Error::NotEtcd { step, endpoint: self.endpoint.clone(), why }
    }
}

/// How the gateway writes an error. (3.4 says the message twice.)
#[derive(Deserialize)]
struct ErrorBody {
    code: u32,
    message: String,
}
