"""How quotas are kept, as numbers the decisions use; made from the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPolicy:
    """Times in seconds unless the name says otherwise."""

    enabled: bool = True
    """False: quotas are kept and shown, nothing is written to Slurm."""
    count_filled: bool = False
    """Whether vCPU and memory limit a team that did not ask for them (HyperPod counts what it filled in)."""
    grace_s: float = 60.0
    """From the signal to a job that has to give way to its end."""
    patience_s: float = 15.0
    """How long after the grace Slurm's own preemption may take before we make room ourselves."""
    backoff_s: float = 60.0
    """A job that gave way twice borrows again only after this long, doubled by each later time ..."""
    backoff_most_s: float = 3600.0
    """... up to this. What its team's quota covers never waits for it."""
    rebalance: bool = False
    """Whether a team that borrowed more than its fair share gives way to one that borrowed less."""
    rebalance_after_s: float = 600.0
    """Only jobs that ran for so long give way to that, and one at a time in this time."""
    borrow_priority: int | None = None
    """A borrowed job gives way to one of another team that has a higher priority class, when its own class is below
    this weight; None: never."""
    strict: frozenset[str] = frozenset()
    """Teams whose jobs start in order: a job that must wait holds up those behind it (StrictFIFO)."""
    edits_at_once: int = 8
    """Writes to Slurm's accounting in one turn at most; the rest waits for the next."""
