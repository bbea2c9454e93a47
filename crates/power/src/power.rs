//! Switching, and believing only what was read back.

use std::thread;
use std::time::{Duration, Instant};

use dyad_http::Deadline;

use crate::error::Error;
use crate::redfish::Redfish;
use crate::system::{PowerState, ResetType, System, SystemName};

/// How often a passing fault on the first look is given another chance.
const FIRST_LOOK_TRIES: usize = 3;
/// How long after a request it is sent once more, if the power still has not begun to change.
const ASK_AGAIN: Duration = Duration::from_secs(3);

/// Time between two looks: short at first, longer the longer it takes.
#[derive(Debug, Clone)]
pub struct Pace {
    next: Duration,
    max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { next: Duration::from_millis(20), max: Duration::from_millis(500) }
    }
}

impl Pace {
    /// Waits for the next look, but not beyond the deadline. False once the time is up.
    pub fn wait(&mut self, deadline: Deadline) -> bool {
        thread::sleep(self.next.min(deadline.remaining()));
        self.next = (self.next * 3 / 2).min(self.max);
        !deadline.passed()
    }
}

/// How it is known that a System is off: the BMC said exactly `Off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffProof {
    /// It was off before anything was asked for.
    AlreadyOff,
    /// It was read Off after a forced off.
    ForcedOff,
}

impl Redfish {
    /// Finds the System; a BMC that is just busy or restarting gets another chance.
    pub fn look(&self, wanted: Option<&SystemName>, deadline: Deadline) -> Result<System, Error> {
        let mut pace = Pace { next: Duration::from_millis(100), max: Duration::from_millis(300) };
        let mut tries = 1;
        loop {
            match self.find_system(wanted, deadline) {
                Err(error) if error.is_passing() && tries < FIRST_LOOK_TRIES => {
                    if !pace.wait(deadline) {
                        return Err(error);
                    }
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    /// Switches the System off at once; returns when the BMC has said `Off`, or fails by the deadline.
    pub fn force_off(&self, system: &System, deadline: Deadline) -> Result<OffProof, Error> {
        if system.power == PowerState::Off {
            return Ok(OffProof::AlreadyOff);
        }
        self.switch(system, ResetType::ForceOff, &PowerState::Off, deadline)?;
        Ok(OffProof::ForcedOff)
    }

    /// Switches the System on; returns when the BMC has said `On`, or fails by the deadline.
    pub fn power_on(&self, system: &System, deadline: Deadline) -> Result<(), Error> {
        if system.power == PowerState::On {
            return Ok(());
        }
        self.switch(system, ResetType::On, &PowerState::On, deadline)
    }

    /// Asks, and looks until the wanted state is read. An answer to the request is no proof, and no answer
    /// is no failure: only what the BMC says about the power afterwards counts.
    fn switch(
        &self,
        system: &System,
        reset: ResetType,
        wanted: &PowerState,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let mut pace = Pace::default();
        let mut asked = Asked::default();
        let mut last = system.power.to_string();
        loop {
            if asked.is_due(&last) {
                asked.remember(self.reset(system, reset, deadline))?;
            }
            match self.read_again(system, deadline) {
                Ok(now) if now.power == *wanted => return Ok(()),
                Ok(now) => last = now.power.to_string(),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => last = format!("nothing ({})", error.chain()),
            }
            // A request that will never be granted: the look above was its last chance.
            if let Some(refusal) = asked.take_final() {
                return Err(refusal);
            }
            if !pace.wait(deadline) {
                let waited_ms = started.elapsed().as_millis();
                let wanted = wanted.clone();
                return Err(asked
                    .last_error
                    .take()
                    .filter(|_| !asked.granted)
                    .unwrap_or(Error::NotReached { wanted, waited_ms, last }));
            }
        }
    }
}

/// No use in going on: the password is wrong, or this is not the System.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Unauthorized { .. })
}

/// What became of the requests so far.
#[derive(Debug, Default)]
struct Asked {
    at: Option<Instant>,
    granted: bool,
    last_error: Option<Error>,
}

impl Asked {
    /// Whether to ask (again): at first, soon after a request that failed in passing, and after a while if
    /// the BMC said yes and the power does not even begin to change.
    fn is_due(&self, last: &str) -> bool {
        match self.at {
            None => true,
            Some(at) if self.granted => at.elapsed() >= ASK_AGAIN && !last.starts_with("Powering"),
            Some(at) => at.elapsed() >= Duration::from_millis(300),
        }
    }

    fn remember(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        self.at = Some(Instant::now());
        match result {
            Ok(()) => self.granted = true,
            Err(error @ (Error::NotOffered { .. } | Error::Malformed { .. })) => return Err(error),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => self.last_error = Some(error),
        }
        Ok(())
    }

    /// The refusal, if no repetition will change it.
    fn take_final(&mut self) -> Option<Error> {
        let is_refusal =
            matches!(&self.last_error, Some(error @ Error::Refused { .. }) if !error.is_passing());
        if is_refusal && !self.granted { self.last_error.take() } else { None }
    }
}
