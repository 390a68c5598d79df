"""Actions for quotas: limits and marks in Slurm, and places in its queue."""

from dataclasses import dataclass

from steward.model.ids import JobId
from steward.model.why import BaseAction

Caps = tuple[tuple[str, int | None], ...]
"""(TRES, limit), sorted; None: no limit (Slurm's -1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQos(BaseAction):
    """Have a QOS of ours (`stw-...`) exist with these values; what is None or not named stays as it is.

    `caps` are GrpTRES. `preempts` are names of QOS, `grace_s` seconds. It is made where it is missing, with our mark as
    its description.
    """

    qos: str
    caps: Caps = ()
    priority: int | None = None
    preempts: frozenset[str] | None = None
    preempt_mode: str | None = None
    grace_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropQos(BaseAction):
    """Delete a QOS of ours. Stale while a job has it or an association still names it."""

    qos: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTeam(BaseAction):
    """Have an account's own association allow the QOS `add` and no longer allow `drop` (all others stay), with these
    limits (GrpTRES) and this default QOS (None: left; empty: none). `keep` is a QOS of the site's that it allows, too,
    where it would be left with none: Slurm takes no job of such an account."""

    account: str
    add: frozenset[str] = frozenset()
    drop: frozenset[str] = frozenset()
    caps: Caps = ()
    default_qos: str | None = None
    keep: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTeam(BaseAction):
    """Delete an account that Steward made and that nobody is in any more. Stale where it is not ours, or not empty."""

    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveJob(BaseAction):
    """Have a waiting job be of these QOS, tried in this order (more than one: Slurm 24.11 and newer). Stale when it
    does not wait any more."""

    job: JobId
    qos: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkJob(BaseAction):
    """Give a job this priority, above what preemption may take; None: hand its priority back to Slurm."""

    job: JobId
    priority: int | None
    restart: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNodeCount(BaseAction):
    """Have a waiting job ask for so many nodes, within what its user allowed."""

    job: JobId
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob(BaseAction):
    """End a run of a job that may not be requeued and has to give way. Stale when it is in another run."""

    job: JobId
    restart: int = 0
