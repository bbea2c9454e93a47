//! The systemd units of a node.

use std::path::Path;

use dyad_cluster::pair::{Pair, Runner};

/// The unit that makes the node one of a pair.
pub(crate) const SETUP_UNIT: &str = "dyad-setup.service";

/// The unit that boots a node whose peer is off (R5).
pub(crate) const LONE_BOOT_UNIT: &str = "dyad-lone-boot.service";

/// The unit that has events delivered, whenever there are some.
pub(crate) const WEBHOOK_PATH: &str = "dyad-webhook.path";

/// The slice that etcd runs in, `/sys/fs/cgroup/dyad.slice`.
///
/// No default dependencies, for the slice as for etcd, and nothing that is required and stopped at shutdown:
/// that would stop etcd at once, before Pacemaker has the node leave, and its peer would be left without a
/// majority. etcd ends when Pacemaker stops it; the file systems wait for Pacemaker.
const SLICE: &str = "\
# Part of Dyad.
[Unit]
Description=The control plane of this pair
DefaultDependencies=no

[Slice]
# Whatever else runs on this machine: the data first.
CPUWeight=1000
IOWeight=1000
MemoryLow=512M
";

/// etcd as a service. Its arguments are written to `/run/dyad/etcd.env` before each start, so that nothing
/// but the agent can start it.
const ETCD: &str = "\
# Part of Dyad.
[Unit]
Description=etcd of this pair (started and stopped by Pacemaker)
Documentation=man:dyad(1)
DefaultDependencies=no
After=sysinit.target network.target
# Pacemaker decides how often it is tried.
StartLimitIntervalSec=0

[Service]
# Not `notify`: etcd says that it is ready only when there is a leader, and no action waits for the peer.
Type=exec
EnvironmentFile=/run/dyad/etcd.env
ExecStart=/usr/bin/etcd $DYAD_ETCD_ARGS
Restart=no
Slice=dyad.slice
TimeoutStopSec=25s
OOMScoreAdjust=-999
LimitNOFILE=65536
IOSchedulingClass=best-effort
IOSchedulingPriority=0
UMask=0077
NoNewPrivileges=yes
ProtectSystem=full
StandardOutput=journal
StandardError=journal
SyslogIdentifier=etcd
";

/// The same service with etcd in a container, as OpenShift runs it: what Pacemaker, systemd and the kernel see
/// of it is the same (its control group is the service's), and it ends in the same order. The image must be on
/// the node: a take-over waits for no registry.
const ETCD_IN_PODMAN: &str = "\
# Part of Dyad.
[Service]
ExecStartPre=-/usr/bin/podman rm --force --ignore --time 10 @NAME@
ExecStart=
ExecStart=/usr/bin/podman run --name @NAME@ --replace --rm --pull=never --cgroups=disabled --network=host \\
    --security-opt=label=disable --log-driver=passthrough --env-file=/run/dyad/etcd.env @VOLUMES@ \\
    @IMAGE@ etcd $DYAD_ETCD_ARGS
ExecStop=/usr/bin/podman stop --ignore --time 20 @NAME@
ExecStopPost=-/usr/bin/podman rm --force --ignore --time 10 @NAME@
NoNewPrivileges=no
ProtectSystem=no
";

/// Corosync must not start before the addresses of its links are final: it would bind to the wrong one, and
/// the node would be fenced after each boot.
const COROSYNC_DROP_IN: &str = "\
# Part of Dyad.
[Unit]
Wants=network-online.target
After=network-online.target
";

/// A node that boots faster than the news of its own fencing travels is told that it was "allegedly just fenced";
/// Pacemaker then ends and stays down, and the pair would wait for a person. It starts again: as a new member it is
/// probed like after any boot, and what became of its data is decided by the rules. And whenever it starts, also again in
/// the same boot, there may be no quorum: Corosync waits for the peer anew.
const PACEMAKER_DROP_IN: &str = "\
# Part of Dyad.
[Unit]
Wants=dyad-lone-boot.service

[Service]
RestartForceExitStatus=100
RestartSec=5s
";

/// Proves the peer off where there is no quorum since Corosync started, and ends when there is. It comes and goes with
/// Pacemaker.
const LONE_BOOT: &str = "\
# Part of Dyad.
[Unit]
Description=Boot without the peer, if it is proven off
Documentation=man:dyad(1)
ConditionPathExists=/etc/dyad/pair.json
Wants=corosync.service pacemaker.service
After=corosync.service pacemaker.service
PartOf=pacemaker.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/usr/libexec/dyad/dyad-node lone-boot
Restart=on-failure
RestartSec=2s

[Install]
WantedBy=multi-user.target
";

