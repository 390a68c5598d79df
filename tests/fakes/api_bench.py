"""A head's HTTP API on a loopback port, fed with pictures by the test, and a client for it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import uvicorn
from starlette.applications import Starlette

from steward.api.auth import Gatekeeper
from steward.api.metrics import Metrics
from steward.api.operations import handlers
from steward.api.server import build
from steward.api.source import Source
from steward.api.turns import News
from steward.client import Client
from steward.model.desired import Desired
from steward.model.ids import JobId
from steward.model.job import Job
from steward.model.leadership import Heads
from steward.model.memory import Memory
from steward.model.observed import AgentDetail
from steward.model.plan import Plan
from steward.policy.plan import plan
from steward.ports import PortError
from steward.workflows.commands import Commands
from steward.workflows.doctor import DoctorLine, ok
from steward.workflows.notify import NotifyDesk
from steward.workflows.snapshot import HeadStandstill, Phases, Snapshot
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.picture import Picture, a_cluster, n
from tests.fakes.aws_bench import AwsBench
from tests.fakes.clock import FakeClock
from tests.fakes.head_ports import FakeStore
from tests.fakes.munge import FakeMunge, FakeMunged
from tests.fakes.serving import serving


@dataclass
class ApiBench:
    """`show` is what the last cycle saw; commands are carried out as soon as they are given."""

    store: FakeStore = field(default_factory=FakeStore)
    munged: FakeMunged = field(default_factory=FakeMunged)
    metrics: Metrics = field(default_factory=Metrics)
    clock: FakeClock = field(default_factory=FakeClock)
    lines: list[DoctorLine] = field(default_factory=lambda: [ok("munge", "well")])
    want: Desired = field(default_factory=lambda: replace(a_cluster().want, capacity=an_api_cluster().want.capacity))
    latest: Snapshot | None = None
    standstill: HeadStandstill | None = None
    notify: NotifyDesk | None = None
    jobs_now: Mapping[JobId, Job] | PortError = field(default_factory=dict)
    """What Slurm says of jobs since the last cycle; or why it says nothing."""
    heads: Heads | None = None
    handed_over: list[str] = field(default_factory=list)
    """Why this head was told to hand over, each time."""
    url: str = ""
    app: Starlette | None = None

    def __post_init__(self) -> None:
        self.commands = Commands(self._carry_out)
        self.news = News()

    def show(self, picture: Picture) -> None:
        self.clock.at = picture.now
        decided = picture.plan()
        before = self.latest.memory if self.latest else Memory()
        self.latest = Snapshot(
            at=picture.now,
            number=1,
            seen=picture.seen,
            before=before,
            memory=decided.memory,
            plan=Plan(actions=(), memory=decided.memory),
            phases=Phases(observe_s=0.02, bell_s=0.03),
        )
        self.metrics.watch(self.latest)
        self.news.came(self.latest)

    def show_groups(self, picture: ApiPicture) -> None:
        """The same for a cluster of the API; nothing is planned on it."""
        self.clock.at = picture.seen.at
        plan = Plan(actions=(), memory=picture.memory)
        before = self.latest.memory if self.latest else Memory()
        self.latest = Snapshot(
            at=picture.seen.at, number=1, seen=picture.seen, before=before, memory=picture.memory, plan=plan
        )
        self.store.memory = picture.memory
        self.store.add_events(picture.events)
        self.metrics.watch(self.latest)
        self.news.came(self.latest)

    def read_job(self, id: JobId) -> Mapping[JobId, Job]:
        if isinstance(self.jobs_now, PortError):
            raise self.jobs_now
        return {one: job for one, job in self.jobs_now.items() if one == id}

    def client(self, uid: int = 0) -> Client:
        return Client(self.url, FakeMunge(self.munged, uid).encode)

    def _carry_out(self) -> None:
        assert self.latest is not None, "show a picture first"
        self.store.memory, events = self.commands.take(self.latest.memory, self.latest.seen, self.want)
        self.latest = replace(self.latest, memory=self.store.memory)
        self.store.add_events(events)
        self.commands.committed()

    def source(self) -> Source:
        return Source(
            cluster="testing",
            version="1.2.3",
            started=1.0,
            clock=self.clock,
            latest=lambda: self.latest,
            standstill=lambda: self.standstill,
            details=lambda: {n("n1"): AgentDetail(version="1.2.3", skew_s=0.01)},
            want=self.want,
            plan=plan,
            store=self.store,
            commands=self.commands,
            metrics=self.metrics,
            doctor=lambda: self.lines,
            notify=self.notify,
            read_job=self.read_job,
            heads=lambda: self.heads,
            hand_over=self.handed_over.append,
        )


@contextmanager
def an_api(bench: ApiBench | None = None) -> Iterator[ApiBench]:
    """Served by uvicorn in a thread, as the head does; root and uid 900 may change things."""
    bench = bench or ApiBench()
    bench.show(a_cluster())
    gatekeeper = Gatekeeper(FakeMunge(bench.munged), frozenset({0, 900}))
    source = bench.source()
    aws = AwsBench(munged=bench.munged, handlers=dict(handlers(source))).endpoint()
    bench.app = build(source, gatekeeper, bench.news, aws)
    server = uvicorn.Server(uvicorn.Config(bench.app, log_config=None, access_log=False, lifespan="off"))
    with serving(server) as bench.url:
        yield bench
