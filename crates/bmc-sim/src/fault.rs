//! What can be wrong with a BMC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A fault, from the moment it is set to the moment it is cleared. Requests under way are caught too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fault {
    /// None: the BMC is well.
    #[default]
    None,
    /// Every answer takes this much longer.
    Slow(Duration),
    /// Answers come at once, but what was asked for happens only after this time.
    SlowPower(Duration),
    /// Connections are accepted, and nothing is ever said.
    Hang,
    /// Nobody listens; open connections are cut.
    Refuse,
    /// The password was changed: every log-in is refused.
    WrongPassword,
    /// A reset is answered with 200, and nothing happens.
    DoNothing,
    /// Every request is answered with 500.
    ServerError,
    /// Answers are cut in the middle of their JSON, though they are complete as HTTP.
    MalformedJson,
    /// A forced off is accepted, and the state stays at `PoweringOff`; the node runs on.
    StuckPoweringOff,
    /// The power state is `null`, as some BMCs say while they start.
    NoPowerState,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow(by) => write!(f, "slow={}", by.as_millis()),
            Self::SlowPower(by) => write!(f, "slow-power={}", by.as_millis()),
            Self::None => f.write_str("none"),
            Self::Hang => f.write_str("hang"),
            Self::Refuse => f.write_str("refuse"),
            Self::WrongPassword => f.write_str("wrong-password"),
            Self::DoNothing => f.write_str("do-nothing"),
            Self::ServerError => f.write_str("server-error"),
            Self::MalformedJson => f.write_str("malformed-json"),
            Self::StuckPoweringOff => f.write_str("stuck-powering-off"),
            Self::NoPowerState => f.write_str("no-power-state"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    /// Reads what [`fmt::Display`] writes; times are milliseconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = [
            Self::None,
            Self::Hang,
            Self::Refuse,
            Self::WrongPassword,
            Self::DoNothing,
            Self::ServerError,
            Self::MalformedJson,
            Self::StuckPoweringOff,
            Self::NoPowerState,
        ];
        if let Some(fault) = plain.into_iter().find(|fault| fault.to_string() == text) {
            return Ok(fault);
        }
        let time = |ms: &str| {
            ms.parse().map(Duration::from_millis).map_err(|_| format!("{ms:?} is no time in ms"))
        };
        match text.split_once('=') {
            Some(("slow", ms)) => time(ms).map(Self::Slow),
            Some(("slow-power", ms)) => time(ms).map(Self::SlowPower),
            _ => {
                let names: Vec<_> = plain.iter().map(ToString::to_string).collect();
                Err(format!(
                    "no fault {text:?}; there are slow=MS, slow-power=MS, {}",
                    names.join(", ")
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each fault has a name that reads back as itself; others are refused with the list.
    #[test]
    fn names_read_back() {
        for name in
            "none slow=20 slow-power=2000 hang refuse wrong-password do-nothing server-error \
                     malformed-json stuck-powering-off no-power-state"
                .split_whitespace()
        {
            assert_eq!(name.parse::<Fault>().unwrap().to_string(), name);
        }
        assert!("slow".parse::<Fault>().unwrap_err().contains("slow=MS"));
        assert!("slow=x".parse::<Fault>().is_err());
    }
}
