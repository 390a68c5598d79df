"""Steps of simulated jobs, and what the agents of their nodes make of them, as agent/job_watch.py and stacks.py do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from steward.model.agent_action import CollectStacks
from steward.model.ask import OptedIn
from steward.model.health import Incarnation
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.job_report import Progress
from steward.model.job_sight import Doing, RankGroup, StepSight
from tests.fakes.machines import Machines
from tests.fakes.sim_slurm import Run

FEWEST = 5
"""So many pauses make a job's pace known."""
WRITE_S = 0.5
"""From the order to the bundle of stacks."""
TELL_STILL_S = 3.0

Word = Progress | StepSight
Here = Mapping[NodeName, Sequence[Word]]


@dataclass(slots=True, kw_only=True)
class _Watch:
    """One agent's, from its start to its end."""

    sent: tuple[Word, ...] | None = None
    """What the head was last told; None: nothing since they are connected."""
    heard: dict[tuple[JobId, int], tuple[int, int]] = field(default_factory=dict)
    """Of each run the last step, and how many pauses were seen."""
    collecting: dict[str, float] = field(default_factory=dict)
    """Bundles that are being made, and when each is ready."""

    def with_pace(self, one: Word) -> Word:
        if isinstance(one, StepSight) or one.step is None:
            return one
        key = (one.job, one.restart)
        last, pauses = self.heard.get(key, (one.step, 0))
        pauses += last != one.step
        self.heard[key] = (one.step, pauses)
        return one if pauses >= FEWEST else replace(one, pace_s=None)


@dataclass(slots=True)
class Watches:
    """Those of all agents. `bundles` is what the head has got of each machine."""

    of: dict[NodeName, _Watch] = field(default_factory=dict)
    bundles: dict[Incarnation, tuple[str, ...]] = field(default_factory=dict)

    def forget_head(self) -> None:
        """A new one knows nothing."""
        self.bundles.clear()
        for watch in self.of.values():
            watch.sent = None

    def shift(self, by: float) -> None:
        """The clock was set; what lasts goes on lasting as long."""
        for watch in self.of.values():
            watch.collecting = {name: at + by for name, at in watch.collecting.items()}

    def collect(self, order: CollectStacks, machines: Machines, now: float) -> None:
        """How far its jobs are is told anew by each agent that is reached."""
        for node in order.nodes:
            machine = machines.of(node)
            if machine is not None and machine.agent_speaks(now):
                watch = self.of.setdefault(node, _Watch())
                watch.collecting.setdefault(order.name, now + WRITE_S)
                watch.sent = None

    def look(self, machines: Machines, here: Here, now: float) -> None:
        """What agents see of their jobs, and the head of that."""
        firsts = machines.firsts()
        for node in {*here, *self.of}:
            machine = firsts.get(node)
            if machine is None or not machine.agent_lives(now):
                self.of.pop(node, None)
                continue
            watch = self.of.setdefault(node, _Watch())
            told = tuple(watch.with_pace(one) for one in here.get(node, ()))
            if not machines.is_connected(node) or not machine.agent_speaks(now):
                watch.sent = None
                continue
            if watch.sent is None or _essence(watch.sent) != _essence(told):
                watch.sent = told
            bundles = self._bundles(watch, machine.incarnation, now)
            if watch.sent or bundles:
                progress = tuple(one for one in watch.sent if isinstance(one, Progress))
                sights = tuple(one for one in watch.sent if isinstance(one, StepSight))
                machines.tell(node, progress, sights, bundles)

    def _bundles(self, watch: _Watch, incarnation: Incarnation, now: float) -> tuple[str, ...]:
        ready = tuple(name for name, at in watch.collecting.items() if now >= at)
        for name in ready:
            del watch.collecting[name]
        if ready:
            self.bundles[incarnation] = (*self.bundles.get(incarnation, ()), *ready)[-8:]
        return self.bundles.get(incarnation, ())


def _essence(told: Iterable[Word]) -> list[tuple[object, ...]]:
    """Without what time alone changes."""
    return [
        (one.job, one.step, *(group.doing for group in one.groups))
        if isinstance(one, StepSight)
        else (one.job, one.restart, one.step, one.pace_s)
        for one in told
    ]


def told_by(job: Job, run: Run, opted: OptedIn, now: float) -> dict[NodeName, Word]:
    """What is worth a word of an opted-in job, by node: its steps where its script runs, or its rest on all of them."""
    if run.step_s is not None and job.batch_host is not None and job.batch_host in job.nodes:
        until = now if run.still_since is None else run.still_since
        step = int((until - run.step_started) / run.step_s + 1e-6)
        told = Progress(
            job=job.id,
            restart=opted.restart,
            node=job.batch_host,
            step=step,
            stepped=run.step_started + step * run.step_s,
            pace_s=run.step_s,
            at=now,
        )
        return {job.batch_host: told}
    for_s = 0.0 if run.still_since is None or run.step_s is not None else now - run.still_since
    if for_s < TELL_STILL_S:
        return {}
    group = RankGroup(doing=Doing.WAITS, ranks=1, for_s=for_s, rank=0)
    step_s = now - run.step_started
    return {
        node: StepSight(job=job.id, step="0", node=node, step_s=step_s, groups=(group,), at=now) for node in job.nodes
    }
