"""The first half of a cycle: everything that can be known, in one frozen picture.

A hung Slurm must not hang Steward. Reads run beside the cycle; after their time the picture is OLD and the cycle goes
on, sooner when a shim waits for its answer. A read that comes in late is used by the next cycle, as long as nothing was
changed or asked since it began.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from steward.accounting_port import AccountingPort
from steward.model.ids import InstanceId, JobId, NodeName
from steward.model.instance import Instance
from steward.model.job import Job
from steward.model.node import Node
from steward.model.observed import AgentView, Freshness, Observed
from steward.model.partition import Partition
from steward.model.reservation import Reservation
from steward.ports import AgentPort, Clock, ProviderPort, SlurmPort
from steward.workflows.accounts import Accounts
from steward.workflows.bell import Bell
from steward.workflows.look import Look
from steward.workflows.pool import Pool, Workers
from steward.workflows.set_back import SetBacks
from steward.workflows.submitted import Submissions, Submitted

_POLL_S = 0.2
_LATE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a cycle waits for Slurm (`asked`: while a shim waits), and how often a provider is listed. Seconds."""

    usual: float = 11.0
    asked: float = 2.5
    provider: float = 15.0
    provider_busy: float = 1.0
    partitions: float = 5.0
    settings: float = 60.0
    reservations: float = 60.0
    reservations_busy: float = 1.0


