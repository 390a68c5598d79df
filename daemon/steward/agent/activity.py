"""Since when a job has used next to nothing."""

from dataclasses import dataclass

from steward.adapters.node.job_activity import Used
from steward.model.ids import JobId

QUIET_CPU = 0.02
"""Of one core, by all of the job's processes here: slurmstepd and an idle interpreter take less."""
QUIET_BYTES_PER_S = 100_000.0
"""Of the whole machine: its own talk takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    at: float
    used: Used


class Activity:
    """`quiet_s` of a job is 0 until it was busy once: one that has not begun yet does not stand still."""

    def __init__(self) -> None:
        self._last: _Sample | None = None
        self._was_busy: set[JobId] = set()
        self._quiet: dict[JobId, float] = {}

    def note(self, at: float, used: Used, gpus_busy: bool | None) -> None:
        """A look at `at` (s). `gpus_busy` is None where that is not known: then no job counts as quiet."""
        last, self._last = self._last, _Sample(at=at, used=used)
        if last is None or at <= last.at:
            return
        seconds = at - last.at
        all_busy = gpus_busy is not False or used.network_bytes - last.used.network_bytes > QUIET_BYTES_PER_S * seconds
        for job in last.used.cpu_s.keys() & used.cpu_s.keys():
            cores = (used.cpu_s[job] - last.used.cpu_s[job]) / seconds
            if cores > QUIET_CPU:
                self._was_busy.add(job)
            if all_busy or cores > QUIET_CPU or cores < 0.0:
                self._quiet.pop(job, None)
            else:
                self._quiet.setdefault(job, last.at)
        self._forget(frozenset(used.cpu_s))

    def quiet_s(self, job: JobId, now: float) -> float:
        since = self._quiet.get(job) if job in self._was_busy else None
        return 0.0 if since is None else max(now - since, 0.0)

    def _forget(self, here: frozenset[JobId]) -> None:
        self._was_busy &= here
        self._quiet = {job: since for job, since in self._quiet.items() if job in here}
