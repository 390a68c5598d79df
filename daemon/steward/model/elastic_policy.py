"""How elastic runs grow and shrink, as numbers the decisions use; made from the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticPolicy:
    """Seconds. What a run's own `--elastic` says comes before this."""

    enabled: bool = True
    """False: no run grows; what is too much is still given back."""
    grace_s: float = 600.0
    """All ranks have saved by then."""
    settle_s: float = 60.0
    """From the first node that is there to the growth: others may come."""
    faulty_s: float = 30.0
    """How long a lost node's replacement may take before the run goes on smaller."""
    snooze_s: float = 300.0
    """No growth for so long after any change of size."""
    backoff_s: float = 300.0
    """The same after one that did not last, doubled by each later one ..."""
    backoff_most_s: float = 3600.0
    """... up to this."""
    form_s: float = 900.0
    """The first step at a new size is made by then, or it counts as failed."""
    pause_s: float = 60.0
    """What a change costs a run that made none yet: from the wish to the first step."""
    growths_at_once: int = 4
    """Runs that grow at the same time."""
    replica_limit_s: float = 14_400.0
    """The time limit of replica jobs: short ones fit into gaps."""
