"""The real cycle (workflows), on the real SQLite store, over the simulated cluster; without threads, on one clock."""

import queue
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from steward.model.desired import Desired
from steward.model.ids import NodeName
from steward.model.memory import Memory
from steward.model.node import Node
from steward.model.observed import Observed
from steward.model.partition import Partition
from steward.model.plan import Plan
from steward.policy.plan import Plans
from steward.ports import Deposed, Retryable, StorePort, Unsent
from steward.workflows.apply import Applier
from steward.workflows.bell import Bell
from steward.workflows.book import Pace
from steward.workflows.commands import Command, Commands
from steward.workflows.cycle import ClockSet, Cycle, Parts, Planner, Sweeps
from steward.workflows.effects import Ports
from steward.workflows.journal import Journal
from steward.workflows.observe import Observer
from steward.workflows.records import Patience
from tests.chaos.disk import Disk
from tests.chaos.head_ports import AgentsOfWorld, ProviderOfWorld, SiteOfWorld, StoreWithPoints, WitnessOfWorld
from tests.chaos.slurm_port import AccountingOfWorld, SlurmOfWorld
from tests.chaos.trouble import Killed, Trouble
from tests.chaos.watch import Watch
from tests.fakes.eyes import AtOnce
from tests.fakes.head import Watcher
from tests.fakes.head_ports import FakeNotifier
from tests.fakes.team_world import TeamWorld
from tests.fakes.world import World

RESTART_S = 1.0
LONGEST_S = 1.0
LOST_S = 2.0
"""How much of its own state a killed slurmctld loses at most."""
ON_ONE_CLOCK = Patience(sweep=Pace(least_s=5.0, most_s=5.0), sweep_busy=Pace(least_s=1.0, most_s=1.0))
"""Sweeps come when their time has come, whatever they cost the real processor."""


@dataclass(slots=True)
class Later:
    """Slow actions: done between two turns; what was not begun dies with its head."""

    calls: "queue.SimpleQueue[Callable[[], None]]" = field(default_factory=queue.SimpleQueue)

    def submit(self, call: Callable[[], None]) -> None:
        self.calls.put(call)

    def run(self) -> None:
        while not self.calls.empty():
            self.calls.get()()


