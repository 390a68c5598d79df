"""The head's eyes on the simulated cluster: the real bookkeeping of sweeps and narrow looks, without threads."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from steward.model.agent_action import Action
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import Freshness, Observed, Subject
from steward.ports import Retryable, SlurmPort
from steward.workflows.attention import Known, jobs_by_node, records_to_read
from steward.workflows.book import Pace
from steward.workflows.confirm import Confirmed
from steward.workflows.journal import touched_by
from steward.workflows.records import Patience, Records
from tests.fakes.world import World

K = TypeVar("K")
V = TypeVar("V")


class AtOnce:
    """Reads are done as soon as they are asked for."""

    def submit(self, call: Callable[[], None]) -> None:
        call()


class _Reads:
    """The reading half of SlurmPort."""

    def __init__(self, world: World) -> None:
        self._world = world

    def nodes(self, only: Collection[NodeName] | None = None) -> Mapping[NodeName, Node]:
        self._answer()
        return _some(self._world.slurm.shown_nodes(self._world.now), only)

    def jobs(self, only: Collection[JobId] | None = None, *, on: Collection[NodeName] = ()) -> Mapping[JobId, Job]:
        self._answer()
        return _some(self._world.slurm.shown(self._world.now), only)

    def _answer(self) -> None:
        if self._world.now < self._world.slurm_hangs_until:
            raise Retryable("slurmctld does not answer")


class _Clock:
    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        return self._world.now


class Eyes:
    """Of one head: the next one has new ones. Slurm is swept every `sweep_s`, whatever goes on."""

    def __init__(self, world: World, sweep_s: float) -> None:
        self._world = world
        self._asked = 0.0
        pace = Pace(least_s=sweep_s, most_s=sweep_s)
        self._records = Records(
            cast(SlurmPort, _Reads(world)),
            pool=AtOnce(),
            clock=_Clock(world),
            patience=Patience(close=0.0, sweep=pace, sweep_busy=pace),
            ring=lambda: None,
            is_asked=lambda: False,
        )

    def look(self, seen: Observed, memory: Memory) -> Observed:
        """The picture as this head has it; `seen` is the world as it is."""
        page = self._records.jobs.page
        places = jobs_by_node()
        places.follow(page.records)
        known = Known(
            jobs=page.records,
            places=places,
            job_at=page.times.at,
            views=seen.agents,
            asks=seen.asks,
            opted=seen.opted_in,
        )
        about = records_to_read(memory, known, seen.at)
        asked = max((ask.at for ask in seen.asks), default=0.0)
        slurm = self._records.look(about, asked=asked, anew=0.0, busy=True, alive=lambda: None)
        return self._as_known(seen, slurm)

    def confirm(self, seen: Observed, subject: Subject) -> Confirmed:
        slurm = self._records.confirm(subject, lambda: None)
        if slurm is None:
            return Confirmed(seen=seen, same=True)
        newer = self._as_known(seen, slurm)
        is_same = newer.nodes is seen.nodes and newer.jobs is seen.jobs
        return Confirmed(seen=newer, same=is_same and slurm is Freshness.FRESH)

    def confirm_all(self, seen: Observed) -> Observed:
        return self._as_known(seen, self._records.confirm_all(lambda: None))

    def acted(self, actions: Sequence[Action], seen: Observed) -> None:
        self._records.changed(touched_by(actions, seen))

    def _as_known(self, seen: Observed, slurm: Freshness) -> Observed:
        nodes, jobs = self._records.nodes.page, self._records.jobs.page
        return replace(
            seen,
            slurm=slurm,
            nodes=nodes.records,
            node_times=nodes.times,
            jobs=jobs.records,
            job_times=jobs.times,
        )


def _some(all: Mapping[K, V], only: Collection[K] | None) -> Mapping[K, V]:
    return all if only is None else {key: all[key] for key in only if key in all}
