//! etcd as a podman container, as OpenShift runs it.

use std::path::PathBuf;
use std::time::Duration;

use dyad_program::{command, output, run};

use super::{Error, LOOK_LIMIT, Runner, START_LIMIT, STOP_LIMIT};

/// The container that runs etcd.
#[derive(Debug, Clone)]
pub struct Podman {
    /// The container's name.
    pub name: String,
    /// The image it is made from.
    pub image: String,
    /// The arguments of etcd, as an environment file.
    pub environment: PathBuf,
    /// What it sees of the host's files: the data and the certificates, at the same places.
    pub volumes: Vec<PathBuf>,
}

impl Podman {
    fn tool(step: &'static str) -> impl FnOnce(dyad_program::Error) -> Error {
        move |source| Error::Tool { step, source }
    }

    fn remove(&self, limit: Duration) -> Result<(), Error> {
        let arguments = ["rm", "--force", "--ignore", "--time", "10", self.name.as_str()];
        output(&mut command("podman", arguments), "", limit).map(drop).map_err(Self::tool("stop"))
    }
}

impl Runner for Podman {
    fn start(&self) -> Result<(), Error> {
        if self.is_running()? {
            return Ok(());
        }
        // What is left of an earlier container holds the name; its data are on the host.
        self.remove(STOP_LIMIT)?;
        let mut podman = command("podman", ["run", "--detach", "--network=host", "--name"]);
        podman.arg(&self.name).arg("--env-file").arg(&self.environment);
        for volume in &self.volumes {
            podman.arg("--volume").arg(format!("{0}:{0}", volume.display()));
        }
        podman.args(["--log-driver=journald", &self.image, "etcd"]);
        output(&mut podman, "", START_LIMIT).map(drop).map_err(Self::tool("start"))
    }

    fn stop(&self) -> Result<(), Error> {
        self.remove(STOP_LIMIT)?;
        if self.is_running()? { Err(Error::StillRuns) } else { Ok(()) }
    }

    fn is_running(&self) -> Result<bool, Error> {
        let arguments = ["container", "inspect", "--format", "{{.State.Running}}", &self.name];
        let finished = run(&mut command("podman", arguments), "", LOOK_LIMIT)
            .map_err(Self::tool("look at"))?;
        // Podman says 125 for a container that does not exist, and for much else: only its own words tell.
        match finished.stdout.trim() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ if finished.stderr.contains("no such container") => Ok(false),
            _ => Err(Error::Tool {
                step: "look at",
                source: dyad_program::Error::Failed {
                    program: "podman container inspect".to_owned(),
                    code: finished.code,
                    stderr: dyad_program::last_lines(&finished.stderr, 3),
                },
            }),
        }
    }
}
