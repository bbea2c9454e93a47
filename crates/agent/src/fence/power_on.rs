//! Powering on after a reboot, in a process of its own.
//!
//! Pacemaker has its proof by then and does not wait. The process has its own limit, belongs to no process
//! group that Pacemaker might kill, gets its parameters on stdin and reads the password from the file again.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyad_http::Deadline;
use dyad_power::fence::{AGENT, Action, Failure, Input, Reason, Settings, read_stdin};
use dyad_power::{Error, Pace, PowerState, Redfish, ResetType, System};

use super::Outcome;
use super::syslog::{self, Severity};
use super::turn::Turns;

/// The option that makes the agent this process; the turn's number follows.
pub(super) const OPTION: &str = "--power-on-after-reboot";
/// How long the power may take to come before On is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// How long the node rests without power. The survivor takes over meanwhile, and its processors are its own; and
/// there are BMCs that ignore an On that follows its Off at once.
const REST: Duration = Duration::from_millis(300);

/// Starts the process.
pub(super) fn start(input: &Input, number: u64) -> io::Result<()> {
    let mut child = Command::new("/proc/self/exe")
        .arg0(AGENT)
        .args([OPTION, &number.to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    stdin.write_all(input.to_lines().as_bytes())
}

/// Is the process.
pub(super) fn run(number: &str) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let input = Input::from_lines(&read_stdin()?)?;
    let settings = Settings::new(&input, Action::On)?;
    let number = number
        .parse()
        .map_err(|_| Failure::new(Reason::Parameter, format!("{OPTION} needs a number")))?;
    let deadline = Deadline::after(settings.on_timeout);
    let what = format!("powering on {} after it was fenced", object(&settings));
    let turns = Turns::of(&settings);
    thread::sleep(REST.min(deadline.remaining()));
    match power_on(&settings, &turns, number, deadline) {
        Ok(true) => {
            turns.remember_power_on(None, Deadline::after(ASK_AGAIN));
            let time = started.elapsed().as_millis();
            syslog::tell(Severity::Notice, &format!("{what}: done after {time} ms"));
            Ok(Outcome::Done)
        }
        Ok(false) => {
            syslog::tell(Severity::Notice, &format!("{what}: given up, a later action took over"));
            Ok(Outcome::Done)
        }
        Err(failure) => {
            report_failure(&settings, &turns, &failure.to_string());
            Err(failure)
        }
    }
}

/// Tells loudly that the node stays off.
pub(super) fn report_failure(settings: &Settings, turns: &Turns, why: &str) {
    let what = format!("powering on {} after it was fenced", object(settings));
    turns.remember_power_on(Some(why), Deadline::after(ASK_AGAIN));
    let hint = "the node stays off; power it on by hand";
    syslog::tell(Severity::Error, &format!("{what} FAILED: {why}. {hint}"));
}

fn object(settings: &Settings) -> String {
    let system = settings.system.as_ref().map_or("", |system| system.as_str());
    match &settings.node {
        Some(node) => node.clone(),
        None => format!("{} {system}", settings.endpoint).trim_end().to_owned(),
    }
}

/// Asks for On, as often as it takes, while the turn is ours. False when it no longer is.
fn power_on(
    settings: &Settings,
    turns: &Turns,
    number: u64,
    deadline: Deadline,
) -> Result<bool, Failure> {
    let redfish = settings.connect()?;
    let result = ask_until_on(settings, &redfish, turns, number, deadline);
    redfish.log_out(deadline);
    result
}

fn ask_until_on(
    settings: &Settings,
    redfish: &Redfish,
    turns: &Turns,
    number: u64,
    deadline: Deadline,
) -> Result<bool, Failure> {
    let mut pace = Pace::default();
    loop {
        let error = match redfish.find_system(settings.system.as_ref(), deadline) {
            Ok(system) if system.power == PowerState::On => return Ok(true),
            Ok(system) => {
                // A later action waits for this no longer than for one request.
                let limit = deadline.within(settings.request_timeout);
                let ask = || redfish.reset(&system, ResetType::On, limit);
                match turns.during(number, deadline, ask) {
                    Ok(None) => return Ok(false),
                    Ok(Some(Ok(()))) => match wait_for_on(redfish, &system, deadline) {
                        Ok(()) => return Ok(true),
                        Err(error) => error,
                    },
                    Ok(Some(Err(error))) => error,
                    Err(error) => {
                        let message = format!(
                            "cannot take turns in {}: {error}",
                            settings.run_directory.display()
                        );
                        return Err(Failure::new(Reason::Other, message));
                    }
                }
            }
            Err(error) => error,
        };
        let is_final = matches!(error, Error::Unauthorized { .. } | Error::NotOffered { .. });
        if is_final || !pace.wait(deadline) {
            return Err(error.into());
        }
    }
}

fn wait_for_on(redfish: &Redfish, system: &System, deadline: Deadline) -> Result<(), Error> {
    let (started, limit) = (Instant::now(), deadline.within(ASK_AGAIN));
    let mut pace = Pace::default();
    loop {
        let last = match redfish.read_again(system, deadline) {
            Ok(now) if now.power == PowerState::On => return Ok(()),
            Ok(now) => now.power.to_string(),
            Err(error) => error.chain(),
        };
        if !pace.wait(limit) {
            let waited_ms = started.elapsed().as_millis();
            return Err(Error::NotReached { wanted: PowerState::On, waited_ms, last });
        }
    }
}
