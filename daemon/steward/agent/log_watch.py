"""The watch of the output of jobs that brought rules along (`log_rules.py`): which files are read, and how often.

A file is what a task of Slurm's writes its output to: of a script the file that Slurm named, of a step its own file a
task, if it has one. Each is read as its user, from where it ended at the last look.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from steward.adapters.node.as_user import FileEnd, Matched, Matches
from steward.adapters.node.step_walk import RankName, StepLook
from steward.adapters.node.stepds import Stepd
from steward.adapters.offload import PerUser, Threads
from steward.adapters.proc import ProcessKey
from steward.agent.log_rules import LogRules, LogSense, broken, rules_in, watched, worst
from steward.model.ids import JobId
from steward.model.job_sight import MOST_RULES, LogState, LogWord
from steward.model.text import cause_and_file, printable
from steward.ports import PortError

log = logging.getLogger(__name__)

EVERY_S = 30.0
"""The shortest time between two looks: each starts a process."""
YOUNG_S = 60.0
"""A step first seen older than this began before the agent did: its first line may have come long ago."""
MOST_FILES = 16
"""The most files of one job on this node."""
MOST_JOBS = 16
"""The most jobs of one user on this node whose output is read."""
MISSES = 3
"""After so many looks in a row that were not over in time the patterns are said to take too long."""
_LOOK_S = 5.0
_MOST_RULES_BYTES = 64 << 10


class LogEyes(Protocol):
    """The looks at files of users, called in a thread for each. Raises PortError."""

    def output(self, pid: int) -> tuple[str, str] | None:
        """Return what the output of a process is called, and at which path it is read; None if it is no file."""

    def text(self, path: str, uid: int, *, max_bytes: int) -> str:
        """Return the end of a user's file."""

    def matches(self, files: Sequence[FileEnd], patterns: Sequence[str], uid: int, *, timeout_s: float) -> Matched:
        """Return what the new lines of a user's files match."""


_SCRIPT = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """The first process of a task on this node."""

    stepd: Stepd
    process: ProcessKey
    name: RankName | None


@dataclass(slots=True, kw_only=True)
class _File:
    """A file that one step writes."""

    step: str
    end: FileEnd
    sense: LogSense

    def note(self, found: Matches, now: float) -> list[LogWord]:
        """Take what its new lines matched, and return what it says now."""
        self.end = found.end
        self.sense.note(found, now)
        return self.sense.words(now)


@dataclass(kw_only=True)
class _Job:
    """A job with rules."""

    uid: int
    path: str
    rules: LogRules | None = None
    files: dict[tuple[ProcessKey, str], _File] = field(default_factory=dict)
    has_own_files: bool = False
    """Whether tasks of a step write files of their own: then the script's says nothing."""
    said: dict[str, list[LogWord]] = field(default_factory=dict)
    """What is said of each step."""
    at: float = 0.0
    """When it was said (s)."""
    misses: int = 0


