"""One frozen picture of the world, taken at the start of a cycle; which nodes and jobs a look, an action or a change is
about, and when they were read."""

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
    """When records of one kind were read (Unix s): all of them at `swept`, those of `looked` once more since."""

    swept: float
    looked: Mapping[K, float] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, key: K) -> float:
        """When this one was read last; for one that is not there, when that was seen."""
        return self.looked.get(key, self.swept)


class Freshness(Enum):
    """FRESH: the last sweep is no older than it may be, and what this cycle looked at was read in it. OLD: a look
    failed, this is the last good one. ABSENT: never seen."""

    FRESH = "fresh"
    OLD = "old"
    ABSENT = "absent"


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """One node's agent as the head knows it. `lost_at` is when its connection ended or fell silent."""

    node: NodeName
    incarnation: Incarnation | None
    connected: bool
    last_heard: float
    late: bool = False
    lost_at: float | None = None
    lost_why: str = ""
    leaves: bool = False
    """It was told to end, as it said, and its host lives on. Its slurmd may be started anew at the same time."""
    host_ends: bool = False
    """It said as its last word that its host is being shut down, or that everything of Slurm's on it was told to end,
    as in a shutdown."""
    fell_silent: bool = False
    """It was lost because it said nothing, on a connection that nobody ended."""
    dialled_at: float = 0.0
    """When it came last and was sent away, or the head hung up on it: it is alive and comes again every few seconds."""
    witness: WitnessSeen | None = None
    peers: tuple[PeerWord, ...] = ()
    """The last words of other nodes' agents on this node, one each."""
    findings: tuple[Finding, ...] = ()
    """Results that are bad, unknown or events; quiet results are in `passed` and `skipped`."""
    passed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    hardware: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=_empty)
    reported_at: float = 0.0
    checked_at: float = 0.0
    """When the last `check now` that the agent answered was sent (0: it answered none in this incarnation): its looks
    began after that."""
    deep: tuple[DeepReport, ...] = ()
    """Deep checks that ran on it lately, or run."""
    setup: SetupReport | None = None
    """How the lifecycle scripts of this incarnation stand; None: none was ordered."""
    mend: MendReport | None = None
    """How the last light repair that was ordered in this boot ended; None: none was, or it is under way."""
    progress: tuple[Progress, ...] = ()
    """How far the opted-in jobs on it are."""
    bundles: tuple[str, ...] = ()
    """Names of the stacks that it was asked for (`CollectStacks.name`) and has told in full, the last ones."""
    exits: tuple[TaskExit, ...] = ()
    """Tasks of opted-in jobs that ended badly on it, the last ones."""
    elastic: tuple[ElasticWord, ...] = ()
    """Reports on the elastic runs whose base job has its batch script there."""
    address: str = ""
    """Where its connection comes from."""

    @property
    def is_heard(self) -> bool:
        """Whether the agent is connected and no heartbeat is overdue."""
        return self.connected and not self.late


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDetail:
    """Facts about an agent for people; no decision depends on them. `skew_s`: its clock minus the head's."""

    version: str
    skew_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything a plan may know. Times are Unix seconds on the head's clock.

    `agents_since` is when the head began to listen: agents may need a while to come back after its restart.
    """

    at: float
    slurm: Freshness = Freshness.FRESH
    nodes: Mapping[NodeName, Node] = field(default_factory=_empty)
    node_times: ReadTimes[NodeName] | None = None
    """When each node was read; None: with this picture."""
    jobs: Mapping[JobId, Job] = field(default_factory=_empty)
    job_times: ReadTimes[JobId] | None = None
    """The same for jobs."""
    job_requeue: bool | None = None
    """Whether the site's jobs may be requeued whose users said nothing (JobRequeue); None: not known."""
    unread: Mapping[JobId, str] = field(default_factory=_empty)
    """Running batch jobs of which Slurm's own record cannot be read, and why: nobody knows what they asked for."""
    partitions: Mapping[str, Partition] = field(default_factory=_empty)
    partitions_at: float = 0.0
    """When they were asked for (Unix s; 0: never). They are read beside the cycle, while there are API groups."""
    reservations: Mapping[str, Reservation] = field(default_factory=_empty)
    reservations_at: float = 0.0
    """When they were asked for (Unix s; 0: never). They are read beside the cycle."""
    agents: Mapping[NodeName, AgentView] = field(default_factory=_empty)
    agents_since: float = 0.0
    provider: Freshness = Freshness.FRESH
    listed_at: float | None = None
    """When the list of instances was asked for; None: with this picture."""
    instances: Mapping[InstanceId, Instance] = field(default_factory=_empty)
    asks: tuple[Ask, ...] = ()
    opted_in: tuple[OptedIn, ...] = ()
    failures: Mapping[str, str] = field(default_factory=_empty)
    """Outcome of the last try of an action that failed: key -> error text (launch refused, scontrol error)."""
    done: frozenset[str] = frozenset()
    """Keys of backups and restores whose last try ended well, within the same time as `failures`."""
    accounting: Accounting | None = None
    """Accounts, limits and QOS; None: nobody looked, as memory has no quota."""

    gres_used: Mapping[NodeName, str] = field(default_factory=_empty)
    """Nodes of which Slurm counted some GRES as used in both of the last two looks, and which."""
    gres_at: float = 0.0
    """When the older of these looks was asked for (Unix s; 0: never)."""
    fits: Mapping[Question, Fit] = field(default_factory=_empty)
    """What Slurm answered to the questions of plans, this turn or lately."""

    def job_at(self, id: JobId) -> float:
        """When the job's record was read (Unix s)."""
        return self.at if self.job_times is None else self.job_times.at(id)
