//! The one thing that is asked of an OpenShift cluster: to leave etcd to the pair.
//!
//! The cluster's etcd operator owns etcd's static pods. A field in its `ConfigMap`, `managedEtcdKind`, tells it to
//! let go of them (`External`) or to run them (`Cluster`, the default). It is respected, and set here, only where
//! the cluster says of itself that its control plane is `DualReplica`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_http::{Client, Deadline, Endpoint, Method, Request, Response, Scheme, Secret, Trust};
use serde_json::{Value, json};

/// One request. The API server may be busy; it is not asked in the middle of a take-over.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
/// Where the cluster describes itself.
const INFRASTRUCTURE: &str = "/apis/config.openshift.io/v1/infrastructures/cluster";
/// The etcd operator's settings.
const OPERATOR_CONFIG: &str =
    "/api/v1/namespaces/openshift-etcd-operator/configmaps/etcd-operator-config";
/// The only topology in which the operator respects the field.
const TOPOLOGY: &str = "DualReplica";
/// The field.
const FIELD: &str = "managedEtcdKind";

/// Who runs etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedEtcdKind {
    /// The cluster's operator, as static pods.
    Cluster,
    /// Somebody else: the pair.
    External,
}

impl ManagedEtcdKind {
    fn word(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::External => "External",
        }
    }
}

/// Why the cluster could not be asked, or must not be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not there or cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The token's file is empty.
    #[error("{} holds no token", path.display())]
    NoToken {
        /// Which file.
        path: PathBuf,
    },
    /// A token is not sent where anybody can read it.
    #[error("{url} is not an https URL")]
    Plain {
        /// Which.
        url: String,
    },
    /// The API server gave no answer.
    #[error("cannot ask the API server at {url}")]
    Http {
        /// Which.
        url: String,
        /// Why not.
        source: dyad_http::Error,
    },
    /// It answered with an error.
    #[error("the API server at {url} refuses to {what}: HTTP {status}: {message}")]
    Refused {
        /// Which.
        url: String,
        /// What was asked.
        what: &'static str,
        /// The HTTP status.
        status: u16,
        /// Its own words.
        message: String,
    },
    /// It answered something else.
    #[error("the answer of the API server at {url} has no {field}")]
    Incomplete {
        /// Which.
        url: String,
        /// What was looked for.
        field: &'static str,
    },
    /// The cluster is not one of two nodes.
    #[error("the cluster's control plane is {found}, not {TOPOLOGY}: its operator keeps etcd")]
    Topology {
        /// What it says of itself.
        found: String,
    },
}

/// Where the API server is, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Its URL.
    pub url: String,
    /// A file with the token of a service account that may read the infrastructure and change this `ConfigMap`.
    pub token_file: PathBuf,
    /// The authority that signed the server's certificate.
    pub ca_file: PathBuf,
}

impl Access {
    /// Makes sure that the cluster is one of two nodes.
    pub fn check_topology(&self) -> Result<(), Error> {
        let infrastructure = self.ask("read its topology", Request::get(INFRASTRUCTURE))?;
        let found = infrastructure["status"]["controlPlaneTopology"].as_str();
        match found {
            Some(TOPOLOGY) => Ok(()),
            Some(found) => Err(Error::Topology { found: found.to_owned() }),
            None => Err(Error::Incomplete {
                url: self.url.clone(),
                field: "status.controlPlaneTopology",
            }),
        }
    }

    /// Who runs etcd, as the operator was told.
    pub fn managed_etcd_kind(&self) -> Result<ManagedEtcdKind, Error> {
        let config =
            self.ask("read the etcd operator's settings", Request::get(OPERATOR_CONFIG))?;
        Ok(kind_of(&config))
    }

    /// Tells the operator who runs etcd, if the topology is the right one; whether that was news.
    pub fn set_managed_etcd_kind(&self, kind: ManagedEtcdKind) -> Result<bool, Error> {
        self.check_topology()?;
        if self.managed_etcd_kind()? == kind {
            return Ok(false);
        }
        let patch = json!({ "data": { FIELD: kind.word() } });
        let request = Request::new(Method::Patch, OPERATOR_CONFIG)
            .header("Content-Type", "application/merge-patch+json")
            .body(patch.to_string());
        let config = self.ask("change the etcd operator's settings", request)?;
        // What counts is what stands there now.
        if kind_of(&config) == kind {
            Ok(true)
        } else {
            Err(Error::Incomplete { url: self.url.clone(), field: FIELD })
        }
    }

    fn ask(&self, what: &'static str, request: Request) -> Result<Value, Error> {
        let http = |source| Error::Http { url: self.url.clone(), source };
        let endpoint = Endpoint::parse(&self.url).map_err(http)?;
        if endpoint.scheme() != Scheme::Https {
            return Err(Error::Plain { url: self.url.clone() });
        }
        let client = Client::builder(endpoint)
            .trust(Trust::CaFile(self.ca_file.clone()))
            .build()
            .map_err(http)?;
        let bearer = Secret::new(format!("Bearer {}", token(&self.token_file)?));
        let request =
            request.header("Accept", "application/json").secret_header("Authorization", &bearer);
        let response = client.send(&request, Deadline::after(REQUEST_LIMIT)).map_err(http)?;
        self.read(what, &response)
    }

    fn read(&self, what: &'static str, response: &Response) -> Result<Value, Error> {
        let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        if response.is_success() {
            return Ok(answer);
        }
        let message = answer["message"].as_str().unwrap_or("it does not say why").to_owned();
        Err(Error::Refused { url: self.url.clone(), what, status: response.status, message })
    }
}

/// A field that is not there is the default.
fn kind_of(config: &Value) -> ManagedEtcdKind {
    match config["data"][FIELD].as_str() {
        Some("External") => ManagedEtcdKind::External,
        _ => ManagedEtcdKind::Cluster,
    }
}

fn token(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::File { path: path.to_owned(), source })?;
    match text.trim() {
        "" => Err(Error::NoToken { path: path.to_owned() }),
        token => Ok(token.to_owned()),
    }
}
