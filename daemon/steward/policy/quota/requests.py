"""The requests of jobs as quotas count them, by unit: a job, a heterogeneous job, or waiting tasks of an array."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any

from steward.model.accounting import QOS_PREFIX, borrowed_qos, guaranteed_qos, team_of_qos
from steward.model.elastic import replica_of
from steward.model.ids import JobId
from steward.model.job import Job, parse_tres
from steward.model.quota import CPU, GPU, MEM, Resource, SchedulerConfig, kind_of, machine_type_of, profile_of, resource
from steward.policy.draft import Draft
from steward.policy.quota.classes import class_of
from steward.policy.quota.flavors import Flavors

_WAITS_FOR_NODES = frozenset({"", "None", "Resources", "Priority"})
"""Slurm's reasons for jobs that would run if nodes were free."""
_LIMITED = re.compile(r"(?:QOS|Assoc)Grp(?:GRES|Cpu|CPU|Mem)(?:ory)?(?:Limit)?")
"""Slurm's reasons for jobs that a limit of a kind that we write holds up.

Other limits (of jobs, minutes, users) are the site's: nodes reclaimed for such a job would stay idle.
"""
REQUEUE_DELAY_S, _DELAY_S = 150.0, 121.0
"""Slurm before 25.11 delays a requeued job by 121 s, and every Slurm a heterogeneous job that could not start."""
_MOST_KNOWN = 20_000
"""How many different requests are kept from turn to turn."""
_MOST_SIZES = 1024
_GRES, _TYPED = "gres/gpu", "gres/gpu:"

Amounts = Mapping[Resource, int]


@dataclass(slots=True, kw_only=True, eq=False)
class Unit:
    """One or more jobs that are started and evicted as a whole. Never changed; not frozen only for speed.

    `team` is empty for a job of no team. `options` are the amounts: one option of a running job; of a waiting job, one
    for each machine type on which it may run. `count` is the number of equal array tasks, `sizes` are the node counts
    that the job accepts, the smallest first; `options` are for the smallest. `since` is the time of submission, or of
    the start (Unix s). `weight` is that of the priority class; -1, below all, without a class. `away` is the part of a
    running job's amounts on nodes that take no jobs: an eviction does not free it. `replica`: the job adds nodes to an
    elastic run, so it always borrows, and is evicted before whole jobs. `apart`: the job waits for reserved nodes,
    which belong to no team: quotas limit it, but no job is evicted for it.
    """

    id: JobId
    jobs: tuple[Job, ...]
    team: str
    options: tuple[Amounts, ...]
    weight: int = -1
    count: int = 1
    sizes: Sequence[int] = ()
    since: float = 0.0
    away: Amounts | None = None
    replica: bool = False
    apart: bool = False

    @property
    def qos(self) -> tuple[str, ...]:
        """Return the job's QOS, in the order in which Slurm tries them."""
        return tuple(self.jobs[0].qos.split(",")) if self.jobs[0].qos else ()

    @property
    def is_guaranteed(self) -> bool:
        """Return whether Slurm counts the unit as covered by its team's quota."""
        return self.jobs[0].qos.partition(",")[0] == guaranteed_qos(self.team)

    @property
    def is_borrowed(self) -> bool:
        """Return whether Slurm counts the unit as borrowing."""
        return self.jobs[0].qos.partition(",")[0] == borrowed_qos(self.team)

    @property
    def is_cleaning(self) -> bool:
        """Return whether the unit's run is over and its nodes are not free yet: no limit of Slurm's counts it."""
        return not any(job.is_active for job in self.jobs)

    @property
    def nodes(self) -> int:
        """Return the number of nodes of all jobs of the unit."""
        return sum(max(job.node_count, len(job.nodes)) for job in self.jobs)


def _no_requests() -> "list[Requests]":
    return []


