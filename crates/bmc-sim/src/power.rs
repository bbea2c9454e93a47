//! What a BMC switches.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// The power of a node, in Redfish's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PowerState {
    /// It runs.
    On,
    /// It does not run, and nothing of it does.
    Off,
    /// It will run soon.
    PoweringOn,
    /// It still runs, though not for long.
    PoweringOff,
}

impl PowerState {
    /// The word in Redfish.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
            Self::PoweringOn => "PoweringOn",
            Self::PoweringOff => "PoweringOff",
        }
    }
}

/// What a BMC can be told to do, in Redfish's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ResetType {
    /// Switch on.
    On,
    /// Switch off at once.
    ForceOff,
    /// Ask the node to shut itself down.
    GracefulShutdown,
    /// Switch off at once, then on.
    ForceRestart,
}

impl ResetType {
    /// All of them: what the BMC says it allows.
    pub const ALL: [Self; 4] =
        [Self::On, Self::ForceOff, Self::GracefulShutdown, Self::ForceRestart];

    /// The word in Redfish.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::ForceOff => "ForceOff",
            Self::GracefulShutdown => "GracefulShutdown",
            Self::ForceRestart => "ForceRestart",
        }
    }

    /// The state on the way to what was asked for.
    pub(crate) fn under_way(self) -> PowerState {
        match self {
            Self::On | Self::ForceRestart => PowerState::PoweringOn,
            Self::ForceOff | Self::GracefulShutdown => PowerState::PoweringOff,
        }
    }
}

impl FromStr for ResetType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|reset| reset.as_str() == text).ok_or(())
    }
}

/// Why the power could not be seen or switched.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct SwitchError(String);

impl SwitchError {
    /// An error with this reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// The power of one node: what the BMC looks at and acts on.
pub trait PowerSwitch: Send + Sync {
    /// The power as it is now. Whoever cannot see it says so with an error; `Off` is a promise that nothing
    /// of the node runs.
    fn state(&self) -> Result<PowerState, SwitchError>;

    /// Does what was asked for, and returns when it is done.
    fn set(&self, reset: ResetType) -> Result<(), SwitchError>;
}

/// A switch with nothing behind it: it remembers, and can be made blind.
#[derive(Debug)]
pub struct MemorySwitch(Mutex<Result<PowerState, SwitchError>>);

impl MemorySwitch {
    /// A switch in this state.
    pub fn new(state: PowerState) -> Self {
        Self(Mutex::new(Ok(state)))
    }

    /// Puts it into this state by hand, or makes it blind.
    pub fn put(&self, state: Result<PowerState, SwitchError>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl PowerSwitch for MemorySwitch {
    fn state(&self) -> Result<PowerState, SwitchError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, reset: ResetType) -> Result<(), SwitchError> {
        self.state()?;
        self.put(Ok(match reset {
            ResetType::On | ResetType::ForceRestart => PowerState::On,
            ResetType::ForceOff | ResetType::GracefulShutdown => PowerState::Off,
        }));
        Ok(())
    }
}
