//! Telling syslog, for what happens after the agent has answered Pacemaker.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
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
    let _ = send(Path::new("/dev/log"), severity, message);
}

fn send(socket_path: &Path, severity: Severity, message: &str) -> io::Result<()> {
    let priority = FACILITY_DAEMON << 3 | severity as u8;
    let text = format!("<{priority}>{AGENT}[{}]: {message}", std::process::id());
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    socket.connect(socket_path)?;
    socket.send(text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message arrives with priority and name, as syslog and the journal read them.
    #[test]
    fn messages_arrive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = UnixDatagram::bind(&path).unwrap();
        log.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for (severity, priority) in [(Severity::Error, "<27>"), (Severity::Notice, "<29>")] {
            send(&path, severity, "powering on node2 FAILED").unwrap();
            let mut buffer = [0; 256];
            let count = log.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            let start = format!("{priority}{AGENT}[");
            assert!(
                text.starts_with(&start) && text.ends_with("]: powering on node2 FAILED"),
                "{text}"
            );
        }
        assert!(send(&directory.path().join("none"), Severity::Notice, "x").is_err());
    }
}
