//! Telling syslog, for what happens after the agent has answered Pacemaker.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use dyad_power::fence::AGENT;

/// How bad it is, in syslog's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Severity {
    /// Someone must do something.
    Error = 3,
    /// All is well, and worth knowing.
    Notice = 5,
}

const FACILITY_DAEMON: u8 = 3;

/// Sends one message to the local syslog or journal. Where there is none, nobody listens.
pub(crate) fn tell(severity: Severity, message: &str) {
    let priority = FACILITY_DAEMON << 3 | severity as u8;
    let text = format!("<{priority}>{AGENT}[{}]: {message}", std::process::id());
    let send = || -> std::io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(Duration::from_secs(1)))?;
        socket.connect("/dev/log")?;
        socket.send(text.as_bytes())?;
        Ok(())
    };
    let _ = send();
}
