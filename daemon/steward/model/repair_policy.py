"""`[repair]`: the deadline of each step, the limits on repairs at once, and the tries of each rung."""

from pydantic import Field

from steward.model.section import Section
from steward.model.setting_types import HOUR_S, Durations, RepairMode

WITNESS_FRESH_S = 3.0
"""How long the word of a second source (slurmd, the provider) about a node counts."""
SUSPECT_S = 30.0
"""A suspicion that is not confirmed ends after this time, which the longest `settle_s` and a second look fit into."""


class LadderPolicy(Section):
    """The ladder of repairs: how often and how long each rung is tried for one machine before the next rung."""

    restarts_per_hour: int = Field(default=2, ge=0, le=1000, description="Restarts of services on one machine.")
    resets_per_day: int = Field(default=1, ge=0, le=1000, description="Resets of GPUs on one machine.")
    reboots_per_day: int = Field(default=2, ge=0, le=1000, description="Reboots of one machine.")
    reset_timeout_s: float = Field(
        default=300.0, ge=1, le=86400, description="Time limit for a reset GPU to pass its checks."
    )
    reboot_timeout_s: float = Field(
        default=1500.0, ge=1, le=86400, description="Time limit for a rebooted node's agent."
    )
    hardware_repairs: int = Field(
        default=3, ge=1, le=100, description="Repairs of one piece of hardware in a week; the next is a person's."
    )
    replacements_per_day: int = Field(
        default=2, ge=1, le=1000, description="Replacements of one node's machine; the next is a person's."
    )
    probation_h: float = Field(default=24.0, ge=0, le=672, description="A fault this soon after a repair skips a rung.")
    cooldown_s: float = Field(
        default=300.0, ge=0, le=86400, description="From a node's return to its next repair for a check."
    )

    @property
    def probation_s(self) -> float:
        """Return `probation_h` in seconds."""
        return self.probation_h * HOUR_S


class RepairPolicy(Section):
    """Repair of nodes: the deadline of each step, and the limits on repairs at once."""

    mode: RepairMode = Field(
        default=RepairMode.REPORT,
        description='"report": touch no node (jobs are resumed); "ask": drain, and repair '
        'after `steward approve CASE`; "act": repair.',
    )
    settle_s: float = Field(
        default=0.1, ge=0, le=20, description="How long an agent must be lost before its node counts as silent."
    )
    settle_degraded_s: float = Field(
        default=10.0,
        ge=0,
        le=300,
        description="How long a degraded finding stands before its node is drained; 0: drain at once.",
    )
    drain_deadline_s: float = Field(default=60.0, ge=1, le=3600, description="Time limit for Slurm to show the drain.")
    release_deadline_h: float = Field(
        default=24.0, ge=0.01, le=720, description="How long jobs on a degraded node may run."
    )
    launch_timeout_s: float = Field(
        default=2700.0, ge=1, le=86400, description="Time limit for the provider to begin an instance."
    )
    provision_timeout_s: float = Field(
        default=2700.0, ge=1, le=86400, description="Time limit for the new instance's agent to connect."
    )
    verify_timeout_s: float = Field(default=300.0, ge=1, le=86400, description="Time limit for all checks to pass.")
    return_timeout_s: float = Field(
        default=60.0, ge=1, le=3600, description="Time limit for Slurm to show the node in service."
    )
    retry_s: float = Field(default=5.0, ge=0.1, le=3600, description="Time between tries of an action that failed.")
    max_launches: int = Field(default=5, ge=1, le=100, description="After so many failed instances a person decides.")
    capacity_backoff_s: Durations = Field(
        default=(60.0, 120.0, 300.0, 600.0), description='Waits after "no capacity"; the last one repeats.'
    )
    concurrent_percent: float = Field(
        default=5.0, ge=0, le=100, description="Share of a group under repair at once ..."
    )
    concurrent_min: int = Field(default=1, ge=1, le=10000, description="... but at least this many.")
    concurrent_all_count: int = Field(default=20, ge=1, le=10000, description="Repairs at once in the whole cluster.")
    breaker_percent: float = Field(
        default=20.0, ge=0, le=100, description="More nodes of a group out than this share ..."
    )
    breaker_min: int = Field(
        default=2,
        ge=1,
        le=10000,
        description="... and this number trip the breaker: Steward only reports.",
    )
    check_breaker_min: int = Field(
        default=2,
        ge=1,
        le=10000,
        description="More nodes out for one check in 10 min than this, and 10 % of all, trip its breaker.",
    )
    breaker_patience_s: float = Field(
        default=1800.0,
        ge=60,
        le=86400,
        description="After this a tripped breaker lets one repair through; a failure doubles the time.",
    )
    correlated_min: int = Field(
        default=3,
        ge=2,
        le=10000,
        description="The same fault on this many nodes, and 5 % of all, is an incident: no node is repaired.",
    )
    node_repairs: int = Field(default=3, ge=1, le=100, description="Repairs of one node ...")
    node_repairs_window_h: float = Field(
        default=168.0, ge=0.01, le=8760, description="... within this time; the next is a person's."
    )
    replacements_per_hour: int = Field(
        default=10,
        ge=0,
        le=10000,
        description="Repairs begun in an hour, light ones aside.",
    )
    budgets: LadderPolicy = LadderPolicy()
    agents_grace_s: float = Field(
        default=15.0,
        ge=0,
        le=600,
        description="How long agents may take to connect after a start of the head or a reboot, at most.",
    )

    @property
    def act(self) -> bool:
        """Return whether Steward may act on nodes; otherwise it only reports."""
        return self.mode is not RepairMode.REPORT

    @property
    def ask(self) -> bool:
        """Return whether nodes are drained, but repaired only after a person approves."""
        return self.mode is RepairMode.ASK

    @property
    def release_deadline_s(self) -> float:
        """Return `release_deadline_h` in seconds."""
        return self.release_deadline_h * HOUR_S

    @property
    def node_repairs_window_s(self) -> float:
        """Return `node_repairs_window_h` in seconds."""
        return self.node_repairs_window_h * HOUR_S

    @property
    def concurrent_fraction(self) -> float:
        """Return `concurrent_percent` as a fraction."""
        return self.concurrent_percent / 100.0

    @property
    def breaker_fraction(self) -> float:
        """Return `breaker_percent` as a fraction."""
        return self.breaker_percent / 100.0
