"""`[health]`: when a bad state counts, trials of checks that may change, and what Slurm's users are told of a node."""

from pydantic import Field

from steward.model.section import Section

_HOUR_S = 3600.0


class HealthPolicy(Section):
    """When a bad state counts. Events (a kernel-log line) count at once."""

    bad_samples: int = Field(default=2, ge=1, le=20, description="This many bad samples ...")
    last_samples: int = Field(
        default=3, ge=1, le=20, description="... among this many of the latest make a state count as bad."
    )
    clear_after_s: float = Field(
        default=600.0, ge=0, le=86400, description="A bad state is over when its check has passed for this long."
    )
    features: bool = Field(
        default=True,
        description="Nodes get one of the features `HealthCheck:Passed`, `HealthCheck:Failed` and "
        "`HealthCheck:Skipped` in Slurm, so that users can choose with `-C HealthCheck:Passed`.",
    )
    canary_node_count: int = Field(
        default=5,
        ge=0,
        le=10000,
        description="A new or changed site check only reports until this many nodes had results (0: no trial) ...",
    )
    canary_h: float = Field(default=4.0, ge=0, le=720, description="... for this long, ...")
    canary_failing_percent: float = Field(
        default=5.0,
        ge=0,
        le=100,
        description="... and the share that failed is at most this much above that of its earlier version.",
    )

    @property
    def canary_s(self) -> float:
        """Such a check is armed at the earliest so long after enough nodes had results of it."""
        return self.canary_h * _HOUR_S

    @property
    def canary_failing_fraction(self) -> float:
        """It is armed when no larger share of its nodes failed than this, above what its earlier version had."""
        return self.canary_failing_percent / 100.0