/// Looks often while a node joins.
const FOLLOW: &str = "\
# Part of Dyad.
[Unit]
Description=Bring the two copies of the data together (started by the resource agent)
Documentation=man:dyad(1)

[Service]
Type=exec
ExecStart=/usr/libexec/dyad/dyad-node follow
";

/// Looks for events that wait to be delivered.
const WEBHOOK: &str = "\
# Part of Dyad.
[Unit]
Description=Events of this pair that wait to be delivered
Documentation=man:dyad(1)

[Path]
DirectoryNotEmpty=/var/spool/dyad/waiting

[Install]
WantedBy=multi-user.target
";

/// Posts events to the receiver that the pair names. It must never be in the way of what it tells of.
const WEBHOOK_SERVICE: &str = "\
# Part of Dyad.
[Unit]
Description=Deliver events of this pair
Documentation=man:dyad(1)
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=/usr/libexec/dyad/dyad-node deliver
Restart=on-failure
RestartSec=10s
Nice=10
CPUQuota=10%
MemoryMax=64M
TasksMax=16
# The spool belongs to Pacemaker's user.
CapabilityBoundingSet=CAP_DAC_OVERRIDE
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=/var/spool/dyad/waiting
ProtectHome=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
";

/// The job that makes a machine one node of a pair, at the first boot with its bundle. It is tried again by
/// itself where time ran out (the other node may be installed an hour later), and never where a person has to
/// do something first: a BMC locks an account after too many wrong passwords.
const SETUP: &str = "\
# Part of Dyad.
[Unit]
Description=Make this node one of a pair
Documentation=man:dyad-setup(1)
ConditionPathExists=|/etc/dyad/pair.json
ConditionPathExists=|/etc/dyad/nodes/%H
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/dyad setup --once
TimeoutStartSec=30min
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=1 2 3 4 5

[Install]
WantedBy=multi-user.target
";

/// A unit or drop-in: its path below `/etc/systemd/system`, and its text.
pub(crate) fn all(pair: &Pair) -> Vec<(&'static str, String)> {
    let mut units = vec![
        (SETUP_UNIT, SETUP.to_owned()),
        ("corosync.service.d/10-dyad.conf", COROSYNC_DROP_IN.to_owned()),
        ("pacemaker.service.d/10-dyad.conf", PACEMAKER_DROP_IN.to_owned()),
        (LONE_BOOT_UNIT, LONE_BOOT.to_owned()),
        ("dyad-follow.service", FOLLOW.to_owned()),
        (WEBHOOK_PATH, WEBHOOK.to_owned()),
        ("dyad-webhook.service", WEBHOOK_SERVICE.to_owned()),
    ];
    units.push(("dyad.slice", SLICE.to_owned()));
    units.push(("dyad-etcd.service", ETCD.to_owned()));
    if let Runner::Podman { image } = &pair.etcd.runner {
        units.push(("dyad-etcd.service.d/10-podman.conf", in_podman(pair, image)));
    }
    units
}

fn in_podman(pair: &Pair, image: &str) -> String {
    let mut shared = vec![pair.etcd.data_dir.as_path()];
    if let Some(tls) = &pair.etcd.tls {
        let files = [&tls.peer, &tls.client].into_iter();
        let files = files.flat_map(|set| [&set.ca_file, &set.cert_file, &set.key_file]);
        shared.extend(files.filter_map(|file| file.parent()));
    }
    shared.sort_unstable();
    shared.dedup();
    // What is seen of the host's files is at the same places.
    let volume = |path: &Path| format!("--volume={0}:{0}", path.display());
    let volumes: Vec<_> = shared.into_iter().map(volume).collect();
    ETCD_IN_PODMAN
        .replace("@NAME@", dyad_cluster::pair::CONTAINER)
        .replace("@VOLUMES@", &volumes.join(" "))
        .replace("@IMAGE@", image)
}

/// The set-up unit by itself.
pub(crate) fn setup() -> &'static str {
    SETUP
}

/// The units that a package brings: the same ones, below `/usr/lib/systemd/system`.
pub fn packaged() -> Vec<(&'static str, &'static str)> {
    vec![
        (SETUP_UNIT, SETUP),
        ("corosync.service.d/10-dyad.conf", COROSYNC_DROP_IN),
        ("pacemaker.service.d/10-dyad.conf", PACEMAKER_DROP_IN),
        (LONE_BOOT_UNIT, LONE_BOOT),
        ("dyad-follow.service", FOLLOW),
        (WEBHOOK_PATH, WEBHOOK),
        ("dyad-webhook.service", WEBHOOK_SERVICE),
        ("dyad.slice", SLICE),
        ("dyad-etcd.service", ETCD),
    ]
}
