"""One turn of quotas: the teams' jobs and the rulings on them, for the plan as well as for the tables and `explain`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steward.model.fit import FitState, Question
from steward.model.ids import JobId, Key, NodeName
from steward.model.job import Job
from steward.model.port_error import was_refused
from steward.model.quota import (
    CPU,
    GPU,
    MEM,
    ComputeQuota,
    Reclaimed,
    Resource,
    SchedulerConfig,
    kind_of,
    machine_type_of,
    resource,
)
from steward.policy.draft import Draft
from steward.policy.quota.decide import Decider, Rules, UnitRuling, Yielding
from steward.policy.quota.elsewhere import held_up
from steward.policy.quota.fill_in import Owned, owned
from steward.policy.quota.flavors import Flavors
from steward.policy.quota.foreseen import units_held_up
from steward.policy.quota.ledger import Ledger, TeamAccount
from steward.policy.quota.pick import Room
from steward.policy.quota.places import Places
from steward.policy.quota.present import Held, Present, present_jobs
from steward.policy.quota.requests import REQUEUE_DELAY_S, Amounts, Requests, Unit, add, is_back, is_ready

REBALANCE_AFTER_S = 600.0
"""A job is evicted for a fairer share only after it ran this long, and only one job within this time."""
ASKED_S = 10.0
"""How long an answer of Slurm's test of a start counts."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """The jobs and rulings of one turn. `running` are each team's units, including those being evicted (`going`)."""

    quotas: Mapping[str, ComputeQuota]
    """The quotas in force, by team."""
    flavors: Flavors
    ledger: Ledger
    room: Room
    running: Mapping[str, list[Unit]]
    held: Mapping[str, Held]
    """The amounts that each team's running units hold."""
    going: frozenset[JobId]
    rulings: Mapping[JobId, UnitRuling]
    yielding: tuple[Yielding, ...]
    homeless: Mapping[Resource, int]
    """The amounts that jobs without a team hold."""
    idle_sharing: bool
    """Whether resources that no team owns are lent."""
    teams: Mapping[str, str]
    """The team of each account, its own or one above it."""
    words: dict[str, Mapping[str, list[Resource]]] = field(default_factory=dict)
    """For each team, the TRES that limit it and the resources that each counts; filled when first needed."""

    @property
    def leaving(self) -> frozenset[JobId]:
        """Return the units that are being evicted, since an earlier turn or since this one."""
        return self.going.union(each.unit.id for each in self.yielding) if self.yielding else self.going


def take_turn(draft: Draft) -> Turn | None:
    """Rule on the picture's jobs; None if no quota is in force, or Slurm's accounting was not read."""
    quotas, picture = draft.quotas_in_force, draft.seen.accounting
    if not quotas or picture is None or picture.trouble:
        return None
    scheduler = draft.scheduler or SchedulerConfig()
    flavors = Flavors(draft, quotas)
    borrowers = frozenset(team for team, quota in quotas.items() if quota.strategy.borrows)
    requests = Requests.of(draft, flavors, scheduler, borrowers)
    teams = teams_of(draft, quotas)
    ledger = _ledger(draft, quotas, flavors, idle_sharing=scheduler.idle_sharing)
    jobs = present_jobs(draft, requests, teams, lambda job, team: _is_ready(job, team, flavors, draft))
    going = _enter_running(jobs, ledger, draft)

    staying = _staying(jobs.running, going)
    room = Room(ledger, staying, lambda: Places(draft, flavors, requests, going))
    room.taken.update(id for id in draft.quota_jobs if id in draft.seen.jobs and is_refused(draft.seen.jobs[id], draft))
    held = held_up(jobs.waiting, draft, picture) | units_held_up(jobs.waiting, staying, draft, picture)
    decider = Decider(room, _rules(draft, quotas, held, fair_share=scheduler.fair_share))
    kept = [unit for unit in jobs.waiting if _is_kept(unit.id, draft)]
    decider.decide([unit for unit in jobs.waiting if unit not in kept] if kept else jobs.waiting, kept)
    return Turn(
        quotas=quotas,
        flavors=flavors,
        ledger=ledger,
        room=room,
        running=jobs.running,
        held=jobs.held,
        going=going,
        rulings=decider.rulings,
        yielding=tuple(decider.yielding),
        homeless=_sum(each.other for each in jobs.homeless),
        idle_sharing=scheduler.idle_sharing,
        teams=teams,
    )


