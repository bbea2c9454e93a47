//! The disk image that both nodes start from: built once from Debian's packages, cached outside the source
//! tree under a name that contains a hash of its recipe.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{LabConfig, Release, Rival, Stack};
use crate::error::{Error, Result};
use crate::place::cache_directory;
use crate::program::{self, QUICK};
use crate::progress::{Progress, wait_until};

/// How long a build may take, and so how long another lab waits for it.
const BUILD_LIMIT: Duration = Duration::from_mins(15);

/// How long the installation of one package may take.
const INSTALL_LIMIT: Duration = Duration::from_mins(1);

/// What debootstrap installs: a bare system that systemd can boot.
const BASE: &str =
    "systemd,systemd-sysv,dbus,libpam-systemd,iproute2,iputils-ping,procps,util-linux";

/// What every node runs.
const PACKAGES: &[&str] = &[
    "corosync",
    "pacemaker",
    "pacemaker-cli-utils",
    "resource-agents",
    "etcd-server",
    "etcd-client",
    "nftables",
    "ca-certificates",
    "curl",
    // For ocf-tester, which comes with the resource agents.
    "libxml2-utils",
];

/// What a node needs to run etcd in a container.
const PODMAN_PACKAGES: [&str; 2] = ["podman", "crun"];

/// What the agent `podman-etcd` needs beside them.
const PODMAN_ETCD_PACKAGES: [&str; 1] = ["jq"];

/// Puts the agents and their library from the newest resource-agents that Debian has over those of the release, and notes
/// its version. The package itself needs newer libraries than the release has, the agents do not.
const NEWEST_AGENTS: &str = r#"
echo "deb $1 sid main" > /etc/apt/sources.list.d/sid.list
apt-get -qq update
cd /tmp
apt-get -qq download resource-agents/sid
dpkg-deb --extract resource-agents_*.deb newest
cp --archive newest/usr/lib/ocf/. /usr/lib/ocf/
dpkg-deb --field resource-agents_*.deb Version > /etc/newest-resource-agents
rm -r newest resource-agents_*.deb /etc/apt/sources.list.d/sid.list
"#;

/// Where the version of those agents is noted in the image.
pub const NEWEST_AGENTS_VERSION: &str = "/etc/newest-resource-agents";

/// Units that would only cost time or CPU in a node. etcd is switched on per lab.
const MASKED: &[&str] = &[
    "console-getty.service",
    "getty@tty1.service",
    "logd.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "logrotate.timer",
    "systemd-tmpfiles-clean.timer",
    "systemd-timesyncd.service",
    "systemd-networkd.service",
    "systemd-resolved.service",
];

/// The journal is the lab's main witness: keep all of it, drop nothing, write nothing elsewhere.
const JOURNALD: &str = "[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\nForwardToSyslog=no\nSystemMaxUse=256M\n";

/// A recipe for one release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    release: Release,
    packages: Vec<&'static str>,
    newest_agents: bool,
}

impl Recipe {
    /// The recipe of a lab's nodes.
    pub fn of(config: &LabConfig) -> Self {
        let release = config.release;
        let mut packages = PACKAGES.to_vec();
        // Debian 13 has a package per fence agent.
        packages.push(match release {
            Release::Trixie => "fence-agents-redfish",
            Release::Bookworm => "fence-agents",
        });
        if matches!(&config.stack, Stack::Pair(stack) if stack.podman) {
            packages.extend(PODMAN_PACKAGES);
        }
        let newest_agents = config.stack == Stack::Rival(Rival::PodmanEtcd);
        if newest_agents {
            packages.extend(PODMAN_PACKAGES);
            packages.extend(PODMAN_ETCD_PACKAGES);
        }
        Self { release, packages, newest_agents }
    }

    /// Where the image lies once it is built: a change of the recipe is a different image.
    pub fn path(&self) -> PathBuf {
        let mut text = format!("1 {BASE} {:?} {MASKED:?} {JOURNALD}", self.packages);
        if self.newest_agents {
            text += NEWEST_AGENTS;
        }
        let name = format!("{}-{:016x}", self.release.name(), fnv1a(text.as_bytes()));
        cache_directory().join("images").join(name)
    }

