"""The head as `stewardd` wires it, with its store on disk and its HTTP server, over the simulated ports of a bench."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from steward.adapters.clock import SystemClock
from steward.adapters.service import NoNotifier
from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.api.auth import Gatekeeper
from steward.api.metrics import Metrics
from steward.api.operations import handlers
from steward.api.server import News, build
from steward.api.source import Source
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.settings.parse import parse
from steward.policy.plan import plan
from steward.workflows.apply import Applier, Ports
from steward.workflows.bell import Bell
from steward.workflows.commands import Commands
from steward.workflows.cycle import Cycle, Parts, Sweeps
from steward.workflows.journal import Journal
from steward.workflows.observe import Observer
from steward.workflows.snapshot import Snapshot
from tests.bench.many_nodes import CountedProvider, CountedSlurm, Nature
from tests.fakes.aws_bench import AwsBench
from tests.fakes.clock import FakeClock
from tests.fakes.head_ports import FakeAgents, FakeSite, FakeWitness
from tests.fakes.munge import FakeMunge
from tests.fakes.serving import serving

_SITE = """
[capacity]
provider = "command"
slurm_include = "/etc/slurm/steward-partitions.conf"

[provider.command]
launch = ["/bin/true"]
terminate = ["/bin/true"]
list = ["/bin/true"]
"""


class _RealClock(FakeClock):
    def now(self) -> float:
        return time.time()


@dataclass(kw_only=True)
class BenchHead:
    """`turns` is every cycle since it was last emptied; `outcomes` how many actions of each kind ended how."""

    cycle: Cycle
    slurm: CountedSlurm
    provider: CountedProvider
    aws: AwsBench
    want: Desired
    turns: list[Snapshot] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.aws.url


@contextmanager
def a_bench_head(store: Path, *, command_s: float, call_s: float, boot_s: float) -> Iterator[BenchHead]:
    """It runs with a site's default settings while this lasts."""
    want = parse(_SITE, source="the bench", env={}).desired()
    bell, clock, agents = Bell(), SystemClock(), FakeAgents()
    told: deque[Event] = deque(maxlen=1000)
    slurm = CountedSlurm(command_s=command_s, node_table=dict(CountedSlurm.with_nodes("static-1").node_table))
    provider = CountedProvider(call_s=call_s, capacity=1_000_000)
    outcomes: dict[str, int] = {}

    def count(kind: str, outcome: str) -> None:
        outcomes[f"{kind} {outcome}"] = outcomes.get(f"{kind} {outcome}", 0) + 1

    kept = SqlStore(open_engine(sqlite_url(store)))
    journal = Journal(kept, clock, count)
    observer = Observer(slurm=slurm, provider=provider, agents=agents, clock=clock, bell=bell)
    ports = Ports(slurm=slurm, provider=provider, agents=agents, witness=FakeWitness(), site=FakeSite())
    commands, metrics, news = Commands(bell.ring), Metrics(), News()
    parts = Parts(
        observer=observer,
        plan=plan,
        journal=journal,
        applier=Applier(ports, journal, changed=observer.changed, listing=observer.listing_needed, ring=bell.ring),
        agents=agents,
        commands=commands,
        bell=bell,
        clock=clock,
        notifier=NoNotifier(),
        want=want,
        sweeps=Sweeps(),
        told=told,
    )
    turns: list[Snapshot] = []
    cycle = Cycle(parts, (metrics.watch, news.came, turns.append))
    source = Source(
        cluster="bench",
        version="bench",
        started=clock.now(),
        clock=clock,
        latest=lambda: cycle.latest,
        details=dict,
        want=want,
        plan=plan,
        store=kept,
        commands=commands,
        metrics=metrics,
        doctor=list,
    )
    aws = AwsBench(handlers=dict(handlers(source)), clock=_RealClock())
    app = build(source, Gatekeeper(FakeMunge(aws.munged), frozenset({0})), news, aws.endpoint())
    nature = Nature(slurm=slurm, provider=provider, agents=agents, ring=bell.ring, boot_s=boot_s)
    head = BenchHead(cycle=cycle, slurm=slurm, provider=provider, aws=aws, want=want, turns=turns, outcomes=outcomes)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    threads = [threading.Thread(target=run, daemon=True) for run in (nature.run, cycle.run)]
    for thread in threads:
        thread.start()
    try:
        with serving(server) as aws.url:
            yield head
    finally:
        cycle.stop()
        nature.stopping.set()
        for thread in threads:
            thread.join(10.0)
