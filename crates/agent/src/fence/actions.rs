//! What each action does.

use std::time::{Duration, Instant};

use dyad_http::Deadline;
use dyad_power::fence::{Action, Failure, Input, Reason, Settings};
use dyad_power::{Error, OffProof, PowerState, Redfish, ResetType, System};

use super::power_on;
use super::turn::Turns;
use super::{Outcome, print};

/// How often the BMC is asked whether the delay is still needed.
const DELAY_LOOK: Duration = Duration::from_millis(500);
/// What an action gives an earlier one beyond its request's limit to fall silent.
const TURN_SLACK: Duration = Duration::from_secs(1);

/// Runs an action with these settings.
pub(super) fn run(action: Action, settings: &Settings, input: &Input) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let redfish = settings.connect()?;
    let delay = match action {
        Action::Off | Action::Reboot => settings.split_delay,
        _ => Duration::ZERO,
    };
    let delay_end = Deadline::at(started + delay);
    let deadline = Deadline::at(started + delay + settings.timeout);
    let agent = Agent { settings, redfish: &redfish, started, delay_end, deadline };
    let result = match action {
        Action::On => agent.on(),
        Action::Off => agent.off(),
        Action::Reboot => agent.reboot(input),
        Action::Status => agent.status(),
        Action::Monitor => agent.monitor(),
        Action::List => agent.list(),
        // The settings were understood and the files could be used: that is all there is to validate.
        Action::ValidateAll | Action::Metadata => Ok(Outcome::Done),
    };
    redfish.log_out(deadline);
    result
}

struct Agent<'a> {
    settings: &'a Settings,
    redfish: &'a Redfish,
    started: Instant,
    /// When the delay that decides a split is over.
    delay_end: Deadline,
    /// When the action must have ended.
    deadline: Deadline,
}

impl Agent<'_> {
    fn status(&self) -> Result<Outcome, Failure> {
        let system = self.look()?;
        match system.power {
            PowerState::On => Ok(print("Status: ON\n")),
            PowerState::Off => {
                print("Status: OFF\n");
                Ok(Outcome::Off)
            }
            PowerState::Other(word) => {
                let message =
                    format!("the power of System {} is neither On nor Off: {word}", system.id);
                Err(Failure::new(Reason::Neither, message))
            }
        }
    }

    fn monitor(&self) -> Result<Outcome, Failure> {
        let system = self.look()?;
        for reset in [ResetType::ForceOff, ResetType::On] {
            if !system.offers(reset) {
                let offered = system.offered().to_vec();
                return Err(Error::NotOffered { wanted: reset.as_str(), offered }.into());
            }
        }
        // Told until the node was seen on again: by then someone has looked after it.
        let turns = Turns::of(self.settings);
        if let Some(failure) = turns.power_on_failure() {
            if system.power == PowerState::On {
                turns.remember_power_on(None, Deadline::after(TURN_SLACK));
            } else {
                eprintln!("warning: powering on after the last fencing failed: {failure}");
            }
        }
        Ok(Outcome::Done)
    }

    fn list(&self) -> Result<Outcome, Failure> {
        if let Some(node) = &self.settings.node {
            return Ok(print(&format!("{node},\n")));
        }
        let systems = self.redfish.systems(self.deadline)?;
        let lines: String = systems.iter().map(|s| format!("{},{}\n", s.id, s.name)).collect();
        Ok(print(&lines))
    }

    fn on(&self) -> Result<Outcome, Failure> {
        self.take_turn();
        let system = self.look()?;
        self.redfish.power_on(&system, self.deadline)?;
        Turns::of(self.settings).remember_power_on(None, Deadline::after(TURN_SLACK));
        Ok(print("Success: Powered ON\n"))
    }

    fn off(&self) -> Result<Outcome, Failure> {
        let is_ours = self.take_turn().is_some();
        Ok(print(match self.prove_off(is_ours)? {
            OffProof::AlreadyOff => "Success: Already OFF\n",
            OffProof::ForcedOff => "Success: Powered OFF\n",
        }))
    }

    /// The proof first. What comes after it cannot take it back, so nothing after it fails.
    fn reboot(&self, input: &Input) -> Result<Outcome, Failure> {
        let turn = self.take_turn();
        self.prove_off(turn.is_some())?;
        let started = match turn {
            Some(number) => power_on::start(input, number),
            None => Err(std::io::Error::other("it could not be told apart from later actions")),
        };
        if let Err(error) = started {
            eprintln!(
                "warning: cannot start the process that powers on: {error}; asking once from here"
            );
            self.ask_for_on();
        }
        Ok(print("Success: Rebooted\n"))
    }

    /// The last resort: asks for On from here, once, and says how that went.
    fn ask_for_on(&self) {
        let deadline = Deadline::after(self.settings.request_timeout);
        let asked = self
            .redfish
            .find_system(self.settings.system.as_ref(), deadline)
            .and_then(|system| self.redfish.reset(&system, ResetType::On, deadline));
        if let Err(error) = asked {
            let why = error.chain();
            eprintln!("error: powering on FAILED: {why}. The node stays off; power it on by hand");
            power_on::report_failure(self.settings, &Turns::of(self.settings), &why);
        }
    }

    /// Silences an earlier reboot's powering on. Without that, no Off may be believed that was not asked for.
    fn take_turn(&self) -> Option<u64> {
        let limit = Deadline::after(self.settings.request_timeout + TURN_SLACK);
        let taken = Turns::of(self.settings).take(limit);
        self.tell("the turn was taken");
        taken
            .inspect_err(|error| {
                let directory = self.settings.run_directory.display();
                eprintln!("warning: cannot take turns in {directory}: {error}");
            })
            .ok()
    }

    fn prove_off(&self, is_ours: bool) -> Result<OffProof, Failure> {
        let mut system = self.look_through_delay()?;
        self.tell(&format!("System {} is {}", system.id, system.power));
        if !is_ours && system.power == PowerState::Off {
            system.power =
                PowerState::Other("Off, but another action may be switching it on".into());
        }
        let proof = self.redfish.force_off(&system, self.deadline)?;
        self.tell("the BMC said Off");
        Ok(proof)
    }

    /// Waits for the delay that decides a split, unless the BMC says Off before it ends.
    fn look_through_delay(&self) -> Result<System, Failure> {
        let end = self.delay_end;
        let mut known: Option<System> = None;
        while !end.passed() {
            let seen = match &known {
                Some(system) => self.redfish.read_again(system, end),
                None => self.redfish.find_system(self.settings.system.as_ref(), end),
            };
            // A BMC that cannot be asked now may answer when the delay is over.
            if let Ok(system) = seen {
                if system.power == PowerState::Off {
                    return Ok(system);
                }
                known = Some(system);
            }
            std::thread::sleep(DELAY_LOOK.min(end.remaining()));
        }
        match known {
            Some(system) => Ok(system),
            None => self.look(),
        }
    }

    fn look(&self) -> Result<System, Failure> {
        Ok(self.redfish.look(self.settings.system.as_ref(), self.deadline)?)
    }

    fn tell(&self, step: &str) {
        if self.settings.verbose {
            eprintln!("{:>6} ms: {step}", self.started.elapsed().as_millis());
        }
    }
}
