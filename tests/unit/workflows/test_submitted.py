"""Each job's own record in Slurm is read once, beside the cycle, and is one more way to know what it asked for."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.resume_mode import ResumeMode
from steward.ports import Retryable
from steward.workflows.submitted import AGAIN_S, Submitted
from tests.builders.picture import a_cluster
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


def test_jobs_that_wait_have_ended_or_have_no_script_are_not_read() -> None:
    records = Records()
    jobs = running(1, 2, 3)
    fields = ({"state": JobState.PENDING}, {"state": JobState.FAILED}, {"is_batch": False})
    others = {id: replace(job, **change) for (id, job), change in zip(jobs.items(), fields, strict=True)}  # type: ignore[arg-type]
    bench(FakeClock(), records).look(others)
    assert records.calls == []


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
