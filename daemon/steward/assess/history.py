"""The history of the jobs: which runs ended badly, at which node, and when their jobs ran again.

Runs come in the order of their ends. Each setback is one run that ended badly; none is counted twice.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from .log import LogFacts
from .outages import CAUSES, PROLOG, REBOOTED, SILENT, Outage, outages
from .records import JobRun, NodeEvent, SiteFacts, node_names

LOST, BLAMED, LAUNCH, REQUEUED = "node_failure", "failed_with_node", "launch", "requeued"
HANG, AGAIN = "hang", "repeated"
KINDS = {
    LOST: "node failures",
    BLAMED: "jobs that failed as their node went down",
    LAUNCH: "launch failures",
    REQUEUED: "requeues (not evictions)",
    HANG: "suspected hangs, ended by the time limit",
    AGAIN: "starts that failed again and again",
}
SHORT_S = 600
"""A run that ends badly before this counts as a start that failed ..."""
STREAK = 3
"""... and costs as a repeated one after so many of them in a row."""
_BAD = frozenset({"NODE_FAIL", "BOOT_FAIL", "REQUEUED", "FAILED", "OUT_OF_MEMORY"})
_SAME_TIME_S = 60
_LAUNCH_S = 60
"""A run that a failing Prolog ended is requeued or CANCELLED at once, also where srun waits for the other nodes."""
_LEAST_COMPLETED = 5
_MUCH_LONGER = 1.5
_RESUBMITTED_WITHIN_S = 7 * 86400
_MOST_FAMILIES = 200_000
_FOLLOWED = 15
_MOST_LENGTHS = 64
_MOST_TIMEOUTS = 100
"""Of one family; programs that always run to their limit would else fill the memory."""
_NUMBERS = re.compile(r"\d+")


@dataclass
class Setback:
    """A run that ended badly. `weight` is its size in whole nodes; `node` the one at fault, empty if not known."""

    kind: str
    run: JobRun
    weight: float
    family: tuple[str, str, int, int]
    node: str = ""
    again_submit: int | None = None
    """When the job was submitted again, or requeued; None if that was not seen."""
    again_start: int | None = None
    was_requeued: bool = False
    usual_s: float = 0.0
    """Of a suspected hang: how long jobs of its family take that complete."""


@dataclass
class Family:
    """The jobs of one user with one name (but for digits), number of nodes and time limit: probably one program."""

    key: tuple[str, str, int, int]
    completed: int = 0
    total_s: int = 0
    lengths: list[int] = field(default_factory=list)
    every: int = 1
    """The lengths of completed runs: of all, of every second when they are many, then of every fourth, ..."""
    timeouts: int = 0
    timed_out: list[Setback] = field(default_factory=list)
    setbacks: list[Setback] = field(default_factory=list)
    """The latest ones, whose jobs may be submitted again."""
    streak: int = 0
    """Starts in a row that failed within minutes ..."""
    streak_end: int = 0
    """... and the end of the last one."""

    def complete(self, seconds: int) -> None:
        """Take a run that completed."""
        if self.completed % self.every == 0:
            self.lengths.append(seconds)
        if len(self.lengths) > _MOST_LENGTHS:
            del self.lengths[1::2]
            self.every *= 2
        self.completed += 1
        self.total_s += seconds
        self.streak = 0

    @property
    def long_s(self) -> int:
        """Return a length that nine in ten of the completed runs did not reach."""
        return sorted(self.lengths)[9 * (len(self.lengths) - 1) // 10]


@dataclass
class PastJobs:
    """What costs and savings are counted from."""

    site: SiteFacts
    outages: list[Outage]
    setbacks: list[Setback] = field(default_factory=list)
    used_s: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Node-seconds by user and partition."""
    states: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0, 0.0]))
    """State -> runs, node-seconds."""
    unjudged: list[float] = field(default_factory=lambda: [0, 0.0])
    """Runs that the time limit ended and that have no completed ones beside them, and their node-seconds."""
    nodes: int = 0
    """How many nodes the cluster has; where Slurm did not say, how many had jobs."""
    runs: int = 0
    first: int | None = None
    """When the oldest run began."""
    families_left_out: int = 0


