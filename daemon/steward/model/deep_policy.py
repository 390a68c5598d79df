"""The table `[deep]`: deep checks of nodes that no job uses."""

import sys

from pydantic import Field

from steward.model.deep import DeepKind
from steward.model.setting_types import Program, Section

_HOUR_S = 3600.0


class DeepPolicy(Section):
    """Deep checks: what runs on nodes that no job uses, when, and on how many at once."""

    enabled: bool = Field(default=True, description="false: no deep check starts, whoever asks for it.")
    command: Program | None = Field(
        default=None,
        description="The runner, by its path on the nodes; none: `-m steward.deep` with the Python that runs the head.",
    )
    on_start: tuple[DeepKind, ...] = Field(
        default=(),
        strict=False,
        description="What new and repaired machines of `[[groups]]` must pass before they serve: InstanceStress, "
        "InstanceConnectivity. Groups of the API have OnStartDeepHealthChecks of their own.",
    )
    suspects: bool = Field(
        default=True, description="Deep-check a node with a suspected, unproven fault as soon as it is idle."
    )
    sweep_period_h: float = Field(
        default=0.0, ge=0, le=8760, description="Every idle node is deep-checked once in this time; 0: never."
    )
    budget_s: float = Field(default=900.0, ge=10, le=86400, description="How long one deep check may run on its nodes.")
    start_timeout_s: float = Field(
        default=120.0,
        ge=5,
        le=3600,
        description="A deep check whose job Slurm does not start within this time is given up.",
    )
    busy_wait_s: float = Field(
        default=600.0, ge=0, le=86400, description="How long a busy node is waited for before it is skipped."
    )
    gather_s: float = Field(
        default=15.0, ge=0, le=3600, description="How long free nodes wait for the other nodes of their check."
    )
    at_once_percent: float = Field(
        default=10.0, gt=0, le=100, description="At most this share of the idle nodes is under a deep check at once ..."
    )
    at_once_min: int = Field(
        default=2, ge=1, le=10000, description="... but at least this many; a single node cannot measure the network."
    )
    output: str = Field(
        default="/dev/null",
        pattern=r"^/[^\s'\"]*$",
        max_length=255,
        description="Where the runner's output goes on the first node of a check; `%j` is the job's number.",
    )

    @property
    def runner(self) -> tuple[str, ...]:
        """The program that runs on the nodes: `command`, or else this Python."""
        return self.command or (sys.executable, "-m", "steward.deep")

    @property
    def sweep_period_s(self) -> float:
        """Every idle node is deep-checked once in this time; 0: never."""
        return self.sweep_period_h * _HOUR_S

    @property
    def at_once_fraction(self) -> float:
        """At most this share of the idle nodes is under a deep check at once."""
        return self.at_once_percent / 100.0
