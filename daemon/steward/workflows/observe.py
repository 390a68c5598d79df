"""Observe the world as one frozen picture: the first half of a cycle.

Only the nodes and jobs that the turn needs are read in the turn (workflows/attention.py); the others are as the last
sweep showed them. All else is read beside the cycle.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from steward.model.accounting import Accounting
from steward.model.ask import Ask, OptedIn
from steward.model.fit import Question
from steward.model.ids import InstanceId, JobId, NodeName
from steward.model.instance import Instance
from steward.model.job import Job
from steward.model.memory import ClockChange, Memory
from steward.model.observed import Freshness, Observed, Subject
from steward.model.partition import Partition
from steward.model.reservation import Reservation
from steward.ports import AccountingPort, AgentPort, Clock, ProviderPort, SlurmPort
from steward.workflows.attention import (
    Known,
    has_marked,
    is_reserving,
    jobs_by_node,
    partitions_matter,
    records_to_read,
)
from steward.workflows.bell import Bell
from steward.workflows.clock_change import in_time
from steward.workflows.confirm import Confirmed
from steward.workflows.fits import Answers
from steward.workflows.pool import BackgroundRead, NewsLook, ReadResult, WorkerPool, Workers
from steward.workflows.records import Patience, Records
from steward.workflows.submitted import Submissions, Submitted

_THREADS = 8
_NOTHING = Memory()


class Observer:
    """The maker of the picture. One thread calls `observe` and `confirm`; any thread may call `changed`."""

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
        """Take the ports. `workers` carry out the reads; without them, threads of our own do."""
        self._agents, self._clock, self._bell = agents, clock, bell
        self._patience = patience or Patience()
        pool = workers or WorkerPool(_THREADS, "look")
        self._requeues = (
            BackgroundRead("JobRequeue", submissions.requeues, pool, clock, lambda: None) if submissions else None
        )
        self._submitted = Submitted(submissions, workers=pool, clock=clock, ring=bell.ring) if submissions else None
        read = accounting.picture if accounting else None
        self._accounts = Accounts(read, workers=pool, clock=clock, ring=bell.ring) if read else None
        self._records = Records(
            slurm,
            pool=pool,
            clock=clock,
            patience=self._patience,
            ring=bell.ring,
            is_asked=lambda: bool(agents.asks()),
        )
        self._partitions: NewsLook[Mapping[str, Partition]] = NewsLook(
            "Slurm's partitions", slurm.partitions, pool, clock, bell.ring
        )
        self._reservations: NewsLook[Mapping[str, Reservation]] = NewsLook(
            "Slurm's reservations", slurm.reservations, pool, clock, bell.ring
        )
        self._instances: NewsLook[Mapping[InstanceId, Instance]] | None = None
        if provider is not None:
            self._instances = NewsLook("the instances", provider.instances, pool, clock, bell.ring, self._listed)
        self._changed = self._partitions_changed = self._listing_needed = 0.0
        self._clock_change: ClockChange | None = None
        self._in_time_was: tuple[Mapping[JobId, Job], Mapping[JobId, Job]] = ({}, {})
        """The jobs as Slurm last told them, and by the clock of today."""
        self._places = jobs_by_node()
        self._alive: Callable[[], None] = lambda: None
        self._fits = Answers(slurm, clock)
        self._gres = GresLook(slurm.gres_used, workers=pool, clock=clock)
        self._shown: tuple[object, object] = (None, None)
        """The nodes and jobs of the last picture."""

    def changed(self, subject: Subject | None) -> None:
        """Note that these nodes and jobs were changed (None: unknown which), so that earlier reads of them are old.

        Earlier reads of reservations are old, too. Earlier reads of partitions are old only if `subject` is None or
        empty.
        """
        self._changed = self._clock.now()
        if subject is None or subject == Subject():
            # an empty subject: something other than a node or a job was changed
            self._partitions_changed = self._changed
        self._records.changed(subject)

    def listing_needed(self) -> None:
        """Ask for a new list of instances, because some were launched or ended."""
        self._listing_needed = self._clock.now()

    def observe(
        self,
        *,
        busy: bool,
        memory: Memory = _NOTHING,
        failures: Mapping[str, str],
        alive: Callable[[], None],
    ) -> Observed:
        """Take the picture; never raise for a failed read.

        `alive` is called now and then during the wait. `memory` decides which records are needed.
        """
        self._alive, self._clock_change = alive, memory.head.clock_change
        asks, opted = self._agents.asks(), self._agents.opted_in()
        self._list_instances(busy)
        self._read_partitions(memory)
        self._read_reservations(memory)
        self._gres.look()
        about = records_to_read(memory, self._known(asks, opted), self._clock.now())
        asked = max((ask.at for ask in asks), default=0.0)
        slurm = self._records.look(about, asked=asked, anew=self._slurmctld_started(), busy=busy, alive=alive)
        instances = self._instances.last if self._instances else None
        partitions = self._partitions.last
        reservations = self._reservations.last
        seen = Observed(
            at=self._clock.now(),
            slurm=slurm,
            job_requeue=self._job_requeue(),
            partitions=partitions.value if partitions else MappingProxyType({}),
            partitions_at=partitions.began if partitions else 0.0,
            reservations=reservations.value if reservations else MappingProxyType({}),
            reservations_at=reservations.began if reservations else 0.0,
            agents=self._agents.views(),
            agents_since=self._agents.since(),
            provider=self._provider_freshness(),
            listed_at=instances.began if instances else None,
            instances=instances.value if instances else MappingProxyType({}),
            accounting=self._accounts.seen(wanted=bool(memory.quotas), changed=self._changed)
            if self._accounts
            else None,
            asks=asks,
            opted_in=opted,
            failures=failures,
            fits=self._fits.known(),
            gres_used=self._gres.used,
            gres_at=self._gres.at,
        )
        seen = self._with_records(seen, slurm)
        submitted, unread = self._submitted.look(seen.jobs) if self._submitted else ((), MappingProxyType({}))
        return replace(seen, opted_in=(*opted, *submitted), unread=unread)

    def look_at_slurm(self, alive: Callable[[], None]) -> Freshness:
        """Read Slurm's nodes, jobs and partitions alone, as a head that follows; never raise for a failed read."""
        self._alive = alive
        self._read_partitions(_NOTHING)
        about = records_to_read(_NOTHING, self._known((), ()), self._clock.now())
        return self._records.look(about, asked=0.0, anew=self._slurmctld_started(), busy=False, alive=alive)

    def confirm(self, seen: Observed, subject: Subject) -> Confirmed:
        """Read those records of `subject` that were not read in this turn. See workflows/confirm.py."""
        slurm = self._records.confirm(subject, self._alive)
        if slurm is None:
            return Confirmed(seen=seen, same=True)
        (nodes, jobs), newer = self._shown, self._with_records(seen, slurm)
        is_same = nodes is self._shown[0] and jobs is self._shown[1]
        return Confirmed(seen=newer, same=is_same and slurm is Freshness.FRESH)

    def confirm_all(self, seen: Observed) -> Observed:
        """Return the picture with all nodes and jobs read again."""
        return self._with_records(seen, self._records.confirm_all(self._alive))

    def answer(self, seen: Observed, questions: Sequence[Question]) -> Observed:
        """Return the picture with Slurm's answers to a plan's questions."""
        self._fits.ask(questions)
        self._alive()
        return replace(seen, at=self._clock.now(), fits=self._fits.known())

    def due_in(self, *, busy: bool) -> float:
        """Return the seconds until the next sweep is due."""
        return self._records.due_in(busy=busy)

    def _known(self, asks: tuple[Ask, ...], opted: tuple[OptedIn, ...]) -> Known:
        """Return the facts with which the turn begins."""
        page = self._records.jobs.page
        self._places.follow(page.records)
        return Known(
            jobs=page.records,
            places=self._places,
            job_at=page.times.at,
            views=self._agents.views(),
            asks=asks,
            opted=opted,
        )

    def _with_records(self, seen: Observed, slurm: Freshness) -> Observed:
        """Return the picture with the nodes and jobs as last read."""
        nodes, jobs = self._records.nodes.page, self._records.jobs.page
        self._shown = (nodes.records, jobs.records)
        return replace(
            seen,
            at=self._clock.now(),
            slurm=slurm,
            nodes=nodes.records,
            node_times=nodes.times,
            jobs=self._in_time(jobs.records),
            job_times=jobs.times,
        )

    def _slurmctld_started(self) -> float:
        """Return a time at which slurmctld had surely started; 0 if unknown. It may forget records when it starts.

        Partitions tell the start in whole seconds, so one second is added.
        """
        last = self._partitions.last
        began = max((each.loaded for each in last.value.values()), default=0.0) if last else 0.0
        return began + 1.0 if began > 0.0 else 0.0

    def _job_requeue(self) -> bool | None:
        """Return Slurm's JobRequeue; None if it is not known yet."""
        look = self._requeues
        if look is None:
            return None
        if not look.fresh(self._clock.now() - self._patience.settings):
            look.start()
        return look.last.value if look.last else None

    def _in_time(self, jobs: Mapping[JobId, Job]) -> Mapping[JobId, Job]:
        """Return the jobs with starts and ends by the clock of today: the clock of Slurm's host was set, too."""
        change, now = self._clock_change, self._clock.now()
        if change is None or now > change.at + change.by > change.at:
            return jobs
        # plans keep what they find out about the very same records, and the very same mapping
        told, moved = self._in_time_was
        if told is not jobs:
            found = {id: moved[id] if told.get(id) is job else in_time(job, change, now) for id, job in jobs.items()}
            self._in_time_was = (jobs, found)
        return self._in_time_was[1]

    def _read_partitions(self, memory: Memory) -> None:
        """Begin to read the partitions if they are needed and old."""
        now = self._clock.now()
        matter = partitions_matter(memory, now)
        every = self._patience.partitions if matter else self._patience.partitions_seldom
        changed = self._partitions_changed if matter else 0.0
        if self._records.may_wait(now) and self._partitions.fresh(changed):
            return
        if (matter or has_marked(memory) or memory.quotas) and not self._partitions.fresh(max(now - every, changed)):
            self._partitions.start()

    def _read_reservations(self, memory: Memory) -> None:
        """Begin to read the reservations if they are old."""
        now = self._clock.now()
        reserving = is_reserving(memory, now)
        every = self._patience.reservations_busy if reserving else self._patience.reservations
        if not self._reservations.fresh(max(now - every, self._changed if reserving else 0.0)):
            self._reservations.start()

    def _list_instances(self, busy: bool) -> None:
        """Begin to list the instances if the list is old."""
        if self._instances is None:
            return
        every = self._patience.provider_busy if busy else self._patience.provider
        if not self._instances.fresh(max(self._clock.now() - every, self._listing_needed)):
            self._instances.start()

    def _provider_freshness(self) -> Freshness:
        """Return how fresh the list of instances is."""
        if self._instances is None or self._instances.last is None:
            return Freshness.ABSENT
        since = max(self._clock.now() - 3 * self._patience.provider, self._listing_needed)
        return Freshness.FRESH if self._instances.fresh(since) else Freshness.OLD

    def _listed(self, seen: ReadResult[Mapping[InstanceId, Instance]]) -> tuple[Mapping[InstanceId, Instance], bool]:
        """Return what counts as news in a list of instances: its content, and whether it is recent enough."""
        look = self._instances
        return seen.value, look is not None and look.fresh(self._listing_needed) is not None


