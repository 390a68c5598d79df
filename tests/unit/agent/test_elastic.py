"""Elastic runs at the agent of their base's batch host, with a coordinator that is a real socket."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.node import job_look
from steward.adapters.node.elastic_start import CoordinatorPlace
from steward.adapters.node.jobs_here import Base, bases_of
from steward.adapters.offload import Threads
from steward.adapters.wire.elastic_messages import elastic_order_frame
from steward.adapters.wire.frames import Malformed, why_unsendable
from steward.agent import elastic, elastic_line
from steward.agent.elastic import MAX_OF_USER, UNTOLD, Elastic
from steward.agent.elastic_line import ElasticLine
from steward.model.agent_action import ResizeRun, SubmitReplica
from steward.model.ask import OptedIn
from steward.model.ids import JobId, Key, NodeName
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from steward.ports import Retryable
from tests.fakes.agent_parts import FakeHead
from tests.fakes.until import FACT_S

J7, N1 = JobId(7), NodeName("n1")
WORD = {"state": "running", "generation": 3, "members": ["n1", "n2"], "joined": ["n1", "n2"], "leaving": [], "step": 5}


@dataclass
class Bench:
    """`uid` is whose job 7 is, as Slurm says; `coordinators` are those that were started."""

    folder: Path
    uid: int = field(default_factory=os.geteuid)
    head: FakeHead = field(default_factory=FakeHead)
    here: dict[JobId, Base] = field(default_factory=dict)
    coordinators: list[CoordinatorPlace] = field(default_factory=list)
    submitted: list[Mapping[str, str]] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""
    fails: str = ""
    """What the start of a coordinator fails with."""
    taken_over: list[socket.socket] = field(default_factory=list)
    """The listening sockets that started coordinators got."""
    words: int = 1
    evil: bytes = b""
    """What somebody says who has the coordinator's place."""
    said_evil: int = 0
    resolves: bool = True
    answers: threading.Event | None = None
    hangs: dict[int, threading.Event] = field(default_factory=dict)
    """Users in whose folders nothing answers until then."""

    def __post_init__(self) -> None:
        self.here[J7] = Base(uid=self.uid, nodes=2, host=N1)
        self.elastic = self.anew()

    def anew(self) -> Elastic:
        return Elastic(
            node=N1,
            address=self.address,
            head=self.head,
            bases=self,
            start=self,
            folder=lambda job, _: self.folder / str(job),
            path=self.folder / "elastic.json",
            threads=lambda: Threads(4),
            look_every_s=0.0,
        )

    def address(self) -> str:
        assert self.answers is None or self.answers.wait(FACT_S)
        if not self.resolves:
            raise OSError("the name of the head is not known now")
        return "10.0.0.1"

    async def bases(self, node: NodeName) -> Mapping[JobId, Base]:
        return self.here

    def coordinate(
        self, place: CoordinatorPlace, *, nodes: int, sizes: tuple[int, ...], grace_s: int, listening: int | None
    ) -> None:
        assert (nodes, sizes, grace_s) == (2, (2, 3, 4), 30)
        if listening is not None:
            self.taken_over.append(socket.socket(fileno=os.dup(listening)))
        if place.uid in self.hangs:
            self.hangs[place.uid].wait(FACT_S)
        self.coordinators.append(place)
        if self.fails:
            raise Retryable(self.fails)

    def submit(self, place: CoordinatorPlace, asked: Mapping[str, str]) -> None:
        if self.refusal:
            raise Retryable(self.refusal)
        self.submitted.append(asked)

    async def listen(self) -> asyncio.Server:
        """As the coordinator of job 7 does."""
        place = self.folder / "7" / "elastic"
        place.mkdir(parents=True)

        async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self.evil:
                writer.write(self.evil)
                self.said_evil += 1
            for step in range(self.words):
                writer.write(json.dumps(WORD | {"step": step + 5}).encode() + b"\n")
            while line := await reader.readline():
                self.heard.append(json.loads(line))

        return await asyncio.start_unix_server(hear, place / "relay.sock")

    def opted(self, job: int = 7, uid: int | None = None) -> OptedIn:
        owner = self.uid if uid is None else uid
        return OptedIn(job=JobId(job), uid=owner, mode=ResumeMode.parse("1"), restart=0, at=0.0, elastic="4,grace=30")

    async def begin(self, job: int = 7, uid: int | None = None) -> Mapping[str, str]:
        return await self.elastic.begin(self.opted(job, uid))

    def begun(self, job: int = 7, uid: int | None = None) -> Mapping[str, str]:
        return asyncio.run(self.begin(job, uid))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """It waits patiently for an address and for its coordinator."""
    monkeypatch.setattr(elastic, "ADDRESS_S", FACT_S)
    monkeypatch.setattr(elastic_line, "_DIAL_S", FACT_S)
    return Bench(tmp_path)


