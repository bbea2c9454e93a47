//! The peer's power, as its BMC tells: for a node that boots alone (R5) and for a person who confirms.

use std::path::Path;
use std::time::Duration;

use dyad_cluster::pair::{Bmc, BmcTls};
use dyad_core::facts::{Facts, Power, PowerReading};
use dyad_http::{Client, Deadline, Endpoint, Trust};
use dyad_power::{
    Authentication, Credentials, LogEntry, PowerState, Redfish, ResetType, System, SystemName,
};

use crate::act::Failure;
use crate::node::Node;

/// One request to the BMC.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// All requests that it takes to read a BMC's logs: some take seconds for each page.
const LOG_LIMIT: Duration = Duration::from_secs(12);

/// Forces the peer off and reads it back; what was read is written down, bound to the present Corosync
/// membership and to the member that it is about.
pub(crate) fn force_peer_off(node: &Node, facts: &Facts) -> Result<(), Failure> {
    let reading = force_off(node)?;
    record(node, facts, reading, true)
}

/// Reads the peer's power without changing it.
pub fn read_peer_power(node: &Node, facts: &Facts) -> Result<Power, Failure> {
    let (redfish, wanted) = redfish(node)?;
    let deadline = Deadline::after(REQUEST_LIMIT);
    let system = redfish.look(wanted.as_ref(), deadline);
    redfish.log_out(deadline);
    let power = word(&system?.power);
    record(node, facts, power, false)?;
    Ok(power)
}

fn record(node: &Node, facts: &Facts, state: Power, after_forced_off: bool) -> Result<(), Failure> {
    let reading = PowerReading {
        state,
        after_forced_off,
        member: facts.other_voter(),
        ring: facts.ring.clone(),
    };
    Ok(node.memory.set_power(&reading)?)
}

fn force_off(node: &Node) -> Result<Power, Failure> {
    let deadline = Deadline::after(Duration::from_millis(node.pair.fencing.bmc_timeout_ms));
    let (redfish, wanted) = redfish(node)?;
    let result = (|| {
        let system = redfish.look(wanted.as_ref(), deadline)?;
        if system.power == PowerState::Off {
            // Forced all the same: an Off that was only found may be about to end. A BMC may refuse to
            // switch off what is off; what it says afterwards counts.
            let _ = redfish.reset(&system, ResetType::ForceOff, deadline);
            return Ok(redfish.read_again(&system, deadline)?.power);
        }
        redfish.force_off(&system, deadline)?;
        Ok(redfish.read_again(&system, deadline)?.power)
    })();
    redfish.log_out(deadline);
    result.map(|power| word(&power)).map_err(|error: dyad_power::Error| error.into())
}

/// `PoweringOff` is not off, and what a BMC does not know is unknown.
fn word(power: &PowerState) -> Power {
    match power {
        PowerState::Off => Power::Off,
        PowerState::On => Power::On,
        PowerState::Other(_) => Power::Unknown,
    }
}

fn redfish(node: &Node) -> Result<(Redfish, Option<SystemName>), Failure> {
    let bmc = &node.peer().bmc;
    client(bmc, &bmc.credentials_file)
}

fn client(bmc: &Bmc, credentials: &Path) -> Result<(Redfish, Option<SystemName>), Failure> {
    let trust = match &bmc.tls {
        BmcTls::CaFile(file) => Trust::CaFile(file.clone()),
        BmcTls::Pin(pin) => Trust::Pin(pin.parse()?),
        BmcTls::Insecure => Trust::InsecureAcceptAnyCertificate,
    };
    let http = Client::builder(Endpoint::parse(&bmc.address)?).trust(trust).build()?;
    let credentials = Credentials::read(credentials)?;
    let system = bmc.system.as_deref().map(SystemName::new).transpose()?;
    Ok((Redfish::new(http, credentials, Authentication::default(), REQUEST_LIMIT), system))
}

/// Looks at a BMC with the user name and password in this file, without changing anything.
pub fn look_at(bmc: &Bmc, credentials: &Path) -> Result<System, Failure> {
    let (redfish, wanted) = client(bmc, credentials)?;
    let deadline = Deadline::after(REQUEST_LIMIT);
    let system = redfish.look(wanted.as_ref(), deadline);
    redfish.log_out(deadline);
    Ok(system?)
}

/// What a BMC has written down itself, without changing anything.
pub fn log_entries(bmc: &Bmc) -> Result<Vec<LogEntry>, Failure> {
    let (redfish, wanted) = client(bmc, &bmc.credentials_file)?;
    let deadline = Deadline::after(LOG_LIMIT);
    let entries = redfish
        .find_system(wanted.as_ref(), deadline)
        .and_then(|system| redfish.log_entries(&system, deadline));
    redfish.log_out(deadline);
    Ok(entries?)
}