    /// Gives the image, building it if it is not in the cache.
    pub fn ensure(&self, progress: &dyn Progress) -> Result<PathBuf> {
        let image = self.path();
        if image.is_dir() {
            return Ok(image);
        }
        let parent = image.parent().unwrap_or(Path::new("/")).to_owned();
        fs::create_dir_all(&parent).map_err(Error::io("making", &parent))?;
        let _lock = lock(&parent.join(format!(".{}.lock", self.release.name())), progress)?;
        if image.is_dir() {
            return Ok(image);
        }
        let work = parent.join(format!(".building-{}", self.release.name()));
        // Under the lock, so what is there was left by a build that was killed.
        remove_tree(&work)?;
        let built = self.build(&work, progress);
        if built.is_err() {
            remove_tree(&work)?;
        }
        built?;
        fs::rename(&work, &image).map_err(Error::io("moving the image to", &image))?;
        Ok(image)
    }

    fn build(&self, root: &Path, progress: &dyn Progress) -> Result<()> {
        let release = self.release.name();
        progress.step(&format!("building the image, once: Debian {release}, base system"));
        let mirror = debian_mirror()?;
        let mut debootstrap = contained("debootstrap");
        debootstrap
            .args(["--variant=minbase", "--merged-usr", &format!("--include={BASE}"), release])
            .arg(root)
            .arg(&mirror);
        program::output(&mut debootstrap, "", BUILD_LIMIT)?;

        progress.step("building the image: Corosync, Pacemaker, etcd, fence agents");
        // Nothing that is installed may start here.
        write(&root.join("usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", 0o755)?;
        write(&root.join("etc/apt/apt.conf.d/90host"), &host_apt_settings()?, 0o644)?;
        for file in ["etc/resolv.conf", "etc/hosts"] {
            let text = fs::read_to_string(Path::new("/").join(file)).unwrap_or_default();
            write(&root.join(file), &text, 0o644)?;
        }
        program::output(&mut chrooted(root, "apt-get -qq update"), "", BUILD_LIMIT)?;
        let install = "apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 \
                       -o Dpkg::Options::=--force-unsafe-io install";
        let mut install = chrooted(root, install);
        program::output(install.args(&self.packages), "", BUILD_LIMIT)?;

        if self.newest_agents {
            progress.step("building the image: the newest resource agents");
            let mut newest = chrooted(root, "sh -e -c");
            newest.args([NEWEST_AGENTS, "sh", &mirror]);
            program::output(&mut newest, "", BUILD_LIMIT)?;
        }

        progress.step("building the image: finishing");
        finish(root)
    }
}

/// Takes out what belongs to the machine that built the image, and what a node does not need.
fn finish(root: &Path) -> Result<()> {
    program::output(&mut chrooted(root, "apt-get clean"), "", QUICK)?;
    let _ = program::run(&mut chrooted(root, "systemctl disable etcd.service"), "", QUICK)?;
    let mut mask = chrooted(root, "systemctl mask");
    program::output(mask.args(MASKED), "", QUICK)?;
    write(&root.join("etc/systemd/journald.conf.d/lab.conf"), JOURNALD, 0o644)?;
    let leftovers = [
        "usr/sbin/policy-rc.d",
        "etc/apt/apt.conf.d/90host",
        "etc/hostname",
        "etc/machine-id",
        "var/lib/dbus/machine-id",
        "etc/corosync/corosync.conf",
        "etc/resolv.conf",
    ];
    for file in leftovers {
        let _ = fs::remove_file(root.join(file));
    }
    remove_tree(&root.join("var/lib/apt/lists"))?;
    remove_tree(&root.join("var/lib/etcd/default"))?;
    Ok(())
}

/// Installs a package on a disk that nothing runs on.
pub(crate) fn install_package(package: &Path, root: &Path) -> Result<()> {
    let inside = "root/package.deb";
    let copy = root.join(inside);
    fs::copy(package, &copy).map_err(Error::io("copying", package))?;
    let install = format!("dpkg --force-unsafe-io --install /{inside}");
    let installed = program::output(&mut chrooted(root, &install), "", INSTALL_LIMIT);
    fs::remove_file(&copy).map_err(Error::io("removing", &copy))?;
    installed?;
    Ok(())
}

/// The user and group of etcd in an image.
pub(crate) fn etcd_owner(image: &Path) -> Result<(u32, u32)> {
    owner(image, "etcd")
}

/// A user's ids in an image.
pub(crate) fn owner(image: &Path, user: &str) -> Result<(u32, u32)> {
    let path = image.join("etc/passwd");
    let text = fs::read_to_string(&path).map_err(Error::io("reading", &path))?;
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut users = fields.filter(|fields| fields.first() == Some(&user));
    let ids = users
        .next()
        .and_then(|fields| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)));
    ids.ok_or_else(|| Error::Machine(format!("{} names no user {user}", path.display())))
}