class LogWatch:
    """The watch of the output of this node's jobs by their own rules."""

    def __init__(self, eyes: LogEyes, threads: Callable[[], Threads]) -> None:
        self._eyes, self._of_user = eyes, PerUser(threads)
        self._jobs: dict[JobId, _Job] = {}
        self._due = 0.0

    def words(self, job: JobId, step: str, now: float) -> tuple[LogWord, ...]:
        """Return what the output of a step says at `now`."""
        known = self._jobs.get(job)
        if known is None:
            return ()
        said = known.said.get(step, [])[: MOST_RULES + 1]
        return tuple(aged(word, now - known.at) for word in said)

    async def turn(
        self,
        steps: Sequence[StepLook],
        names: Mapping[ProcessKey, RankName | None],
        owners: Mapping[ProcessKey, int],
        now: float,
    ) -> None:
        """Look at the output of each job with rules, if it is time."""
        if now < self._due:
            return
        here: defaultdict[JobId, list[_Task]] = defaultdict(list)
        for step in steps:
            for one in step.processes:
                if one.parent == step.stepd.process.pid and one.state not in "ZX":
                    here[step.stepd.job].append(_Task(stepd=step.stepd, process=one.key, name=names.get(one.key)))
        self._jobs = {job: known for job, known in self._jobs.items() if job in here}
        for job, tasks in here.items():
            path = next((task.name.rules for task in tasks if task.name is not None and task.name.rules), "")
            uid = owners.get(tasks[0].process, -1)
            if path and job not in self._jobs and sum(one.uid == uid for one in self._jobs.values()) < MOST_JOBS:
                self._jobs[job] = _Job(uid=uid, path=path)
        if self._jobs:
            self._due = now + EVERY_S
        await asyncio.gather(*(self._look(job, known, here[job], now) for job, known in self._jobs.items()))

    async def _look(self, job: JobId, known: _Job, tasks: Sequence[_Task], now: float) -> None:
        look = partial(self._read, known, tasks, now)
        try:
            said = await self._of_user.of(known.uid).call(look, name=f"output of {job}", timeout_s=2 * _LOOK_S)
        except (PortError, OSError) as error:
            known.misses += 1
            log.info("output not looked at job=%d why=%r", job, cause_and_file(error))
            if known.misses >= MISSES:
                word = broken(f"the output was not looked at in time: {printable(cause_and_file(error), 100)}")
                known.said, known.at = {step: [word] for step in known.said or (_SCRIPT,)}, now
        else:
            known.said, known.at, known.misses = said, now, 0

    # In a thread

    def _read(self, known: _Job, tasks: Sequence[_Task], now: float) -> dict[str, list[LogWord]]:
        """Return what is to be said of each step."""
        if known.rules is None:
            try:
                known.rules = rules_in(self._eyes.text(known.path, known.uid, max_bytes=_MOST_RULES_BYTES))
            except (PortError, ValueError) as error:
                return {_SCRIPT: [broken(f"{printable(known.path, 80)}: {error}")]}
        rules = known.rules
        if not rules.are_on:
            return {}
        files = self._files(known, rules, tasks, now) if rules.rules else []
        if not files:
            return {_SCRIPT: [broken("its output is no file") if rules.rules else watched(rules)]}
        found = self._eyes.matches([one.end for one in files], rules.patterns, known.uid, timeout_s=_LOOK_S)
        bad = {rules.rules[index // 2].name: why for index, why in found.bad.items()}
        whole = [watched(rules), *(broken(f"its pattern is none: {why}", name) for name, why in bad.items())]
        words: defaultdict[str, list[LogWord]] = defaultdict(list)
        for file, matches in zip(files, found.files, strict=True):
            words[file.step] += () if matches is None else file.note(matches, now)
        return {step: [*whole, *(one for one in worst(its) if one.rule not in bad)] for step, its in words.items()}

    def _files(self, known: _Job, rules: LogRules, tasks: Sequence[_Task], now: float) -> list[_File]:
        """Return the files to read: those of the steps' tasks, or else the script's."""
        here: dict[tuple[ProcessKey, str], _File] = {}
        for task in tasks:
            output = self._eyes.output(task.process.pid)
            if output is None or len(here) >= MOST_FILES:
                continue
            name, path = output
            key = (task.stepd.process, name)
            file = here.get(key) or known.files.get(key) or _first_seen(task, rules, now)
            file.end = replace(file.end, path=path)
            here[key] = file
        known.files = here
        known.has_own_files = known.has_own_files or any(file.step != _SCRIPT for file in here.values())
        return [file for file in here.values() if not (known.has_own_files and file.step == _SCRIPT)]


def _first_seen(task: _Task, rules: LogRules, now: float) -> _File:
    began, step = task.stepd.process.began_s, task.stepd.step
    rank = None if step == _SCRIPT or task.name is None else task.name.number
    sense = LogSense(rules.rules, began=began if now - began < YOUNG_S else None, at=now, rank=rank)
    return _File(step=step, end=FileEnd(path=""), sense=sense)


def aged(word: LogWord, by_s: float) -> LogWord:
    """Return the same, some time later."""
    return replace(word, for_s=word.for_s + by_s) if word.state is LogState.LATE else word
