//! The arguments of the two commands, to be embedded in a command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use etcd_peer::{Identity, Tls};

use crate::linearizable::Limits;
use crate::load::{Config, Endpoint};

/// Arguments of the judge
#[derive(Debug, Clone, Args)]
pub struct JudgeArgs {
    /// Histories of generators that ran at the same time on this machine; judged as one
    #[arg(required = true, value_name = "HISTORY")]
    pub histories: Vec<PathBuf>,

    /// How long the search for an order may take; what is not decided by then is undecided
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub time_limit: Duration,

    /// Also tell the first write sent after this instant (nanoseconds of the monotonic clock)
    #[arg(long, value_name = "NS")]
    pub since: Option<u64>,
}

impl JudgeArgs {
    /// How much the judgement may cost.
    pub fn limits(&self) -> Limits {
        Limits { time: self.time_limit, ..Limits::default() }
    }
}

/// Arguments of the load generator
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// The file for the history; it must not exist yet
    #[arg(value_name = "HISTORY")]
    pub history: PathBuf,

    /// A node: etcd's client URL, with a name if you like; once per node
    #[arg(long, required = true, value_name = "[NAME=]URL", value_parser = endpoint)]
    pub endpoint: Vec<Endpoint>,

    /// End after this time; else when interrupted
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,

    /// End after so many requests
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,

    /// How many clients, dealt out to the nodes in turn
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub clients: u32,

    /// Requests a second of all clients together, at most
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub rate: u32,

    /// How many keys are written and read by everybody
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub registers: u32,

    /// How long a client waits for an answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub request_limit: Duration,

    /// How long to wait in the end for each node to be read
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub final_limit: Duration,

    /// Seed of all choices; a new one each time if not given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Where the keys lie; must be empty at the start
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,

    /// How etcd is known, and how it knows us
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// Files of an encrypted connection
#[derive(Debug, Clone, Args)]
pub struct TlsArgs {
    /// The authorities that etcd's certificate must lead to
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// The certificate shown to etcd
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub cert: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

impl TlsArgs {
    /// What a client takes; nothing without authorities.
    pub fn config(&self) -> Option<Tls> {
        let identity = self.cert.clone().zip(self.key.clone());
        let identity =
            identity.map(|(certificate_file, key_file)| Identity { certificate_file, key_file });
        self.ca.clone().map(|ca_file| Tls { ca_file, identity })
    }
}

/// Arguments of the filler
#[derive(Debug, Clone, Args)]
pub struct FillArgs {
    /// etcd's client URL
    #[arg(long, value_name = "URL")]
    pub endpoint: String,

    /// How many keys
    #[arg(long, value_name = "N")]
    pub keys: u64,

    /// How long each value is
    #[arg(long, value_name = "BYTES", default_value_t = 1000)]
    pub value_bytes: usize,

    /// Where the keys lie
    #[arg(long, value_name = "PREFIX", default_value = "dyad-fill/")]
    pub prefix: String,

    /// How etcd is known, and how it knows us
    #[command(flatten)]
    pub tls: TlsArgs,
}

impl LoadArgs {
    /// What to do to whom. `fresh_seed` is taken if no seed was given.
    pub fn config(&self, fresh_seed: u64) -> Config {
        let usual = Config::new(self.endpoint.clone(), self.seed.unwrap_or(fresh_seed));
        Config {
            tls: self.tls.config(),
            prefix: self.prefix.clone().unwrap_or_else(|| usual.prefix.clone()),
            clients: self.clients,
            rate: self.rate,
            registers: self.registers,
            request_limit: self.request_limit,
            duration: self.duration,
            operations: self.operations,
            ..usual
        }
    }
}

/// A node as `NAME=URL`, or as a URL that is its own name.
fn endpoint(text: &str) -> Result<Endpoint, String> {
    let (name, url) = match text.split_once('=') {
        Some((name, url)) if !name.contains("://") => (name, url),
        _ => (text, text),
    };
    if name.is_empty() || !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err("expected [NAME=]http://HOST:PORT or https://HOST:PORT".to_owned());
    }
    Ok(Endpoint { name: name.to_owned(), url: url.to_owned() })
}

/// A time: a whole number with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a number and a unit: ms, s, m or h".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number before the unit".to_owned())?;
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node may have a name; an address is not taken for one.
    #[test]
    fn endpoints_may_have_names() {
        let parsed = |text| endpoint(text).map(|it| (it.name, it.url));
        let pair = |name: &str, url: &str| Ok((name.to_owned(), url.to_owned()));
        assert_eq!(parsed("node1=http://10.0.0.1:2379"), pair("node1", "http://10.0.0.1:2379"));
        assert_eq!(parsed("https://[fd00::1]:2379"), {
            pair("https://[fd00::1]:2379", "https://[fd00::1]:2379")
        });
        for wrong in ["", "node1", "=http://x:1", "node1=x:1", "node1="] {
            assert!(endpoint(wrong).is_err(), "{wrong:?}");
        }
    }

    /// A time needs its unit.
    #[test]
    fn times_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        for wrong in
            ["", "5", "s", "-1s", "1.5s", "5 s", "99999999999999999999s", "9999999999999999h"]
        {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }
}
