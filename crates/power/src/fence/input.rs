//! Reading parameters, from Pacemaker and from people.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::parameters::{self, IGNORED, Kind, PARAMETERS, Parameter, REFUSED};
use super::reason::{Failure, Reason};

/// What Pacemaker sends is far smaller.
const STDIN_BYTES_MAX: u64 = 64 * 1024;
/// Pacemaker writes its parameters at once and closes.
const STDIN_WAIT: Duration = Duration::from_secs(10);

/// The parameters as they were given.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Input {
    values: BTreeMap<&'static str, String>,
    /// The node that Pacemaker wants to fence.
    pub nodename: Option<String>,
    /// Names that mean nothing to this agent.
    pub unknown: Vec<String>,
}

impl Input {
    /// Reads `key=value` lines, as Pacemaker writes them.
    pub fn from_lines(text: &str) -> Result<Self, Failure> {
        let mut input = Self::default();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
            input.take(name.trim(), value)?;
        }
        Ok(input)
    }

    /// Reads options, as people write them. What is unknown is refused here.
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut input = Self::default();
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            let (name, inline) = split_option(&argument)?;
            let is_flag = parameters::find(&name).is_some_and(|found| found.kind == Kind::Boolean);
            let value = match inline {
                Some(value) => value,
                None if is_flag => "1".to_owned(),
                None => rest.next().ok_or_else(|| {
                    Failure::new(Reason::Missing, format!("option --{name} needs a value"))
                })?,
            };
            input.take(&name, &value)?;
        }
        if let Some(name) = input.unknown.first() {
            return Err(unknown(name));
        }
        Ok(input)
    }

    /// The value of a parameter, or its default.
    pub fn get(&self, name: &str) -> Option<&str> {
        let default = || PARAMETERS.iter().find(|found| found.name == name)?.default;
        self.given(name).or_else(default)
    }

    /// The value of a parameter, if one was given. An empty one counts as none, as it does for Pacemaker.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The same parameters with this one set.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.values.insert(name, value.into());
        self
    }

    /// The lines that [`Self::from_lines`] reads back.
    pub fn to_lines(&self) -> String {
        self.values.iter().map(|(name, value)| format!("{name}={value}\n")).collect()
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let plain = name.replace('-', "_");
        if let Some((_, instead)) =
            REFUSED.iter().find(|(names, _)| names.contains(&plain.as_str()))
        {
            let message = format!("parameter {plain} is refused");
            return Err(Failure::new(Reason::Forbidden, message).hint(*instead));
        }
        if plain == "nodename" {
            self.nodename = Some(value.to_owned());
        }
        if IGNORED.contains(&plain.as_str()) {
            return Ok(());
        }
        let Some(parameter) = parameters::find(&plain) else {
            self.unknown.push(plain);
            return Ok(());
        };
        check(parameter, value)?;
        match self.values.insert(parameter.name, value.to_owned()) {
            Some(before) if before != value => {
                let message =
                    format!("parameter {} is given twice, with different values", parameter.name);
                Err(Failure::new(Reason::Parameter, message))
            }
            _ => Ok(()),
        }
    }
}

/// The failure for a name that means nothing.
pub(super) fn unknown(name: &str) -> Failure {
    Failure::new(Reason::Parameter, format!("there is no parameter {name:?}"))
        .hint(format!("{} --help lists them", super::AGENT))
}

fn check(parameter: &Parameter, value: &str) -> Result<(), Failure> {
    let fault = |why: String| {
        let message = format!("parameter {} is {value:?}, but {why}", parameter.name);
        Err(Failure::new(Reason::Parameter, message))
    };
    if value.is_empty() {
        return Ok(());
    }
    match parameter.kind {
        Kind::Text if value.chars().any(char::is_control) => {
            fault("it has a control character".into())
        }
        Kind::Boolean if boolean(value).is_none() => fault("it must be 1 or 0".into()),
        Kind::Integer if value.parse::<u32>().is_err() => fault("it must be a whole number".into()),
        Kind::Select(choices) if !choices.contains(&value) => {
            fault(format!("it must be one of: {}", choices.join(", ")))
        }
        _ => Ok(()),
    }
}

/// The words that fence agents take for yes and no.
pub(super) fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// Splits `--name=value`, `--name`, `-n`, `-nvalue` and `-n=value`.
fn split_option(argument: &str) -> Result<(String, Option<String>), Failure> {
    if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
        return Ok(match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (long.to_owned(), None),
        });
    }
    let mut letters = argument.strip_prefix('-').unwrap_or_default().chars();
    let found = letters
        .next()
        .and_then(|letter| PARAMETERS.iter().find(|parameter| parameter.short == Some(letter)));
    let Some(parameter) = found else {
        let message = format!("{argument:?} is not an option");
        let hint = format!("{} --help lists them", super::AGENT);
        return Err(Failure::new(Reason::Parameter, message).hint(hint));
    };
    let rest = letters.as_str();
    let value = rest.strip_prefix('=').unwrap_or(rest);
    Ok((parameter.name.to_owned(), (!rest.is_empty()).then(|| value.to_owned())))
}

