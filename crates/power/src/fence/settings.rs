//! The parameters, understood.

use std::path::PathBuf;
use std::time::Duration;

use dyad_http::{Client, Endpoint, Fingerprint, Limits, Scheme, Trust};

use super::action::Action;
use super::input::{Input, boolean, unknown};
use super::reason::{Failure, Reason};
use crate::credentials::Credentials;
use crate::redfish::{Authentication, Redfish};
use crate::system::SystemName;

/// A Redfish answer is a few kilobytes; a BMC that sends more is broken.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What the agent works with.
#[derive(Debug)]
pub struct Settings {
    /// The BMC.
    pub endpoint: Endpoint,
    /// Which System, if it is pinned.
    pub system: Option<SystemName>,
    /// The node that this device fences, if that is said.
    pub node: Option<String>,
    /// The delay that decides a split.
    pub split_delay: Duration,
    /// The limit on the action.
    pub timeout: Duration,
    /// The limit on one request.
    pub request_timeout: Duration,
    /// The limit on powering on after a reboot.
    pub on_timeout: Duration,
    /// Where actions on the same BMC meet.
    pub run_directory: PathBuf,
    /// Whether each step is told.
    pub verbose: bool,
    trust: Option<Trust>,
    tls_name: Option<String>,
    credentials_file: PathBuf,
    authentication: Authentication,
}

impl Settings {
    /// The action that was asked for.
    pub fn action(input: &Input) -> Result<Action, Failure> {
        let text = required(input, "action")?;
        text.parse().map_err(|message: String| Failure::new(Reason::Parameter, message))
    }

    /// Understands the parameters, or says which one is wrong. Asks nobody.
    pub fn new(input: &Input, action: Action) -> Result<Self, Failure> {
        // Pacemaker may learn to pass more than it does today, and a typing error must not stop fencing when
        // it is needed: what is unknown is refused when a person can react, and told otherwise.
        if let (Action::ValidateAll, Some(name)) = (action, input.unknown.first()) {
            return Err(unknown(name));
        }
        let ssl = flag(input, "ssl");
        let endpoint = endpoint(required(input, "address")?, input.given("ipport"), ssl)?;
        let settings = Self {
            trust: trust(input, ssl)?,
            tls_name: input.given("tls_name").map(str::to_owned),
            credentials_file: required(input, "credentials_file")?.into(),
            authentication: match input.get("auth") {
                Some("session") => Authentication::Session,
                _ => Authentication::Basic,
            },
            system: input.given("system").map(system_name).transpose()?,
            node: input.given("node").map(str::to_owned),
            split_delay: milliseconds(input, "split_delay_ms"),
            timeout: at_least_one(input, "timeout_ms")?,
            request_timeout: at_least_one(input, "request_timeout_ms")?,
            on_timeout: at_least_one(input, "on_timeout_ms")?,
            run_directory: input.get("run_directory").unwrap_or_default().into(),
            verbose: flag(input, "verbose"),
            endpoint,
        };
        settings.check_node(input.nodename.as_deref())?;
        Ok(settings)
    }

    /// A client of the BMC. Reads the credentials and certificate files; asks nobody yet.
    pub fn connect(&self) -> Result<Redfish, Failure> {
        let credentials = Credentials::read(&self.credentials_file)?;
        let limits = Limits { body_bytes_max: BODY_BYTES_MAX, ..Limits::default() };
        let mut builder = Client::builder(self.endpoint.clone()).limits(limits);
        if let Some(trust) = &self.trust {
            builder = builder.trust(trust.clone());
        }
        if let Some(name) = &self.tls_name {
            builder = builder.tls_name(name);
        }
        Ok(Redfish::new(builder.build()?, credentials, self.authentication, self.request_timeout))
    }

    /// Refuses an action for another node: node1 is not node10.
    fn check_node(&self, nodename: Option<&str>) -> Result<(), Failure> {
        match (&self.node, nodename) {
            (Some(own), Some(asked)) if own != asked => {
                let message = format!("this device fences {own}, and the action is for {asked}");
                Err(Failure::new(Reason::WrongNode, message))
            }
            _ => Ok(()),
        }
    }
}