/// The mirror that this machine already uses; other releases are taken from the same one.
fn debian_mirror() -> Result<String> {
    let mut command = program::command(
        "apt-get",
        ["indextargets", "--format", "$(SITE) $(COMPONENT)", "Created-By: Packages"],
    );
    let targets = program::output(&mut command, "", QUICK)?;
    let mirror = targets.lines().find_map(|line| {
        let (site, component) = line.split_once(' ')?;
        (component == "main" && !site.contains("security")).then(|| site.to_owned())
    });
    mirror.ok_or_else(|| {
        Error::Machine(
            "no Debian mirror is set up for apt, and the image is made of packages".into(),
        )
    })
}

/// How the host's apt reaches its mirror: proxies and the like. Used during the build only.
fn host_apt_settings() -> Result<String> {
    let mut command =
        program::command("apt-config", ["dump", "--format", "%f \"%v\";%n", "Acquire"]);
    Ok(program::output(&mut command, "", QUICK)?)
}

/// A command in a mount namespace of its own: what it mounts ends with it, and it ends with this process.
fn contained(program: &str) -> std::process::Command {
    let mut command = program::words("setpriv --pdeathsig KILL --");
    command.args(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation"]);
    command.args(["private", "--", program]);
    command
}

/// A command inside the image, with /proc for the packages' scripts.
fn chrooted(root: &Path, line: &str) -> std::process::Command {
    let mut command = contained("sh");
    command
        .args(["-c", "mount -t proc proc \"$1/proc\" && exec chroot \"$@\"", "sh"])
        .arg(root)
        .args(["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"])
        .args(line.split_whitespace());
    command
}

fn lock(path: &Path, progress: &dyn Progress) -> Result<File> {
    let file = File::create(path).map_err(Error::io("opening", path))?;
    let mut failed = None;
    wait_until("the image that another lab builds", BUILD_LIMIT, progress, || {
        match file.try_lock() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => Some("its lock is held".into()),
            Err(TryLockError::Error(error)) => {
                failed = Some(error);
                None
            }
        }
    })?;
    failed.map_or(Ok(file), |error| Err(Error::io("locking", path)(error)))
}

/// Writes a file with this mode, making its directory.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::io("making", parent))?;
    }
    // A link into a place outside the image must not be followed.
    if path.is_symlink() {
        fs::remove_file(path).map_err(Error::io("removing", path))?;
    }
    fs::write(path, text).map_err(Error::io("writing", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(Error::io("setting the mode of", path))
}

/// Removes a directory and what is in it; one that is not there is fine.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("removing", path)(error))
        }
        _ => Ok(()),
    }
}

/// A hash that stays the same from one compiler to the next.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two releases never share an image, and a recipe keeps its image from run to run.
    #[test]
    fn an_image_is_named_for_its_recipe() {
        let of = |release| Recipe::of(&LabConfig { release, ..LabConfig::named("a") });
        let trixie = of(Release::Trixie);
        assert_eq!(trixie.path(), of(Release::Trixie).path());
        assert_ne!(trixie.path(), of(Release::Bookworm).path());
        let mut changed = trixie.clone();
        changed.packages.push("strace");
        assert_ne!(trixie.path(), changed.path());
    }

    /// The hash is FNV-1a with 64 bits: a known value.
    #[test]
    fn the_hash_is_fnv1a() {
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