class History:
    """Takes runs in the order of their ends, and finds the setbacks among them."""

    def __init__(self, site: SiteFacts, events: Iterable[NodeEvent], log: LogFacts) -> None:
        self.past = PastJobs(site, outages=outages(events, site))
        self._log = log
        by_cause = {
            cause: [(one.start, one.node) for one in self.past.outages if one.cause == cause] for cause in CAUSES
        }
        self._down = sorted(by_cause[SILENT] + by_cause[REBOOTED])
        self._drained_at_launch = by_cause[PROLOG]
        self._families: dict[tuple[str, str, int, int], Family] = {}
        self._waiting: dict[int, Setback] = {}
        self._lists: set[str] = set()

    def add(self, run: JobRun) -> None:
        """Take the next run."""
        past, site = self.past, self.past.site
        past.runs += 1
        past.first = run.start if past.first is None else min(past.first, run.start)
        weight = size_of(run, site)
        if not site.shapes:
            self._lists.add(run.nodelist)
        end = site.until if run.end is None else run.end
        node_s = weight * max(0, min(end, site.until) - max(run.start, site.since))
        past.used_s[run.user, run.partition] += node_s
        sums = past.states[run.state]
        sums[0] += 1
        sums[1] += node_s
        family = self._family(run)
        self._follow(run, family)
        if run.end is not None:
            self._judge(run, weight, family)

    def finish(self) -> PastJobs:
        """Return the past, after judging the runs that needed all others beside them."""
        for family in self._families.values():
            self._judge_hangs(family)
        seen = {node for text in self._lists for node in node_names(text)} | {one.node for one in self.past.outages}
        self.past.nodes = len(self.past.site.shapes) or len(seen) or 1
        self.past.setbacks.sort(key=lambda one: (one.run.end or 0, one.run.job))
        return self.past

    def _family(self, run: JobRun) -> Family:
        """Return the run's family; one of its own if there are too many to remember."""
        key = (run.user, _NUMBERS.sub("#", run.name), run.nodes, run.limit_s or 0)
        family = self._families.get(key)
        if family is None:
            family = Family(key)
            if len(self._families) < _MOST_FAMILIES:
                self._families[key] = family
            else:
                self.past.families_left_out += 1
        return family

    def _follow(self, run: JobRun, family: Family) -> None:
        """Note when the job of an earlier setback ran again: by its number, else as a new job of the same family."""
        before = self._waiting.pop(run.job, None)
        if before is not None and run.start >= before.run.ended:
            before.again_submit, before.again_start, before.was_requeued = before.run.ended, run.start, True
            return
        for last in reversed(family.setbacks):
            is_after = 0 <= run.submit - last.run.ended < _RESUBMITTED_WITHIN_S
            # Of several the one that was submitted first, which need not be the one that ended first.
            if is_after and not last.was_requeued and (last.again_submit is None or run.submit < last.again_submit):
                last.again_submit, last.again_start = run.submit, run.start
                return

    def _judge(self, run: JobRun, weight: float, family: Family) -> None:
        """Note the run's setback, if it is one."""
        if run.state == "COMPLETED":
            family.complete(run.seconds)
        elif run.state == "TIMEOUT":
            family.timeouts += 1
            if len(family.timed_out) < _MOST_TIMEOUTS:
                family.timed_out.append(Setback(HANG, run, weight, family.key))
            else:
                self._leave_unjudged(weight * run.seconds)
        elif run.state in _BAD or run.seconds <= _LAUNCH_S:
            kind, node = self._kind(run)
            if run.state in _BAD and self._streak(run, family) > STREAK:
                kind = kind or AGAIN
            if kind:
                setback = Setback(kind, run, weight, family.key, node)
                self.past.setbacks.append(setback)
                self._waiting[run.job] = setback
                family.setbacks = [*family.setbacks[-_FOLLOWED:], setback]

    def _kind(self, run: JobRun) -> tuple[str, str]:
        """Return the kind of a run that ended badly, and the node at fault; empty where the data do not tell."""
        if run.state == "NODE_FAIL":
            return LOST, run.failed_node or self._log.node_of(run) or self._went_out(self._down, run, _SAME_TIME_S)
        node = self._went_out(self._drained_at_launch, run, _LAUNCH_S) if run.seconds <= _LAUNCH_S else ""
        if node or run.state == "BOOT_FAIL" or self._log.is_launch_failure(run):
            return LAUNCH, node
        if run.state == "REQUEUED":
            return REQUEUED, ""
        if run.state == "FAILED":
            node = self._went_out(self._down, run, 1.4 * self.past.site.slurmd_timeout_s + _SAME_TIME_S)
        return (BLAMED if node else ""), node

    def _went_out(self, outs: list[tuple[int, str]], run: JobRun, within_s: float) -> str:
        """Return the node of the run that Slurm took out about its end; of several the first."""
        for place in range(bisect_left(outs, (run.ended - _SAME_TIME_S, "")), len(outs)):
            start, node = outs[place]
            if start > run.ended + within_s:
                break
            if node in node_names(run.nodelist):
                return node
        return ""

    def _streak(self, run: JobRun, family: Family) -> int:
        """Return how many starts of the family in a row ended badly within minutes, each after the one before."""
        follows = run.submit >= family.streak_end
        if run.seconds >= SHORT_S:
            family.streak = 0
        elif follows or family.streak == 0:
            family.streak += 1
        else:
            return 0  # it ran beside the one before: a task of an array, say
        family.streak_end = run.ended
        return family.streak

    def _judge_hangs(self, family: Family) -> None:
        """Suspect the runs at their time limit that took much longer than those of the family that completed."""
        known = family.completed >= max(_LEAST_COMPLETED, family.timeouts)
        for setback in family.timed_out:
            if known and setback.run.seconds > _MUCH_LONGER * family.long_s:
                setback.usual_s = family.total_s / family.completed
                self.past.setbacks.append(setback)
            elif not known:
                self._leave_unjudged(setback.weight * setback.run.seconds)

    def _leave_unjudged(self, node_s: float) -> None:
        self.past.unjudged[0] += 1
        self.past.unjudged[1] += node_s


