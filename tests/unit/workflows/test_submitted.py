"""Each job's own record in Slurm is read once, beside the cycle, and is one more way to know what it asked for."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.resume_mode import ResumeMode
from steward.ports import Retryable
from steward.workflows.submitted import AGAIN_S, Submitted
from tests.builders.picture import a_cluster, names
from tests.fakes.clock import FakeClock

J = JobId(7)


@dataclass
class Records:
    """Slurm's records, and the worker that reads them: `calls` are those that it has not begun yet."""

    modes: dict[JobId, str] = field(default_factory=dict)
    fails: str = ""
    read: list[JobId] = field(default_factory=list)
    calls: list[Callable[[], None]] = field(default_factory=list)
    rings: int = 0

    def mode(self, job: Job) -> ResumeMode | None:
        self.read.append(job.id)
        if self.fails:
            raise Retryable(self.fails)
        return ResumeMode.parse(self.modes[job.id]) if job.id in self.modes else None

    def requeues(self) -> bool:
        return True

    def submit(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def work(self) -> None:
        for call in self.calls:
            call()
        self.calls.clear()

    def ring(self) -> None:
        self.rings += 1


def bench(clock: FakeClock, records: Records) -> Submitted:
    return Submitted(records, workers=records, clock=clock, ring=records.ring)


def running(*ids: int) -> dict[JobId, Job]:
    picture = a_cluster()
    for id in ids:
        picture = picture.job(id)
    return dict(picture.seen.jobs)


def test_a_running_job_is_read_once_and_its_word_is_repeated() -> None:
    records = Records(modes={J: "any:2"})
    submitted = bench(FakeClock(), records)
    assert submitted.look(running(7, 8)) == ((), {})
    records.work()
    for _ in range(3):
        words, unread = submitted.look(running(7, 8))
        assert ([(word.job, word.mode.text) for word in words], unread) == ([(J, "any:2")], {})
    assert (records.read, records.calls, records.rings) == ([7, 8], [], 1)


NEVER_STARTED = (
    {"state": JobState.PENDING, "nodes": frozenset()},
    {"state": JobState.CANCELLED, "nodes": frozenset()},
    {"is_batch": False},
    {"state": JobState.UNKNOWN},
)


@pytest.mark.parametrize("fields", NEVER_STARTED)
def test_jobs_that_slurm_gave_no_nodes_or_that_have_no_script_are_not_read(fields: dict[str, Any]) -> None:
    records = Records()
    bench(FakeClock(), records).look({J: replace(running(7)[J], **fields)})
    assert records.calls == []


PENDING: dict[str, Any] = {"state": JobState.PENDING, "nodes": frozenset(), "batch_host": None, "started": None}
STARTED_ONCE: tuple[tuple[dict[str, Any], int], ...] = (
    ({**PENDING, "restarts": 1, "reason": "BeginTime"}, 0),
    ({**PENDING, "restarts": 1, "reason": "launch_failed_requeued_held"}, 0),
    ({**PENDING, "restarts": 0, "reason": "launch_failed_requeued_held"}, 0),
    ({**PENDING, "restarts": 3, "flags": frozenset({"COMPLETING"})}, 2),
    ({"state": JobState.NODE_FAIL}, 0),
    ({"state": JobState.FAILED, "restarts": 2}, 2),
)


@pytest.mark.parametrize(("fields", "restart"), STARTED_ONCE)
def test_a_job_that_slurm_gave_nodes_once_is_read_also_when_nobody_saw_it_run(
    fields: dict[str, Any], restart: int
) -> None:
    records = Records(modes={J: "1"})
    submitted = bench(FakeClock(), records)
    jobs = {J: replace(running(7)[J], **fields)}
    submitted.look(jobs)
    records.work()
    (word,) = submitted.look(jobs)[0]
    assert (word.job, word.mode.text, word.restart) == (J, "1", restart)


def test_the_word_on_a_job_that_was_put_back_names_the_nodes_of_the_run_that_it_lost() -> None:
    records = Records(modes={J: "1"})
    submitted = bench(FakeClock(), records)
    submitted.look(running(7))  # its node dies in the Prolog, before its record is read
    back = {J: replace(running(7)[J], **{**PENDING, "restarts": 1, "submitted": 5.0})}
    submitted.look(back)
    records.work()
    submitted.look(back)
    records.work()
    (word,) = submitted.look(back)[0]
    assert (word.restart, word.ran_on) == (0, names("n1", "n2", "n3"))


def test_a_look_does_not_wait_for_a_record_nor_have_two_read_at_once() -> None:
    records = Records()
    submitted = bench(FakeClock(), records)
    submitted.look(running(7))
    submitted.look(running(7, 8))
    assert len(records.calls) == 1
    records.work()
    submitted.look(running(7, 8))
    records.work()
    assert records.read == [7, 8]


def test_what_cannot_be_read_is_told_and_looked_at_again_later() -> None:
    records, clock = Records(modes={J: "1"}, fails="cannot read it"), FakeClock()
    submitted = bench(clock, records)
    submitted.look(running(7))
    records.work()
    assert submitted.look(running(7)) == ((), {J: "cannot read it"})
    assert records.calls == []
    records.fails = ""
    clock.at += AGAIN_S
    submitted.look(running(7))
    records.work()
    words, unread = submitted.look(running(7))
    assert ([word.job for word in words], unread) == ([J], {})
