"""The daemons' own tables: cluster, head, api, agent, health, resume, repair."""

from pathlib import Path

from pydantic import Field

from steward.model.desired import RepairPolicy, ResumePolicy
from steward.model.settings.types import HostPort, RepairMode, Section, Words


class ClusterSettings(Section):
    """The Slurm cluster that Steward looks after."""

    name: str = Field(default="", max_length=63, description="Name shown to people; empty: ClusterName of slurm.conf.")
    slurm_conf: Path = Field(
        default=Path("/etc/slurm/slurm.conf"),
        description="Slurm's configuration; `SLURM_CONF` in the environment replaces the default.",
    )
    slurm_user: str = Field(
        default="slurm", min_length=1, description="Login name of SlurmUser; stewardd runs as this user."
    )
    munge_socket: Path | None = Field(
        default=None, description="munged's socket; none: the munge library's own default."
    )
    command_timeout_s: float = Field(
        default=10.0, ge=1, le=300, description="Time limit of one Slurm command (scontrol, sinfo)."
    )


class HeadSettings(Section):
    """The daemon `stewardd` on the controller."""

    listen: HostPort = Field(default="0.0.0.0:6861", description="Where agents connect to.")
    http: HostPort = Field(
        default="127.0.0.1:6860", description="The HTTP API for `steward` and Prometheus; keep it on loopback."
    )
    state_dir: Path = Field(default=Path("/var/lib/steward"), description="Where the store's file `steward.db` lies.")
    database: str | None = Field(
        default=None,
        min_length=8,
        description="SQLAlchemy URL of a shared database instead of the file (two head nodes).",
    )
    sweep_s: float = Field(
        default=5.0, ge=0.1, le=300, description="The cycle runs at least this often, events or not."
    )
    busy_sweep_s: float = Field(
        default=1.0, ge=0.1, le=300, description="The same while a case is open, a job is brought back or an ask waits."
    )
    heartbeat_s: float = Field(
        default=1.0,
        ge=0.2,
        le=60,
        description="Shortest time between an agent's beats; grows by one second per 500 nodes.",
    )


class ApiSettings(Section):
    """Who may change things over HTTP (root and SlurmUser always may)."""

    admins: Words = Field(default=(), description="Further login names that may pause, resume actions and the like.")


class AgentSettings(Section):
    """The daemon `steward-agent` on every node."""

    head: HostPort = Field(
        default="localhost:6861", description="Where stewardd listens (`head.listen` as seen from a node)."
    )
    node_name: str = Field(default="", max_length=253, description="Slurm's name of this node; empty: `hostname -s`.")
    socket: Path = Field(
        default=Path("/run/steward/agent.sock"), description="Socket for the shim; `%n` is replaced by the node's name."
    )
    state_dir: Path = Field(default=Path("/run/steward"), description="What the agent keeps while the machine is up.")
    instance_id_file: Path | None = Field(
        default=None,
        description="File with the machine's instance id; none: the cloud's or firmware's id, or machine-id.",
    )
    boot_id_file: Path = Field(
        default=Path("/proc/sys/kernel/random/boot_id"), description="File with the id of this boot."
    )
    site_checks_dir: Path = Field(
        default=Path("/etc/steward/checks.d"), description="Executables that are the site's own checks."
    )
    kernel_log: Path = Field(default=Path("/dev/kmsg"), description="Kernel log to follow: /dev/kmsg or a plain file.")
    check_interval_s: float = Field(default=15.0, ge=0.2, le=3600, description="Time between two runs of each check.")
    hold_head_absent_s: float = Field(
        default=90.0,
        ge=0,
        le=3600,
        description="A failed job is held this long while the head is away; keep it below the shim's `hold=` (120).",
    )


class HealthSettings(Section):
    """When a bad state counts. Events (a kernel-log line) count at once."""

    bad_samples: int = Field(default=2, ge=1, le=20, description="This many bad samples ...")
    last_samples: int = Field(default=3, ge=1, le=20, description="... of the last so many make a state finding bad.")


