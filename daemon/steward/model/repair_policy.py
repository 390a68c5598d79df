"""`[repair]`: the deadline of each step, the limits on repairs at once, and the tries of each rung."""

from pydantic import Field

from steward.model.section import Section
from steward.model.setting_types import HOUR_S, Durations, RepairMode


class LadderPolicy(Section):
    """The ladder of repairs: how often and how long each rung is tried for one machine before the next rung."""

    restarts_per_hour: int = Field(default=2, ge=0, le=1000, description="Restarts of services on one machine.")
    resets_per_day: int = Field(default=1, ge=0, le=1000, description="Resets of GPUs on one machine.")
    reboots_per_day: int = Field(default=2, ge=0, le=1000, description="Reboots of one machine.")
    restart_timeout_s: float = Field(
        default=120.0, ge=1, le=86400, description="Time limit for a restarted service to pass its checks."
    )
    reset_timeout_s: float = Field(
        default=300.0, ge=1, le=86400, description="Time limit for a GPU that was reset to pass its checks."
    )
    reboot_timeout_s: float = Field(
        default=1500.0, ge=1, le=86400, description="Time limit for a rebooted node's agent to be back."
    )
    hardware_repairs: int = Field(
        default=3, ge=1, le=100, description="Repairs (resets, reboots, replacements) of one piece of hardware ..."
    )
    hardware_window_h: float = Field(
        default=168.0, ge=0.01, le=672, description="... within this time; the next one is left to a person."
    )
    replacements_per_day: int = Field(
        default=2, ge=1, le=1000, description="Replacements of one node's machine; the next one is left to a person."
    )
    probation_h: float = Field(
        default=24.0, ge=0, le=672, description="A fault within this time of a repair skips a rung."
    )
    cooldown_s: float = Field(
        default=300.0, ge=0, le=86400, description="From a node's return to its next repair that a check asks for."
    )

    @property
    def hardware_window_s(self) -> float:
        """Return `hardware_window_h` in seconds."""
        return self.hardware_window_h * HOUR_S

    @property
    def probation_s(self) -> float:
        """Return `probation_h` in seconds."""
        return self.probation_h * HOUR_S


class RepairPolicy(Section):
    """Repair of nodes: the deadline of each step, and the limits on repairs at once."""

    mode: RepairMode = Field(
        default=RepairMode.REPORT,
        description='"report": report what would be done, but touch no node (jobs are still resumed); "ask": '
        'drain broken nodes, and repair each only after `steward approve CASE`; "act": repair. '
        'Choose "ask" or "act" when the reports look right.',
    )
    settle_s: float = Field(
        default=0.1, ge=0, le=60, description="How long a lost agent must stay lost before it counts."
    )
    settle_degraded_s: float = Field(
        default=10.0,
        ge=0,
        le=300,
        description="How long a degraded finding must stand before its node is drained, so that one cause on several "
        "nodes is an incident before any of them is; 0 drains at once. Fatal findings and events never wait.",
    )
    witness_fresh_s: float = Field(
        default=3.0, ge=0.5, le=60, description="How long the word of a second source (slurmd, the provider) counts."
    )
    suspect_deadline_s: float = Field(
        default=30.0, ge=1, le=3600, description="A suspicion that is not confirmed ends after this."
    )
    drain_deadline_s: float = Field(default=60.0, ge=1, le=3600, description="Time limit for Slurm to show the drain.")
    release_deadline_h: float = Field(
        default=24.0, ge=0.01, le=720, description="Jobs on a degraded node may run this long."
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
    max_launches: int = Field(
        default=5, ge=1, le=100, description="After so many failed instances the case is held for a person."
    )
    capacity_backoff_s: Durations = Field(
        default=(60.0, 120.0, 300.0, 600.0), description='Waits after "no capacity"; the last one repeats.'
    )
    concurrent_percent: float = Field(
        default=5.0, ge=0, le=100, description="Repairs at once, as a share of a group ..."
    )
    concurrent_min: int = Field(default=1, ge=1, le=10000, description="... but at least this many.")
    concurrent_all_count: int = Field(default=20, ge=1, le=10000, description="Repairs at once in the whole cluster.")
    breaker_percent: float = Field(
        default=20.0, ge=0, le=100, description="More nodes taken out by Steward than this share of a group ..."
    )
    breaker_min: int = Field(
        default=2,
        ge=1,
        le=10000,
        description="... and than this number trip the breaker: Steward only reports until it closes.",
    )
    check_breaker_percent: float = Field(
        default=10.0, ge=0, le=100, description="More nodes taken out for one check than this share of all ..."
    )
    check_breaker_min: int = Field(default=2, ge=1, le=10000, description="... and than this number ...")
    check_breaker_window_s: float = Field(
        default=600.0,
        ge=1,
        le=86400,
        description="... within this time trip a breaker: that check only reports until it closes.",
    )
    breaker_patience_s: float = Field(
        default=1800.0,
        ge=60,
        le=86400,
        description="This long after a breaker tripped one repair is let through: if it ends well the breaker "
        "closes, otherwise the time is doubled.",
    )
    correlated_percent: float = Field(
        default=5.0, ge=0, le=100, description="The same fault on this share of all nodes ..."
    )
    correlated_min: int = Field(
        default=3,
        ge=2,
        le=10000,
        description="... and at least this many: one incident, no node touched but lost ones that are surely gone.",
    )
    correlated_window_s: float = Field(
        default=300.0, ge=1, le=86400, description="Faults this close together count as the same."
    )
    correlated_span_s: float = Field(
        default=30.0, ge=0, le=3600, description="Agents that fall silent this close together have a common cause."
    )
    node_repairs: int = Field(default=3, ge=1, le=100, description="Repairs of one node ...")
    node_repairs_window_h: float = Field(
        default=168.0, ge=0.01, le=8760, description="... within this time; the next one is left to a person."
    )
    replacements_per_hour: int = Field(
        default=10,
        ge=0,
        le=10000,
        description="At most this many repairs begin within an hour in the whole cluster (light ones are not "
        "counted); the next one waits.",
    )
    budgets: LadderPolicy = LadderPolicy()
    agents_grace_s: float = Field(
        default=15.0,
        ge=0,
        le=600,
        description="How long an agent may take to connect after the head's start, a power-up or a reboot, or "
        "after others that fell silent with it are heard again.",
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

    @property
    def check_breaker_fraction(self) -> float:
        """Return `check_breaker_percent` as a fraction."""
        return self.check_breaker_percent / 100.0

    @property
    def correlated_fraction(self) -> float:
        """Return `correlated_percent` as a fraction."""
        return self.correlated_percent / 100.0
