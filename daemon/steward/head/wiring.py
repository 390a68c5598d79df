"""Put the head together from the adapters that `choose` picks."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware

from steward import __version__
from steward.adapters.clock import SystemClock, steady_now
from steward.adapters.deadman import Deadman
from steward.adapters.munge import Munge
from steward.adapters.offload import Threads
from steward.adapters.service import notifier
from steward.adapters.settings_file import desired, load
from steward.adapters.site_commands import SiteCommands
from steward.adapters.slurm.accounting import SlurmAccounting
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.config import Privacy, SlurmConfig
from steward.adapters.slurm.fits import FitAsker
from steward.adapters.slurm.include import IncludeFile
from steward.adapters.slurm.library import Library
from steward.adapters.slurm.submitted import SubmittedJobs
from steward.adapters.slurm.survey import survey
from steward.adapters.store.lease import SqlLease
from steward.adapters.store.sql import StoredText
from steward.adapters.wire.passing import HeadWay
from steward.adapters.wire.seal import Sealer
from steward.adapters.witness import PortWitness
from steward.api.admission import call_limits
from steward.api.auth import Gatekeeper
from steward.api.late import LateEndpoint
from steward.api.metrics import Metrics
from steward.api.operations import handlers
from steward.api.server import build
from steward.api.source import CheckBook, Source
from steward.api.turns import News
from steward.api.users import UserPages, build_users
from steward.checks.known import limits_of
from steward.head import choose
from steward.head.beside import Beside
from steward.head.doctor import CapacityPlace, Doctor
from steward.head.follow import HTTP, USERS, Passing
from steward.head.hub import Hub
from steward.head.origin import Origins
from steward.head.passed import PassedRequests
from steward.head.peers import AmongHeads, place_in_lease, place_of
from steward.head.piece_files import Bundles, SetupLogs
from steward.head.settings_here import problems_here
from steward.head.watch import SecondLook
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.ids import JobId, NodeName
from steward.model.job import other_parts
from steward.model.leadership import Heads
from steward.model.observed import Freshness
from steward.model.settings import Problem, Settings
from steward.policy.job.options import resume_facts
from steward.policy.plan import Plans, plan
from steward.ports import Notifier, ProviderPort, StorePort
from steward.views.explain import job_warning
from steward.workflows.apply import Applier
from steward.workflows.bell import Bell
from steward.workflows.book import Pace
from steward.workflows.commands import Commands
from steward.workflows.cycle import Cycle, Parts, Sweeps
from steward.workflows.effects import Ports
from steward.workflows.following import Following
from steward.workflows.journal import Journal
from steward.workflows.leading import Alone, Leading, Me, OwnSight
from steward.workflows.notify import NotifyDesk
from steward.workflows.observe import Observer
from steward.workflows.records import BUSY_SHARE, Patience
from steward.workflows.site_settings import contradictions_with_slurm, logins_of
from steward.workflows.snapshot import Snapshot

BUNDLES = "bundles"
"""The folder of bundles in the head's state_dir."""
BUSY_SWEEP_S, LONGEST_SWEEP_S = 1.0, 60.0
"""Seconds: the longest between two cycles while work is open, the longest between two sweeps of nodes or jobs."""
_MUNGE_THREADS = 8
_MAX_TOLD = 1000
_FORGET_EVERY_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The parts that the daemon starts and stops."""

    cycle: Cycle
    hub: Hub
    app: Starlette
    users: Starlette
    """The pages for login hosts."""
    notifier: Notifier
    notify: NotifyDesk
    shared: "Shared | None" = None
    """Its part among several heads; None for a head alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The parts of a head that shares its database with others."""

    leading: Leading
    following: Following
    beside: Beside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """The parts that most other parts need."""

    settings: Settings
    want: Desired
    clock: SystemClock
    bell: Bell
    new_events: deque[Event]
    munge: Munge
    slurm: CommandLineSlurm
    accounting: SlurmAccounting
    config: SlurmConfig
    provider: ProviderPort | None
    store: StorePort
    metrics: Metrics
    commands: Commands
    notifier: Notifier
    place: AmongHeads
    lease: SqlLease | None


def build_head(settings: Settings, file: Path) -> Head:
    """Return the head. Raises Permanent or Retryable, in one clear line, if it cannot run with these settings.

    `file` is the file that the settings were read from.
    """
    base = _base(settings)
    logs = SetupLogs(settings.head.state_dir / "setup-logs", keep_days=settings.capacity.setup_logs_days)
    bundles = Bundles(settings.head.state_dir / BUNDLES, keep_days=settings.capacity.setup_logs_days)
    origins, witness, rules = Origins(), PortWitness(now=base.clock.now), base.want.resume
    second = SecondLook(witness.look, lambda seen: hub.keep_witness(seen))
    sealer = Sealer(base.munge, choose.own_word(settings, os.geteuid()), Threads(_MUNGE_THREADS))
    passed = PassedRequests(settings.agent.head, settings.head.agent_addresses)
    hub = Hub(
        sealer=sealer,
        clock=base.clock,
        ring=base.bell.ring,
        tell=base.new_events.append,
        heartbeat_s=settings.head.heartbeat_s,
        keep_log=logs.take,
        keep_bundle=bundles.take,
        facts=lambda job: None if cycle.latest is None else resume_facts(job, cycle.latest.memory, rules),
        nodes_of=lambda job: _nodes_of(job, cycle.latest),
        defaults=rules.defaults,
        warning=job_warning(base.want),
        origins=origins,
        addresses=settings.head.agent_addresses,
        examine=second,
        leadership=lambda: lead.leadership(),
        passed=passed,
    )
    news = News()
    desk = _desk(base)
    shared = _shared(base, lambda: cycle)
    lead = shared.leading if shared is not None else Alone()
    cycle = Cycle(
        _parts(base, hub, witness, lead), (base.metrics.watch, _informed(hub, origins, second), news.came, desk.follow)
    )
    gatekeeper = Gatekeeper(base.munge, choose.admin_uids(settings), settings.cluster.name)
    source = _source(base, hub, cycle, desk, file, shared)
    passing = _passing(shared, sealer, lambda: cycle.latest is not None)
    at_http, at_users = (passing.at(door) if passing is not None else None for door in (HTTP, USERS))
    app = build(source, gatekeeper, news, _aws(base, source, gatekeeper), choose.host_names(settings), at_http)
    users = _users(base, source, gatekeeper, at_users)
    passed.doors = {HTTP: app, USERS: users}
    return Head(cycle=cycle, hub=hub, app=app, users=users, notifier=base.notifier, notify=desk, shared=shared)


def _shared(base: _Base, cycle: Callable[[], Cycle]) -> Shared | None:
    """Return the head's part among several heads; None for a head alone."""
    if base.lease is None:
        return None
    beside = Beside(base.config.controller)
    following = Following(
        lambda: cycle().look(),
        is_beside_slurmctld=beside,
        is_leader_blind=lambda: leading.is_leader_blind,
        steady=steady_now,
    )
    leading = Leading(
        base.lease,
        Me(
            name=base.place.name,
            cluster=base.settings.cluster.name,
            place=place_in_lease(base.settings.head.state_dir),
            version=__version__,
        ),
        clock=base.clock,
        steady=steady_now,
        deadman=Deadman().set,
        sight=OwnSight(is_blind=lambda: cycle().is_blind(), is_beside_slurmctld=beside, as_follower=following.word),
        peers=base.place.peers,
        notifier=base.notifier,
        tell=base.new_events.append,
    )
    return Shared(leading=leading, following=following, beside=beside)


