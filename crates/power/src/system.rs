//! A System as the BMC describes it.

use std::fmt;

use serde_json::Value;

/// The power of a System. Only [`PowerState::Off`] is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerState {
    /// It runs.
    On,
    /// It does not run.
    Off,
    /// Anything else, in the BMC's own words: `PoweringOff`, `PoweringOn`, `Paused`, `null`.
    Other(String),
}

impl PowerState {
    fn of(value: Option<&Value>) -> Self {
        match value {
            None => Self::Other("nothing about its power".to_owned()),
            Some(Value::String(word)) if word == "On" => Self::On,
            Some(Value::String(word)) if word == "Off" => Self::Off,
            Some(Value::String(word)) => Self::Other(printable(word)),
            Some(Value::Null) => Self::Other("null".to_owned()),
            Some(_) => Self::Other("something that is not a word".to_owned()),
        }
    }
}

impl fmt::Display for PowerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On => f.write_str("On"),
            Self::Off => f.write_str("Off"),
            Self::Other(word) => f.write_str(word),
        }
    }
}

/// What a System can be told to do, as far as fencing needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetType {
    /// Switch on.
    On,
    /// Switch off at once.
    ForceOff,
}

impl ResetType {
    /// The word in Redfish.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::ForceOff => "ForceOff",
        }
    }
}

/// How a System is pinned: by its id, its UUID, or its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemName(String);

impl SystemName {
    /// A name that can be one; else what is wrong with it.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("a System's name is not empty");
        }
        if text.len() > 256 || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err("a System is named by its id, UUID or path, without blanks");
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as a path, if it is one.
    pub(crate) fn path(&self) -> Option<&str> {
        self.0.starts_with('/').then_some(self.as_str())
    }

    /// Whether this System is meant: its id exactly, or its UUID in any case of letters.
    pub(crate) fn means(&self, system: &System) -> bool {
        system.id == self.0
            || system.uuid.as_ref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(&self.0))
    }
}

/// A System that was found, and what was read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Its path.
    pub path: String,
    /// Its id.
    pub id: String,
    /// Its UUID, if the BMC tells.
    pub uuid: Option<String>,
    /// The host's name, or the System's.
    pub name: String,
    /// Its power when it was read.
    pub power: PowerState,
    pub(crate) reset_path: Option<String>,
    /// The reset types that it offers; empty if the BMC does not say.
    pub(crate) offered: Vec<String>,
    /// Where the BMC says more about the reset types.
    pub(crate) action_info: Option<String>,
}

impl System {
    /// Reads a System from the BMC's answer for this path; else what is wrong with the answer.
    pub(crate) fn parse(path: &str, body: &Value) -> Result<Self, String> {
        let object = body.as_object().ok_or("it is not a JSON object")?;
        let is_system = object
            .get("@odata.type")
            .and_then(Value::as_str)
            .is_none_or(|kind| kind.starts_with("#ComputerSystem."));
        if !is_system {
            return Err(format!("{path} is not a ComputerSystem"));
        }
        let text =
            |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let reset = &body["Actions"]["#ComputerSystem.Reset"];
        let offered = reset["ResetType@Redfish.AllowableValues"].as_array();
        Ok(Self {
            path: path.to_owned(),
            id: printable(text("Id").unwrap_or(last)),
            uuid: text("UUID").map(printable),
            name: printable(text("HostName").or(text("Name")).unwrap_or_default()),
            power: PowerState::of(object.get("PowerState")),
            reset_path: reset["target"].as_str().map(str::to_owned),
            offered: offered
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(printable)
                .collect(),
            action_info: reset["@Redfish.ActionInfo"].as_str().map(str::to_owned),
        })
    }

    /// The reset types that it offers; empty if the BMC does not say.
    pub fn offered(&self) -> &[String] {
        &self.offered
    }

    /// Whether this System offers the reset type. A BMC that does not say is taken at its word when it
    /// answers the request.
    pub fn offers(&self, reset: ResetType) -> bool {
        self.offered.is_empty() || self.offered.iter().any(|offered| offered == reset.as_str())
    }
}

/// A BMC's word, fit to be printed in one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Exactly the word `Off` is off, exactly `On` is on; nothing else is either.
    #[test]
    fn only_off_is_off() {
        let power =
            |value: Value| System::parse("/x/1", &json!({ "PowerState": value })).unwrap().power;
        assert_eq!(power(json!("Off")), PowerState::Off);
        assert_eq!(power(json!("On")), PowerState::On);
        for value in [
            json!("PoweringOff"),
            json!("PoweringOn"),
            json!("Paused"),
            json!("Unknown"),
            json!("off"),
            json!("OFF"),
            json!(" Off"),
            json!(""),
            json!(null),
            json!(false),
            json!(0),
            json!(["Off"]),
            json!({ "Off": "Off" }),
        ] {
            assert!(matches!(power(value.clone()), PowerState::Other(_)), "{value}");
        }
        let missing = System::parse("/x/1", &json!({})).unwrap().power;
        assert!(matches!(missing, PowerState::Other(_)));
    }

    /// What is not a System is not taken for one.
    #[test]
    fn other_resources_are_refused() {
        for body in
            [json!([]), json!("Off"), json!(null), json!({ "@odata.type": "#Chassis.v1.Chassis" })]
        {
            assert!(System::parse("/x/1", &body).is_err(), "{body}");
        }
    }

    /// node1 is not node10: names are compared whole; UUIDs without regard to case.
    #[test]
    fn names_are_exact() {
        let uuid = "0C9B2B8E-6A3C-4A58-9A5C-7A8F6A1F0001";
        let system = System::parse("/s/1", &json!({ "Id": "1", "UUID": uuid })).unwrap();
        let means = |text: &str| SystemName::new(text).unwrap().means(&system);
        assert!(means("1") && means(uuid) && means(&uuid.to_lowercase()));
        assert!(!means("10") && !means("01") && !means(&uuid[1..]));
        assert!(SystemName::new("").is_err() && SystemName::new("a b").is_err());
    }
}
