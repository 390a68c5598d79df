"""The frozen picture of the cluster at the start of a cycle, and the times at which its records were read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from steward.model.accounting import Accounting
from steward.model.ask import Ask, OptedIn
from steward.model.deep import DeepReport
from steward.model.elastic import ElasticWord
from steward.model.fit import Fit, Question
from steward.model.health import Finding, Incarnation
from steward.model.ids import InstanceId, JobId, NodeName
from steward.model.instance import Instance
from steward.model.job import Job
from steward.model.job_report import Progress, TaskExit
from steward.model.job_sight import StepSight
from steward.model.mend import MendReport
from steward.model.node import Node
from steward.model.partition import Partition
from steward.model.reservation import Reservation
from steward.model.setup import SetupReport
from steward.model.witness import PeerWord, WitnessSeen

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The nodes and jobs that a look, an action or a change is about."""

    nodes: frozenset[NodeName] = frozenset()
    jobs: frozenset[JobId] = frozenset()

    def __or__(self, other: "Subject") -> "Subject":
        return Subject(nodes=self.nodes | other.nodes, jobs=self.jobs | other.jobs)

    def __bool__(self) -> bool:
        return bool(self.nodes or self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTimes(Generic[K]):
    """The times (Unix s) at which records of one kind were read: all at `swept`, those in `looked` again later."""

    swept: float
    looked: Mapping[K, float] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, key: K) -> float:
        """Return when this record was last read, or was last seen to be absent."""
        return self.looked.get(key, self.swept)


class Freshness(Enum):
    """The freshness of records.

    FRESH: the last sweep is recent enough, and this cycle's own reads succeeded. OLD: a read failed, these are the last
    good records. ABSENT: never read.
    """

    FRESH = "fresh"
    OLD = "old"
    ABSENT = "absent"


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


REFUSED_BY_AGENT = "its agent refuses this head"
"""The beginning of `AgentView.lost_why` where an agent does not believe the head; its reason follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """The head's view of one node's agent. `lost_at` is when its connection ended or fell silent."""

    node: NodeName
    incarnation: Incarnation | None
    connected: bool
    last_heard: float
    late: bool = False
    joined_at: float | None = None
    """When its connection, or the last one, began; None: it has not come to this head."""
    lost_at: float | None = None
    lost_why: str = ""
    leaves: bool = False
    """Whether the agent announced that it was told to end while its host stays up; slurmd may restart at the same
    time."""
    host_ends: bool = False
    """Whether the agent announced that its host is shutting down, or that all of its Slurm daemons were told to end, as
    in a shutdown."""
    fell_silent: bool = False
    """Whether the agent was lost by silence, on a connection that neither side ended."""
    dialled_at: float = 0.0
    """When the head last refused the agent or hung up on it: such an agent lives and reconnects every few seconds."""
    witness: WitnessSeen | None = None
    peers: tuple[PeerWord, ...] = ()
    """The last reports of other nodes' agents on this node, one each."""
    findings: tuple[Finding, ...] = ()
    """Bad and unknown results, and events; quiet results are in `passed` and `skipped`."""
    passed: frozenset[str] = frozenset()
    passed_since: tuple[int, ...] = ()
    """Since when each check of `passed`, by name, passes, in Unix seconds; for people."""
    skipped: frozenset[str] = frozenset()
    hardware: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=_empty)
    reported_at: float = 0.0
    checked_at: float = 0.0
    """When the last answered `check now` was sent (0: none in this incarnation); its looks were made later."""
    deep: tuple[DeepReport, ...] = ()
    """The current and recent deep checks on the node."""
    setup: SetupReport | None = None
    """The report on the lifecycle scripts of this incarnation; None: no setup was ordered."""
    mend: MendReport | None = None
    """The result of the last light repair ordered in this boot; None: none was ordered, or it is under way."""
    progress: tuple[Progress, ...] = ()
    """The progress of the opted-in jobs on the node."""
    sights: tuple[StepSight, ...] = ()
    """What the ranks of the steps on the node do, of all jobs."""
    bundles: tuple[str, ...] = ()
    """The names of the last requested stacks (`CollectStacks.name`) that the agent has sent in full."""
    exits: tuple[TaskExit, ...] = ()
    """The last failed tasks of opted-in jobs on the node."""
    elastic: tuple[ElasticWord, ...] = ()
    """Reports on the elastic runs whose base job has its batch script on this node."""
    address: str = ""
    """The address from which the agent is connected."""

    @property
    def passes_since(self) -> Mapping[str, int]:
        """Return since when each passed check passes, in Unix seconds; empty if the agent did not tell."""
        return dict(zip(sorted(self.passed), self.passed_since, strict=False))

    @property
    def is_heard(self) -> bool:
        """Return whether the agent is connected and no heartbeat is overdue."""
        return self.connected and not self.late


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDetail:
    """Facts about an agent for people; no decision depends on them. `skew_s`: its clock minus the head's."""

    version: str
    skew_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The input of a plan besides memory and settings. Times are Unix seconds on the head's clock.

    `agents_since` is when the head began to listen: after the head's restart agents need a while to reconnect.
    """

    at: float
    slurm: Freshness = Freshness.FRESH
    nodes: Mapping[NodeName, Node] = field(default_factory=_empty)
    node_times: ReadTimes[NodeName] | None = None
    """When each node was read; None: together with this picture."""
    jobs: Mapping[JobId, Job] = field(default_factory=_empty)
    job_times: ReadTimes[JobId] | None = None
    """When each job was read; None: together with this picture."""
    job_requeue: bool | None = None
    """Whether jobs may be requeued by default (JobRequeue); None: not known."""
    unread: Mapping[JobId, str] = field(default_factory=_empty)
    """Running batch jobs whose Slurm record cannot be read, so that their options are not known, each with the
    error."""
    partitions: Mapping[str, Partition] = field(default_factory=_empty)
    partitions_at: float = 0.0
    """When the partitions were requested (Unix s; 0: never). Read beside the cycle, while there are API groups."""
    reservations: Mapping[str, Reservation] = field(default_factory=_empty)
    reservations_at: float = 0.0
    """When the reservations were requested (Unix s; 0: never). Read beside the cycle."""
    agents: Mapping[NodeName, AgentView] = field(default_factory=_empty)
    agents_since: float = 0.0
    provider: Freshness = Freshness.FRESH
    listed_at: float | None = None
    """When the list of instances was requested; None: together with this picture."""
    instances: Mapping[InstanceId, Instance] = field(default_factory=_empty)
    asks: tuple[Ask, ...] = ()
    opted_in: tuple[OptedIn, ...] = ()
    failures: Mapping[str, str] = field(default_factory=_empty)
    """The error text of each action whose last try failed, by its key (launch refused, scontrol error)."""
    done: frozenset[str] = frozenset()
    """The keys of backups and restores whose last try succeeded, kept as long as those of `failures`."""
    accounting: Accounting | None = None
    """Accounts, limits and QOS; None: not read, because memory has no quota."""

    gres_used: Mapping[NodeName, str] = field(default_factory=_empty)
    """Node -> the GRES that Slurm counted as used although the node was idle, in both of the last two looks."""
    gres_at: float = 0.0
    """When the older of these looks was requested (Unix s; 0: never)."""
    fits: Mapping[Question, Fit] = field(default_factory=_empty)
    """Slurm's current and recent answers to the questions of plans."""

    def job_at(self, id: JobId) -> float:
        """Return when the job's record was read (Unix s)."""
        return self.at if self.job_times is None else self.job_times.at(id)
