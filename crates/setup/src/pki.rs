//! The pair's own authority and the certificates it issues for etcd.

use std::collections::BTreeSet;
use std::net::IpAddr;

use dyad_cluster::pair::{Node, Pair};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use crate::error::Error;
use crate::secrets::SecretsDir;

/// The authority's name. The same for every pair: a pair trusts its own key only, and a pair that is renamed
/// keeps its authority.
const AUTHORITY: &str = "Dyad pair CA";
const AUTHORITY_DAYS: i64 = 20 * 365;
const LEAF_DAYS: i64 = 10 * 365;
/// The clocks of two nodes and of the machine that renders need not agree.
const BACKDATE_DAYS: i64 = 1;

/// A certificate with its key, both in PEM.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What a certificate was issued for, beside it: it is issued anew when this changes.
#[derive(Serialize, Deserialize)]
struct Record {
    subject: String,
    names: Vec<String>,
    /// Seconds since 1970.
    not_after: i64,
    certificate: String,
    key: String,
}

/// The authority of a pair.
pub(crate) struct Authority<'a> {
    secrets: &'a SecretsDir,
    /// Its certificate, in PEM.
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

fn fault(subject: &str) -> impl Fn(rcgen::Error) -> Error + '_ {
    move |error| Error::Certificate { subject: subject.to_owned(), why: error.to_string() }
}

fn text(content: Vec<u8>, subject: &str) -> Result<String, Error> {
    String::from_utf8(content).map_err(|_| Error::Certificate {
        subject: subject.to_owned(),
        why: "what is kept of it is not text".to_owned(),
    })
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::days(BACKDATE_DAYS);
    params.not_after = now + Duration::days(AUTHORITY_DAYS);
    params
}

impl<'a> Authority<'a> {
    /// The authority that is kept in the secrets directory; made if there is none.
    pub(crate) fn open(secrets: &'a SecretsDir) -> Result<Self, Error> {
        let fault = fault(AUTHORITY);
        let key = secrets.read_or_make("ca.key", || {
            Ok(KeyPair::generate().map_err(&fault)?.serialize_pem().into_bytes())
        })?;
        let key = KeyPair::from_pem(&text(key, AUTHORITY)?).map_err(&fault)?;
        let certificate = secrets.read_or_make("ca.pem", || {
            Ok(authority_params().self_signed(&key).map_err(&fault)?.pem().into_bytes())
        })?;
        let certificate = text(certificate, AUTHORITY)?;
        Ok(Self { secrets, certificate, issuer: Issuer::new(authority_params(), key) })
    }

    /// The certificate of this purpose for a node: the kept one, if it is for the same names.
    pub(crate) fn issue(
        &self,
        pair: &Pair,
        node: &Node,
        purpose: Purpose,
        server_names: &[String],
    ) -> Result<Issued, Error> {
        let names = names(pair, node, purpose, server_names);
        let subject = format!("{} of {}", purpose.name(), node.name);
        let file = format!("{}-{}.json", purpose.name(), node.name);
        let kept = self.secrets.read(&file)?;
        let kept = kept.and_then(|content| serde_json::from_slice::<Record>(&content).ok());
        if let Some(kept) = kept.filter(|kept| kept.names == names) {
            return Ok(Issued { certificate: kept.certificate, key: kept.key });
        }
        let record = self.sign(&subject, node, names)?;
        let content = serde_json::to_vec_pretty(&record).map_err(|error| Error::Certificate {
            subject: subject.clone(),
            why: error.to_string(),
        })?;
        self.secrets.replace(&file, &content)?;
        Ok(Issued { certificate: record.certificate, key: record.key })
    }

    fn sign(&self, subject: &str, node: &Node, names: Vec<String>) -> Result<Record, Error> {
        let fault = fault(subject);
        let mut params = CertificateParams::new(names.clone()).map_err(&fault)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, node.name.to_string());
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        // etcd shows its serving certificate as a client too, members to each other and to itself.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let now = OffsetDateTime::now_utc();
        params.not_before = now - Duration::days(BACKDATE_DAYS);
        params.not_after = now + Duration::days(LEAF_DAYS);
        let not_after = params.not_after.unix_timestamp();
        let key = KeyPair::generate().map_err(&fault)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(&fault)?;
        Ok(Record {
            subject: subject.to_owned(),
            names,
            not_after,
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// When the certificates that are kept expire first, in seconds since 1970.
pub(crate) fn first_expiry(secrets: &SecretsDir, pair: &Pair) -> Option<i64> {
    let files = pair.nodes.iter().flat_map(|node| {
        Purpose::ALL.map(|purpose| format!("{}-{}.json", purpose.name(), node.name))
    });
    files
        .filter_map(|file| secrets.read(&file).ok().flatten())
        .filter_map(|content| serde_json::from_slice::<Record>(&content).ok())
        .map(|record| record.not_after)
        .min()
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Between the two members.
    Peer,
    /// What clients see.
    Server,
    /// For clients on the node, such as API servers.
    Client,
}

impl Purpose {
    pub(crate) const ALL: [Self; 3] = [Self::Peer, Self::Server, Self::Client];

    fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// Every name that the other side may know the node by. etcd checks a member's certificate against the
/// address it connects from, so the addresses of all links belong into it.
fn names(pair: &Pair, node: &Node, purpose: Purpose, server_names: &[String]) -> Vec<String> {
    let mut names = BTreeSet::from([node.name.to_string()]);
    names.extend(node.name.0.split('.').next().map(str::to_owned));
    if purpose != Purpose::Client {
        names.extend(node.addresses.iter().map(IpAddr::to_string));
        names.extend(["127.0.0.1", "::1", "localhost"].map(str::to_owned));
    }
    if purpose == Purpose::Server {
        names.extend(server_names.iter().cloned());
        names.extend(pair.virtual_ip.iter().map(|virtual_ip| virtual_ip.address.to_string()));
    }
    names.into_iter().collect()
}