def _passing(shared: Shared | None, sealer: Sealer, has_looked: Callable[[], bool]) -> Passing | None:
    """Return what a follower needs to pass requests on; None for a head alone."""
    if shared is None:
        return None
    way = HeadWay(sealer, __version__)
    return Passing(leadership=shared.leading.leadership, open=way.open, has_looked=has_looked)


def _aws(base: _Base, source: Source, gatekeeper: Gatekeeper) -> LateEndpoint:
    """Return the endpoint for AWS clients. Raises Permanent at once for unusable access keys."""
    key_of = choose.access_keys(base.settings)
    return LateEndpoint(
        lambda: import_module("steward.head.aws").endpoint(
            base.settings.api,
            key_of=key_of,
            gatekeeper=gatekeeper,
            clock=base.clock,
            tell=base.new_events.append,
            handlers=handlers(source),
            first_use=base.store.first_use,
        )
    )


def _users(base: _Base, source: Source, gatekeeper: Gatekeeper, passes_on: Middleware | None) -> Starlette:
    privacy = Privacy(base.config.config, base.clock.now)
    pages = UserPages(source, gatekeeper, privacy.hides_jobs, call_limits(base.settings.api, base.clock.now))
    return build_users(pages, choose.host_names(base.settings), passes_on)


def _nodes_of(job: JobId, latest: Snapshot | None) -> frozenset[NodeName]:
    """Return the nodes of the job and of its other parts; empty if the job is not known."""
    known = latest.seen.jobs.get(job) if latest is not None else None
    if latest is None or known is None:
        return frozenset()
    return known.nodes.union(*(part.nodes for part in other_parts(known, latest.seen.jobs)))


