"""Neighbours of an agent's parts: a head that keeps what it is told, a Slurm that knows which jobs are over."""

from dataclasses import dataclass, field

from steward.adapters.wire.frames import Frame
from steward.model.ids import JobId, NodeName
from steward.ports import Retryable


@dataclass
class FakeHead:
    away_since: float | None = None
    told: list[Frame] = field(default_factory=list)

    def post(self, frame: Frame) -> None:
        if self.away_since is None:
            self.told.append(frame)

    def kinds(self) -> list[str]:
        return [frame["t"] for frame in self.told]


@dataclass
class FakeSlurmLook:
    """`over` are jobs that have ended, `here` those on the node with their users; `up` False: slurmctld does not
    answer."""

    up: bool = True
    over: set[int] = field(default_factory=set)
    here: dict[JobId, int] = field(default_factory=dict)
    restarted: dict[JobId, int] = field(default_factory=dict)
    asked: int = 0

    async def is_over(self, job: JobId, restart: int) -> bool:
        self.asked += 1
        if not self.up:
            raise Retryable("slurmctld does not answer")
        return job in self.over

    async def restarts(self, job: JobId) -> int:
        self.asked += 1
        if not self.up:
            raise Retryable("slurmctld does not answer")
        return self.restarted.get(job, 0)

    async def on(self, node: NodeName) -> dict[JobId, int]:
        self.asked += 1
        if not self.up:
            raise Retryable("slurmctld does not answer")
        return self.here
