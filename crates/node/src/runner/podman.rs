//! etcd in a podman container, as OpenShift runs it.

use dyad_program::{command, output};

use super::{Error, REMOVE_LIMIT, Runner, Systemd};

/// The service whose only work is the container: what the kernel shows of the service are the container's
/// processes, so that looking at it costs as little as without one.
#[derive(Debug, Clone)]
pub struct Podman {
    service: Systemd,
    container: &'static str,
}

impl Podman {
    /// The container of this name, run by this service.
    pub fn new(service: Systemd, container: &'static str) -> Self {
        Self { service, container }
    }
}

impl Runner for Podman {
    fn start(&self) -> Result<(), Error> {
        self.service.start()
    }

    /// Beside the service's own processes, a container of the name that somebody else has started must be gone:
    /// it would write to the same data.
    fn stop(&self) -> Result<(), Error> {
        self.service.stop()?;
        let arguments = ["rm", "--force", "--ignore", "--time", "5", self.container];
        let removed = output(&mut command("podman", arguments), "", REMOVE_LIMIT);
        removed.map(drop).map_err(|source| Error::Tool { step: "stop", source })
    }

    fn kill(&self) -> Result<(), Error> {
        self.service.kill()
    }

    fn is_running(&self) -> Result<bool, Error> {
        self.service.is_running()
    }
}
