"""Traits of a record that depend on the record alone, not on the time or the rest of the picture (`fact_cache.py`)."""

from collections.abc import Hashable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from steward.model.elastic import COMMENT as ELASTIC
from steward.model.health import Incarnation
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.model.observed import AgentView
from steward.policy.slurm_reasons import near_miss, ordered, row_of_text

_MAINTENANCE = "MAINTENANCE"
PLANNED_ABSENCE = frozenset(
    {"POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN", "POWERING_UP", "REBOOT_ISSUED", _MAINTENANCE}
)
"""Slurm's flags of a node that is away as planned. The flags of a node that comes up end when its slurmd registers, or
at ResumeTimeout, when Slurm sets the node DOWN with a reason of its own (`slurm_reasons.py`). Instances that Steward
launched have the deadlines of their case or slot."""
HEALTH = "HealthCheck:"
PASSED, FAILED, SKIPPED = "Passed", "Failed", "Skipped"
"""Our feature of a node, `HealthCheck:Passed`, shows the state of its checks (`features.py`)."""
LISTED_MOST = 16
"""A user who excludes more nodes than this has another reason than their health."""
FAILURES = frozenset({JobState.FAILED, JobState.NODE_FAIL, JobState.BOOT_FAIL})
_WAITS_FOR_NODES = ("None", "Resources", "Priority", "ReqNodeNotAvail", "Reservation")
"""Slurm's reasons of jobs that would start if nodes were free; other jobs wait for a time, a person, a limit or a
job."""


class Trait(Enum):
    """A trait of a node, an agent or a job; the text below each member says which."""

    __hash__ = object.__hash__  # asked for by the thousand: Enum's own is slow

    OUT = auto()
    """A node with a reason."""
    MARKED = auto()
    """A node whose reason is our mark."""
    ORDERED = auto()
    """A node whose reason is an admin's order."""
    NEARLY_ORDERED = auto()
    """A node whose reason is nearly an admin's order."""
    SLURMS_WORDS = auto()
    """A node with a reason in Slurm's own words, no matter who wrote it."""
    AWAY = auto()
    """A node that is away as planned: powered down, rebooting or in maintenance."""
    IDLE = auto()
    """A node on which Slurm would start a job now."""
    FREE = auto()
    """A node in service without a job; it may be powered down."""
    UNFIT = auto()
    """A node on which Slurm starts no job, now or later."""
    UNHEARD = auto()
    """An agent that is late or lost."""
    FINDING = auto()
    """An agent that reports a finding."""
    TELLING = auto()
    """An agent that reports the progress of jobs."""
    STILL = auto()
    """An agent that sees ranks of a job that do no work."""
    ACTIVE = auto()
    """A job that runs or is suspended."""
    QUEUED = auto()
    """A user's job that starts when nodes are free and its time has come."""
    COMPLETING = auto()
    """A job that is over and COMPLETING."""
    FAILED_ALONE = auto()
    """A job of one node that failed and ended."""
    ELASTIC = auto()
    """An agent that reports elastic runs."""
    REPLICA = auto()
    """An unfinished job that calls itself a replica of an elastic run."""
    EXCLUDING = auto()
    """An unfinished job that excludes a few nodes by name."""
    IN_PARTS = auto()
    """An unfinished part of a heterogeneous job."""


class Shows(NamedTuple):
    """A node whose only feature of ours is this word."""

    word: str


class Says(NamedTuple):
    """A connected agent without findings: the word that our feature should show, unless another source disagrees."""

    word: str


class Versions(NamedTuple):
    """The checks that may change, as a connected agent reports them: (check, version)."""

    known: frozenset[tuple[str, str]]


class Within(NamedTuple):
    """A node that is in exactly these partitions."""

    partitions: frozenset[str]


class OfAccount(NamedTuple):
    """An unfinished job of this account that is no part of a heterogeneous one."""

    account: str


class OfDeepCheck(NamedTuple):
    """A job in the partition of a deep check."""

    partition: str


def traits_of_node(node: Node) -> frozenset[Hashable]:
    found: list[Hashable] = [Within(frozenset(node.partitions))]
    if node.reason is not None:
        found.append(Trait.OUT)
        found += _traits_of_reason(node)
    if is_away_on_purpose(node):
        found.append(Trait.AWAY)
    if not node.is_schedulable:
        found.append(Trait.UNFIT)
    elif not node.is_busy:
        found += (Trait.FREE, Trait.IDLE) if is_idle(node) else (Trait.FREE,)
    words = [feature for feature in node.features if feature.startswith(HEALTH)]
    if len(words) == 1 and words[0] in node.active_features:
        found.append(Shows(words[0].removeprefix(HEALTH)))
    return frozenset(found)


def _traits_of_reason(node: Node) -> Iterator[Hashable]:
    """Yield the traits of the node's reason; none for a reason on which Steward never acts."""
    if node.mark is not None:
        yield Trait.MARKED
    if ordered(node):
        yield Trait.ORDERED
    if near_miss(node):
        yield Trait.NEARLY_ORDERED
    if node.reason is not None and row_of_text(node.reason.text) is not None:
        yield Trait.SLURMS_WORDS


def is_idle(node: Node) -> bool:
    """Return whether Slurm would start a job on the node now."""
    return node.base is NodeBase.IDLE and node.is_schedulable and not node.is_busy and node.is_powered


def is_away_on_purpose(node: Node) -> bool:
    return bool(PLANNED_ABSENCE & node.flags)


def in_maintenance(node: Node) -> bool:
    """Return whether a reservation with the flag MAINT is in force on the node: a person works there."""
    return _MAINTENANCE in node.flags


def traits_of_agent(view: AgentView) -> frozenset[Hashable]:
    found: list[Hashable] = []
    if not view.is_heard:
        found.append(Trait.UNHEARD)
    if view.findings:
        found.append(Trait.FINDING)
    elif view.connected:
        found.append(Says(PASSED if view.passed else SKIPPED))
    if view.elastic:
        found.append(Trait.ELASTIC)
    if view.progress:
        found.append(Trait.TELLING)
    if any(step.is_notable for step in view.sights):
        found.append(Trait.STILL)
    if view.connected and view.versions:
        found.append(Versions(frozenset(view.versions.items())))
    return frozenset(found)


def connected_incarnation(view: AgentView) -> Incarnation | None:
    """Return the incarnation of a connected agent; None if the agent is not connected."""
    return view.incarnation if view.connected else None


def traits_of_job(job: Job) -> frozenset[Hashable]:
    found: list[Hashable] = []
    is_deep = bool(job.deep_check)
    if is_deep:
        found.append(OfDeepCheck(job.deep_check))
    if job.is_active:
        found.append(Trait.ACTIVE)
    elif job.is_pending:
        if not is_deep and (not job.reason or job.reason.startswith(_WAITS_FOR_NODES)):
            found.append(Trait.QUEUED)
    elif job.state in FAILURES and len(job.nodes) == 1 and job.ended is not None:
        found.append(Trait.FAILED_ALONE)
    if job.is_completing and not job.is_active:
        found.append(Trait.COMPLETING)
    if job.is_over:
        return frozenset(found)
    found.append(OfAccount(job.account) if job.het_job_id is None else Trait.IN_PARTS)
    if job.comment.startswith(ELASTIC):
        found.append(Trait.REPLICA)
    if job.excluded and len(job.excluded) <= LISTED_MOST:
        found.append(Trait.EXCLUDING)
    return frozenset(found)