fn required<'a>(input: &'a Input, name: &str) -> Result<&'a str, Failure> {
    let missing = || Failure::new(Reason::Missing, format!("parameter {name} is missing"));
    input.given(name).ok_or_else(missing)
}

fn flag(input: &Input, name: &str) -> bool {
    input.get(name).and_then(boolean).unwrap_or(false)
}

fn milliseconds(input: &Input, name: &str) -> Duration {
    Duration::from_millis(input.get(name).and_then(|text| text.parse().ok()).unwrap_or_default())
}

fn at_least_one(input: &Input, name: &str) -> Result<Duration, Failure> {
    let time = milliseconds(input, name);
    if time.is_zero() {
        return Err(Failure::new(Reason::Parameter, format!("parameter {name} must be above 0")));
    }
    Ok(time)
}

fn system_name(text: &str) -> Result<SystemName, Failure> {
    SystemName::new(text).map_err(|why| {
        Failure::new(Reason::Parameter, format!("parameter system is {text:?}: {why}"))
    })
}

fn endpoint(address: &str, port: Option<&str>, ssl: bool) -> Result<Endpoint, Failure> {
    let fault =
        |message: String| Failure::new(Reason::Parameter, format!("parameter address: {message}"));
    let scheme = if ssl { Scheme::Https } else { Scheme::Http };
    let word = if ssl { "https" } else { "http" };
    let default_port = if ssl { 443 } else { 80 };
    let port = port.map(str::parse::<u16>).transpose();
    let port =
        port.map_err(|_| Failure::new(Reason::Parameter, "parameter ipport is above 65535"))?;
    // An address of IPv6 on its own has colons but no port.
    if address.parse::<std::net::Ipv6Addr>().is_ok() {
        return Endpoint::new(scheme, address, port.unwrap_or(default_port))
            .map_err(|error| fault(error.to_string()));
    }
    let url =
        if address.contains("://") { address.to_owned() } else { format!("{word}://{address}") };
    let endpoint = Endpoint::parse(&url).map_err(|error| fault(error.to_string()))?;
    if endpoint.scheme() != scheme {
        return Err(fault(format!("{url} and ssl={} contradict each other", u8::from(ssl)))
            .hint("http:// sends the password in clear; it needs ssl=0 as well"));
    }
    let has_port = url.trim_end_matches('/').ends_with(&format!(":{}", endpoint.port()));
    match port {
        Some(port) if has_port && port != endpoint.port() => {
            Err(fault(format!("{url} and ipport={port} contradict each other")))
        }
        Some(port) => {
            Endpoint::new(scheme, endpoint.host(), port).map_err(|e| fault(e.to_string()))
        }
        None => Ok(endpoint),
    }
}

