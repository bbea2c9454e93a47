//! The BMCs: do they answer, whose are they, can they do what fencing needs?

use std::path::{Path, PathBuf};
use std::time::Duration;

use dyad_cluster::pair::{BmcTls, Pair};
use dyad_http::{Client, Deadline, Endpoint, Error as HttpError, Request, Trust};
use dyad_pair_file::file::{self, PairFile};
use dyad_power::{
    Authentication, Credentials, Error, PowerState, Redfish, ResetType, System, SystemName,
};
use time::OffsetDateTime;

use super::probe::Probe;
use super::{Finding, Here, local};
use crate::account;

/// The limit on everything that one BMC is asked.
const LIMIT: Duration = Duration::from_secs(10);
/// The limit on one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// A clock that is further off than this confuses whoever reads logs and checks certificates.
const CLOCK_SKEW_S: i64 = 60;

/// How to reach one BMC.
pub(crate) struct Target {
    node: String,
    endpoint: Endpoint,
    trust: Option<Trust>,
    credentials: Option<Credentials>,
    system: Option<SystemName>,
}

/// Asks both BMCs at the same time, then compares what they said.
pub(super) fn probe(
    file: &PairFile,
    pair: &Pair,
    base: &Path,
    here: &Here,
    own: Option<usize>,
) -> Probe {
    let targets: Vec<_> = file
        .nodes
        .iter()
        .zip(&pair.nodes)
        .filter_map(|(node, rendered)| target(node, &rendered.bmc.tls, base))
        .collect();
    let here = here.clone();
    let own_name = own.map(|position| pair.nodes[position].name.0.clone());
    Probe::new("bmc", "bmc", move || ask_all(&targets, own_name.as_deref(), &here))
}

/// Asks all BMCs at the same time, and whether they are whose they should be.
pub(crate) fn ask_all(targets: &[Target], own: Option<&str>, here: &Here) -> Vec<Finding> {
    let product_uuid = local::product_uuid(here);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = targets.iter().map(|target| scope.spawn(|| ask(target))).collect();
        asked.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let systems: Vec<_> = targets
        .iter()
        .zip(&answers)
        .filter_map(|(target, (_, system))| Some((target.node.as_str(), system.as_ref()?)))
        .collect();
    let mut findings: Vec<_> = identities(&systems).into_iter().collect();
    findings.extend(own.and_then(|own| own_identity(own, &systems, &product_uuid)));
    answers.into_iter().flat_map(|(findings, _)| findings).chain(findings).collect()
}

/// A BMC as a node knows it: by the rendered description, with the credentials that lie on the node.
pub(crate) fn installed(node: &dyad_cluster::pair::Node, here: &Here) -> Result<Target, String> {
    let bmc = &node.bmc;
    let trust = match &bmc.tls {
        BmcTls::CaFile(path) => Trust::CaFile(here.path(path)),
        BmcTls::Pin(pin) => Trust::Pin(pin.parse().map_err(|error| format!("pin: {error}"))?),
        BmcTls::Insecure => Trust::InsecureAcceptAnyCertificate,
    };
    let credentials = Credentials::read(&here.path(&bmc.credentials_file));
    let system = bmc.system.as_deref().map(SystemName::new).transpose();
    Ok(Target {
        node: node.name.0.clone(),
        endpoint: Endpoint::parse(&bmc.address).map_err(|error| chain(&error))?,
        trust: Some(trust),
        credentials: Some(credentials.map_err(|error| chain(&error))?),
        system: system.map_err(str::to_owned)?,
    })
}

fn target(node: &file::Node, tls: &BmcTls, base: &Path) -> Option<Target> {
    let given = node.bmc.tls.as_ref();
    let trust = match (tls, given.and_then(|tls| tls.ca_file.as_ref())) {
        (_, Some(path)) => Trust::CaFile(account::resolve(base, path)),
        (BmcTls::Pin(pin), None) => Trust::Pin(pin.parse().ok()?),
        (BmcTls::CaFile(path), None) => Trust::CaFile(PathBuf::from(path)),
        (BmcTls::Insecure, None) => Trust::InsecureAcceptAnyCertificate,
    };
    let on_node = || Credentials::read(node.bmc.credentials.on_node.as_ref()?).ok();
    Some(Target {
        node: node.name.clone(),
        endpoint: Endpoint::parse(&node.bmc.address).ok()?,
        trust: Some(trust),
        credentials: account::account(node, base).ok().flatten().or_else(on_node),
        system: node.bmc.system.as_deref().and_then(|text| SystemName::new(text).ok()),
    })
}

fn ask(target: &Target) -> (Vec<Finding>, Option<System>) {
    let subject = format!("bmc {}", target.node);
    let client = || {
        let builder = Client::builder(target.endpoint.clone());
        match &target.trust {
            Some(trust) => builder.trust(trust.clone()).build(),
            None => builder.build(),
        }
    };
    let deadline = Deadline::after(LIMIT);
    let (clock, http) = match client() {
        Ok(http) => (clock(&http, &subject, deadline), http),
        Err(error) => return (vec![unreachable(&subject, target, &error)], None),
    };
    let mut findings: Vec<Finding> = match clock {
        Ok(clock) => clock.into_iter().collect(),
        Err(error) => return (vec![unreachable(&subject, target, &error)], None),
    };
    let Some(credentials) = target.credentials.clone() else {
        let message = format!("{} answers; without credentials no more is known", target.endpoint);
        findings.push(Finding::warning("bmc", &subject, message).hint("run the check on a node"));
        return (findings, None);
    };
    let redfish = Redfish::new(http, credentials, Authentication::Basic, REQUEST_LIMIT);
    match redfish.look(target.system.as_ref(), deadline) {
        Ok(system) => {
            findings.insert(0, described(&subject, target, &system));
            if !system.offers(ResetType::ForceOff) {
                let message =
                    format!("the System offers no ForceOff, only {}", system.offered().join(", "));
                let hint =
                    "without it nothing proves that the node is off; use another BMC or firmware";
                findings.push(Finding::error("bmc-off", &subject, message).hint(hint));
            }
            (findings, Some(system))
        }
        Err(error) => {
            findings.insert(0, refused(&subject, target, &error));
            (findings, None)
        }
    }
}