def _sum(many: Iterable[Amounts]) -> dict[Resource, int]:
    """Return the sum of the amounts."""
    found: dict[Resource, int] = {}
    for each in many:
        add(found, each)
    return found


def run_of(job: Job) -> str:
    """Return the present run of the job, for keys: Slurm may give the job's number again to another job."""
    return f"{job.id}:{job.restarts}:{round(job.submitted or 0.0)}"


def requeue_key(job: Job) -> Key:
    """Return the key of the requeue that evicts this run."""
    return Key(f"quota:requeue:{run_of(job)}")


def is_refused(job: Job, draft: Draft) -> bool:
    """Return whether Slurm refused to requeue this run."""
    # while the refusal is known, the job counts as staying: otherwise its nodes would stay promised to the waiting job,
    # and no other job would be evicted
    return was_refused(draft.seen.failures.get(requeue_key(job), ""))


def is_delayed(job: Job, draft: Draft) -> bool:
    """Return whether only Slurm's delay after a requeue keeps the evicted job from running."""
    # the parts of a heterogeneous job are evicted together
    memory = draft.quota_jobs.get(job.whole_id)
    last = memory.evictions[-1] if memory is not None and memory.evictions else None
    # auto-resume nudges a job that opted in
    if last is None or last.over is None or job.restarts != last.restart + 1 or job.whole_id in draft.jobs:
        return False
    return is_back(job) and draft.now < (job.eligible or 0.0) <= last.over + REQUEUE_DELAY_S


def _is_ready(job: Job, team: str, flavors: Flavors, draft: Draft) -> bool:
    """Return whether the job would run now if there were room."""
    return is_ready(job, draft.now, team) or is_delayed(job, draft) or _has_all_nodes(job, flavors, draft)


def _has_all_nodes(job: Job, flavors: Flavors, draft: Draft) -> bool:
    """Return whether the job could run although Slurm says `ReqNodeNotAvail`."""
    is_due = job.is_pending and not job.is_completing and (job.eligible or 0.0) <= draft.now
    if not is_due or job.reason != "ReqNodeNotAvail":
        return False
    # Slurm says this of a job whose nodes we keep for it, too. And it looks at no job of a partition behind one that it
    # could not start: a job whose node was away for a moment keeps the reason after the node is back.
    return _is_kept(job.id, draft) or (bool(job.unavailable) and job.unavailable <= flavors.usable)


def not_before(id: JobId, draft: Draft) -> float | None:
    """Return until when (Unix s) a job that was evicted repeatedly may not borrow; None if it may now."""
    memory = draft.quota_jobs.get(id)
    if memory is None or memory.count < 2:
        return None
    rules = draft.want.quota
    wait = min(rules.backoff_s * 2.0 ** min(memory.count - 2, 32), rules.backoff_most_s)
    last = memory.evictions[-1]
    until = (last.over or last.at) + wait
    return until if until > draft.now else None


def teams_of(draft: Draft, quotas: Mapping[str, ComputeQuota]) -> dict[str, str]:
    """Return the team of each account: its own, or that of the nearest account above it."""
    picture = draft.seen.accounting
    found = {team: team for team in quotas}
    if picture is None:
        return found
    for account in [each.account for each in picture.associations if not each.user]:
        path = list[str]()
        for at in picture.line_of(account):
            if at in found:
                found |= dict.fromkeys(path, found[at])
                break
            path.append(at)
    return found


def _ledger(draft: Draft, quotas: Mapping[str, ComputeQuota], flavors: Flavors, *, idle_sharing: bool) -> Ledger:
    """Return the ledger before any job is entered."""
    worth = draft.ground.once(
        _owned_by_team, (draft.want.capacity.types, draft.want.quota, *quotas.values()), draft, quotas
    )
    accounts = {team: TeamAccount(team=team, owned=worth[team], weight=quota.weight) for team, quota in quotas.items()}
    kinds = flavors.named | flavors.present
    decides = [resource(kind, GPU if flavors.has_gpus(kind) else CPU) for kind in sorted(kinds)]
    picture = draft.seen.accounting
    counts_memory = picture is None or picture.can.counts_memory
    capacity = {
        name: amount
        for name, amount in flavors.capacity.items()
        if machine_type_of(name) in flavors.present and (counts_memory or kind_of(name) != MEM)
    }
    return Ledger(accounts, capacity, decides=decides, idle_sharing=idle_sharing)


