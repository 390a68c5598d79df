"""The agent carries out the head's order to let go of a lost run, and nothing that might hit a newer one."""

import asyncio
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from steward.adapters.node.stepds import Stepd
from steward.adapters.offload import Threads
from steward.adapters.proc import ProcessKey
from steward.agent.job_orders import LostRunCleanup
from steward.agent.opted import OptedBook
from steward.model.agent_action import LetGo
from steward.model.ask import OptedIn
from steward.model.ids import JobId, Key, NodeName
from steward.model.resume_mode import ResumeMode
from steward.model.why import Why
from tests.fakes.until import FACT_S, comes_true

J = JobId(7)
ORDER = LetGo(
    key=Key("k"),
    why=Why(rule="job.let_go", text="n1 died"),
    nodes=frozenset({NodeName("n1")}),
    job=J,
    uid=1000,
    restart=0,
    before=1000.0,
)
STEPD = Stepd(process=ProcessKey(pid=333, started=1), job=J, step="0", began=900.0)


@dataclass
class FakeStepds:
    """`gate` holds up a look until it is set."""

    looks: list[tuple[JobId, float]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    error: OSError | None = None
    takes_s: float = 0.0
    hangs: int | None = None
    """A user whose processes cannot be read until then."""

    def end_idle(self, job: JobId, uid: int, before: float) -> tuple[Stepd, ...]:
        if uid == self.hangs:
            self.gate.wait(FACT_S)
        self.looks.append((job, before))
        self.gate.wait(FACT_S if self.hangs is None else 0.0)
        if self.error is not None:
            raise self.error
        return (STEPD,)

    def set_aside(self, job: JobId, step: int, uid: int, until: float) -> tuple[Path, ...]:
        time.sleep(self.takes_s)
        if self.error is not None:
            raise self.error
        return (Path(f"/tmp/spmix_appdir_{uid}_{job}.{step}"),)


def obey(folder: Path, *orders: LetGo, skew_s: float | None = 0.0, restart: int = 0, whose: int = 1000) -> FakeStepds:
    """What was looked for when these orders came one upon the other, on a node where this restart of the job ran."""
    stepds = FakeStepds()

    async def story() -> None:
        opted = OptedBook(folder / "opted.json")
        opted.add(OptedIn(job=J, uid=whose, mode=ResumeMode.parse("1"), restart=restart, at=1.0))
        letting_go = LostRunCleanup(stepds, opted=opted, skew_s=lambda: skew_s, threads=lambda: Threads(1))
        for order in orders:
            letting_go.obey(order)
        await asyncio.sleep(0.02)
        stepds.gate.set()
        async with asyncio.timeout(FACT_S):
            await letting_go.rest()

    asyncio.run(story())
    return stepds


def test_the_order_is_carried_out_and_the_log_says_what_and_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert obey(tmp_path, ORDER).looks == [(J, 1000.0)]
    assert "let go job=7 step=0 pid=333 restart=0 why='n1 died'" in caplog.text


def test_the_heads_time_is_turned_into_ours(tmp_path: Path) -> None:
    assert obey(tmp_path, ORDER, skew_s=2.5).looks == [(J, 997.5)]


def test_without_a_comparison_of_clocks_nothing_is_done(tmp_path: Path) -> None:
    assert obey(tmp_path, ORDER, skew_s=None).looks == []


def test_nothing_is_done_where_a_newer_run_of_the_job_has_begun(tmp_path: Path) -> None:
    assert obey(tmp_path, ORDER, restart=1).looks == []
    assert obey(tmp_path, replace(ORDER, restart=1), restart=1).looks != []


def test_what_another_user_says_of_the_job_holds_up_nothing(tmp_path: Path) -> None:
    """Any user of the node may claim a job of which the agent does not know whose it is."""
    assert obey(tmp_path, ORDER, restart=1, whose=1666).looks == [(J, 1000.0)]


def test_an_order_repeated_while_the_first_is_carried_out_is_dropped(tmp_path: Path) -> None:
    assert len(obey(tmp_path, ORDER, ORDER, replace(ORDER, job=JobId(8))).looks) == 2


def test_a_look_that_fails_harms_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stepds = FakeStepds(error=OSError("no /proc"))
    stepds.gate.set()

    async def story() -> None:
        opted = OptedBook(tmp_path / "opted.json")
        letting_go = LostRunCleanup(stepds, opted=opted, skew_s=lambda: 0.0, threads=lambda: Threads(1))
        letting_go.obey(ORDER)
        await letting_go.rest()
        letting_go.obey(ORDER)
        await letting_go.rest()

    asyncio.run(story())
    assert len(stepds.looks) == 2
    assert "no /proc" in caplog.text


def test_one_users_processes_that_cannot_be_read_hold_up_no_other_users_job(tmp_path: Path) -> None:
    stepds = FakeStepds(hangs=1001)

    async def story() -> None:
        opted = OptedBook(tmp_path / "opted.json")
        for job, uid in ((JobId(6), 1001), (J, 1000)):
            opted.add(OptedIn(job=job, uid=uid, mode=ResumeMode.parse("1"), restart=0, at=1.0))
        letting_go = LostRunCleanup(stepds, opted=opted, skew_s=lambda: 0.0, threads=lambda: Threads(1))
        letting_go.obey(replace(ORDER, job=JobId(6), uid=1001))
        letting_go.obey(ORDER)
        await comes_true("the other's is carried out", lambda: bool(stepds.looks))
        stepds.gate.set()
        await letting_go.rest()

    asyncio.run(story())
    assert stepds.looks[0] == (J, 1000.0)


def test_a_step_waits_for_its_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opted = OptedBook(tmp_path / "opted.json")
    slow = FakeStepds(takes_s=0.1)
    asyncio.run(
        LostRunCleanup(slow, opted=opted, skew_s=lambda: 0.0, threads=lambda: Threads(1)).make_room(J, 3, 1000, FACT_S)
    )
    assert "set aside job=7 step=3" in caplog.text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, "set aside job=7 step=3 path=/tmp/spmix_appdir_1000_7.3 "),
        (OSError("read-only"), "no room made job=7 step=3 why='read-only'"),
    ],
)
def test_what_is_put_out_of_a_steps_way_is_told_and_an_error_leaves_the_step_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: OSError | None, told: str
) -> None:
    opted = OptedBook(tmp_path / "opted.json")
    letting_go = LostRunCleanup(FakeStepds(error=error), opted=opted, skew_s=lambda: 0.0, threads=lambda: Threads(1))
    asyncio.run(letting_go.make_room(J, 3, 1000, FACT_S))
    assert told in caplog.text