fn described(subject: &str, target: &Target, system: &System) -> Finding {
    let power = match system.power {
        PowerState::On => "On",
        PowerState::Off => "Off",
        PowerState::Other(_) => "neither On nor Off",
    };
    let uuid = system.uuid.as_deref().unwrap_or("unknown");
    let message =
        format!("{} answers: System {}, power {power}, UUID {uuid}", target.endpoint, system.id);
    match system.power {
        PowerState::On | PowerState::Off => Finding::ok("bmc", subject, message),
        PowerState::Other(_) => {
            Finding::warning("bmc", subject, message).hint("try again in a minute")
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn unreachable(subject: &str, target: &Target, error: &HttpError) -> Finding {
    let hint = match error {
        HttpError::PinMismatch { found, .. } => {
            format!("if this is the right BMC, write: pin: {found}")
        }
        HttpError::Certificate { .. } => {
            "give the authority that issued it (caFile), or pin the certificate itself (pin)"
                .to_owned()
        }
        _ => "is the address right, is the BMC's network reachable from here?".to_owned(),
    };
    let message = format!("{}: {}", target.endpoint, chain(error));
    Finding::error("bmc", subject, message).hint(hint)
}

fn refused(subject: &str, target: &Target, error: &Error) -> Finding {
    let hint = match error {
        Error::Http { source, .. } => return unreachable(subject, target, source),
        Error::Unauthorized { .. } => {
            "check user name and password; too many tries may lock the account"
        }
        Error::SeveralSystems { .. } | Error::NoSuchSystem { .. } => {
            "write the right one as `system`"
        }
        _ => "look at the BMC's own log; restarting it often helps",
    };
    Finding::error("bmc", subject, format!("{}: {}", target.endpoint, error.chain())).hint(hint)
}

/// Whether the BMC answers at all, and how far its clock is from ours.
fn clock(http: &Client, subject: &str, deadline: Deadline) -> Result<Option<Finding>, HttpError> {
    let response = http.send(&Request::get("/redfish/v1/"), deadline.within(REQUEST_LIMIT))?;
    let Some(theirs) = response.headers.get("date").and_then(http_date) else { return Ok(None) };
    let behind_s = (OffsetDateTime::now_utc() - theirs).whole_seconds();
    Ok((behind_s.abs() > CLOCK_SKEW_S).then(|| {
        let word = if behind_s > 0 { "behind" } else { "ahead of" };
        let message = format!("its clock is {} s {word} this machine's", behind_s.abs());
        Finding::warning("clock", subject, message)
            .hint("let both take their time from the same NTP server")
    }))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn http_date(text: &str) -> Option<OffsetDateTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<_> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, clock, "GMT"] = parts[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)?;
    let month = time::Month::try_from(u8::try_from(month + 1).ok()?).ok()?;
    let date = time::Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let clock: Vec<u8> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = clock[..] else { return None };
    Some(date.with_hms(hour, minute, second).ok()?.assume_utc())
}

/// Two BMCs that say they are the same machine would make one node fence itself.
fn identities(systems: &[(&str, &System)]) -> Option<Finding> {
    let [(first, one), (second, other)] = systems else { return None };
    let (one, other) = (one.uuid.as_ref()?, other.uuid.as_ref()?);
    one.eq_ignore_ascii_case(other).then(|| {
        let message = format!("the BMCs of {first} and {second} name the same machine, UUID {one}");
        Finding::error("bmc-identity", "bmc", message)
            .hint("one of the addresses or `system` is wrong: a node would switch itself off")
    })
}

/// Whether the BMC that the file gives this node is the one in this machine.
fn own_identity(
    own: &str,
    systems: &[(&str, &System)],
    product_uuid: &Result<String, String>,
) -> Option<Finding> {
    let subject = format!("bmc {own}");
    let product_uuid = match product_uuid {
        Ok(uuid) => uuid,
        Err(why) => {
            let message = format!("this machine's UUID cannot be read: {why}");
            return Some(
                Finding::warning("bmc-identity", &subject, message)
                    .hint("run the check as root; virtual machines may have none"),
            );
        }
    };
    let told = |wanted: bool| {
        systems
            .iter()
            .find(|(node, _)| (*node == own) == wanted)
            .and_then(|(_, s)| s.uuid.as_deref())
    };
    if told(false).is_some_and(|uuid| local::same_uuid(uuid, product_uuid)) {
        let message = "the peer's BMC is the one in this machine";
        let hint = "the two BMC addresses are swapped: each node would switch itself off";
        return Some(Finding::error("bmc-identity", &subject, message).hint(hint));
    }
    let uuid = told(true)?;
    Some(if local::same_uuid(uuid, product_uuid) {
        Finding::ok("bmc-identity", &subject, "its BMC is the one in this machine")
    } else {
        let message = format!("its BMC names machine {uuid}, this machine is {product_uuid}");
        Finding::error("bmc-identity", &subject, message)
            .hint("the address or `system` is another machine's, which would be switched off")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The date that every web server sends is read; anything else is no date.
    #[test]
    fn dates_of_web_servers() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date.unix_timestamp(), 784_111_777);
        for text in ["", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 66 Nov 1994 08:49:37 GMT"] {
            assert!(http_date(text).is_none(), "{text}");
        }
    }
}
