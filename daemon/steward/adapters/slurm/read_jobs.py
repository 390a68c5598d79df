"""Read jobs through steward-slurm, or else as text. An unchanged job is the same object again.

Text does not show what a running job had asked for. Its request is kept from when the job waited or was read through
steward-slurm; else its allocation is taken for it.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from steward.adapters.process import show
from steward.adapters.slurm import narrow, records, text_jobs
from steward.adapters.slurm.commands import SlurmCommands
from steward.adapters.slurm.library import MOST, NOTHING, Library
from steward.adapters.slurm.record_form import RecordLines
from steward.adapters.slurm.text_jobs import Format, Merged, Short
from steward.adapters.slurm.text_nodes import Odd
from steward.adapters.slurm.words import is_node, node_list
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.ports import Retryable, Stale

log = logging.getLogger(__name__)

_SQUEUE = ("squeue", "--noheader", "--all", "--states=all")
_STATES_WITH_NODES = "--states=running,suspended,completing"
_EACH_TASK = "--array"
_SHORT_S = 60.0
"""How long the short list is not read again while the long list does not change."""
_ONE_BY_ONE = 4
"""Up to this many jobs are asked for one by one, since slurmctld sends squeue either one job or all."""
_LONG_QUEUE = 300
"""From this many jobs in the queue on, asking one by one is worth the processes."""
_LONGEST = 2000
"""The most ids for one command."""
_IN_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
Key = tuple[str, str, int]
"""The text of a job: its long record, its excluded nodes, and how often the short list has its id."""


@dataclass(slots=True)
class _Look:
    """The result of one look: readable jobs, and jobs whose text is odd or is of several jobs."""

    found: dict[JobId, Job] = field(default_factory=dict)
    odd: set[JobId] = field(default_factory=set)
    merged: set[JobId] = field(default_factory=set)


_ONE_COSTS = 40
"""Reading one job by number costs as much as this many jobs of a whole look (22.05, 10,000 jobs)."""
_TRUST_S = 60.0
"""How long Slurm's "nothing changed" is believed: it rests on slurmctld's clock, which may be set."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last whole look through the library, its time (monotonic), and the jobs that waited for Slurm's scheduler."""

    stamp: str
    jobs: Mapping[JobId, Job]
    at: float
    waiting: tuple[JobId, ...]

    @property
    def is_cheap_by_number(self) -> bool:
        """Return whether the jobs that waited are read more cheaply one by one than with all others."""
        return len(self.waiting) <= min(MOST, len(self.jobs) // _ONE_COSTS)


def _waiting(jobs: Mapping[JobId, Job]) -> tuple[JobId, ...]:
    return tuple(id for id, job in jobs.items() if job.is_pending and not job.is_held)


class JobReader:
    """A reader of jobs, which remembers its last look. Safe to call from several threads."""

    def __init__(self, commands: SlurmCommands, library: Library | None = None) -> None:
        self._commands, self._library = commands, library
        self._last: _Last | None = None
        self._short_until = 0.0
        self._known: dict[JobId, tuple[Key | str, Job]] = {}
        """Each job as last read, with its text."""

    def whole(self) -> Mapping[JobId, Job]:
        """Return all jobs."""
        found = self._all_by_library()
        if found is None:
            found = self._all_by_text()
        for id in list(self._known):
            if id not in found:
                self._known.pop(id, None)
        return found

    def some(self, only: Collection[JobId], on: Collection[NodeName]) -> Mapping[JobId, Job]:
        """Return these jobs, and those with one of these nodes."""
        names = sorted(name for name in set(on) if is_node(name))
        found = self._some_by_library(sorted(set(only)), names)
        return self._some_by_text(only, names) if found is None else found

    def parts(self, leader: JobId) -> Mapping[JobId, Job]:
        """Return the parts of a heterogeneous job, maybe with other jobs."""
        found = self._jobs_of(self._library.parts(leader)) if self._library is not None else None
        return self._by_number([leader]) if found is None else found

    def _all_by_library(self) -> Mapping[JobId, Job] | None:
        """Read every job through the library; the same mapping if nothing changed. Return None to ask the commands."""
        if self._library is None:
            return None
        last, now = self._last, time.monotonic()
        if last is not None and (now > last.at + _TRUST_S or not last.is_cheap_by_number):
            last = None
        told = self._library.jobs(last.stamp if last else NOTHING)
        if told is not None and told.lines is None and last is not None:
            if (same := self._with_reasons(last, self._library)) is not None:
                return same
            told = self._library.jobs(NOTHING)
        found = self._jobs_of(told)
        self._last = _Last(told.stamp, found, now, _waiting(found)) if told and found is not None else None
        return found

    def _with_reasons(self, last: _Last, library: Library) -> Mapping[JobId, Job] | None:
        """Return the unchanged jobs, with the waiting ones read again; None if one of the waiting ones is gone."""
        # Slurm's scheduler changes a job's reason to wait without counting that as a change (22.05 to 26.05); the
        # reason of a held job is changed by commands alone
        if not last.waiting:
            return last.jobs
        found = self._jobs_of(library.job(last.waiting))
        if found is None or found.keys() != set(last.waiting):
            return None
        if any(found[id] is not last.jobs[id] for id in last.waiting):
            jobs = {**last.jobs, **found}
            last = self._last = replace(last, jobs=jobs, waiting=_waiting(jobs))
        return last.jobs

    def _some_by_library(self, ids: list[JobId], on: list[NodeName]) -> Mapping[JobId, Job] | None:
        """Read some jobs through the library; return None to ask the commands."""
        if self._library is None:
            return None
        if len(ids) > MOST or len(on) > MOST:
            return narrow.of_jobs(self.whole(), ids, on)
        named = self._jobs_of(self._library.job(ids)) if ids else {}
        there = self._jobs_of(self._library.on(on)) if on and named is not None else {}
        return None if named is None or there is None else narrow.of_jobs({**named, **there}, ids, on)

    def _jobs_of(self, told: RecordLines | None) -> dict[JobId, Job] | None:
        """Return the jobs of an answer; None if there is none, or one job is unreadable."""
        if told is None or told.lines is None:
            return None
        found: dict[JobId, Job] = {}
        try:
            for line in told.lines:
                id = JobId(int(line.partition("\t")[0]))
                known = self._known.get(id)
                is_known = known is not None and known[0] == line
                found[id] = known[1] if known and is_known else self._keep(id, line, records.job_of(line))
        except (ValueError, Retryable) as error:
            log.warning("steward-slurm's answer is not believed: %s", error)
            return None
        return found

    def _all_by_text(self) -> Mapping[JobId, Job]:
        """Read every job as text."""
        try:
            texts = self._long_list()
            # if no text of the long list changed, the short list is read once a minute only: it could only show other
            # excluded nodes of a job, which a narrow look reads each time
            if time.monotonic() < self._short_until and (same := self._unchanged(texts)) is not None:
                return same
            found = self._by_text(texts)
        except Odd as error:
            raise Retryable(f"cannot read squeue's answer: {show(str(error))}") from None
        self._short_until = time.monotonic() + _SHORT_S
        return found

    def _unchanged(self, texts: Mapping[JobId, str]) -> Mapping[JobId, Job] | None:
        """Return the jobs of the last look; None if a text differs."""
        known = self._known.copy()
        if known.keys() != texts.keys() or any(
            not isinstance(key, tuple) or key[0] != texts[id] for id, (key, _) in known.items()
        ):
            return None
        return {id: known[id][1] for id in texts}

    def _some_by_text(self, only: Collection[JobId], on: Collection[NodeName]) -> Mapping[JobId, Job]:
        """Read some jobs as text."""
        found: dict[JobId, Job] = {}
        for which in self._id_lists(sorted(set(only))):
            found.update(narrow.of_jobs(self._by_number(which), which))
        if on:
            found.update(narrow.of_jobs(self._on_nodes(on), [], on))
        return found

    def _id_lists(self, ids: list[JobId]) -> Iterator[list[JobId]]:
        """Yield the ids in lists for one command each."""
        size = 1 if len(ids) <= _ONE_BY_ONE and len(self._known) > _LONG_QUEUE else _LONGEST
        return (ids[at : at + size] for at in range(0, len(ids), size))

    def _by_number(self, ids: list[JobId]) -> Mapping[JobId, Job]:
        """Read these jobs as text, maybe with others."""
        try:
            return self._read(f"--jobs={','.join(map(str, ids))}")
        except Stale:
            return {}

    def _on_nodes(self, on: Collection[NodeName]) -> Mapping[JobId, Job]:
        """Read the jobs on these nodes as text, maybe with others."""
        argv = (*_SQUEUE[:-1], _STATES_WITH_NODES, f"--nodelist={node_list(on)}", f"--format={text_jobs.SHORT}")
        try:
            return self._some_by_text(text_jobs.short(self._commands.read(*argv)).times, ())
        # squeue rejects all names if one is unknown
        except (Stale, Odd):
            return self._read()

    def _read(self, *which: str) -> dict[JobId, Job]:
        """Read jobs as text, maybe with others. Raises Retryable."""
        try:
            return self._by_text(None, *which)
        except Odd as error:
            raise Retryable(f"cannot read squeue's answer: {show(str(error))}") from None

    def _by_text(self, texts: dict[JobId, str] | None, *which: str) -> dict[JobId, Job]:
        """Return the jobs of both lists; a job that left one of them is gone. Raises Odd for an unreadable answer."""
        # if a task began between the two lists, both are read once more
        for _ in range(2):
            read, short = (texts, self._short_list(*which)) if texts is not None else self._both_lists(*which)
            look, texts = self._jobs(read, short), None
            merged = look.merged | (short.tasks - read.keys())
            if not merged:
                break
        else:
            apart = self._long_list(_EACH_TASK, *which)
            again = self._jobs({id: apart[id] for id in merged if id in apart and short.times[id] == 1}, short)
            look.found.update(again.found)
            look.odd |= again.odd | (merged - again.found.keys())
        return {**look.found, **self._as_known(look.odd)} if look.odd else look.found

    def _both_lists(self, *which: str) -> tuple[dict[JobId, str], Short]:
        """Read both lists at once."""
        with ThreadPoolExecutor(1) as beside:
            texts = beside.submit(self._long_list, *which)
            short = self._short_list(*which)
            return texts.result(), short

    def _short_list(self, *which: str) -> Short:
        """Read the short list."""
        argv = (*_SQUEUE, _EACH_TASK, f"--format={text_jobs.SHORT}", *which)
        return text_jobs.short(self._commands.look(*argv, env=_IN_SECONDS))

    def _long_list(self, *which: str) -> dict[JobId, str]:
        """Read the long list."""
        form = Format(exclusive=self._commands.version().exclusive[0])
        answer = self._commands.look(*_SQUEUE, *which, env={**_IN_SECONDS, "SQUEUE_FORMAT2": str(form)})
        return {text_jobs.id_of(record): record for record in form.cut(answer)}

    def _jobs(self, texts: Mapping[JobId, str], short: Short) -> _Look:
        """Return the jobs of the texts."""
        look, word = _Look(), self._commands.version().exclusive[1]
        for id, text in texts.items():
            if id not in short.times:
                continue
            key, (before, known) = (text, short.excluded[id], short.times[id]), self._known.get(id, (None, None))
            if known is not None and before == key:
                look.found[id] = known
                continue
            try:
                look.found[id] = self._keep(id, key, _with_what_is_known(text_jobs.job(*key, word), known))
            except Merged:
                look.merged.add(id)
            except Odd:
                look.odd.add(id)
        return look

    def _keep(self, id: JobId, key: Key | str, job: Job) -> Job:
        """Return the job, as the object of the last look if it is equal."""
        before = self._known.get(id)
        kept = before[1] if before is not None and before[1] == job else job
        self._known[id] = (key, kept)
        return kept

    def _as_known(self, odd: Collection[JobId]) -> dict[JobId, Job]:
        """Return jobs with unreadable text as they were last read; leave out unknown ones."""
        log.warning("cannot read what squeue tells of the jobs %s", show(",".join(map(str, sorted(odd)))))
        return {id: known[1] for id in odd if (known := self._known.get(id)) is not None}


def _with_what_is_known(job: Job, known: Job | None) -> Job:
    """Return the job with the fields that its text does not show, from an earlier look at it."""
    if known is None or known.user_id != job.user_id:
        return job
    asked = job.requested if job.is_pending else known.requested
    return replace(
        job,
        requested=asked,
        node_sizes=known.node_sizes,
        expedited=known.expedited,
        memory_per_cpu=known.memory_per_cpu,
    )
