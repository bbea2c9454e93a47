//! The nodes' BMCs: simulated, with real power behind them.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bmc_sim::{
    Bmc, Certificate, Config, Fault, PowerState, PowerSwitch, ResetType, SwitchError, System,
};

use crate::cluster::{BMC_PASSWORD, BMC_PORT, BMC_SYSTEM, BMC_USER};
use crate::config::reserved;
use crate::error::{Error, Result, chain};
use crate::events::{Event, EventKind};
use crate::node::Node;

/// How long a node may take to shut itself down when it is asked kindly.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(90);

/// One BMC per node, in the network namespace of this process.
pub(crate) struct Bmcs {
    bmcs: [Bmc; 2],
    names: [String; 2],
}

impl fmt::Debug for Bmcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmcs").field("names", &self.names).finish_non_exhaustive()
    }
}

/// A node's plug in the hands of its BMC.
struct Plug(Arc<Node>);

impl PowerSwitch for Plug {
    fn state(&self) -> Result<PowerState, SwitchError> {
        match self.0.is_on() {
            Ok(true) => Ok(PowerState::On),
            Ok(false) => Ok(PowerState::Off),
            // Not to know is not Off.
            Err(error) => Err(SwitchError::new(chain(&error))),
        }
    }

    fn set(&self, reset: ResetType) -> Result<(), SwitchError> {
        let done = match reset {
            ResetType::On => self.0.power_on(),
            ResetType::ForceOff => self.0.power_off(),
            ResetType::ForceRestart => self.0.power_off().and_then(|()| self.0.power_on()),
            ResetType::GracefulShutdown => self.0.shut_down(SHUTDOWN_LIMIT),
        };
        done.map_err(|error| SwitchError::new(chain(&error)))
    }
}

impl Bmcs {
    /// Starts a BMC for each node on its address in the BMC network.
    pub(crate) fn start(nodes: &[Arc<Node>; 2], certificates: [Certificate; 2]) -> Result<Self> {
        let [first, second] = nodes;
        let [first_certificate, second_certificate] = certificates;
        Ok(Self {
            bmcs: [start(first, 0, first_certificate)?, start(second, 1, second_certificate)?],
            names: [first.name.clone(), second.name.clone()],
        })
    }

    /// Breaks a BMC, or heals it.
    pub(crate) fn set_fault(&self, position: usize, fault: Fault) {
        self.bmcs[position].set_fault(fault);
    }

    /// What is wrong with a BMC, in words.
    pub(crate) fn fault(&self, position: usize) -> Option<String> {
        let fault = self.bmcs[position].fault();
        (fault != Fault::None).then(|| format!("BMC {fault}"))
    }

    /// What the BMCs were told to do, and what went wrong there.
    pub(crate) fn events(&self) -> Vec<Event> {
        let both = self.bmcs.iter().zip(&self.names);
        both.flat_map(|(bmc, name)| bmc.events(0).into_iter().flat_map(|event| told(&event, name)))
            .collect()
    }
}

/// New certificates, as they come from the factory: nobody has signed them, so they are pinned.
pub(crate) fn certificates() -> Result<[Certificate; 2]> {
    let new = |position| {
        Certificate::self_signed(&[&reserved::bmc(position).to_string()])
            .map_err(|error| Error::Machine(format!("a certificate for a BMC: {error}")))
    };
    Ok([new(0)?, new(1)?])
}

fn start(node: &Arc<Node>, position: usize, certificate: Certificate) -> Result<Bmc> {
    let address = SocketAddr::from((reserved::bmc(position), BMC_PORT));
    let broken = |reason: String| Error::Machine(format!("the BMC on {address}: {reason}"));
    let listener = TcpListener::bind(address).map_err(|error| broken(error.to_string()))?;
    let config = Config {
        user: BMC_USER.into(),
        password: dyad_http::Secret::new(BMC_PASSWORD),
        systems: vec![System {
            id: BMC_SYSTEM.into(),
            uuid: format!("00000000-0000-4000-8000-00000000000{}", position + 1),
            name: node.name.clone(),
            switch: Arc::new(Plug(Arc::clone(node))),
        }],
        certificate: Some(certificate),
    };
    Bmc::start(config, listener).map_err(|error| broken(error.to_string()))
}

/// A reset makes two entries: when it was asked for, and how it was answered.
fn told(event: &bmc_sim::Event, node: &str) -> Vec<Event> {
    let entry = |time_us, text| Event {
        time_us,
        kind: EventKind::BmcRequest,
        node: Some(node.to_owned()),
        text,
    };
    let Some(reset) = event.reset else { return Vec::new() };
    let answer = match (event.status, &event.error) {
        (Some(status), None) => format!("{} answered {status}", reset.as_str()),
        (Some(status), Some(error)) => format!("{} answered {status}: {error}", reset.as_str()),
        (None, _) => format!("{} not answered", reset.as_str()),
    };
    let asked = event.at_us.saturating_sub(event.took_us);
    vec![entry(asked, format!("{} asked", reset.as_str())), entry(event.at_us, answer)]
}