class Observer:
    """Takes the picture. One thread calls `observe`; `changed` may be called from any."""

    def __init__(
        self,
        *,
        slurm: SlurmPort,
        provider: ProviderPort | None,
        agents: AgentPort,
        clock: Clock,
        bell: Bell,
        patience: Patience | None = None,
        workers: Workers | None = None,
        submissions: Submissions | None = None,
        accounting: AccountingPort | None = None,
    ) -> None:
        """`workers` carry out the reads; threads of our own when none are given."""
        self._agents, self._clock, self._bell = agents, clock, bell
        self._patience = patience or Patience()
        self._news = threading.Condition()
        pool = workers or Pool(6, "look")
        self._requeues = Look("JobRequeue", submissions.requeues, pool, clock, lambda: None) if submissions else None
        self._submitted = Submitted(submissions, workers=pool, clock=clock, ring=bell.ring) if submissions else None
        read = accounting.picture if accounting else None
        self._accounts = Accounts(read, workers=pool, clock=clock, ring=bell.ring) if read else None
        self._nodes: Look[Mapping[NodeName, Node]] = Look("Slurm's nodes", slurm.nodes, pool, clock, self._came)
        self._jobs: Look[Mapping[JobId, Job]] = Look("Slurm's jobs", slurm.jobs, pool, clock, self._came)
        self._partitions: Look[Mapping[str, Partition]] = Look(
            "Slurm's partitions", slurm.partitions, pool, clock, self._divided
        )
        self._reservations: Look[Mapping[str, Reservation]] = Look(
            "Slurm's reservations", slurm.reservations, pool, clock, self._reserved
        )
        self._instances: Look[Mapping[InstanceId, Instance]] | None = None
        if provider is not None:
            self._instances = Look("the instances", provider.instances, pool, clock, self._listed)
        self._changed = self._listing_needed = 0.0
        self._set_backs = SetBacks(clock.now())
        self._told: tuple[Mapping[InstanceId, Instance] | None, bool] = (None, False)
        self._told_partitions: Mapping[str, Partition] | None = None
        self._told_reservations: Mapping[str, Reservation] | None = None
        self._late = self._observing = False

    def changed(self) -> None:
        """We did something to the world: what began to be read before this moment is old."""
        self._changed = self._clock.now()

    def listing_needed(self) -> None:
        """Instances were made or ended: list them again."""
        self._listing_needed = self._clock.now()

    def remember(self, at: float) -> None:
        """An earlier head lived `at` (Unix s): when that is to come, the clock was set back since."""
        self._set_backs.remember(at)

    def observe(
        self,
        *,
        busy: bool,
        groups: bool,
        reserving: bool = False,
        quotas: bool = False,
        failures: Mapping[str, str],
        alive: Callable[[], None],
    ) -> Observed:
        """Never raises for a failed look; `alive` is called every now and then while it waits. `groups`: partitions
        are of interest; `reserving`: reservations of ours are there. `quotas`: teams have some."""
        now = self._heed_the_clock()
        asks = tuple(self._set_backs.in_time(ask, now) for ask in self._agents.asks())
        opted = tuple(self._set_backs.in_time(one, now) for one in self._agents.opted_in())
        self._list_instances(busy)
        if groups and not self._partitions.fresh(max(self._clock.now() - self._patience.partitions, self._changed)):
            self._partitions.start()
        every = self._patience.reservations_busy if reserving else self._patience.reservations
        if not self._reservations.fresh(max(self._clock.now() - every, self._changed if reserving else 0.0)):
            self._reservations.start()
        slurm = self._read_slurm(max((ask.at for ask in asks), default=0.0), alive)
        instances = self._instances.last if self._instances else None
        partitions = self._partitions.last
        reservations = self._reservations.last
        jobs = self._known_jobs()
        submitted, unread = self._submitted.look(jobs) if self._submitted else ((), MappingProxyType({}))
        return Observed(
            at=self._clock.now(),
            slurm=slurm,
            nodes=self._nodes.last.value if self._nodes.last else MappingProxyType({}),
            jobs=jobs,
            job_requeue=self._job_requeue(),
            unread=unread,
            partitions=partitions.value if partitions else MappingProxyType({}),
            partitions_at=partitions.began if partitions else 0.0,
            reservations=reservations.value if reservations else MappingProxyType({}),
            reservations_at=reservations.began if reservations else 0.0,
            agents=self._views(),
            agents_since=self._set_backs.in_time(self._agents.since(), self._clock.now()),
            provider=self._provider_freshness(),
            listed_at=instances.began if instances else None,
            instances=instances.value if instances else MappingProxyType({}),
            accounting=self._accounts.seen(wanted=quotas, changed=self._changed) if self._accounts else None,
            asks=asks,
            opted_in=(*opted, *submitted),
            failures=failures,
        )

    def _job_requeue(self) -> bool | None:
        look = self._requeues
        if look is None:
            return None
        if not look.fresh(self._clock.now() - self._patience.settings):
            look.start()
        return look.last.value if look.last else None

    def _heed_the_clock(self) -> float:
        """Times that are in the future now are of before the clock was set back: nothing would be new enough for them
        until it has caught up."""
        now = self._clock.now()
        self._set_backs.note(now)
        self._changed, self._listing_needed = min(self._changed, now), min(self._listing_needed, now)
        return now

    def _known_jobs(self) -> Mapping[JobId, Job]:
        """No job has begun in the future: Slurm's clock was the wrong one, too."""
        jobs: Mapping[JobId, Job] = self._jobs.last.value if self._jobs.last else MappingProxyType({})
        if not self._set_backs.by:
            return jobs
        now = self._clock.now()
        return {id: replace(job, started=self._set_backs.in_time(job.started, now)) for id, job in jobs.items()}

    def _views(self) -> Mapping[NodeName, AgentView]:
        views, now = self._agents.views(), self._clock.now()
        if not self._set_backs.by:
            return views
        return {name: self._set_backs.in_time(view, now) for name, view in views.items()}

    def _read_slurm(self, asked: float, alive: Callable[[], None]) -> Freshness:
        now = self._clock.now()
        needed = max(self._changed, asked, now - _LATE_S) if self._late else now
        self._observing = True
        try:
            fresh = self._await_slurm(needed, alive)
        finally:
            self._observing = False
        self._late = any(look.running_since is not None for look in (self._nodes, self._jobs))
        if fresh:
            return Freshness.FRESH
        return Freshness.OLD if self._nodes.last and self._jobs.last else Freshness.ABSENT

    def _await_slurm(self, needed: float, alive: Callable[[], None]) -> bool:
        """Wait until nodes and jobs were read since `needed`; False when a read failed or patience is over."""
        begun = self._clock.now()
        while True:
            for look in (self._nodes, self._jobs):
                if not look.fresh(needed) and not look.tried(begun):
                    look.start()
            with self._news:
                if self._nodes.fresh(needed) and self._jobs.fresh(needed):
                    return True
                if any(look.tried(needed) and look.failed for look in (self._nodes, self._jobs)):
                    return False
                if self._is_patience_over():
                    return False
                self._news.wait(_POLL_S)
            alive()

    def _is_patience_over(self) -> bool:
        running = [look.running_since for look in (self._nodes, self._jobs) if look.running_since is not None]
        limit = self._patience.asked if self._agents.asks() else self._patience.usual
        return bool(running) and self._clock.now() - min(running) >= limit

    def _came(self) -> None:
        with self._news:
            self._news.notify_all()
            if not self._observing:
                self._bell.ring()

    def _list_instances(self, busy: bool) -> None:
        if self._instances is None:
            return
        every = self._patience.provider_busy if busy else self._patience.provider
        if not self._instances.fresh(max(self._clock.now() - every, self._listing_needed)):
            self._instances.start()

    def _provider_freshness(self) -> Freshness:
        if self._instances is None or self._instances.last is None:
            return Freshness.ABSENT
        since = max(self._clock.now() - 3 * self._patience.provider, self._listing_needed)
        return Freshness.FRESH if self._instances.fresh(since) else Freshness.OLD

    def _listed(self) -> None:
        """Ring only for news: a bell on every listing would never let the cycle rest."""
        look = self._instances
        if look is None or look.last is None:
            return
        told = (look.last.value, look.fresh(self._listing_needed) is not None)
        if told != self._told:
            self._told = told
            self._bell.ring()

    def _divided(self) -> None:
        """The same for partitions: what we changed, or somebody else, shows at once."""
        last = self._partitions.last
        if last is not None and last.value != self._told_partitions:
            self._told_partitions = last.value
            self._bell.ring()

    def _reserved(self) -> None:
        """The same for reservations."""
        last = self._reservations.last
        if last is not None and last.value != self._told_reservations:
            self._told_reservations = last.value
            self._bell.ring()