class Requests:
    """A maker of units from jobs, with results that are kept from turn to turn."""

    def __init__(self, flavors: Flavors, scheduler: SchedulerConfig, borrowers: frozenset[str]) -> None:
        """Take the machine types and the priority classes; `borrowers` are the teams with a QOS for borrowing."""
        self.flavors, self._borrowers = flavors, borrowers
        self._weights = {each.name: each.weight for each in scheduler.classes}
        self.kept: dict[Hashable, Any] = {}
        """Results made from the units by `present`; dropped when the inputs of the units change."""
        self._asked: dict[tuple[str, tuple[str, ...], bool, bool, int, bool], tuple[Amounts, ...]] = {}
        self._used: dict[tuple[str, frozenset[str], int], Amounts] = {}

    @classmethod
    def of(cls, draft: Draft, flavors: Flavors, scheduler: SchedulerConfig, borrowers: frozenset[str]) -> "Requests":
        """Reuse the last plan's requests if their inputs are unchanged."""
        known = draft.ground.once(_no_requests, ())
        found = Requests(flavors, scheduler, borrowers)
        for last in known:
            if last._has_same_inputs(found):
                found.kept = last.kept
                if len(last._asked) + len(last._used) < _MOST_KNOWN:
                    found._asked, found._used = last._asked, last._used
        known[:] = [found]
        return found

    def _has_same_inputs(self, other: "Requests") -> bool:
        """Return whether the inputs are the same."""
        rest = self._weights, self._borrowers
        return rest == (other._weights, other._borrowers) and self.flavors.is_like(other.flavors)

    def units(
        self, jobs: Iterable[Job], teams: Mapping[str, str], known: Mapping[JobId, Unit] = MappingProxyType({})
    ) -> Iterator[Unit]:
        """Yield the units of these jobs in the order of their ids; the parts of a heterogeneous job are one unit.

        `teams` are by account. A unit of `known` is reused if its jobs are the same objects.
        """
        parts: dict[JobId, list[Job]] = {}
        for job in sorted(jobs, key=attrgetter("id")):
            parts.setdefault(job.whole_id, []).append(job)
        for id, found in parts.items():
            team, unit = teams.get(found[0].account, ""), known.get(id)
            if unit is None or unit.team != team or not _are_same(unit.jobs, found):
                unit = self._unit(id, tuple(found), team)
            yield unit

    def _unit(self, id: JobId, jobs: tuple[Job, ...], team: str) -> Unit:
        """Return the unit of these jobs."""
        first, is_one = jobs[0], len(jobs) == 1
        is_here = holds_nodes(first)
        options = (self.used(jobs),) if is_here else self._options_of(jobs)
        return Unit(
            id=id,
            jobs=jobs,
            team=team,
            options=options,
            weight=self.weight(first),
            count=max(first.waiting_tasks, 1) if is_one and not is_here else 1,
            sizes=sizes(first) if is_one and not is_here and self._is_for_each_node(first, options) else (),
            since=(first.started if is_here else first.submitted) or 0.0,
            away=self._away(jobs) if is_here else None,
            replica=replica_of(first.comment) is not None and team in self._borrowers,
            apart=bool(first.reservation) and not is_here,
        )

    def _is_for_each_node(self, job: Job, options: tuple[Amounts, ...]) -> bool:
        """Return whether the request grows with the number of nodes."""
        # a request that the fewest nodes cannot hold is a total over more nodes, whatever Slurm says
        most, count = self.flavors.largest, max(job.node_count, 1)
        return not job.is_total and any(
            all(amount <= most.get(name, amount) * count for name, amount in each.items()) for each in options
        )

    def weight(self, job: Job) -> int:
        """Return the weight of the job's priority class; -1 without a known class."""
        return self._weights.get(class_of(job), -1)

    def used(self, jobs: Iterable[Job]) -> Amounts:
        """Return the resources of running jobs, by the machine types of their nodes; equal ones are one object."""
        found: list[Amounts] = []
        for job in jobs:
            count = len(job.nodes)
            kinds = frozenset(self.flavors.type_of.get(node, "") for node in job.nodes)
            key = job.allocated or job.requested, kinds, count if len(kinds) > 1 else 0
            if key not in self._used or len(kinds) > 1:
                self._used[key] = self._split(parse_tres(key[0]), job)
            found.append(self._used[key])
        return _sum(found)

    def _away(self, jobs: Iterable[Job]) -> Amounts | None:
        """Return the resources that the jobs have on nodes that take no jobs; None if there are none."""
        found: list[Amounts] = []
        for job in jobs:
            if not job.nodes <= self.flavors.usable:
                gone, all_of = len(job.nodes - self.flavors.usable), len(job.nodes)
                found.append({name: amount * gone // all_of for name, amount in self.used((job,)).items()})
        return _sum(found) if found else None

    def _split(self, tres: Mapping[str, int], job: Job) -> Amounts:
        """Return the amounts split over the machine types of the job's nodes; accelerators only over types with any."""
        of: dict[str, int] = {}
        for node in job.nodes:
            kind = self.flavors.type_of.get(node, "")
            of[kind] = of.get(kind, 0) + 1
        with_gpus = {kind: n for kind, n in of.items() if kind and self.flavors.has_gpus(kind)} or of
        found: dict[Resource, int] = {}
        for unit, amount in _by_kind(tres).items():
            among = with_gpus if unit.startswith(GPU) else of
            for kind, part in _split_by_weight(amount, among).items():
                if kind and part:
                    found[resource(kind, unit)] = part
        return found

    def _options_of(self, jobs: tuple[Job, ...]) -> tuple[Amounts, ...]:
        """Return the options of waiting jobs."""
        if len(jobs) == 1:
            return self.asks(jobs[0])
        each = [self.asks(job) for job in jobs]
        return (_sum([options[0] for options in each if options]),) if all(each) else ()

    def asks(self, job: Job) -> tuple[Amounts, ...]:
        """Return the amounts that one waiting job would use on each machine type on which it may run."""
        types = self.flavors.types_for(job)
        key = job.requested, types, job.exclusive, job.is_total, job.node_count, job.memory_per_cpu
        if key not in self._asked:
            tres = parse_tres(job.requested)
            kinds = _by_kind(tres)
            typed = [name.removeprefix(_TYPED) for name in tres if name.startswith(_TYPED)]
            wants_gpus = any(kind.startswith(GPU) and amount for kind, amount in kinds.items())
            self._asked[key] = tuple(
                self._as_slurm_counts(
                    {resource(each, kind): amount for kind, amount in kinds.items() if amount and each}, job
                )
                for each in types
                if self._may_run_on(each, typed, wants_gpus=wants_gpus)
            )
        return self._asked[key]

    def _as_slurm_counts(self, asked: Amounts, job: Job) -> Amounts:
        """Return the amounts as Slurm counts them.

        A job gets whole cores, and an exclusive job all CPUs and accelerators of its nodes; memory that is asked for by
        CPU comes for all CPUs that the job gets.
        """
        count = 1 if job.is_total else max(job.node_count, 1)
        found = {name: self._as_given(name, amount, count) for name, amount in asked.items()}
        if job.exclusive and not job.is_total:
            most = self.flavors.largest
            found |= {n: max(a, most.get(n, 0) * count) for n, a in found.items() if kind_of(n) != MEM}
        for name in found if job.memory_per_cpu else ():
            cpus = resource(machine_type_of(name), CPU)
            if kind_of(name) == MEM and asked.get(cpus):
                found[name] = asked[name] * found[cpus] // asked[cpus]
        return found

    def _as_given(self, name: Resource, amount: int, count: int) -> int:
        """Return an amount on so many nodes with the CPUs rounded up to whole cores on each node."""
        threads = self.flavors.threads.get(machine_type_of(name), 1)
        return amount if kind_of(name) != CPU or threads == 1 else -(-amount // (count * threads)) * count * threads

    def _may_run_on(self, kind: str, typed: list[str], *, wants_gpus: bool) -> bool:
        """Return whether the job may run on this machine type, by the types of its accelerators."""
        if not wants_gpus or not kind:
            return not wants_gpus
        whole = [name for name in typed if not profile_of(name)]
        mig = [resource(kind, f"{GPU}:{profile}") for name in typed if (profile := profile_of(name))]
        if any(name not in self.flavors.capacity for name in mig):
            return False
        return bool(mig) or (self.flavors.has_gpus(kind) and set(whole) <= (self.flavors.gpu_words(kind) or {*whole}))


def _are_same(known: Sequence[Job], found: Sequence[Job]) -> bool:
    """Return whether both have the same job objects."""
    return len(known) == len(found) and all(map(is_, known, found))


def sizes(job: Job) -> Sequence[int]:
    """Return the node counts that a waiting job accepts, the smallest first; empty if it accepts only one.

    A list of more than `_MOST_SIZES` counts is taken for all between its ends.
    """
    if job.node_sizes:
        parts = [part for word in job.node_sizes.split(",") if (part := _range(word))]
        if sum(map(len, parts)) > _MOST_SIZES:
            return range(min(part[0] for part in parts), max(part[-1] for part in parts) + 1)
        found = {n for part in parts for n in part}
        return tuple(sorted(found)) if len(found) > 1 else ()
    return range(job.node_count, job.most_nodes + 1) if job.most_nodes > job.node_count > 0 else ()


def _range(word: str) -> Sequence[int]:
    """Return the numbers of `4`, `2-8` or `1-15:4`."""
    span, _, step = word.partition(":")
    least, _, most = span.partition("-")
    numbers = [each for each in (least, most, step) if each]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers) or not least:
        return ()
    return range(int(least), min(int(most or least), 100_000) + 1, max(int(step or 1), 1))


def holds_nodes(job: Job) -> bool:
    """Return whether the job runs or cleans up."""
    return job.is_active or job.is_completing


def is_ready(job: Job, now: float, team: str) -> bool:
    """Return whether the job would run if nodes, limits and QOS allowed it: no hold, begin time or dependency."""
    return (
        job.is_pending
        and not job.is_completing
        and (job.eligible or 0.0) <= now
        and (job.reason in _WAITS_FOR_NODES or _is_limited(job) or _is_of_another_team(job, team))
    )


def is_back(job: Job) -> bool:
    """Return whether the job waits for its start time, with no run left to clean up."""
    return job.is_pending and not job.is_completing and job.reason == "BeginTime"


def parts_of_failed_start(parts: Sequence[Job], now: float) -> list[Job]:
    """Return the parts of a heterogeneous job that only Slurm's delay after a failed start keeps from running."""
    # Where one part cannot start, Slurm takes back those that it had started, and delays only these (backfill.c,
    # `_het_job_kill_now`). What a user wants later by `--begin` is hardly ever that near, and not for some parts only.
    most = now + REQUEUE_DELAY_S
    back = [job for job in parts if is_back(job) and now < (job.eligible or 0.0) <= most]
    back = [job for job in back if (job.eligible or 0.0) >= (job.submitted or 0.0) + _DELAY_S]
    rest = [job for job in parts if job not in back]
    return back if rest and all(job.is_pending and (job.eligible or 0.0) <= now for job in rest) else []


def _is_limited(job: Job) -> bool:
    """Return whether a limit of a kind that we write holds the job up, or the limit of its array."""
    if job.reason == "JobArrayTaskLimit":
        return job.most_tasks > 0
    if job.reason.startswith("QOS") and QOS_PREFIX not in job.qos:
        return False  # a limit of another QOS, which the job's user chose
    return _LIMITED.fullmatch(job.reason) is not None


def may_be_ready_later(job: Job, now: float) -> bool:
    """Return whether the job may become ready as time passes."""
    # we may nudge a job out of Slurm's delay after a requeue; a job that waits for reserved nodes may be the job for
    # which we keep them
    return job.reason in ("BeginTime", "ReqNodeNotAvail") or (job.eligible or 0.0) > now


def _is_of_another_team(job: Job, team: str) -> bool:
    """Return whether the waiting job's user moved it to another team, so that it still has the first team's QOS."""
    teams = {team_of_qos(name) for name in job.qos.split(",")} - {""}
    return job.reason == "InvalidQOS" and bool(teams) and team not in teams


def _by_kind(tres: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts by our own kinds, which count MIG slices apart from whole accelerators."""
    mig: dict[str, int] = {}
    for name, amount in tres.items():
        if name.startswith(_TYPED) and (profile := profile_of(name.removeprefix(_TYPED))):
            mig[profile] = mig.get(profile, 0) + amount
    typed = sum(amount for name, amount in tres.items() if name.startswith(_TYPED)) - sum(mig.values())
    whole = max(typed, tres.get(_GRES, 0) - sum(mig.values()))
    found = {GPU: whole, CPU: tres.get(CPU, 0), MEM: tres.get(MEM, 0)}
    return found | {f"{GPU}:{name}": amount for name, amount in mig.items()}


def _split_by_weight(amount: int, among: Mapping[str, int]) -> dict[str, int]:
    """Return an amount split by weight; the remainder goes to the first."""
    total = sum(among.values())
    if not total:
        return {}
    found = {kind: amount * weight // total for kind, weight in sorted(among.items())}
    first = next(iter(found))
    found[first] += amount - sum(found.values())
    return found


def _sum(many: list[Amounts]) -> Amounts:
    """Return the sum of the amounts."""
    if len(many) == 1:
        return many[0]
    found: dict[Resource, int] = {}
    for each in many:
        add(found, each)
    return found


def add(sums: dict[Resource, int], amounts: Amounts, times: int = 1) -> None:
    """Add the amounts to the sums, `times` times."""
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + amount * times