def _base(settings: Settings) -> _Base:
    bell, want = Bell(), desired(settings)
    told = deque[Event](maxlen=_MAX_TOLD)
    conf, limit_s = settings.cluster.slurm_conf, settings.cluster.command_timeout_s
    include = settings.capacity.slurm_include
    place = place_of(settings.agent.head, settings.head.listen)
    lease = choose.open_lease(settings, place.peers)
    store = choose.open_store(settings, told.append, lease)
    slurm = CommandLineSlurm(
        conf=str(conf),
        timeout_s=limit_s,
        include=IncludeFile(include, str(conf)) if include else None,
        library=Library(conf=str(conf)),
        asker=FitAsker(conf=str(conf)),
    )
    return _Base(
        settings=settings,
        want=want,
        clock=SystemClock(),
        bell=bell,
        new_events=told,
        munge=Munge(str(settings.cluster.munge_socket or "")),
        slurm=slurm,
        accounting=SlurmAccounting(conf=str(conf), jobs=slurm.jobs, timeout_s=limit_s),
        config=SlurmConfig(conf=conf, timeout_s=limit_s),
        provider=choose.make_providers(settings, slurm, partial(StoredText, store) if lease is not None else None),
        store=store,
        metrics=Metrics(want, store.set_aside_at),
        commands=Commands(bell.ring),
        notifier=notifier(),
        place=place,
        lease=lease,
    )


def _observer(base: _Base, hub: Hub) -> Observer:
    head = base.settings.head
    return Observer(
        slurm=base.slurm,
        provider=base.provider,
        agents=hub,
        clock=base.clock,
        bell=base.bell,
        patience=Patience(
            usual=base.settings.cluster.command_timeout_s + 1.0,
            sweep=Pace(least_s=head.sweep_s, most_s=LONGEST_SWEEP_S),
            sweep_busy=Pace(least_s=min(head.sweep_s, BUSY_SWEEP_S), most_s=LONGEST_SWEEP_S, share=BUSY_SHARE),
        ),
        submissions=SubmittedJobs(base.config.config),
        accounting=base.accounting,
    )


def _parts(base: _Base, hub: Hub, witness: PortWitness, lead: Leading | Alone) -> Parts:
    head = base.settings.head
    observer = _observer(base, hub)
    journal = Journal(base.store, base.clock, base.metrics.count)
    ports = Ports(
        slurm=base.slurm,
        provider=base.provider,
        agents=hub,
        witness=witness,
        site=SiteCommands(base.settings.capacity),
        accounting=base.accounting,
    )
    return Parts(
        observer=observer,
        plan=Plans(),
        journal=journal,
        applier=Applier(
            ports,
            journal,
            changed=observer.changed,
            listing=observer.listing_needed,
            ring=base.bell.ring,
            permit=lead.check,
        ),
        agents=hub,
        commands=base.commands,
        bell=base.bell,
        clock=base.clock,
        steady=steady_now,
        notifier=base.notifier,
        want=base.want,
        sweeps=Sweeps(quiet_s=head.sweep_s, busy_s=min(head.sweep_s, BUSY_SWEEP_S)),
        new_events=base.new_events,
        permit=lead.check,
        clock_ahead_s=lead.clock_ahead_s,
    )