def _owned_by_team(draft: Draft, quotas: Mapping[str, ComputeQuota]) -> Mapping[str, Owned]:
    """Return the resources that each team owns."""
    types, count_filled = draft.want.capacity.types, draft.want.quota.count_filled
    return {team: owned(quota, types, count_filled=count_filled) for team, quota in quotas.items()}


def _enter_running(jobs: Present, ledger: Ledger, draft: Draft) -> frozenset[JobId]:
    """Enter the running jobs into the ledger, and return those being evicted, which count as gone."""
    for team, held in jobs.held.items():
        for sums in filter(None, held.parts):
            ledger.take(team, sums)
        ledger.hold(held.away, -1)
    for held in jobs.homeless:
        ledger.hold(held.other)
        ledger.hold(held.away, -1)
    leaving = {id for id, memory in draft.quota_jobs.items() if memory.yielding is not None}
    each = (unit for units in jobs.running.values() for unit in units) if leaving else ()
    going = [unit for unit in each if unit.id in leaving and _is_evicted(unit, draft)]
    for unit in going:
        ledger.take(unit.team, unit.options[0], -1, away=unit.away)
    return frozenset(unit.id for unit in going)


def _is_evicted(unit: Unit, draft: Draft) -> bool:
    """Return whether the unit is being evicted."""
    memory = draft.quota_jobs.get(unit.id)
    eviction, job = memory.yielding if memory is not None else None, unit.jobs[0]
    return eviction is not None and (eviction.restart == job.restarts or job.is_completing)


def _staying(running: Mapping[str, list[Unit]], going: frozenset[JobId]) -> dict[str, list[Unit]]:
    """Return the running units without those being evicted."""
    if not going:
        return dict(running)
    return {team: [unit for unit in units if unit.id not in going] for team, units in running.items()}


def _is_kept(id: JobId, draft: Draft) -> bool:
    """Return whether nodes of the job's lost run are kept for it."""
    memory = draft.jobs.get(id)
    return memory is not None and memory.kept is not None and memory.kept.freed is None


def _rules(draft: Draft, quotas: Mapping[str, ComputeQuota], held_up: frozenset[JobId], *, fair_share: bool) -> Rules:
    """Return the settings and facts for this turn's rulings."""
    rules = draft.want.quota
    waits = {id: until for id in draft.quota_jobs if (until := not_before(id, draft)) is not None}
    for until in waits.values():
        draft.wake(until)
    return Rules(
        fair_share=fair_share,
        in_team={team: quota.preempt for team, quota in quotas.items()},
        strict=frozenset(rules.strict),
        borrow_priority=rules.borrow_priority,
        rebalance_before=_rebalance_before(draft),
        not_before=waits,
        held_up=held_up,
        suits=lambda job, nodes: _slurm_would_start(job, nodes, draft),
    )


def _slurm_would_start(job: Job, nodes: frozenset[NodeName] | None, draft: Draft) -> bool:
    """Return whether Slurm's own test lets the job start on these nodes (None: on any); True without an answer."""
    within = draft.overview.nodes_of(job.partition) if nodes is not None else frozenset[NodeName]()
    question = Question(job=job.id, without=within - (nodes or frozenset()) - job.excluded)
    fit = draft.ask(question, since=draft.now - ASKED_S)
    return fit is None or fit.state is not FitState.NEVER


def _rebalance_before(draft: Draft) -> float | None:
    """Return before which time jobs must have started to be evicted for a fairer share; None: no job may now."""
    if not draft.want.quota.rebalance:
        return None
    all_of = (each for memory in draft.quota_jobs.values() for each in memory.evictions)
    last = max((each.at for each in all_of if each.cause is Reclaimed.REBALANCE), default=0.0)
    return draft.now - REBALANCE_AFTER_S if draft.now >= last + REBALANCE_AFTER_S else None
