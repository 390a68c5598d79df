"""A desk of an agent, its neighbours, and shims that come to it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from steward.adapters.wire.shimline import AskLine, EndedLine, ExitLine, LogLine, OptedLine, Written
from steward.agent.desk import Exits, JobDesk
from steward.agent.opted import OptedBook
from steward.model.ask import Answer, AskKind, OptedIn
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import Lean, LogSign
from steward.model.resume_mode import ResumeMode
from tests.fakes.agent_parts import FakeHead, FakeSlurmLook
from tests.fakes.clock import FakeClock
from tests.fakes.until import FACT_S, comes_true
from tests.fakes.wires import WHO

MODE = ResumeMode.parse("1")
ASK = AskLine(kind=AskKind.BATCH, job=JobId(12), step="batch", uid=1000, mode=MODE, attempt=1, restart=0, status=256)
OPTED = OptedLine(job=JobId(12), uid=1000, mode=MODE, restart=0)
NONE: frozenset[NodeName] = frozenset()
LOOK_S = 0.02
NODE = NodeName("n1")


EXIT = ExitLine(job=JobId(12), step="0", restart=0, task=3, status=256)
LOG = LogLine(job=JobId(12), restart=0, size=0, out="/home/a/12.out")
ENDED = EndedLine(job=JobId(12), step="0", restart=0, written=(Written(inode=7, begin=0, end=90),))
SIGN = LogSign(sign="nccl.timeout", lean=Lean.CASCADE, strong=True, line="Watchdog caught", order=7)


@dataclass
class FakeBriefing:
    told: dict[str, str] = field(default_factory=dict)

    async def words(self, line: OptedLine) -> dict[str, str]:
        return self.told


@dataclass
class FakeRuns:
    """Elastic runs; each waits for its address until it is `resolved`."""

    resolved: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[JobId] = field(default_factory=list)
    given_up: list[JobId] = field(default_factory=list)

    async def begin(self, opted: OptedIn) -> dict[str, str]:
        self.begun.append(opted.job)
        await self.resolved.wait()
        return {"elastic_address": "10.0.0.1:4000"}

    def give_up(self, opted: OptedIn) -> None:
        self.given_up.append(opted.job)


@dataclass
class Scene:
    folder: Path
    head: FakeHead = field(default_factory=FakeHead)
    slurm: FakeSlurmLook = field(default_factory=FakeSlurmLook)
    clock: FakeClock = field(default_factory=FakeClock)
    briefing: FakeBriefing = field(default_factory=FakeBriefing)
    runs: FakeRuns = field(default_factory=FakeRuns)
    node: NodeName = NODE
    in_output: tuple[LogSign, ...] | OSError | None = ()
    is_readable: asyncio.Event | None = None
    """Set when an output is read that takes long."""
    read_for: list[int] = field(default_factory=list)
    """Users for whom output was read."""
    ended_well: list[tuple[EndedLine, int]] = field(default_factory=list)
    answers: list[tuple[AskLine, Answer]] = field(default_factory=list)
    """What was noted of steps."""
    room_for: list[tuple[JobId, int, int, float]] = field(default_factory=list)
    """Steps that were made room for."""

    def __post_init__(self) -> None:
        self.opted = OptedBook(self.folder / "opted.json")
        self.desk = JobDesk(
            node=self.node,
            incarnation=WHO,
            clock=self.clock,
            head=self.head,
            opted=self.opted,
            own_look=self.slurm,
            hold_head_absent_s=90.0,
            trusted=frozenset({0}),
            briefing=self.briefing,
            exits=Exits(self.node, self.head, self.clock),
            elastic=self.runs,
            outputs=self,
            make_room=self.make_room,
            own_look_every_s=LOOK_S,
        )

    def note_success(self, line: EndedLine, uid: int) -> None:
        self.ended_well.append((line, uid))

    def note_answer(self, line: AskLine, answer: Answer) -> None:
        self.answers.append((line, answer))

    async def signs(self, line: AskLine) -> tuple[LogSign, ...]:
        self.read_for.append(line.uid)
        if self.is_readable is not None:
            await self.is_readable.wait()
        if self.in_output is None:
            await asyncio.sleep(2 * FACT_S)
        if isinstance(self.in_output, OSError):
            raise self.in_output
        return self.in_output or ()

    async def make_room(self, job: JobId, step: int, uid: int, within_s: float) -> None:
        self.room_for.append((job, step, uid, within_s))

    async def asks(self, line: AskLine = ASK, peer: int = 0) -> "asyncio.Task[bytes | None]":
        """Once it waits, or has its answer."""
        before = self._waiting()
        task = asyncio.ensure_future(self.desk.serve(line, peer))
        await comes_true("it waits", lambda: task.done() or self._waiting() > before)
        return task

    def _waiting(self) -> int:
        return sum(frame["t"] == "ask" for frame in self.desk.frames())

    def last_id(self) -> AskId:
        return AskId([frame["id"] for frame in self.head.told if frame["t"] == "ask"][-1])


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(FACT_S):
            await story()

    asyncio.run(within())