# Accounts: Slurm's accounting, read beside the cycle every few seconds and after each change, if there are quotas.

_EVERY_S = 5.0
_GRES_EVERY_S = 30.0


class GresLook:
    """A repeated look at the GRES that Slurm counts as used, beside the cycle.

    `used` has the nodes that the last two looks have shown, `at` is when the first of the two began (Unix s).
    """

    def __init__(self, read: Callable[[], Mapping[NodeName, str]], *, workers: Workers, clock: Clock) -> None:
        self._clock = clock
        self._look: BackgroundRead[Mapping[NodeName, str]] = BackgroundRead(
            "the GRES in use", read, workers, clock, lambda: None
        )
        self._seen: ReadResult[Mapping[NodeName, str]] | None = None
        self.used: Mapping[NodeName, str] = MappingProxyType({})
        self.at = 0.0

    def look(self) -> None:
        """Take the result of the last look, and begin another one if it is due."""
        now, before, last = self._clock.now(), self._seen, self._look.last
        if last is not None and last is not before:
            self._seen = last
            both = {name: gres for name, gres in last.value.items() if before is not None and name in before.value}
            self.used = self.used if both == self.used else MappingProxyType(both)
            self.at = before.began if before is not None else 0.0
        if self._look.running_since is None and not self._look.tried(now - _GRES_EVERY_S):
            self._look.start()


class Accounts:
    """Slurm's accounting, read beside the cycle. `ring` is called when more than its time has changed."""

    def __init__(
        self, read: Callable[[], Accounting], *, workers: Workers, clock: Clock, ring: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._look: NewsLook[Accounting] = NewsLook("Slurm's accounting", read, workers, clock, ring, self._news)

    def seen(self, *, wanted: bool, changed: float) -> Accounting | None:
        """Return the newest accounting, with `trouble` if a later read failed; None if not wanted or never read.

        What was read before `changed` (Unix s) is read again.
        """
        if not wanted:
            return None
        if self._look.fresh(max(self._clock.now() - _EVERY_S, changed)) is None:
            self._look.start()
        last = self._look.last
        if last is None:
            return Accounting(trouble=self._look.failed) if self._look.failed else None
        return self._with_trouble(last.value)

    def _news(self, seen: ReadResult[Accounting]) -> Accounting:
        """Return the part of the accounting that counts as news: all but its time."""
        return self._with_trouble(replace(seen.value, at=0.0))

    def _with_trouble(self, found: Accounting) -> Accounting:
        """Return the accounting with the error of the last read, if that failed."""
        return replace(found, trouble=self._look.failed) if self._look.failed else found
