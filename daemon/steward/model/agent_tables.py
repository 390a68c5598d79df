"""The tables of the settings file that agents read, too: `[cluster]`, `[agent]` and `[health]`.

Agents load them without pydantic, to stay small; in the head, pydantic reads the same declarations.
"""

from dataclasses import dataclass
from pathlib import Path

from steward.model.mend import RESTARTABLE
from steward.model.setting_types import FullPath, HeadAddresses, Words, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The Slurm cluster that Steward looks after."""

    name: str = setting(default="", max_length=63, description="Name shown to people; empty: Slurm's ClusterName.")
    slurm_conf: FullPath = setting(
        default=Path("/etc/slurm/slurm.conf"),
        description="Slurm's configuration; `SLURM_CONF` in the environment replaces the default.",
    )
    slurm_user: str = setting(
        default="slurm", min_length=1, description="Login name of SlurmUser, as whom stewardd runs."
    )
    munge_socket: FullPath | None = setting(
        default=None, description="munged's socket; none: the munge library's own default."
    )
    command_timeout_s: float = setting(
        default=10.0,
        ge=1,
        le=18,
        description="Time limit of one Slurm command; raise it for a slow slurmctld.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The daemon `steward-agent` on every node. `%n` in a path here is replaced by the node's name."""

    head: HeadAddresses = setting(
        default=("localhost:6861",),
        description="Address of stewardd (`head.listen` as seen from a node); a list where there are two heads.",
    )
    node_name: str = setting(
        default="",
        max_length=253,
        description="Slurm's name of this node; empty: by NodeHostname in slurm.conf, else `hostname -s`.",
    )
    socket: FullPath = setting(default=Path("/run/steward/agent.sock"), description="Socket for the shim.")
    state_dir: FullPath = setting(
        default=Path("/run/steward"), description="Folder of the agent's state until the next boot."
    )
    instance_id_file: FullPath | None = setting(
        default=None,
        description="File with the machine's instance id; none: the cloud's, firmware's or machine-id.",
    )
    boot_id_file: FullPath = setting(
        default=Path("/proc/sys/kernel/random/boot_id"), description="File with the id of this boot."
    )
    site_checks_dir: FullPath = setting(
        default=Path("/etc/steward/checks.d"), description="Executables that are the site's own checks."
    )
    kernel_log: FullPath = setting(default=Path("/dev/kmsg"), description="Kernel log: /dev/kmsg or a plain file.")
    proc_dir: FullPath = setting(default=Path("/proc"), description="Where checks find the files of /proc.")
    sys_dir: FullPath = setting(default=Path("/sys"), description="Where checks find the files of /sys.")
    board_serial_file: FullPath = setting(
        default=Path("/sys/class/dmi/id/board_serial"),
        description="File with the board's serial number, by which repairs are counted.",
    )
    job_dir: FullPath = setting(
        default=Path("/run/steward/jobs"),
        description="Folders in which resumed jobs report progress; mount it in containers.",
    )
    setup_dir: FullPath = setting(
        default=Path("/var/lib/steward-agent"),
        description="Where lifecycle scripts run; not on a file system mounted noexec.",
    )
    setup_log: FullPath = setting(
        default=Path("/var/log/provision/provisioning.log"), description="Full output of lifecycle scripts."
    )
    restart_units: Words = setting(
        default=RESTARTABLE,
        description="systemd services that the agent may restart; no others.",
    )
    config_dir: FullPath = setting(
        default=Path("/opt/ml/config"),
        description="Where lifecycle scripts find their two JSON files.",
    )
    check_interval_s: float = setting(default=15.0, ge=0.2, le=3600, description="Time between two runs of each check.")
    hold_head_absent_s: float = setting(
        default=70.0,
        ge=0,
        le=3600,
        description="How long a failed job is held while the head is away; less than the shim's `hold=` (80).",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPolicy:
    """When a bad state counts. Events (a kernel-log line) count at once."""

    bad_samples: int = setting(default=2, ge=1, le=20, description="This many bad samples ...")
    last_samples: int = setting(default=3, ge=1, le=20, description="... of this many make a state bad.")
    clear_after_s: float = setting(
        default=600.0, ge=0, le=86400, description="A bad state ends when its check passed for this long."
    )
    features: bool = setting(
        default=True,
        description="Nodes get a feature `HealthCheck:Passed`, `:Failed` or `:Skipped` for `sbatch -C`.",
    )
    canary_node_count: int = setting(
        default=5,
        ge=0,
        le=10000,
        description="A new site check only reports until this many nodes had results for 4 h; 0: no trial.",
    )