@dataclass(slots=True)
class ClockOfWorld:
    """The clock of a head's host, `ahead_s` ahead of the others'."""

    world: World
    ahead_s: float = 0.0

    def now(self) -> float:
        return self.world.now + self.ahead_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What slurmctld would read when it started now."""

    at: float
    nodes: Mapping[NodeName, Node]
    partitions: Mapping[str, Partition]


def _same(store: StorePort) -> StorePort:
    return store


def _told(world: World) -> object:
    """What agents have told, without what changes with time alone."""
    views = world.agents().values()
    runs = [(word.state, word.generation, word.members, word.joined) for view in views for word in view.elastic]
    said = [(view.connected, view.late, view.incarnation, view.findings, view.setup, view.mend) for view in views]
    return world.asks_heard(), runs, said


@dataclass(slots=True, kw_only=True)
class Bench:
    """A head that can be killed and started, and its world. The fields up to `make_cycle` are for tests of tests."""

    world: World
    want: Desired
    law: Watcher
    planner: Planner | None = None
    make_cycle: Callable[[Parts], Cycle] = Cycle
    broken_store: Callable[[StorePort], StorePort] = _same
    trouble: Trouble = field(default_factory=Trouble)
    watch: Watch = field(default_factory=Watch)
    saved: "deque[Backup]" = field(default_factory=deque)
    folder: Path = field(default_factory=lambda: Path(mkdtemp(prefix="steward-chaos-")))
    turns: int = 0
    elapsed: float = 0.0
    """Seconds that really passed in the world, whatever its clock says."""
    due: float = 0.0
    """When the head looks next, unless its bell rings."""
    told: object = None
    """By agents, up to now."""
    deaths: int = 0
    epoch: int = 1
    """Of the head that leads."""
    ahead_s: float = 0.0
    """By how much the clock of the head that leads is ahead."""
    moved_s: float = 0.0
    """By how much it is ahead of that of the head that led before."""
    has_database: bool = True
    """False while the server of the heads' database is away: no head may act, write or begin."""
    is_up: bool = True
    longest_s: float = LONGEST_S
    """Made longer where nothing happens for hours: then it is the time from turn to turn."""

    disk: Disk = field(init=False)
    provider: ProviderOfWorld = field(init=False)
    slow: Later = field(init=False)
    bell: Bell = field(init=False)
    commands: Commands = field(init=False)
    plans: Plans = field(init=False)
    cycle: Cycle = field(init=False)
    store: StoreWithPoints = field(init=False)

    def __post_init__(self) -> None:
        self.disk = Disk.new(self.folder, lambda event: self.trouble.bite())
        self.provider = ProviderOfWorld(world=self.world, trouble=self.trouble)
        self.start()

    def remember(self, memory: Memory) -> "Bench":
        """As if an earlier head had ended with this."""
        self.store.inner.commit(memory, (), ())
        self.start()
        return self

    def move(self) -> None:
        """A process that is a copy goes on with files of its own; the head is to be killed next."""
        self.folder = Path(mkdtemp(prefix="steward-chaos-"))
        self.disk.move(self.folder)

    def close(self) -> None:
        self.disk.unlock()
        self.disk.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def memory(self) -> Memory:
        return self.cycle.latest.memory if self.cycle.latest else self.store.inner.load()

    # Time

    def run(self, seconds: float) -> None:
        until = self.elapsed + seconds
        self.due = min(self.due, self.elapsed + self.longest_s)
        while self.elapsed < until - 1e-9:
            if self._is_rung() or self.elapsed > self.due - 1e-9:
                wait = self.turn()
                rest = self.longest_s if self.longest_s > LONGEST_S else min(wait, LONGEST_S)
                self.due = self.elapsed + max(0.1, rest)
            self.advance(max(0.1, min(self.due, until) - self.elapsed))

    def _is_rung(self) -> bool:
        """By an order, or by news of an agent, as head/hearing.py rings."""
        before, self.told = self.told, _told(self.world)
        return self.bell.wait(0.0) is not None or self.told != before

    def turn(self) -> float:
        """One turn and what it began; seconds until the next. A head that dies is started again."""
        self.turns += 1
        if not self.is_up and not self._starts():
            return 1.0
        cycle, slow, epoch = self.cycle, self.slow, self.epoch
        try:
            wait = cycle.turn()
            slow.run()
        except (Killed, ClockSet):
            if epoch == self.epoch:  # else another head leads already
                self.restart()
            return 0.1
        except Deposed:
            return 0.1
        return 0.1 if self.bell.wait(0.0) is not None else wait

    def advance(self, seconds: float) -> None:
        self.world.advance(seconds)
        self.elapsed += seconds
        self._save()
        self.watch.look(self.world)

    def restart(self, away_s: float = RESTART_S) -> None:
        """kill -9, and a new process after a while."""
        self.deaths += 1
        self.moved_s = 0.0
        self.advance(away_s)
        self.is_up = False
        self._starts()

    def take_over(self, after_s: float, *, ahead_s: float | None = None) -> None:
        """The head that leads is gone, or stands still; another one takes the lead when the lease has run out.

        `ahead_s`: by how much its clock is ahead of the others; None: as much as the last one's.
        """
        self.advance(after_s)
        self.epoch += 1
        now_s = self.ahead_s if ahead_s is None else ahead_s
        self.moved_s, self.ahead_s = now_s - self.ahead_s, now_s
        self.is_up = False
        self._starts()

    def _starts(self) -> bool:
        """A head that cannot open its store ends, and is started again by the service manager."""
        self.world.restart_head()
        try:
            self.start()
        except Retryable:
            self.trouble.bite()
        else:
            self.is_up = True
        return self.is_up

    def give(self, order: Command) -> None:
        """A call of the API or of the command line; its caller does not wait here."""
        with suppress(Retryable):
            self.commands.give(order, timeout_s=0.0)

    def _save(self) -> None:
        slurm, now = self.world.slurm, self.elapsed
        self.saved.append(Backup(at=now, nodes=dict(slurm.nodes), partitions=dict(slurm.partitions)))
        while len(self.saved) > 1 and self.saved[1].at <= now - LOST_S:
            self.saved.popleft()

    # Putting it together, as head/wiring.py does

    def start(self) -> None:
        self.bell, self.slow, self.plans = Bell(), Later(), Plans()
        self.commands = Commands(self.bell.ring)
        if not self.has_database:
            raise Retryable("the database is away")
        self.store = StoreWithPoints(inner=self.disk.open(self.world, self._fence()), trouble=self.trouble)
        self.cycle = self.make_cycle(self._parts(self.broken_store(self.store)))

    def _fence(self) -> Callable[[object], None]:
        """What the lease's row is to the store of the head that starts now."""
        mine = self.epoch

        def fence(_connection: object) -> None:
            if not self.has_database:
                raise Retryable("the database is away")
            if mine != self.epoch:
                raise Deposed(f"another head leads (epoch {self.epoch})")

        return fence

    def _permit(self) -> Callable[[], None]:
        """What its lease is to the acts of the head that starts now."""
        mine = self.epoch

        def permit() -> None:
            if mine != self.epoch or not self.has_database:
                raise Unsent("this head may not act: its lease ran out")

        return permit

    @property
    def _clock(self) -> ClockOfWorld:
        """That of the host of the head that starts now."""
        return ClockOfWorld(self.world, self.ahead_s)

    def _parts(self, store: StorePort) -> Parts:
        agents = AgentsOfWorld(world=self.world, trouble=self.trouble, ahead_s=self.ahead_s)
        slurm = SlurmOfWorld(world=self.world, trouble=self.trouble, wait=self.advance)
        observer = Observer(
            slurm=slurm,
            provider=self.provider,
            agents=agents,
            clock=self._clock,
            bell=self.bell,
            patience=ON_ONE_CLOCK,
            workers=AtOnce(),
            accounting=self._accounting(slurm),
        )
        journal = Journal(store, self._clock, lambda kind, outcome: None)
        applier = Applier(
            self._ports(slurm, agents),
            journal,
            changed=observer.changed,
            listing=observer.listing_needed,
            ring=self.bell.ring,
            workers=self.slow,
            monotonic=lambda: self.elapsed,
            permit=self._permit(),
        )
        return Parts(
            observer=observer,
            plan=self._plan,
            journal=journal,
            applier=applier,
            agents=agents,
            commands=self.commands,
            bell=self.bell,
            clock=self._clock,
            steady=lambda: self.elapsed,
            notifier=FakeNotifier(),
            want=self.want,
            sweeps=Sweeps(),
            new_events=deque(),
            permit=self._permit(),
            clock_ahead_s=lambda: self.moved_s,
        )

    def _accounting(self, slurm: SlurmOfWorld) -> AccountingOfWorld | None:
        world = self.world
        return AccountingOfWorld(inner=world.accounting, slurm=slurm) if isinstance(world, TeamWorld) else None

    def _ports(self, slurm: SlurmOfWorld, agents: AgentsOfWorld) -> Ports:
        return Ports(
            slurm=slurm,
            provider=self.provider,
            agents=agents,
            witness=WitnessOfWorld(world=self.world),
            site=SiteOfWorld(world=self.world, trouble=self.trouble),
            accounting=self._accounting(slurm),
        )

    def _plan(self, seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        decided = (self.planner or self.plans)(seen, want, memory, now)
        self.watch.judge(self.law, seen, memory, decided)
        return decided
