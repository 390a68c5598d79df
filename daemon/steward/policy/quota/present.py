"""The jobs of a picture by team, as quotas count them.

For a team without a changed job, the result of the last plan is reused.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from steward.model.ids import JobId
from steward.model.job import Job
from steward.model.quota import Resource
from steward.policy.draft import Draft
from steward.policy.quota.requests import (
    Requests,
    Unit,
    add,
    holds_nodes,
    is_ready,
    may_be_ready_later,
    parts_of_failed_start,
)
from steward.policy.traits import OfAccount, Trait

IsReady = Callable[[Job, str], bool]
"""Whether a job of a team would run now if there were room."""


@dataclass(slots=True, eq=False)
class Held:
    """The amounts of running units, including evicted ones, summed by the QOS in which Slurm counts them.

    `away` is the part on nodes that take no jobs; `borrowers` are the units in the QOS for borrowing. The sums include
    jobs that clean up: they have their nodes, but Slurm's limits count them no longer (`..._cleaning`).
    """

    guaranteed: dict[Resource, int] = field(default_factory=dict)
    borrowed: dict[Resource, int] = field(default_factory=dict)
    other: dict[Resource, int] = field(default_factory=dict)
    away: dict[Resource, int] = field(default_factory=dict)
    guaranteed_cleaning: dict[Resource, int] = field(default_factory=dict)
    borrowed_cleaning: dict[Resource, int] = field(default_factory=dict)
    borrowers: list[Unit] = field(default_factory=list)

    @property
    def parts(self) -> tuple[dict[Resource, int], ...]:
        """Return the sums of all QOS."""
        return self.guaranteed, self.borrowed, self.other

    @staticmethod
    def of(units: Iterable[Unit]) -> "Held":
        """Return the sums of these units."""
        found = Held()
        for unit in units:
            sums, cleaning = found.other, None
            if unit.is_guaranteed:
                sums, cleaning = found.guaranteed, found.guaranteed_cleaning
            elif unit.is_borrowed:
                sums, cleaning = found.borrowed, found.borrowed_cleaning
                found.borrowers.append(unit)
            add(sums, unit.options[0])
            if cleaning is not None and unit.is_cleaning:
                add(cleaning, unit.options[0])
            add(found.away, unit.away or {})
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TeamJobs:
    """The units of a team, or of an account without a team.

    `ready` units would run if there were room; `later` units may become ready just by the passing of time.
    """

    stamps: tuple[object, ...]
    running: list[Unit]
    ready: list[Unit]
    later: list[Unit]
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The jobs of all teams.

    `running` and `held` have each team with running jobs; `homeless` are the amounts of jobs without a team. `waiting`
    are the units that would run if there were room.
    """

    running: Mapping[str, list[Unit]]
    held: Mapping[str, Held]
    homeless: list[Held]
    waiting: list[Unit]


def present_jobs(draft: Draft, requests: Requests, teams: Mapping[str, str], may_run: IsReady) -> Present:
    """Return the jobs that quotas count; `teams` are by account."""
    known, requests.kept = requests.kept, {}
    running: dict[str, list[Unit]] = {}
    held: dict[str, Held] = {}
    homeless: list[Held] = []
    waiting: list[Unit] = []
    for key, traits in sorted(_accounts_by_team(draft, teams).items()):
        mine: TeamJobs | None = known.get(key)
        stamps = tuple(map(draft.ground.jobs.stamp, traits))
        if mine is None or mine.stamps != stamps:
            mine = _team_jobs(mine, stamps, traits, draft, requests, teams)
        requests.kept[key], (team, _) = mine, key
        if not team:
            homeless.append(mine.held)
            continue
        waiting += mine.ready
        waiting += [unit for unit in mine.later if may_run(unit.jobs[0], team)]
        if mine.running:
            running[team], held[team] = mine.running, mine.held
    parts = [draft.seen.jobs[id] for id in draft.ground.jobs.having(Trait.IN_PARTS)]
    for unit in requests.units([job for job in parts if holds_nodes(job)], teams):
        if unit.team:
            running[unit.team] = [*running.get(unit.team, ()), unit]
            held[unit.team] = Held.of(running[unit.team])
        else:
            homeless.append(Held.of((unit,)))
    # Slurm starts all parts together: none runs while one of them may not
    pending = [job for job in parts if job.is_pending]
    whole: dict[JobId, list[Job]] = {}
    for job in pending:
        whole.setdefault(job.whole_id, []).append(job)
    delayed = {job.id for each in whole.values() for job in parts_of_failed_start(each, draft.now)}
    may_not = (job for job in pending if job.id not in delayed and not may_run(job, teams.get(job.account, "")))
    stuck = {job.het_job_id for job in may_not}
    waiting += requests.units([j for j in pending if j.account in teams and j.het_job_id not in stuck], teams)
    return Present(running=running, held=held, homeless=homeless, waiting=_within_array_limits(waiting, running))


def _within_array_limits(waiting: list[Unit], running: Mapping[str, list[Unit]]) -> list[Unit]:
    """Return the waiting units without array tasks that must wait for their array's limit (`--array=0-9%2`)."""
    if not any(unit.jobs[0].most_tasks for unit in waiting):
        return waiting
    going = Counter(unit.jobs[0].array_job_id for unit in chain.from_iterable(running.values()))
    found: list[Unit] = []
    for unit in waiting:
        job = unit.jobs[0]
        count = min(unit.count, job.most_tasks - going[job.array_job_id]) if job.most_tasks else unit.count
        if count > 0:
            found.append(unit if count == unit.count else replace(unit, count=count))
    return found


def _accounts_by_team(draft: Draft, teams: Mapping[str, str]) -> dict[tuple[str, str], list[OfAccount]]:
    """Return the accounts that have jobs, by (team, ""); an account without a team by ("", account)."""
    found: dict[tuple[str, str], list[OfAccount]] = {}
    for trait in draft.ground.jobs.kinds(OfAccount):
        team = teams.get(trait.account, "")
        found.setdefault((team, "" if team else trait.account), []).append(trait)
    return {key: sorted(traits) for key, traits in found.items()}


def _team_jobs(
    before: TeamJobs | None,
    stamps: tuple[object, ...],
    traits: list[OfAccount],
    draft: Draft,
    requests: Requests,
    teams: Mapping[str, str],
) -> TeamJobs:
    """Return the units of a team, reusing those whose jobs did not change."""
    known = {u.id: u for u in chain(before.running, before.ready, before.later)} if before is not None else {}
    ids = chain.from_iterable(map(draft.ground.jobs.having, traits))
    found = TeamJobs(stamps=stamps, running=[], ready=[], later=[], held=Held())
    for unit in requests.units([draft.seen.jobs[id] for id in ids], teams, known):
        job = unit.jobs[0]
        if holds_nodes(job):
            found.running.append(unit)
        elif is_ready(job, draft.now, unit.team):
            found.ready.append(unit)
        elif job.is_pending and may_be_ready_later(job, draft.now):
            found.later.append(unit)
    return replace(found, held=Held.of(found.running))
