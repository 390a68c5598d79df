"""The records of a turn over a Slurm that counts what is read of it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.node import Node
from steward.model.observed import Freshness, Subject
from steward.workflows.attention import Attention
from steward.workflows.book import Pace
from steward.workflows.records import Patience, Records
from tests.builders.picture import names
from tests.fakes.clock import FakeClock
from tests.fakes.slurm import FakeSlurm

N1, N2 = NodeName("n1"), NodeName("n2")


NOBODY = Subject()


ALL = "all"


@dataclass(kw_only=True)
class CountingSlurm(FakeSlurm):
    """`reads` is what was read of nodes and jobs, in order."""

    reads: list[object] = field(default_factory=list)

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        self.reads.append(ALL if only is None else set(only))
        return super().nodes(only)

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        self.reads.append(ALL if only is None else set(only))
        return super().jobs(only, on=on)


@dataclass
class Waits:
    """Workers that carry out calls when they are told to."""

    calls: list[Callable[[], None]] = field(default_factory=list)
    at_once: bool = True

    def submit(self, call: Callable[[], None]) -> None:
        if self.at_once:
            call()
        else:
            self.calls.append(call)

    def run(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Bench:
    def __init__(self, count: int = 6, dear: float = 0.1, quiet_s: float = 5.0) -> None:
        self.slurm = CountingSlurm()
        self.slurm.node_table = FakeSlurm.with_nodes(*(f"n{i}" for i in range(1, count + 1))).node_table
        self.clock, self.pool, self.rings = FakeClock(1000.0), Waits(), 0
        self.records = Records(
            self.slurm,
            pool=self.pool,
            clock=self.clock,
            patience=Patience(
                sweep=Pace(least_s=quiet_s, share=1.0), sweep_busy=Pace(least_s=1.0, share=1.0), costly=dear
            ),
            ring=self._ring,
            is_asked=lambda: False,
        )
        self.look()

    @property
    def is_fresh(self) -> bool:
        return self.fresh is Freshness.FRESH

    def _ring(self) -> None:
        self.rings += 1

    def look(
        self,
        *,
        asked: Subject = NOBODY,
        open: Subject = NOBODY,
        new: Mapping[JobId, float] | None = None,
        unseen: bool = False,
        anew: float = 0.0,
        busy: bool = False,
        asked_at: float = 0.0,
        hurried: bool = False,
        lost: float = 0.0,
    ) -> list[object]:
        """What one turn read."""
        self.slurm.reads.clear()
        about = Attention(asked=asked, open=open, new=new or {}, unseen=unseen, hurried=hurried, lost=lost)
        self.fresh: Freshness = self.records.look(about, asked=asked_at, anew=anew, busy=busy, alive=lambda: None)
        return list(self.slurm.reads)

    def confirm(self, *nodes: str, jobs: Collection[int] = ()) -> list[object]:
        self.slurm.reads.clear()
        subject = Subject(nodes=names(*nodes), jobs=frozenset(map(JobId, jobs)))
        fresh = self.records.confirm(subject, lambda: None)
        self.fresh = self.fresh if fresh is None else fresh
        return list(self.slurm.reads)


def nodes(*given: str) -> Subject:
    return Subject(nodes=names(*given))