async def turns(bench: Bench, condition: Any) -> None:
    """Until it holds; the test's own deadline ends it otherwise."""
    async with asyncio.timeout(FACT_S):
        running = asyncio.get_running_loop().create_task(bench.elastic.run())
        while not condition():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def resize() -> dict[str, Any]:
    return elastic_order_frame(
        ResizeRun(
            key=Key("k"), why=Why.heard("lost"), node=N1, run=J7, generation=4, members=frozenset({N1}), grace_s=5
        )
    )


def submit() -> dict[str, Any]:
    order = SubmitReplica(key=Key("k"), why=Why.heard("idle"), node=N1, run=J7, token="r1", nodes=1, grace_s=30)
    return elastic_order_frame(order)


def test_a_base_is_told_where_its_coordinator_is_and_it_is_started(bench: Bench) -> None:
    told = bench.begun()
    assert bench.begun() == told, "each time the same"
    asyncio.run(turns(bench, lambda: bench.coordinators))
    (place,) = bench.coordinators
    assert told == {"elastic_address": f"10.0.0.1:{place.port}", "elastic_token": place.token}
    bench.elastic = bench.anew()
    assert bench.begun() == told, "also over a restart"


def test_no_other_user_takes_a_coordinators_port_before_it_listens(bench: Bench) -> None:
    """The agent holds it from the moment in which the script is told, and hands the socket over."""
    port = int(bench.begun()["elastic_address"].split(":")[1])
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    asyncio.run(turns(bench, lambda: bench.coordinators))
    (mine,) = bench.taken_over
    with mine, socket.create_connection(("127.0.0.1", port), FACT_S):
        mine.settimeout(FACT_S)
        mine.accept()[0].close()


def test_the_agent_lets_go_of_a_port_for_which_no_coordinator_begins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base's own first node holds it then, so that a late coordinator splits no run."""
    monkeypatch.setattr(elastic, "HOLD_S", 0.01)
    bench.here.clear()

    async def scene() -> None:
        port = int((await bench.begin())["elastic_address"].split(":")[1])
        await asyncio.sleep(0.05)
        with socket.socket() as other:
            other.bind(("", port))

    asyncio.run(scene())


def test_a_script_waits_longer_for_an_address_that_takes_a_while(bench: Bench) -> None:
    bench.answers = threading.Event()
    threading.Timer(0.2, bench.answers.set).start()
    assert bench.begun()["elastic_address"].startswith("10.0.0.1:")


def test_a_coordinators_word_reaches_the_head_and_an_order_the_coordinator(bench: Bench) -> None:
    async def scene() -> None:
        await bench.begin()
        async with await bench.listen():
            await turns(bench, lambda: any(frame["generation"] == 3 for frame in bench.head.told))
            bench.elastic = bench.anew()
            running = asyncio.get_running_loop().create_task(bench.elastic.run())
            while not bench.heard:
                bench.elastic.hear(resize())
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(asyncio.wait_for(scene(), 2 * FACT_S))
    word = next(frame for frame in bench.head.told if frame["generation"] == 3)
    assert (word["run"], word["uid"], word["spec"], word["members"]) == (7, bench.uid, "4,grace=30", ["n1", "n2"])
    assert bench.heard[0]["members"] == ["n1"]
    assert bench.coordinators == []


MANY = [f"n{number:05d}abcdefghijkl" for number in range(1500)]


@pytest.mark.parametrize(
    "evil",
    [
        json.dumps(WORD | {"timings": {"saved_s": float("nan"), "up_s": 1.0}}),
        json.dumps(WORD | {"timings": {"saved_s": float("-inf")}, "step": float("inf")}),
        json.dumps(WORD | {"members": MANY, "joined": MANY, "leaving": MANY}),
    ],
    ids=["nan", "infinity", "94 kB of names"],
)
def test_what_a_user_says_in_the_coordinators_place_ends_that_line_and_nothing_else(bench: Bench, evil: str) -> None:
    """Each part of a word may be within its bound, and their sum not: it is refused where it enters."""
    bench.evil, bench.words = evil.encode() + b"\n", 0

    async def scene() -> None:
        await bench.begin()
        async with await bench.listen():
            await turns(bench, lambda: bench.said_evil > 1)

    asyncio.run(asyncio.wait_for(scene(), 2 * FACT_S))
    for frame in (*bench.head.told, *bench.elastic.frames()):
        assert not why_unsendable(frame)
        assert frame["generation"] == 0


