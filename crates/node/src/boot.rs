//! This machine, this boot, and its own clock. Wall clocks are never compared.

use std::io;

use dyad_core::ids::{BootId, NodeName, RunId};

/// This machine's name, by which the pair knows it.
pub fn host_name() -> NodeName {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    NodeName::from(text.trim())
}

/// The kernel's name of the present boot.
pub fn boot_id() -> io::Result<BootId> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BootId::from(text.trim()))
}

/// The present run of Pacemaker, by the name that systemd gives to each start of its service. Without one nothing that
/// was earned in a run counts.
pub fn run_id() -> Option<RunId> {
    run_of("pacemaker.service")
}

/// The present run of a service. systemd keeps its name where reading it costs no process.
pub fn run_of(unit: &str) -> Option<RunId> {
    let name = std::fs::read_link(format!("/run/systemd/units/invocation:{unit}")).ok()?;
    Some(RunId::from(name.to_str()?))
}

/// Milliseconds since this boot, suspended time included.
pub fn uptime_ms() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/uptime")?;
    parse_uptime(&text).ok_or_else(|| io::Error::other("/proc/uptime is not a number"))
}

fn parse_uptime(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_whitespace().next()?.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let hundredths: u64 = rest.parse().ok()?;
    seconds.checked_mul(1_000)?.checked_add(hundredths.checked_mul(10)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's format is understood, anything else refused.
    #[test]
    fn uptime_is_read() {
        assert_eq!(parse_uptime("350735.47 234388.90\n"), Some(350_735_470));
        assert_eq!(parse_uptime("0.05 0.00"), Some(50));
        assert_eq!(parse_uptime(""), None);
        assert_eq!(parse_uptime("soon"), None);
        assert!(uptime_ms().unwrap() > 0);
    }
}