fn trust(input: &Input, ssl: bool) -> Result<Option<Trust>, Failure> {
    if !ssl {
        return Ok(None);
    }
    let pin = input.given("pin").map(str::parse::<Fingerprint>).transpose();
    let pin =
        pin.map_err(|why| Failure::new(Reason::Parameter, format!("parameter pin: {why}")))?;
    let choices = [
        pin.map(Trust::Pin),
        input.given("ca_file").map(|path| Trust::CaFile(path.into())),
        flag(input, "insecure").then_some(Trust::InsecureAcceptAnyCertificate),
    ];
    let mut chosen = choices.into_iter().flatten();
    match (chosen.next(), chosen.next()) {
        (Some(trust), None) => Ok(Some(trust)),
        (None, _) => Err(Failure::new(
            Reason::Missing,
            "nothing says which certificate of the BMC to accept: pin, ca_file or insecure is missing",
        )
        .hint("openssl s_client -connect HOST:443 </dev/null | openssl x509 -noout -fingerprint -sha256")),
        (Some(_), Some(_)) => {
            Err(Failure::new(Reason::Parameter, "only one of pin, ca_file and insecure can be meant"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lines: &str) -> Result<Settings, Failure> {
        let input = Input::from_lines(&format!("credentials_file=/c\n{lines}"))?;
        Settings::new(&input, Action::Off)
    }

    /// The address in each of its forms.
    #[test]
    fn addresses() {
        for (lines, shown) in [
            ("address=https://bmc1\ninsecure=1", "https://bmc1:443"),
            ("address=https://bmc1:8443\ninsecure=1", "https://bmc1:8443"),
            ("ip=10.0.0.1\nipport=8443\ninsecure=1", "https://10.0.0.1:8443"),
            ("ipaddr=10.0.0.1:8443\ninsecure=1", "https://10.0.0.1:8443"),
            ("ip=fd00::7\ninsecure=1", "https://[fd00::7]:443"),
            ("ip=[fd00::7]:1\ninsecure=1", "https://[fd00::7]:1"),
            ("ip=fd00::7\nipport=1\nssl=0", "http://[fd00::7]:1"),
            ("address=http://bmc1\nssl=0", "http://bmc1:80"),
        ] {
            assert_eq!(settings(lines).unwrap().endpoint.to_string(), shown, "{lines}");
        }
    }

    /// Every parameter that is missing, wrong or contradicts another has its reason and names itself.
    #[test]
    fn wrong_parameters() {
        let other_pin = format!("address=b\npin={}", "0".repeat(63));
        for (lines, reason, word) in [
            ("insecure=1", Reason::Missing, "address"),
            ("address=b", Reason::Missing, "pin, ca_file or insecure"),
            ("address=b\npin=00", Reason::Parameter, "pin"),
            (other_pin.as_str(), Reason::Parameter, "pin"),
            ("address=b\nca_file=/x\ninsecure=1", Reason::Parameter, "only one"),
            ("address=http://b\ninsecure=1", Reason::Parameter, "ssl=1"),
            ("address=https://b\nssl=0", Reason::Parameter, "ssl=0"),
            ("address=b:1\nipport=2\nssl=0", Reason::Parameter, "ipport=2"),
            ("address=b\nipport=70000\nssl=0", Reason::Parameter, "ipport"),
            ("address=10.0.0.256\nssl=0", Reason::Parameter, "IPv4"),
            ("address=b/redfish\nssl=0", Reason::Parameter, "path"),
            ("address=b\nssl=0\nsystem=a b", Reason::Parameter, "system"),
            ("address=b\nssl=0\ntimeout_ms=0", Reason::Parameter, "timeout_ms"),
            ("address=b\nssl=0\nrequest_timeout_ms=0", Reason::Parameter, "request_timeout_ms"),
            ("address=b\nssl=0\nnode=node1\nnodename=node10", Reason::WrongNode, "node10"),
        ] {
            let failure = settings(lines).unwrap_err();
            assert_eq!(failure.reason, reason, "{lines}: {failure}");
            assert!(failure.message.contains(word), "{lines}: {failure}");
        }
        assert_eq!(
            Settings::new(&Input::from_lines("address=b\nssl=0").unwrap(), Action::Off)
                .unwrap_err()
                .reason,
            Reason::Missing
        );
        let action = |lines: &str| Settings::action(&Input::from_lines(lines).unwrap());
        assert_eq!(action("").unwrap_err().reason, Reason::Missing);
        assert!(action("action=explode").unwrap_err().message.contains("unsupported action"));
    }

    /// A name that nobody knows is refused when the parameters are checked, and does not stop fencing.
    #[test]
    fn unknown_parameters() {
        let input = Input::from_lines("credentials_file=/c\naddress=b\nssl=0\nsytem=1").unwrap();
        assert_eq!(
            Settings::new(&input, Action::ValidateAll).unwrap_err().reason,
            Reason::Parameter
        );
        assert!(Settings::new(&input, Action::Off).is_ok());
    }
}