def test_a_job_of_another_user_is_no_run(bench: Bench) -> None:
    bench.here[J7] = Base(uid=bench.uid + 1, nodes=2, host=N1)
    bench.begun()
    bench.here[JobId(8)] = Base(uid=bench.uid, nodes=2, host=N1)
    bench.begun(8)
    asyncio.run(turns(bench, lambda: bench.coordinators))
    assert {place.run for place in bench.coordinators} == {8}


def test_a_coordinator_is_found_through_no_link_and_no_other_mount(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link of the user's may lead where nobody answers: to follow it could stop the whole agent."""
    place = CoordinatorPlace(run=J7, uid=bench.uid, folder=bench.folder / "7" / "elastic", port=20_000, token="t")

    def line() -> ElasticLine:
        return ElasticLine(place, bench.heard.append, Threads(1))  # type: ignore[arg-type]

    async def scene() -> None:
        async with await bench.listen():
            found = line()
            assert await found.open()
            found.close()
            with monkeypatch.context() as patch:
                patch.setattr(job_look, "_mount", lambda descriptor: str(descriptor))
                assert not await line().open()
            place.folder.rename(bench.folder / "elsewhere")
            place.folder.symlink_to(bench.folder / "elsewhere")
            assert not await line().open()
            place.folder.unlink()
            place.folder.mkdir()
            (place.folder / "relay.sock").symlink_to(bench.folder / "elsewhere" / "relay.sock")
            assert not await line().open()

    asyncio.run(scene())


def test_what_hangs_in_one_users_folders_holds_up_no_other_users_run(bench: Bench) -> None:
    bad, let_go = bench.uid + 1, threading.Event()
    bench.hangs = {bad: let_go}

    async def scene() -> None:
        for job in range(10, 10 + MAX_OF_USER):
            bench.here[JobId(job)] = Base(uid=bad, nodes=2, host=N1)
            await bench.begin(job, uid=bad)
        await bench.begin()
        await turns(bench, lambda: bench.coordinators)

    try:
        asyncio.run(scene())
        assert [place.uid for place in bench.coordinators] == [bench.uid]
    finally:
        let_go.set()


def test_of_one_user_so_many_runs_are_known(bench: Bench) -> None:
    told = [bench.begun(job) for job in range(1, MAX_OF_USER + 3)]
    assert [bool(one) for one in told] == [True] * MAX_OF_USER + [False] * 2
    assert bench.begun(99, uid=bench.uid + 1)


def test_a_replica_is_submitted_once_and_a_refusal_is_told(bench: Bench) -> None:
    async def scene() -> None:
        await bench.begin()
        await turns(bench, lambda: bench.coordinators)
        bench.elastic.hear(submit())
        bench.elastic.hear(submit())
        await turns(bench, lambda: bench.submitted)
        bench.refusal = "sbatch: error: Invalid qos specification"
        bench.elastic.hear(submit() | {"token": "r2"})
        await turns(bench, lambda: bench.head.told[-1]["failed"])

    asyncio.run(scene())
    assert [one["comment"] for one in bench.submitted] == ["steward-elastic:7:r1"]
    assert bench.head.told[-1]["failed"] == [{"token": "r2", "why": "sbatch: error: Invalid qos specification"}]


def test_a_head_whose_name_cannot_be_looked_up_for_a_moment_costs_nothing_once_it_was(bench: Bench) -> None:
    told = bench.begun()
    bench.resolves = False

    async def scene() -> None:
        await turns(bench, lambda: bench.coordinators)
        bench.elastic.hear(submit())
        await turns(bench, lambda: bench.submitted)

    asyncio.run(scene())
    assert bench.begun() == told
    assert bench.submitted[0]["address"] == told["elastic_address"]


def test_a_head_whose_name_was_never_looked_up_makes_no_run_and_does_not_end_the_agent(bench: Bench) -> None:
    bench.resolves = False
    assert bench.begun() == {}
    asyncio.run(turns(bench, lambda: bench.head.told))
    assert bench.coordinators == []
    assert bench.head.told[-1]["alone"].endswith("the name of the head is not known now")


def test_a_script_that_did_not_wait_for_its_address_gets_no_coordinator_and_the_head_is_told(bench: Bench) -> None:
    told = bench.begun()
    bench.elastic.give_up(bench.opted(8))
    bench.elastic.give_up(bench.opted())
    asyncio.run(turns(bench, lambda: bench.head.told))
    assert bench.coordinators == []
    assert bench.head.told[-1].get("alone") == UNTOLD
    assert bench.begun() == told, "it asks again"
    asyncio.run(turns(bench, lambda: bench.coordinators))
    assert bench.elastic.frames()[0].get("alone", "") == ""


def test_a_coordinator_that_can_never_be_started_is_tried_ever_more_seldom_and_the_head_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elastic, "TURN_S", 0.0)
    monkeypatch.setattr(elastic, "AGAIN_S", 0.01)
    monkeypatch.setattr(elastic, "MAX_AGAIN_S", 0.04)
    bench.fails = "the script of job 7 has not the run's token"
    bench.begun()
    asyncio.run(turns(bench, lambda: bench.head.told and bench.head.told[-1].get("alone")))
    assert bench.head.told[-1].get("alone") == bench.fails
    assert len(bench.coordinators) >= 2, "the first one may come before its script"


