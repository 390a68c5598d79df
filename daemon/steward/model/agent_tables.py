"""The tables of the settings file that agents read, too: `[cluster]`, `[agent]` and `[health]`.

Agents load them without pydantic, to stay small; in the head, pydantic reads the same declarations.
"""

from dataclasses import dataclass
from pathlib import Path

from steward.model.mend import RESTARTABLE
from steward.model.setting_types import HOUR_S, FullPath, HostPort, Words, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The Slurm cluster that Steward looks after."""

    name: str = setting(default="", max_length=63, description="Name shown to people; empty: Slurm's ClusterName.")
    slurm_conf: FullPath = setting(
        default=Path("/etc/slurm/slurm.conf"),
        description="Slurm's configuration; `SLURM_CONF` in the environment replaces the default.",
    )
    slurm_user: str = setting(
        default="slurm", min_length=1, description="Login name of SlurmUser; stewardd runs as this user."
    )
    munge_socket: FullPath | None = setting(
        default=None, description="munged's socket; none: the munge library's own default."
    )
    command_timeout_s: float = setting(
        default=10.0,
        ge=1,
        le=18,
        description="Time limit of one Slurm command; an action takes up to three, within the watchdog's 60 s.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The daemon `steward-agent` on every node. `%n` in a path here is replaced by the node's name."""

    head: HostPort = setting(
        default="localhost:6861", description="Address of stewardd (`head.listen` as seen from a node)."
    )
    node_name: str = setting(default="", max_length=253, description="Slurm's name of this node; empty: `hostname -s`.")
    socket: FullPath = setting(default=Path("/run/steward/agent.sock"), description="Socket for the shim.")
    state_dir: FullPath = setting(
        default=Path("/run/steward"), description="Folder of the agent's state until the next boot."
    )
    instance_id_file: FullPath | None = setting(
        default=None,
        description="File with the machine's instance id; none: the cloud's or firmware's id, or machine-id.",
    )
    boot_id_file: FullPath = setting(
        default=Path("/proc/sys/kernel/random/boot_id"), description="File with the id of this boot."
    )
    site_checks_dir: FullPath = setting(
        default=Path("/etc/steward/checks.d"), description="Executables that are the site's own checks."
    )
    kernel_log: FullPath = setting(
        default=Path("/dev/kmsg"), description="Kernel log to follow: /dev/kmsg or a plain file."
    )
    proc_dir: FullPath = setting(default=Path("/proc"), description="Where checks find the files of /proc.")
    sys_dir: FullPath = setting(default=Path("/sys"), description="Where checks find the files of /sys.")
    board_serial_file: FullPath = setting(
        default=Path("/sys/class/dmi/id/board_serial"),
        description="File with the serial number of the node's board; repairs are counted by it, also after a "
        "replacement.",
    )
    job_dir: FullPath = setting(
        default=Path("/run/steward/jobs"),
        description="Each job with `--auto-resume` that runs here has a folder of its user's in it, where its "
        "tasks report progress. Jobs must see it under this name (containers: mount it).",
    )
    setup_dir: FullPath = setting(
        default=Path("/var/lib/steward-agent"),
        description="Lifecycle scripts are fetched to this folder and run there; its file system must not be "
        "mounted noexec.",
    )
    setup_log: FullPath = setting(
        default=Path("/var/log/provision/provisioning.log"), description="Full output of lifecycle scripts."
    )
    restart_units: Words = setting(
        default=RESTARTABLE,
        description="systemd services that the agent may restart when a check asks for it; it never restarts others.",
    )
    config_dir: FullPath = setting(
        default=Path("/opt/ml/config"),
        description="Where resource_config.json and provisioning_parameters.json are written for lifecycle scripts.",
    )
    check_interval_s: float = setting(default=15.0, ge=0.2, le=3600, description="Time between two runs of each check.")
    hold_head_absent_s: float = setting(
        default=70.0,
        ge=0,
        le=3600,
        description="A failed job is held this long while the head is away; keep it below the shim's `hold=` (80).",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy:
    """When a bad state counts. Events (a kernel-log line) count at once."""

    bad_samples: int = setting(default=2, ge=1, le=20, description="This many bad samples ...")
    last_samples: int = setting(
        default=3, ge=1, le=20, description="... among this many of the latest make a state count as bad."
    )
    clear_after_s: float = setting(
        default=600.0, ge=0, le=86400, description="A bad state is over when its check has passed for this long."
    )
    features: bool = setting(
        default=True,
        description="Nodes get one of the features `HealthCheck:Passed`, `HealthCheck:Failed` and "
        "`HealthCheck:Skipped` in Slurm, so that users can choose with `-C HealthCheck:Passed`.",
    )
    canary_node_count: int = setting(
        default=5,
        ge=0,
        le=10000,
        description="A new or changed site check only reports until this many nodes had results (0: no trial) ...",
    )
    canary_h: float = setting(default=4.0, ge=0, le=720, description="... for this long, ...")
    canary_failing_percent: float = setting(
        default=5.0,
        ge=0,
        le=100,
        description="... and the share that failed is at most this much above that of its earlier version.",
    )

    @property
    def canary_s(self) -> float:
        """Return `canary_h` in seconds."""
        return self.canary_h * HOUR_S

    @property
    def canary_failing_fraction(self) -> float:
        """Return `canary_failing_percent` as a fraction."""
        return self.canary_failing_percent / 100.0
