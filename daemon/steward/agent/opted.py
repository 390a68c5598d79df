"""The opted-in jobs that this node's slurmstepds told of; kept in a file, so that an agent's restart forgets none."""

import logging
from collections import Counter
from pathlib import Path

from steward.adapters.jsonfile import read_json, write_json
from steward.adapters.messages import MAX_OPTED, opted_of, opted_record
from steward.model.ask import OptedIn
from steward.model.ids import JobId
from steward.ports import PortError

log = logging.getLogger(__name__)

CROWDED = 64
YOUNG_S = 600.0


class OptedBook:
    """At most `MAX_OPTED` jobs. Of the user who has the most the longest known goes first: nobody can fill the book so
    that it forgets another's job."""

    def __init__(self, path: Path) -> None:
        self._path = path
        records = _read(path)
        self._jobs = {one.job: one for one, _ in records}
        self._outs = {one.job: out for one, out in records if out}

    def all(self) -> tuple[OptedIn, ...]:
        return tuple(self._jobs.values())

    def of(self, job: JobId) -> OptedIn | None:
        return self._jobs.get(job)

    def add(self, opted: OptedIn) -> bool:
        """Remember; False when it was known already (each step of a job tells it again)."""
        known = self._jobs.get(opted.job)
        if known is not None and (known.uid, known.mode, known.restart) == (opted.uid, opted.mode, opted.restart):
            return False
        if known is None or known.restart != opted.restart:
            self._outs.pop(opted.job, None)
        self._keep({**self._jobs, opted.job: opted})
        return True

    def out_of(self, job: JobId) -> str:
        """The file that the job's script writes to, as its user says; empty where that is not known."""
        return self._outs.get(job, "")

    def note_out(self, job: JobId, restart: int, path: str) -> None:
        """Remember it, of the job's present run."""
        known = self._jobs.get(job)
        if known is not None and known.restart == restart and self._outs.get(job) != path:
            self._outs[job] = path
            self._keep(self._jobs)

    @property
    def is_crowded(self) -> bool:
        """So many that it is worth asking Slurm which of them are still here."""
        return len(self._jobs) > CROWDED

    def prune(self, here: frozenset[JobId], now: float) -> None:
        """Forget jobs that are not on the node any more; the youngest stay, Slurm may not show them yet."""
        self._keep({job: one for job, one in self._jobs.items() if job in here or now - one.at < YOUNG_S})

    def _keep(self, jobs: dict[JobId, OptedIn]) -> None:
        kept = _fair_share(sorted(jobs.values(), key=lambda one: one.at))
        self._jobs = {one.job: one for one in kept}
        self._outs = {job: out for job, out in self._outs.items() if job in self._jobs}
        try:
            write_json(self._path, [{**opted_record(one), "out": self.out_of(one.job)} for one in kept])
        except PortError as error:
            log.warning("opted jobs not saved why=%r", str(error))


def _fair_share(oldest_first: list[OptedIn]) -> list[OptedIn]:
    kept = list(oldest_first)
    while len(kept) > MAX_OPTED:
        ((crowd, _),) = Counter(one.uid for one in kept).most_common(1)
        kept.remove(next(one for one in kept if one.uid == crowd))
    return kept


def _read(path: Path) -> list[tuple[OptedIn, str]]:
    """Each job, and the file that its script writes to (empty: not known)."""
    records = read_json(path)
    found = []
    for record in records if isinstance(records, list) else []:
        try:
            found.append((opted_of(record), str(record.get("out") or "")))
        except PortError as error:
            log.warning("opted job dropped from=%s why=%r", path, str(error))
    return found