def test_a_head_whose_name_is_looked_up_slowly_holds_no_script_up(bench: Bench) -> None:
    told = bench.begun()
    bench.answers = threading.Event()
    try:
        assert bench.begun() == told
    finally:
        bench.answers.set()


def test_a_flood_of_words_reaches_the_head_as_a_few_and_the_last_one_does(bench: Bench) -> None:
    bench.words = 2000

    async def scene() -> None:
        async with await bench.listen():
            await bench.begin()
            await turns(bench, lambda: bench.head.told and bench.head.told[-1]["step"] == 2004)

    asyncio.run(scene())
    assert len(bench.head.told) < 1000


def test_of_words_that_lie_ready_only_the_last_is_read(bench: Bench) -> None:
    """To read each would keep the agent's loop busy for seconds: its node would fall silent by a user's hand."""
    place = CoordinatorPlace(run=J7, uid=bench.uid, folder=bench.folder / "7" / "elastic", port=20_000, token="t")
    bench.words = 20_000
    heard: list[Mapping[str, Any]] = []

    async def scene() -> None:
        async with asyncio.timeout(FACT_S), await bench.listen():
            line = ElasticLine(place, heard.append, Threads(1))
            assert await line.open()
            while not heard or heard[-1]["step"] != 20_004:
                await asyncio.sleep(0.01)
            line.close()

    asyncio.run(scene())
    assert len(heard) < 2000


def test_a_line_that_never_ends_ends_the_line_and_is_not_kept(bench: Bench) -> None:
    bench.evil = b"x" * (4 * elastic_line.MAX_LINE)

    async def scene() -> None:
        await bench.begin()
        async with await bench.listen():
            await turns(bench, lambda: bench.said_evil > 1)

    asyncio.run(asyncio.wait_for(scene(), 2 * FACT_S))


def test_a_run_that_slurm_does_not_show_any_more_has_ended(bench: Bench) -> None:
    bench.begun()
    asyncio.run(turns(bench, lambda: bench.coordinators))
    bench.here.clear()
    asyncio.run(turns(bench, lambda: bench.head.told[-1]["state"] == "ended"))
    assert bench.elastic.frames() == ()


def test_an_order_that_is_none_is_refused(bench: Bench) -> None:
    with pytest.raises(Malformed):
        bench.elastic.hear({"t": "elastic", "run": 7, "order": "reboot", "why": ""})


def test_slurms_list_of_bases_is_read_and_odd_lines_are_passed_over() -> None:
    assert bases_of("12 1000 2 n1\n  13 0 1 n2 \nx y z\n\n") == {
        12: Base(uid=1000, nodes=2, host=N1),
        13: Base(uid=0, nodes=1, host=NodeName("n2")),
    }


def test_a_run_whose_words_are_long_sends_few_of_them() -> None:
    """Forty runs of one user, on five nodes, kept the head's loop busy half of the time."""
    assert 40 * 0.0025 / elastic.pace_s(56_000) < 0.02
    assert elastic.pace_s(len(str(WORD))) < 2 * elastic.LEAST_S


def test_a_word_that_is_costly_to_read_makes_its_run_wait_and_no_other_work() -> None:
    """Eight coordinators of one user, each with as many bytes as fit, kept the agent's loop busy all the time."""
    assert elastic_line.pause_s(0.0) == elastic_line.pause_s(0.0003) == elastic_line.HEAR_EVERY_S
    assert elastic_line.pause_s(0.011) >= 1.0
