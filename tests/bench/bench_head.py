"""The head as `stewardd` wires it, with its store on disk and its HTTP server, over the simulated ports of a bench."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from steward.adapters.clock import SystemClock
from steward.adapters.service import NoNotifier
from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.api.auth import Gatekeeper
from steward.api.metrics import Metrics
from steward.api.operations import handlers
from steward.api.server import build
from steward.api.source import Source
from steward.api.turns import News
from steward.model.desired import Desired
from steward.model.settings.parse import parse
from steward.policy.plan import plan
from steward.workflows.apply import Applier
from steward.workflows.bell import Bell
from steward.workflows.commands import Commands
from steward.workflows.cycle import Cycle, Parts, Sweeps
from steward.workflows.effects import Ports
from steward.workflows.journal import Journal
from steward.workflows.observe import Observer
from steward.workflows.snapshot import Snapshot
from tests.bench.many_nodes import CountedProvider, CountedSlurm, Nature
from tests.fakes.aws_bench import AwsBench
from tests.fakes.head_ports import FakeAgents, FakeSite, FakeWitness
from tests.fakes.munge import FakeMunge
from tests.fakes.serving import serving
from tests.fakes.slurm import FakeSlurm

_SITE = """
[capacity]
provider = "command"
slurm_include = "/etc/slurm/steward-partitions.conf"

[provider.command]
launch = ["/bin/true"]
terminate = ["/bin/true"]
list = ["/bin/true"]
"""


@dataclass(kw_only=True)
class BenchHead:
    """`turns` is every cycle since it was last emptied."""

    cycle: Cycle
    slurm: CountedSlurm
    provider: CountedProvider
    aws: AwsBench
    want: Desired
    turns: list[Snapshot] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.aws.url


@contextmanager
def a_bench_head(store: Path, *, command_s: float, call_s: float, boot_s: float) -> Iterator[BenchHead]:
    """It runs with a site's default settings while this lasts."""
    site = _Site(
        slurm=CountedSlurm(command_s=command_s, node_table=dict(FakeSlurm.with_nodes("static-1").node_table)),
        provider=CountedProvider(call_s=call_s, capacity=1_000_000),
        store=SqlStore(open_engine(sqlite_url(store))),
    )
    metrics, news = Metrics(), News()
    turns: list[Snapshot] = []
    cycle = Cycle(site.parts(), (metrics.watch, news.came, turns.append))
    aws, app = _api(site, cycle, metrics, news)
    nature = Nature(slurm=site.slurm, provider=site.provider, agents=site.agents, ring=site.bell.ring, boot_s=boot_s)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    threads = [threading.Thread(target=run, daemon=True) for run in (nature.run, cycle.run)]
    for thread in threads:
        thread.start()
    try:
        with serving(server) as aws.url:
            yield BenchHead(cycle=cycle, slurm=site.slurm, provider=site.provider, aws=aws, want=site.want, turns=turns)
    finally:
        cycle.stop()
        nature.stopping.set()
        for thread in threads:
            thread.join(10.0)


@dataclass(kw_only=True)
class _Site:
    """The ports, and what a cycle is made of around them."""

    slurm: CountedSlurm
    provider: CountedProvider
    store: SqlStore
    agents: FakeAgents = field(default_factory=FakeAgents)
    bell: Bell = field(default_factory=Bell)
    clock: SystemClock = field(default_factory=SystemClock)
    want: Desired = field(default_factory=lambda: parse(_SITE, source="the bench", env={}).desired())

    def __post_init__(self) -> None:
        self.commands = Commands(self.bell.ring)

    def parts(self) -> Parts:
        journal = Journal(self.store, self.clock, lambda _kind, _outcome: None)
        observer = Observer(
            slurm=self.slurm, provider=self.provider, agents=self.agents, clock=self.clock, bell=self.bell
        )
        ports = Ports(
            slurm=self.slurm,
            provider=self.provider,
            agents=self.agents,
            witness=FakeWitness(),
            site=FakeSite(),
        )
        ring = self.bell.ring
        return Parts(
            observer=observer,
            plan=plan,
            journal=journal,
            applier=Applier(ports, journal, changed=observer.changed, listing=observer.listing_needed, ring=ring),
            agents=self.agents,
            commands=self.commands,
            bell=self.bell,
            steady=time.monotonic,
            clock=self.clock,
            notifier=NoNotifier(),
            want=self.want,
            sweeps=Sweeps(),
            new_events=deque(maxlen=1000),
        )


def _api(site: _Site, cycle: Cycle, metrics: Metrics, news: News) -> tuple[AwsBench, Starlette]:
    source = Source(
        cluster="bench",
        version="bench",
        started=site.clock.now(),
        clock=site.clock,
        latest=lambda: cycle.latest,
        standstill=cycle.standstill,
        details=dict,
        want=site.want,
        plan=plan,
        store=site.store,
        commands=site.commands,
        metrics=metrics,
        doctor=list,
    )
    aws = AwsBench(handlers=dict(handlers(source)))
    return aws, build(source, Gatekeeper(FakeMunge(aws.munged), frozenset({0})), news, aws.endpoint())
