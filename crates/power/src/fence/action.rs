//! What a fence agent can be asked to do.

use std::str::FromStr;

/// An action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Power on, and read On back.
    On,
    /// Power off at once, and read Off back.
    Off,
    /// Power off at once and read Off back; then power on in the background.
    Reboot,
    /// Tell whether the power is on (exit 0) or off (exit 2).
    Status,
    /// Check that the BMC can be reached, logged in to, and would switch.
    Monitor,
    /// Tell what this device can fence.
    List,
    /// Print the description for Pacemaker.
    Metadata,
    /// Check the parameters, without asking the BMC.
    ValidateAll,
}

impl Action {
    /// Each action, its name, and what it does.
    pub const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::On, "on", "Power on; done when the BMC has said On."),
        (Self::Off, "off", "Power off at once; done when the BMC has said Off."),
        (
            Self::Reboot,
            "reboot",
            "Power off at once; done when the BMC has said Off. Powering on goes on in the background, and a failure of that is reported to syslog without taking the proof back.",
        ),
        (
            Self::Status,
            "status",
            "Print the power state: exit code 0 for On, 2 for Off, any other for neither.",
        ),
        (
            Self::Monitor,
            "monitor",
            "Check that the BMC answers, accepts the password, has the System, tells its power and would switch it.",
        ),
        (Self::List, "list", "Print the node (with parameter node), or the BMC's Systems."),
        (Self::Metadata, "metadata", "Print the agent's description as XML."),
        (Self::ValidateAll, "validate-all", "Check the parameters without asking the BMC."),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(action, ..)| *action == self).map_or("", |(_, name, _)| name)
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Some front ends write these two differently.
        let text = match text {
            "meta-data" => "metadata",
            "validate_all" => "validate-all",
            other => other,
        };
        Self::ALL.iter().find(|(_, name, _)| *name == text).map(|(action, ..)| *action).ok_or_else(
            || {
                let names: Vec<_> = Self::ALL.iter().map(|(_, name, _)| *name).collect();
                // "unsupported action" is what Pacemaker looks for.
                format!("unsupported action {text:?}; there are: {}", names.join(", "))
            },
        )
    }
}