class ResumeSettings(Section):
    """Bringing back jobs that were submitted with `--auto-resume`."""

    enabled: bool = Field(
        default=True, description="false: every failed job ends with its own status, as without Steward."
    )
    max_resumes: int = Field(default=5, ge=0, le=1000, description="A job is resumed at most this many times.")
    evidence_before_s: float = Field(
        default=600.0, ge=0, le=86400, description="Evidence this long before a failure explains it."
    )
    evidence_after_s: float = Field(
        default=300.0, ge=0, le=86400, description="Evidence this long after a failure explains it."
    )
    check_budget_s: float = Field(
        default=2.0,
        ge=0.1,
        le=60,
        description="How long a job's nodes have to answer the fresh checks after a failure.",
    )
    nudge_first_s: float = Field(
        default=0.3, ge=0.1, le=60, description="Time between the first nudges of a requeued job that does not run yet."
    )
    nudge_max_s: float = Field(default=5.0, ge=0.1, le=600, description="The time between nudges grows up to this.")
    exclude_culprits_h: float = Field(
        default=24.0, ge=0, le=720, description="A blamed node stays on the job's exclude list this long."
    )

    def policy(self) -> ResumePolicy:
        return ResumePolicy(
            enabled=self.enabled,
            max_resumes=self.max_resumes,
            evidence_before_s=self.evidence_before_s,
            evidence_after_s=self.evidence_after_s,
            check_budget_s=self.check_budget_s,
            nudge_first_s=self.nudge_first_s,
            nudge_max_s=self.nudge_max_s,
            exclude_culprits_s=self.exclude_culprits_h * 3600.0,
        )


class RepairSettings(Section):
    """Repair of nodes: deadlines of each step and how much may be broken at once."""

    mode: RepairMode = Field(
        default=RepairMode.ACT,
        description='"report": decide and tell, but touch no node. Start with this on an existing cluster.',
    )
    settle_s: float = Field(
        default=0.2, ge=0, le=60, description="How long a lost agent must stay lost before it counts."
    )
    witness_fresh_s: float = Field(
        default=3.0, ge=0.5, le=60, description="A second witness's word is good for this long."
    )
    suspect_deadline_s: float = Field(
        default=30.0, ge=1, le=3600, description="A suspicion that nobody confirms ends after this."
    )
    drain_deadline_s: float = Field(
        default=60.0, ge=1, le=3600, description="Slurm must show our drain within this time."
    )
    release_deadline_h: float = Field(
        default=24.0, ge=0.01, le=720, description="Jobs on a degraded node may run this long."
    )
    launch_timeout_s: float = Field(
        default=2700.0, ge=1, le=86400, description="The provider must have begun an instance by then."
    )
    provision_timeout_s: float = Field(
        default=2700.0, ge=1, le=86400, description="The new instance's agent must be there by then."
    )
    verify_timeout_s: float = Field(default=300.0, ge=1, le=86400, description="All checks must have passed by then.")
    return_timeout_s: float = Field(
        default=60.0, ge=1, le=3600, description="Slurm must show the node in service by then."
    )
    retry_s: float = Field(default=5.0, ge=0.1, le=3600, description="Time between tries of an action that failed.")
    max_launches: int = Field(
        default=5, ge=1, le=100, description="After so many failed instances the case is held for a person."
    )
    concurrent_percent: float = Field(
        default=5.0, ge=0, le=100, description="Repairs at once, as a share of a group ..."
    )
    concurrent_min: int = Field(default=1, ge=1, le=10000, description="... but at least this many.")
    breaker_percent: float = Field(
        default=20.0, ge=0, le=100, description="More nodes out by us than this share of a group ..."
    )
    breaker_min: int = Field(
        default=2, ge=1, le=10000, description="... and than this number: report only until a person looked."
    )
    correlated_percent: float = Field(
        default=5.0, ge=0, le=100, description="The same fault on this share of all nodes ..."
    )
    correlated_min: int = Field(
        default=3, ge=2, le=10000, description="... and at least this many: one incident, no node touched."
    )
    correlated_window_s: float = Field(
        default=300.0, ge=1, le=86400, description="Faults this close together count as the same."
    )
    replacements_per_hour: int = Field(
        default=10, ge=0, le=10000, description="Then hold and tell, whatever the group's size."
    )
    agents_grace_s: float = Field(
        default=15.0, ge=0, le=600, description="After the head's start no agent is called lost for this long."
    )

    def policy(self) -> RepairPolicy:
        return RepairPolicy(
            act=self.mode is RepairMode.ACT,
            settle_s=self.settle_s,
            witness_fresh_s=self.witness_fresh_s,
            suspect_deadline_s=self.suspect_deadline_s,
            drain_deadline_s=self.drain_deadline_s,
            release_deadline_s=self.release_deadline_h * 3600.0,
            launch_timeout_s=self.launch_timeout_s,
            provision_timeout_s=self.provision_timeout_s,
            verify_timeout_s=self.verify_timeout_s,
            return_timeout_s=self.return_timeout_s,
            retry_s=self.retry_s,
            max_launches=self.max_launches,
            concurrent_fraction=self.concurrent_percent / 100.0,
            concurrent_min=self.concurrent_min,
            breaker_fraction=self.breaker_percent / 100.0,
            breaker_min=self.breaker_min,
            correlated_fraction=self.correlated_percent / 100.0,
            correlated_min=self.correlated_min,
            correlated_window_s=self.correlated_window_s,
            replacements_per_hour=self.replacements_per_hour,
            agents_grace_s=self.agents_grace_s,
        )
