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

/// The first authority's name; a later one bears its number too. The same for every pair: a pair trusts its own keys
/// only, and a pair that is renamed keeps its authority.
const AUTHORITY: &str = "Dyad pair CA";
/// What the first authority is kept as.
const FIRST: &str = "ca";
/// Which authority signs and which are trusted; the first one if the file is not there.
const AUTHORITIES: &str = "authorities.json";
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
    /// Which authority signed it.
    #[serde(default = "first")]
    issuer: String,
    names: Vec<String>,
    /// Seconds since 1970.
    not_after: i64,
    certificate: String,
    key: String,
}

fn first() -> String {
    FIRST.to_owned()
}

/// Which authorities there are. One file, replaced whole: a change of authority is never half done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Authorities {
    /// The one that signs.
    signer: String,
    /// Those that are trusted, the signer among them.
    trusted: Vec<String>,
}

impl Authorities {
    fn read(secrets: &SecretsDir) -> Result<Self, Error> {
        let Some(content) = secrets.read(AUTHORITIES)? else {
            return Ok(Self { signer: first(), trusted: vec![first()] });
        };
        serde_json::from_slice(&content).map_err(|error| bad_step(error.to_string()))
    }

    fn write(&self, secrets: &SecretsDir) -> Result<(), Error> {
        let content =
            serde_json::to_vec_pretty(self).map_err(|error| bad_step(error.to_string()))?;
        secrets.replace(AUTHORITIES, &content)
    }

    /// The one that is trusted and does not sign yet.
    fn next(&self) -> Option<&String> {
        self.trusted.last().filter(|last| **last != self.signer)
    }
}

fn bad_step(why: String) -> Error {
    Error::Certificate { subject: "the authority of the pair".to_owned(), why }
}

/// One step from an authority to its successor. Between two of them both nodes have to take the certificates of the
/// step before: each must trust what the other shows at any moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorityStep {
    /// Make a new authority, and trust both.
    TrustNew,
    /// Have the new one sign; trust both.
    UseNew,
    /// Trust the new one only.
    DropOld,
}

/// Takes a step; done again it changes nothing.
pub(crate) fn step(secrets: &SecretsDir, step: AuthorityStep) -> Result<(), Error> {
    let mut now = Authorities::read(secrets)?;
    let uses_new = now.trusted.len() > 1 && now.next().is_none();
    match step {
        AuthorityStep::TrustNew if now.next().is_some() => return Ok(()),
        AuthorityStep::TrustNew if uses_new => {
            return Err(bad_step(
                "the one before is still trusted; first: --renew drop-old-authority".to_owned(),
            ));
        }
        AuthorityStep::TrustNew => {
            let number = now.signer.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
            now.trusted.push(format!("{FIRST}-{}", number.unwrap_or(1_u32) + 1));
        }
        AuthorityStep::UseNew if uses_new => return Ok(()),
        AuthorityStep::UseNew => {
            let next = now.next().cloned();
            now.signer = next.ok_or_else(|| {
                bad_step("there is no new one; first: --renew trust-new-authority".to_owned())
            })?;
        }
        AuthorityStep::DropOld if now.next().is_some() => {
            return Err(bad_step(
                "the new one is not in use yet; first: --renew use-new-authority".to_owned(),
            ));
        }
        AuthorityStep::DropOld => now.trusted = vec![now.signer.clone()],
    }
    now.write(secrets)
}

/// Forgets the certificates that were issued: the next rendering issues new ones.
pub(crate) fn forget_certificates(secrets: &SecretsDir, pair: &Pair) -> Result<(), Error> {
    for node in &pair.nodes {
        for purpose in Purpose::ALL {
            secrets.remove(&format!("{}-{}.json", purpose.name(), node.name))?;
        }
    }
    Ok(())
}

/// The authority of a pair.
pub(crate) struct Authority<'a> {
    secrets: &'a SecretsDir,
    /// What it is kept as.
    name: String,
    /// The certificates of all that are trusted, in PEM.
    pub(crate) trusted: String,
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

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let number = name.strip_prefix(FIRST).unwrap_or_default().replace('-', " ");
    params.distinguished_name.push(DnType::CommonName, format!("{AUTHORITY}{number}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::days(BACKDATE_DAYS);
    params.not_after = now + Duration::days(AUTHORITY_DAYS);
    params
}

/// The key and the certificate of an authority; made if there are none.
fn authority(secrets: &SecretsDir, name: &str) -> Result<(KeyPair, String), Error> {
    let fault = fault(AUTHORITY);
    let key = secrets.read_or_make(&format!("{name}.key"), || {
        Ok(KeyPair::generate().map_err(&fault)?.serialize_pem().into_bytes())
    })?;
    let key = KeyPair::from_pem(&text(key, AUTHORITY)?).map_err(&fault)?;
    let certificate = secrets.read_or_make(&format!("{name}.pem"), || {
        Ok(authority_params(name).self_signed(&key).map_err(&fault)?.pem().into_bytes())
    })?;
    Ok((key, text(certificate, AUTHORITY)?))
}

impl<'a> Authority<'a> {
    /// The authority that is kept in the secrets directory; made if there is none.
    pub(crate) fn open(secrets: &'a SecretsDir) -> Result<Self, Error> {
        let authorities = Authorities::read(secrets)?;
        let mut trusted = String::new();
        let mut signer = None;
        for name in &authorities.trusted {
            let (key, certificate) = authority(secrets, name)?;
            trusted.push_str(&certificate);
            if *name == authorities.signer {
                signer = Some(key);
            }
        }
        let key = signer.ok_or_else(|| bad_step("the one that signs is not trusted".to_owned()))?;
        let issuer = Issuer::new(authority_params(&authorities.signer), key);
        Ok(Self { secrets, name: authorities.signer, trusted, issuer })
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
        if let Some(kept) = kept.filter(|kept| kept.names == names && kept.issuer == self.name) {
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
            issuer: self.name.clone(),
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
