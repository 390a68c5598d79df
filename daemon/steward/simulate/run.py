"""Run one simulation: a scenario, one way to deal with faults, one seed."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from steward.model.desired import Desired
from steward.model.resume_mode import ResumeMode
from steward.simulate.baselines import PlainSlurm, Replacement
from steward.simulate.faults import FaultEvent
from steward.simulate.numbers import SHORTEST_BEAT_S, WorldNumbers, beat_s
from steward.simulate.steward_head import StewardHead
from steward.simulate.traces import DAY_S, FaultSource, faults_of
from steward.simulate.training import HELD, Habits, Use
from steward.simulate.world import BEGIN, World, WorldSetup

SHORTEST_S = 1e-3
"""The clock moves at least so far from plan to plan."""


class Way(Enum):
    """A way to deal with faults."""

    STEWARD = "Steward"
    PLAIN = "plain Slurm"
    REPLACEMENT = "replacement, the job waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A cluster, its jobs, its faults and its settings. `reboots`: machines can be rebooted by command."""

    source: FaultSource
    days: float
    jobs: tuple[Habits, ...]
    spares: int
    want: Desired
    fixed: bool
    reboots: bool
    mode: ResumeMode
    keeps_hot: bool = True
    """Whether `resume.hot_spares` is the number of spares."""
    least_beat_s: float = SHORTEST_BEAT_S
    numbers: WorldNumbers = field(default_factory=WorldNumbers)

    @property
    def nodes(self) -> int:
        """Return the nodes of the cluster, spares included."""
        return sum(job.nodes for job in self.jobs) + self.spares

    @property
    def settings(self) -> Desired:
        """Return the settings of the head."""
        resume = self.want.resume.model_copy(update={"hot_spares": self.spares})
        return replace(self.want, resume=resume) if self.keeps_hot else self.want

    def faults(self, seed: int) -> list[FaultEvent]:
        """Return the faults of one seed; those of a count are the same whatever the spares."""
        return faults_of(self.source, self.days, self.nodes, self.numbers, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimResult:
    """The result of one simulation. `node_s` are node-seconds by use and cause."""

    node_s: Mapping[tuple[Use, str], float]
    hits: Mapping[str, int]
    out: Mapping[int, float]
    """Seconds in which so many machines were faulty or under repair."""
    runs: int
    plans: int = 0
    submitted_again: int = 0
    undone: Mapping[str, int] = field(default_factory=dict)

    def of(self, *uses: Use) -> float:
        """Return the node-seconds of some uses."""
        return sum(seconds for (use, _), seconds in self.node_s.items() if use in uses)

    @property
    def ettr(self) -> float:
        """Return work as a part of all the jobs' time."""
        return self.of(Use.WORK) / (self.of(*Use) or 1.0)

    @property
    def goodput(self) -> float:
        """Return work as a part of the time in which the jobs had their nodes."""
        return self.of(Use.WORK) / (self.of(*HELD) or 1.0)

    @property
    def lost_by_cause(self) -> Mapping[str, float]:
        """Return node-seconds that were no work, by the kind of fault that caused them."""
        lost: dict[str, float] = defaultdict(float)
        for (use, cause), seconds in self.node_s.items():
            if use is not Use.WORK:
                lost["checkpoints" if use is Use.SAVE else cause] += seconds
        return dict(lost)

    def spares_for(self, share: float) -> int:
        """Return how many spares would have been enough in this share of the time."""
        left = share * sum(self.out.values())
        for count in sorted(self.out):
            left -= self.out[count]
            if left <= 1e-6:
                return count
        return max(self.out, default=0)


def simulate(scenario: Scenario, way: Way, seed: int) -> SimResult:
    """Run a scenario to its end."""
    beat = beat_s(scenario.nodes, scenario.least_beat_s)
    setup = WorldSetup(
        nodes=scenario.nodes,
        jobs=scenario.jobs,
        hits_jobs=scenario.source.hits_jobs,
        beat_s=beat,
        fixed=scenario.fixed,
        mode=scenario.mode,
    )
    world = World(setup, scenario.numbers, seed)
    for fault in scenario.faults(seed):
        world.agenda.at(BEGIN + fault.at, _strike(world, fault))
    until = BEGIN + scenario.days * DAY_S
    head = _with_operator(world, scenario, way)
    if head is None:
        world.agenda.move(until)
    else:
        _follow(world, head, until)
    world.close()
    return _outcome(world, head)


def _strike(world: World, fault: FaultEvent) -> Callable[[], None]:
    return lambda: world.strike(fault)


def _with_operator(world: World, scenario: Scenario, way: Way) -> StewardHead | None:
    """Give the world its operator; return the head, if it has one."""
    if way is Way.STEWARD:
        head = StewardHead(world, scenario.settings, reboots=scenario.reboots)
        world.operator = head
        return head
    world.operator = PlainSlurm(world) if way is Way.PLAIN else Replacement(world)
    return None


def _follow(world: World, head: StewardHead, until: float) -> None:
    """Plan whenever something changed, or the last plan wanted it."""
    while world.now < until:
        wake = head.wake_at if head.wake_at is not None else math.inf
        if world.is_news or wake <= world.now:
            head.turn()
            wake = head.wake_at if head.wake_at is not None else math.inf
        world.agenda.move(max(min(world.agenda.next_at, wake, until), world.now + SHORTEST_S))


def _outcome(world: World, head: StewardHead | None) -> SimResult:
    node_s: dict[tuple[Use, str], float] = defaultdict(float)
    trainings = {id(each): each for each in world.trainings.values()}.values()
    for training in trainings:
        for key, seconds in training.spent.items():
            node_s[key] += seconds * training.habits.nodes
    return SimResult(
        node_s=dict(node_s),
        hits=dict(world.hits),
        out=dict(world.out),
        runs=sum(training.runs for training in trainings),
        plans=head.turns if head is not None else 0,
        submitted_again=len(world.trainings) - len(trainings),
        undone=dict(head.undone) if head is not None else {},
    )
