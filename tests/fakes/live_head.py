"""A head with groups whose cycle runs in a thread on the simulated world, its whole API served; time passes quickly."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn

from steward.api.auth import Gatekeeper
from steward.api.metrics import Metrics
from steward.api.operations import handlers
from steward.api.server import build
from steward.api.source import Source
from steward.api.turns import News
from steward.model.capacity_policy import CapacityPolicy
from steward.model.desired import Desired
from steward.model.memory import Memory
from steward.policy.plan import plan
from steward.workflows.commands import Commands
from steward.workflows.snapshot import Snapshot
from tests.builders.want import a_want, acts, but
from tests.fakes.aws_bench import AwsBench
from tests.fakes.group_world import GroupWorld
from tests.fakes.head_ports import FakeStore
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.serving import serving

_TURN_S = 0.5
_PAUSE_S = 0.004


@dataclass
class LiveHead:
    """`world` belongs to the cycle's thread: change it under `lock`. `turn` is one cycle."""

    world: GroupWorld
    want: Desired
    store: FakeStore = field(default_factory=FakeStore)
    munged: FakeMunged = field(default_factory=FakeMunged)
    lock: threading.Lock = field(default_factory=threading.Lock)
    latest: Snapshot | None = None
    turns: int = 0

    def __post_init__(self) -> None:
        self.commands = Commands(lambda: None)
        self.metrics = Metrics()
        self.aws = AwsBench(munged=self.munged)

    def now(self) -> float:
        """The world's clock."""
        return self.world.now

    @property
    def memory(self) -> Memory:
        return self.latest.memory if self.latest else Memory()

    def turn(self) -> None:
        """Observe, carry out orders, plan, commit, answer, act; then some time passes."""
        seen = replace(self.world.seen(), failures=self.store.failures(), done=self.store.done("BackUpNode"))
        before = self.memory
        memory, ordered = self.commands.take(before, seen, self.want)
        decided = plan(seen, self.want, memory, seen.at)
        self.store.commit(decided.memory, decided.actions, [*ordered, *decided.events])
        self.turns += 1
        self.latest = Snapshot(
            at=seen.at, number=self.turns, seen=seen, before=before, memory=decided.memory, plan=decided
        )
        self.commands.committed()
        for action in decided.actions:
            self.store.record_outcomes({action.key: self.world.apply(action)}, self.world.now)
        self.metrics.watch(self.latest)
        self.world.advance(_TURN_S)

    def run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            with self.lock:
                self.turn()
            time.sleep(_PAUSE_S)

    def source(self) -> Source:
        return Source(
            cluster="testing",
            version="1.2.3",
            started=self.world.now,
            clock=self,
            latest=lambda: self.latest,
            standstill=lambda: None,
            details=dict,
            want=self.want,
            plan=plan,
            store=self.store,
            commands=self.commands,
            metrics=self.metrics,
            doctor=list,
        )


def quick(**capacity: Any) -> Desired:
    """Short waits, so that a story of minutes is over in a second."""
    default: dict[str, Any] = {
        "provider": "local",
        "owned_partitions": frozenset({"workers", "more"}),
        "capacity_backoff_s": (2.0, 5.0),
        "minimum_timeout_h": 600.0 / 3600,
    }
    return a_want(
        repair=acts(settle_degraded_s=0.0, agents_grace_s=5.0, breaker_min=100, concurrent_min=100),
        capacity=but(CapacityPolicy(), **{**default, **capacity}),
    )


@contextmanager
def a_live_head(**capacity: Any) -> Iterator[LiveHead]:
    """Partitions `workers` and `more`, no API cluster yet; `aws` has its URL and real clients for it."""
    head = LiveHead(world=GroupWorld.with_partitions("workers", "more"), want=quick(**capacity))
    source = head.source()
    head.aws.handlers = dict(handlers(source))
    app = build(source, Gatekeeper(FakeMunge(head.munged), frozenset({0, 900})), News(), head.aws.endpoint())
    stopping = threading.Event()
    cycle = threading.Thread(target=head.run, args=(stopping,), daemon=True)
    cycle.start()
    try:
        with serving(uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))) as url:
            head.aws.url = url
            yield head
    finally:
        stopping.set()
        cycle.join(10.0)
