"""A rehearsal: the script runs, all its processes are killed, it runs again, is told to end, and runs once more."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from steward.rehearse.own_job import NONE_KNOWN, JobLook, OwnJob
from steward.rehearse.saves import FolderWatch, SaveSeen, torn
from steward.rehearse.signs import Signs, StepPlace

_LOOK_S = 0.3
_SLURM_EVERY_S = 1.0
_HURRY_EVERY_S = 3.0
_APART_S = 1.5
"""slurmd refuses a run that begins in the second in which the one before ended: its credential is revoked."""
_HEAD_EVERY_S = 2.0
_SAVES_FIRST = 3
"""With two one could not tell the oldest from the last but one, which a script may load for a good reason."""
_LEAST_RESTART_S = 30.0
_RESTART_TIMES = 3.0
_LOAD_SHARE = 0.1
_REPORT_AGE = re.compile(r"\((\d+) s ago")
_OUR_HOLD = ("job_requeued_in_held_state", "JobHeldUser", "BeginTime")
_MOST_READ = 4 << 20


class RunEnding(StrEnum):
    """How a run came to its end."""

    GOES_ON = "goes on"
    KILLED = "killed"
    TOLD = "told to end"
    BY_ITSELF = "by itself"
    NEVER_BEGAN = "never began"


@dataclass(slots=True, kw_only=True)
class RunSeen:
    """One run of the script. Times are those of a steady clock."""

    signs: Signs = field(default_factory=Signs)
    saves: list[SaveSeen] = field(default_factory=list)
    saved_at: list[StepPlace | None] = field(default_factory=list)
    """The last step that was printed when the save of the same index began."""
    nodes: str = ""
    began: float = 0.0
    first_sign: float | None = None
    """When the first line with a step came."""
    watched_s: float = 0.0
    """For how long it was waited for what it does."""
    ending: RunEnding = RunEnding.GOES_ON
    ended: JobLook | None = None
    why: str = ""
    """Why it never began."""
    is_cut_in_save: bool = False
    torn: list[Path] = field(default_factory=list)
    """Files that the run left half written."""
    term_s: float | None = None
    """How long it took to end when it was told to."""

    @property
    def is_over(self) -> bool:
        return self.ending is not RunEnding.GOES_ON


@dataclass(slots=True)
class Rehearsal:
    """The job, what is seen of it, and the time that is left."""

    job: OwnJob
    watch: FolderWatch
    budget_s: float
    say: Callable[[str], None]
    reported: Callable[[], str]
    """Returns the head's line on the step that the job reported last; empty for none."""
    runs: list[RunSeen] = field(default_factory=list)
    looked: JobLook = field(default_factory=JobLook)
    _outputs: dict[Path, int] = field(default_factory=dict)
    _spent_s: float = 0.0
    _slurm_at: float = 0.0
    _head_at: float = 0.0
    _files_at: float = 0.0
    _writing_place: StepPlace | None = None

    def play(self) -> None:
        """Go through the rehearsal as far as the script comes."""
        first = self._run_begins()
        if not first.is_over:
            self._until(first, lambda: len(first.saves) >= _SAVES_FIRST, self.budget_s * 0.4)
            if first.saves and not first.is_over:  # a fault in the middle of a save is the worst one
                pause = first.saves[-1].began - first.began
                self._until(
                    first, lambda: self.watch.writing_since is not None, min(2.0 * pause + 2.0, self.budget_s * 0.1)
                )
        if first.is_over or not first.saves:
            return
        self._kill(first)
        second = self._run_begins()
        patience = max(_LEAST_RESTART_S, _RESTART_TIMES * self._start_s(first))
        if not second.is_over:
            self._until(second, lambda: second.first_sign is not None, patience)
        if not second.is_over and (second.first_sign is not None or first.first_sign is None):
            to_save = 2.0 * (first.saves[0].ended - first.began) + _LEAST_RESTART_S
            self._until(second, lambda: bool(second.saves), min(to_save, self.budget_s * 0.4))
            if not second.is_over and second.saves:
                self._tell_to_end(second)
                third = self._run_begins()
                if not third.is_over:
                    self._until(third, lambda: third.first_sign is not None, patience)

    def _start_s(self, run: RunSeen) -> float:
        return (run.first_sign or run.saves[0].ended) - run.began

    def _run_begins(self) -> RunSeen:
        """Wait until the job runs, after the first time no longer than the budget."""
        seen = RunSeen()
        self.runs.append(seen)
        restarts, since, told = len(self.runs) - 1, time.monotonic(), ""
        hurried = since + _APART_S - _HURRY_EVERY_S
        while True:
            self._ask_slurm()
            look, now = self.looked, time.monotonic()
            if look.state == "RUNNING" and look.restarts >= restarts:
                seen.began, seen.nodes = now, look.nodes
                self.say(f"runs{' again' if restarts else ''} on {look.nodes}")
                return seen
            if look.has_ended and look.restarts >= restarts:
                self._read_output(seen)
                seen.ending, seen.ended = RunEnding.BY_ITSELF, look
                return seen
            is_late = bool(restarts) and now - since > self.budget_s
            if is_late or (look.state == NONE_KNOWN and now - since > 60.0):
                seen.ending, seen.why = RunEnding.NEVER_BEGAN, look.reason or "Slurm does not know the job"
                return seen
            if look.state == "PENDING" and look.reason not in (*_OUR_HOLD, "None", told):
                told = look.reason
                self.say(f"waits in the queue ({told})")
            if restarts and look.state == "PENDING" and now - hurried > _HURRY_EVERY_S:
                hurried = now
                self.job.hurry()
            time.sleep(_LOOK_S)

    def _until(self, run: RunSeen, is_enough: Callable[[], bool], limit_s: float) -> None:
        """Watch the run until it is enough, its own end, or the end of the time."""
        began = time.monotonic()
        until = began + min(limit_s, self.budget_s - self._spent_s)
        try:
            self._look_until(run, is_enough, until)
        finally:
            passed = time.monotonic() - began
            run.watched_s += passed
            self._spent_s += passed

    def _look_until(self, run: RunSeen, is_enough: Callable[[], bool], until: float) -> None:
        while time.monotonic() < until and not run.is_over:
            self._ask_slurm()
            self.see(run)
            # what it wrote before its end counts
            if self.looked.has_ended or self.looked.restarts > len(self.runs) - 1:
                run.ending, run.ended = RunEnding.BY_ITSELF, self.looked
                return
            if is_enough():
                return
            time.sleep(_LOOK_S)

    def see(self, run: RunSeen) -> None:
        """Take in what the run has printed, reported and saved since."""
        self._read_output(run)
        self._ask_head(run)
        if run.first_sign is None and run.signs.first is not None:
            run.first_sign = time.monotonic()
            line = run.signs.first.line.strip()[:100]
            self.say(f"first line with a step, {run.first_sign - run.began:.0f} s after its start: {line}")
        began = time.monotonic()
        if began < self._files_at:
            return
        was_writing = self.watch.writing_since
        save = self.watch.look()
        self._files_at = time.monotonic() + (time.monotonic() - began) / _LOAD_SHARE
        if was_writing is None and (self.watch.writing_since is not None or save):
            self._writing_place = run.signs.last if run.signs.steps else None
        if save is not None and not (run.ending is RunEnding.KILLED and torn([save.path])):
            run.saves.append(save)
            run.saved_at.append(self._writing_place)
            self.say(f"has saved {save.path}" + (f", after {self._writing_place}" if self._writing_place else ""))

    def _read_output(self, run: RunSeen) -> None:
        for path in dict.fromkeys(self.looked.outputs):
            begin = self._outputs.setdefault(path, 0)
            try:
                with path.open("rb") as file:
                    file.seek(begin)
                    text = file.read(_MOST_READ)
            except OSError:
                continue
            self._outputs[path] = begin + len(text)
            run.signs.read(text.decode("utf-8", "replace"))

    def _ask_head(self, run: RunSeen) -> None:
        """Take the steps that the job reports to Steward where its output names none."""
        if run.signs.first is not None and "reported step" not in run.signs.first.line:
            return
        if time.monotonic() >= self._head_at:
            self._head_at = time.monotonic() + _HEAD_EVERY_S
            line = self.reported()
            age = _REPORT_AGE.search(line)
            if age and int(age[1]) < time.monotonic() - run.began - 1.0:  # else of the run before
                run.signs.read(line + "\n")

    def _ask_slurm(self) -> None:
        if time.monotonic() >= self._slurm_at:
            self._slurm_at = time.monotonic() + _SLURM_EVERY_S
            found = self.job.look()
            if found.state != NONE_KNOWN or self.looked.state == NONE_KNOWN:
                self.looked = found

    def _kill(self, run: RunSeen) -> None:
        self.say("fault 1: all its processes are killed at once, as when a machine dies")
        run.is_cut_in_save = self.watch.writing_since is not None
        self.job.kill_all()
        self._requeue(run, RunEnding.KILLED)

    def _tell_to_end(self, run: RunSeen) -> None:
        self.say("fault 2: it is told to end (SIGTERM), as when it is preempted or a machine is shut down")
        self._requeue(run, RunEnding.TOLD)

    def _requeue(self, run: RunSeen, how: RunEnding) -> None:
        """Put the job back into the queue, and wait until its run is over."""
        began = time.monotonic()
        against = self.job.requeue()
        run.ending = how
        while time.monotonic() - began < self.budget_s:
            self._slurm_at = 0.0
            self._ask_slurm()
            self.see(run)
            is_back = self.looked.restarts >= len(self.runs) and self.looked.state == "PENDING"
            if is_back or against:
                break
            time.sleep(_LOOK_S)
        run.term_s = time.monotonic() - began
        self._read_output(run)
        run.torn = torn(self.watch.made)
        self.watch.forget_writing()
        self.job.release()
        if against:
            self.say(f"Slurm refuses the requeue: {against}")