def size_of(run: JobRun, site: SiteFacts) -> float:
    """Return how many nodes the run had, as far as it had them: half of a node's GPUs are half of the node."""
    shape = site.shapes.get(_first_node(run.nodelist)) if site.shapes else None
    return float(run.nodes) if shape is None else run.nodes * _share(run.tres, shape, run.nodes)


@lru_cache(maxsize=20_000)
def _first_node(nodelist: str) -> str:
    match = _FIRST_TERM.match(nodelist)
    return _BRACKET.sub(r"\1", match[0]) if match else ""


_FIRST_TERM = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_BRACKET = re.compile(r"\[([0-9]+)[^\]]*\]")
_CPUS = re.compile(r"(?:^|,)cpu=(\d{1,9})")
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d{1,9})")
_TYPED_GPUS = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d{1,9})")


@lru_cache(maxsize=20_000)
def _share(tres: str, shape: tuple[int, int], nodes: int) -> float:
    """Return which part of its nodes a job had: of their CPUs or of their GPUs, whichever is more."""
    cpus = sum(map(int, _CPUS.findall(tres)))
    gpus = sum(map(int, _GPUS.findall(tres) or _TYPED_GPUS.findall(tres)))
    shares = [have / (nodes * all_of) for have, all_of in zip((cpus, gpus), shape) if all_of]
    return min(1.0, max(shares, default=1.0)) or 1.0
