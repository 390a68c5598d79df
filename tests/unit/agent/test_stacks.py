"""What is kept of a job's tasks, on real processes: the signal reaches only those that expect it."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steward.adapters.offload import Threads
from steward.adapters.proc import look
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import bundle_of
from steward.agent.job_folder import JobFolders
from steward.agent.job_orders import Stacks
from steward.agent.opted import OptedBook
from steward.model.agent_action import CollectStacks
from steward.model.ask import OptedIn
from steward.model.ids import JobId, Key, NodeName
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from tests.fakes.until import FACT_S, comes_true, until

J7 = JobId(7)
TRAINS = """
import sys, time
from steward import job
job.allow_stacks()
def collective_that_never_ends():
    print("ready", flush=True)
    time.sleep(1000)
collective_that_never_ends()
"""
SLEEPS = "import time; print('ready', flush=True); time.sleep(1000)"


@dataclass(kw_only=True)
class Bench:
    folder: Path
    frames: list[Frame] = field(default_factory=list)
    children: list["subprocess.Popen[str]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folders = JobFolders(self.folder / "jobs")
        self.folders.make(J7, os.geteuid())
        self.book = OptedBook(self.folder / "opted.json")

    def opt_in(self, mode: str) -> None:
        self.book.add(OptedIn(job=J7, uid=os.geteuid(), mode=ResumeMode.parse(mode), restart=0, at=time.time()))

    def start(self, code: str) -> "subprocess.Popen[str]":
        """A task of the job, as soon as it is at work."""
        env = {**os.environ, "STEWARD_STACKS_FILE": str(self.folders.stacks(J7, os.geteuid()))}
        child = subprocess.Popen([sys.executable, "-P", "-c", code], env=env, stdout=subprocess.PIPE, text=True)
        self.children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        until("it sleeps", lambda: (seen := look(child.pid)) is not None and seen.state == "S")
        return child

    def post(self, frame: Frame) -> None:
        self.frames.append(frame)

    def written(self) -> None:
        def files() -> Iterator[Path]:
            return self.folders.folder(J7, os.geteuid()).glob("stacks*")

        until("a task has written", lambda: any("in <module>" in file.read_text() for file in files()))

    def collect(self, signal: str) -> str:
        """What the head is told."""

        async def obey() -> None:
            stacks = self.stacks(lambda opted: [child.pid for child in self.children])
            stacks.obey(order(J7, "7-0-1", signal))
            await stacks.rest()

        asyncio.run(obey())
        return self.told()

    def stacks(self, pids: Callable[[OptedIn], list[int]]) -> Stacks:
        return Stacks(
            node=NodeName("n1"),
            opted=self.book,
            folders=self.folders,
            head=self,
            threads=lambda: Threads(1),
            progress=lambda: ({"t": "progress", "jobs": []},),
            written=self.written,
            pids=pids,
        )

    def told(self) -> str:
        return "".join(bundle_of(frame).text for frame in self.frames if frame["t"] == "bundle")


def order(job: JobId, name: str, signal: str, uid: int | None = None) -> CollectStacks:
    nodes = frozenset({NodeName("n1")})
    whose = os.geteuid() if uid is None else uid
    return CollectStacks(key=Key("k"), why=Why.heard("hung"), nodes=nodes, job=job, uid=whose, name=name, signal=signal)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(folder=tmp_path)
    yield bench
    for child in bench.children:
        child.kill()
        child.communicate()


def test_the_stacks_of_tasks_that_expect_the_signal_are_kept_and_no_other_dies(bench: Bench) -> None:
    bench.opt_in("any:1,stacks=USR1")
    trains, sleeps = bench.start(TRAINS), bench.start(SLEEPS)
    text = bench.collect("USR1")
    assert "collective_that_never_ends" in text
    assert "sent to the 1 of 2 processes" in text
    assert f"process {sleeps.pid}" in text
    assert (trains.poll(), sleeps.poll()) == (None, None)


def test_how_far_jobs_are_is_told_before_their_stacks(bench: Bench) -> None:
    bench.opt_in("any:1")
    bench.collect("")
    assert [frame["t"] for frame in bench.frames] == ["progress", "bundle"]


def test_a_job_that_names_no_signal_gets_none(bench: Bench) -> None:
    bench.opt_in("any:1")
    child = bench.start(TRAINS)
    text = bench.collect("USR1")
    assert "no signal was sent" in text
    assert "collective_that_never_ends" not in text
    assert f"process {child.pid}" in text
    assert "waits in" in text


@pytest.mark.parametrize("mode", ["", "0"])
def test_of_a_job_that_did_not_opt_in_nothing_is_told_but_that(bench: Bench, mode: str) -> None:
    bench.start(TRAINS)
    if mode:
        bench.opt_in(mode)
    assert bench.collect("USR1") == "job 7 on n1: none of its opted-in processes ran here\n"


def test_nobodys_arguments_are_told(bench: Bench) -> None:
    bench.opt_in("1")
    bench.start(SLEEPS + "  # --token=secret")
    assert "secret" not in bench.collect("")


def test_a_file_that_a_user_has_linked_elsewhere_is_not_told(bench: Bench) -> None:
    bench.opt_in("1")
    (bench.folder / "shadow").write_text("root:hash")
    (bench.folders.folder(J7, os.geteuid()) / "stacks.1").symlink_to(bench.folder / "shadow")
    assert "root:hash" not in bench.collect("")


def test_one_users_processes_that_cannot_be_read_hold_up_no_other_users_stacks(bench: Bench) -> None:
    """Their memory may hang who reads it, for as long as their user likes."""
    gate = threading.Event()
    for job, uid in ((JobId(6), 1001), (J7, 1000)):
        bench.book.add(OptedIn(job=job, uid=uid, mode=ResumeMode.parse("1"), restart=0, at=time.time()))

    def pids(opted: OptedIn) -> list[int]:
        if opted.uid == 1001:
            gate.wait(FACT_S)
        return []

    async def story() -> None:
        stacks = bench.stacks(pids)
        stacks.obey(order(JobId(6), "6-0-1", "", 1001))
        stacks.obey(order(J7, "7-0-1", "", 1000))
        await comes_true("the other's stacks come", lambda: bool(bench.told()))
        gate.set()
        await stacks.rest()

    asyncio.run(story())
    assert bench.told().startswith("job 7 on n1: 0 processes")