def _informed(hub: Hub, origins: Origins, second: SecondLook) -> Callable[[Snapshot], None]:
    """Return a watcher that tells the hub the cluster's size, its nodes' addresses and which jobs Slurm still knows."""

    forgotten = 0.0

    def watch(snapshot: Snapshot) -> None:
        nonlocal forgotten
        second.learn(snapshot.seen.nodes)
        origins.learn(snapshot.seen.nodes, snapshot.seen.instances)
        if snapshot.seen.slurm is not Freshness.FRESH:
            return
        hub.expect(len(snapshot.seen.nodes))
        if snapshot.at - forgotten >= _FORGET_EVERY_S:
            forgotten = snapshot.at
            hub.forget_jobs(snapshot.seen.jobs.keys())

    return watch


def _place(settings: Settings) -> CapacityPlace:
    table = settings.capacity
    include = IncludeFile(table.slurm_include, str(settings.cluster.slurm_conf)) if table.slurm_include else None
    return CapacityPlace(
        include=include,
        lent=frozenset(table.owned_partitions),
        dynamic=table.enabled and table.provider is not None,
    )


def _desk(base: _Base) -> NotifyDesk:
    return NotifyDesk(
        channels=choose.make_channels(base.settings),
        store=base.store,
        clock=base.clock,
        tell=base.new_events.append,
        slots=base.settings.slots(),
    )


def _none() -> None:
    """Return None: a head alone has no other heads."""


def _contradictions(settings: Settings) -> Sequence[Problem]:
    """Ask Slurm, and return the contradictions between the settings and it or this machine."""
    site = survey(settings.cluster.slurm_conf, settings.cluster.command_timeout_s, logins_of(settings))
    return [*contradictions_with_slurm(settings, site), *problems_here(settings)]


def _doctor(base: _Base, hub: Hub, cycle: Cycle, file: Path, heads: Callable[[], Heads | None]) -> Doctor:
    return Doctor(
        file=file,
        settings=base.settings,
        reread=lambda: load(file, os.environ),
        contradictions=lambda: _contradictions(base.settings),
        version=__version__,
        clock=base.clock,
        slurm=base.slurm,
        reader_problem=base.slurm.reader_problem,
        config=base.config,
        munge=base.munge,
        store=base.store,
        provider=base.provider,
        latest=lambda: cycle.latest,
        standstill=cycle.standstill,
        views=hub.views,
        details=hub.details,
        nodes_at=hub.nodes_at,
        capacity=_place(base.settings),
        rules=base.want.repair,
        want=base.want,
        heads=heads,
    )


def _source(base: _Base, hub: Hub, cycle: Cycle, desk: NotifyDesk, file: Path, shared: Shared | None) -> Source:
    heads: Callable[[], Heads | None] = shared.leading.heads if shared is not None else _none
    doctor = _doctor(base, hub, cycle, file, heads)
    return Source(
        cluster=base.settings.cluster.name,
        version=__version__,
        started=base.clock.now(),
        clock=base.clock,
        latest=lambda: cycle.latest,
        standstill=cycle.standstill,
        details=hub.details,
        want=base.want,
        plan=plan,
        store=base.store,
        commands=base.commands,
        metrics=base.metrics,
        doctor=doctor.examine,
        notify=desk,
        read_job=lambda id: base.slurm.jobs([id]),
        checks=CheckBook.of(limits_of(base.settings.checks), base.settings.agent.check_interval_s),
        heads=heads,
        hand_over=shared.leading.hand_over if shared is not None else lambda why: None,
    )
