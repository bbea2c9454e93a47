//! The distribution's own `fence_redfish` works against the simulator: all of its actions.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use bmc_sim::{
    Bmc, Certificate, Config, Fault, MemorySwitch, PowerState, PowerSwitch as _, ResetType, System,
};
use dyad_http::Secret;

fn bmc(switch: &Arc<MemorySwitch>) -> Bmc {
    let system = System {
        id: "1".to_owned(),
        uuid: "0c9b2b8e-6a3c-4a58-9a5c-7a8f6a1f0001".to_owned(),
        name: "node1".to_owned(),
        switch: switch.clone(),
    };
    let config = Config {
        user: "admin".to_owned(),
        password: Secret::new("right"),
        systems: vec![system],
        certificate: Some(Certificate::self_signed(&["127.0.0.1"]).unwrap()),
    };
    Bmc::start(config, TcpListener::bind("127.0.0.1:0").unwrap()).unwrap()
}

fn fence(bmc: &Bmc, action: &str, password: &str) -> Output {
    // Pacemaker's way: parameters on stdin.
    let parameters = format!(
        "action={action}\nip=127.0.0.1\nipport={}\nusername=admin\npassword={password}\nssl_insecure=1\n",
        bmc.address().port()
    );
    let mut child = Command::new("/usr/sbin/fence_redfish")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("fence_redfish is installed by scripts/setup");
    child.stdin.take().unwrap().write_all(parameters.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// On, off, reboot, status, monitor and list end as they do with a real BMC, and the power follows.
#[test]
fn every_action() {
    let switch = Arc::new(MemorySwitch::new(PowerState::On));
    let bmc = bmc(&switch);
    for (action, code, state) in [
        ("status", 0, PowerState::On),
        ("monitor", 0, PowerState::On),
        ("list", 0, PowerState::On),
        ("off", 0, PowerState::Off),
        ("off", 0, PowerState::Off),
        ("status", 2, PowerState::Off),
        ("on", 0, PowerState::On),
        ("reboot", 0, PowerState::On),
    ] {
        let output = fence(&bmc, action, "right");
        assert_eq!(output.status.code(), Some(code), "{action}: {output:?}");
        assert_eq!(switch.state().unwrap(), state, "{action}");
    }
    let resets: Vec<_> =
        bmc.events(0).iter().filter_map(|event| event.reset).map(ResetType::as_str).collect();
    assert_eq!(resets, ["ForceOff", "On", "ForceOff", "On"]);
}

/// It fails where it should: the simulator's refusals are ones that a real client understands.
#[test]
fn failures() {
    let switch = Arc::new(MemorySwitch::new(PowerState::On));
    let bmc = bmc(&switch);
    assert_eq!(fence(&bmc, "status", "wrong").status.code(), Some(1));
    for fault in [Fault::WrongPassword, Fault::ServerError, Fault::MalformedJson, Fault::Refuse] {
        bmc.set_fault(fault);
        let output = fence(&bmc, "off", "right");
        assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
        assert_eq!(switch.state().unwrap(), PowerState::On, "{fault}");
    }
}
