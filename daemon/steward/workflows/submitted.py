"""Read the options of batch jobs from Slurm's record of their submission, once for each job and beside the cycle.

A job counts from its first allocation: its node may die in the Prolog, or its launch may fail, before any agent can
report it. So the record of every job that was once started is read, however that run ended.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from steward.model.ask import OptedIn
from steward.model.ids import JobId
from steward.model.job import Job, JobState
from steward.model.resume_mode import ResumeMode
from steward.policy.fact_cache import changes
from steward.ports import Clock, PortError
from steward.workflows.pool import Workers

AGAIN_S = 60.0
"""A record that could not be read is read again after this time."""

_Key = tuple[JobId, float | None]


class Submissions(Protocol):
    """Slurm's own records of how jobs were submitted."""

    def mode(self, job: Job) -> ResumeMode | None:
        """Return the `--auto-resume=` of a batch job; None if it had none. Raises Retryable if it cannot be read."""

    def requeues(self) -> bool:
        """Return whether jobs may be requeued by default (JobRequeue). Raises Retryable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The content of one job's record; `failed` is why it could not be read, empty if it was."""

    at: float
    mode: ResumeMode | None = None
    failed: str = ""


class Submitted:
    """The options of all batch jobs. One thread calls `look`; a worker reads records and rings for news."""

    def __init__(self, port: Submissions, *, workers: Workers, clock: Clock, ring: Callable[[], None]) -> None:
        self._port, self._workers, self._clock, self._ring = port, workers, clock, ring
        self._lock = threading.Lock()
        self._jobs: Mapping[JobId, Job] = {}
        self._wanted: dict[_Key, Job] = {}
        """Batch jobs of the last look that were started at least once."""
        self._ran: dict[JobId, Job] = {}
        """The newest run of each job, as seen while it had its nodes."""
        self._unread: dict[_Key, Job] = {}
        """Jobs whose record was not read yet, or could not be read."""
        self._read: dict[_Key, _Read] = {}
        self._words: dict[_Key, OptedIn] = {}
        self._reading = False

    def look(self, jobs: Mapping[JobId, Job]) -> tuple[tuple[OptedIn, ...], Mapping[JobId, str]]:
        """Return the known options of started jobs, and for each job whose record could not be read the reason."""
        with self._lock:
            self._follow(jobs)
            new = [key for key in self._unread if key not in self._read or self._is_due(self._read[key])]
            begins = bool(new) and not self._reading
            self._reading = self._reading or begins
            todo = [(key, self._wanted[key]) for key in new] if begins else []
            failed = {key[0]: self._read[key].failed for key in self._unread if key in self._read}
            words = tuple(self._words.values())
        if begins:
            self._workers.submit(partial(self._read_all, todo))
        return words, failed

    def _follow(self, jobs: Mapping[JobId, Job]) -> None:
        """Take over the jobs that changed since the last look."""
        changed, gone = changes(self._jobs, jobs)
        for before in [self._jobs[id] for id in (*gone, *(id for id, _ in changed)) if id in self._jobs]:
            self._want(before, None)
        for _, job in changed:
            if job.is_active:
                self._ran[job.id] = job
            if job.is_batch and was_started(job):
                self._want(job, job)
        for id in gone:
            self._ran.pop(id, None)
        for key in self._read.keys() - self._wanted.keys() if changed or gone else ():
            del self._read[key]
        self._jobs = jobs

    def _want(self, job: Job, now: Job | None) -> None:
        """Note that the record of job `now` is needed; with None, that the record of `job` no longer is."""
        key = (job.id, job.submitted)
        for kept in (self._wanted, self._unread, self._words):
            kept.pop(key, None)
        if now is not None:
            self._wanted[key] = now
            self._note(key)

    def _note(self, key: _Key) -> None:
        """Note whether a job's record is still to be read, or what option it has."""
        read, job = self._read.get(key), self._wanted[key]
        if read is None or read.failed:
            self._unread[key] = job
            return
        self._unread.pop(key, None)
        if read.mode is not None:
            self._words[key] = _as_report(job, self._ran.get(job.id), read.mode, read.at)

    def _is_due(self, read: _Read) -> bool:
        """Return whether a failed read is due again."""
        return bool(read.failed) and self._clock.now() - read.at >= AGAIN_S

    def _read_all(self, jobs: Iterable[tuple[_Key, Job]]) -> None:
        """Read the records of these jobs; ring if one has the option."""
        found = {key: self._read_one(job) for key, job in jobs}
        with self._lock:
            for key in found.keys() & self._wanted.keys():
                self._read[key] = found[key]
                self._note(key)
            self._reading = False
        if any(read.mode is not None for read in found.values()):
            self._ring()

    def _read_one(self, job: Job) -> _Read:
        """Read the record of one job."""
        now = self._clock.now()
        try:
            return _Read(at=now, mode=self._port.mode(job))
        except PortError as error:
            return _Read(at=now, failed=str(error))


def was_started(job: Job) -> bool:
    """Return whether Slurm has given the job nodes at least once."""
    if job.is_pending:
        return job.restarts > 0 or job.is_held_by_slurm
    return job.state is not JobState.UNKNOWN and bool(job.nodes)


def _as_report(job: Job, ran: Job | None, mode: ResumeMode, at: float) -> OptedIn:
    """Return the option as a report on the job's newest run; for a waiting job the run before its requeue."""
    restart = max(job.restarts - 1, 0) if job.is_pending else job.restarts
    nodes = ran.nodes if ran is not None and ran.restarts == restart else job.nodes
    return OptedIn(job=job.id, uid=job.user_id, mode=mode, restart=restart, at=at, ran_on=nodes)