/// Reads what Pacemaker writes to stdin, with limits on size and time.
pub fn read_stdin() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        let message = "no option is given, and stdin is a terminal";
        let hint = format!("{} --help lists the options", super::AGENT);
        return Err(Failure::new(Reason::Missing, message).hint(hint));
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut text = Vec::new();
        let read = std::io::stdin().lock().take(STDIN_BYTES_MAX + 1).read_to_end(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    let fault = |why: String| {
        Failure::new(Reason::Parameter, format!("cannot read parameters from stdin: {why}"))
    };
    let text = match receiver.recv_timeout(STDIN_WAIT) {
        Ok(read) => read.map_err(|error| fault(error.to_string()))?,
        Err(_) => return Err(fault("timed out waiting for their end".to_owned())),
    };
    if text.len() as u64 > STDIN_BYTES_MAX {
        return Err(fault(format!("they exceed {STDIN_BYTES_MAX} bytes")));
    }
    String::from_utf8(text).map_err(|_| fault("they are not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Result<Input, Failure> {
        Input::from_arguments(text.split_whitespace().map(str::to_owned))
    }

    /// Pacemaker's lines and people's options say the same.
    #[test]
    fn lines_and_options_agree() {
        let lines = "# from Pacemaker\naction=off\nip=10.0.0.1\nssl-insecure=\"1\"\nsystem=1\n\n";
        let expected = Input::from_lines(lines).unwrap();
        assert_eq!(expected.get("address"), Some("10.0.0.1"));
        assert_eq!(expected.get("insecure"), Some("1"));
        for text in [
            "--action=off --address=10.0.0.1 --insecure --system=1",
            "-o off -a 10.0.0.1 --ssl-insecure -s 1",
            "-ooff -a=10.0.0.1 --ssl_insecure=1 --systems-uri 1",
        ] {
            assert_eq!(arguments(text).unwrap(), expected, "{text}");
        }
        assert_eq!(Input::from_lines(&expected.to_lines()).unwrap(), expected);
    }

    /// What Pacemaker adds by itself is no error; what nobody knows is remembered, and refused from people.
    #[test]
    fn unknown_names() {
        let input =
            Input::from_lines("nodename=node1\nnodeid=1\nport=node1\nplug=node1\nfoo=bar\n")
                .unwrap();
        assert_eq!(
            (input.nodename.as_deref(), input.unknown.as_slice()),
            (Some("node1"), &["foo".to_owned()][..])
        );
        assert_eq!(arguments("--foo=bar").unwrap_err().reason, Reason::Parameter);
    }

    /// A password is refused wherever it comes from, and never repeated.
    #[test]
    fn passwords_are_refused() {
        for name in ["password", "passwd", "password_script", "username", "login"] {
            for result in [
                Input::from_lines(&format!("{name}=hunter2\n")),
                arguments(&format!("--{name}=hunter2")),
                arguments(&format!("--{name} hunter2")),
            ] {
                let failure = result.unwrap_err();
                assert_eq!(failure.reason, Reason::Forbidden);
                assert!(failure.hint.as_ref().unwrap().contains("credentials_file"));
                assert!(!format!("{failure:?}").contains("hunter2"));
            }
        }
        assert!(arguments("--delay=5").unwrap_err().hint.unwrap().contains("split_delay_ms"));
    }

    /// Each wrong value is refused by name.
    #[test]
    fn wrong_values() {
        for (line, name) in [
            ("ssl=maybe", "ssl"),
            ("insecure=2", "insecure"),
            ("ipport=https", "ipport"),
            ("ipport=-1", "ipport"),
            ("timeout_ms=5s", "timeout_ms"),
            ("split_delay_ms=1.5", "split_delay_ms"),
            ("auth=digest", "auth"),
            ("system=a\u{7}b", "system"),
            ("system=1\nsystem=2", "system"),
            ("ip=a\naddress=b", "address"),
        ] {
            let failure = Input::from_lines(line).unwrap_err();
            assert_eq!(failure.reason, Reason::Parameter, "{line}");
            assert!(failure.message.contains(name), "{failure}");
        }
        assert_eq!(arguments("--system").unwrap_err().reason, Reason::Missing);
        assert_eq!(arguments("off").unwrap_err().reason, Reason::Parameter);
        assert_eq!(arguments("-x").unwrap_err().reason, Reason::Parameter);
        assert_eq!(arguments("--").unwrap_err().reason, Reason::Parameter);
    }
}
