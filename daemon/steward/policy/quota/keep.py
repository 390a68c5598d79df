"""The step of the plan that keeps quotas: one turn of rulings, and what follows for Slurm.

Order of writes: lower limits, then who gives way and the marks, then moves and higher limits. Nothing where no quota
exists.
"""

from dataclasses import replace

from steward.model.accounting import Accounting
from steward.model.action import MarkJob, MoveJob, SetNodeCount
from steward.model.events import Level
from steward.model.ids import JobId, Key
from steward.model.job import Job
from steward.model.quota import QuotaJob, QuotaStatus
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.quota import give_way
from steward.policy.quota.closing import close_ended
from steward.policy.quota.comment import quota_words
from steward.policy.quota.decide import Ruling, Standing
from steward.policy.quota.edits import Edits, edits
from steward.policy.quota.limits import wanted_qos, wanted_teams
from steward.policy.quota.names import PREFIX, borrowed_qos, guaranteed_qos
from steward.policy.quota.requests import Unit
from steward.policy.quota.turn import Turn, in_force, is_borrowed, take_turn

RETRY_S = 5.0
SOON_S = 1.0
TOUCHED_AT_ONCE = 50
"""Jobs that are moved or marked in one turn; the rest has its turn next."""
_SETTLED = {
    QuotaStatus.CREATING: QuotaStatus.CREATED,
    QuotaStatus.CREATE_FAILED: QuotaStatus.CREATED,
    QuotaStatus.UPDATING: QuotaStatus.UPDATED,
    QuotaStatus.UPDATE_FAILED: QuotaStatus.UPDATED,
}
_FAILED = {
    QuotaStatus.CREATING: QuotaStatus.CREATE_FAILED,
    QuotaStatus.UPDATING: QuotaStatus.UPDATE_FAILED,
}


def keep_quotas(draft: Draft) -> None:
    """Bring Slurm's limits, marks and waiting jobs to what this turn rules."""
    _settle_scheduler(draft)
    picture = draft.seen.accounting
    if not draft.quota.quotas or picture is None:
        return
    if trouble := _trouble(picture):
        _fail(trouble, draft)
        return
    if draft.want.quota.enabled:
        give_way.follow(draft)
    close_ended(draft, picture)
    turn = take_turn(draft)
    if turn is None:
        return
    _settle(turn, picture, draft)
    draft.quota_said = quota_words(turn, draft)
    if draft.want.quota.enabled:
        changes = edits(wanted_qos(turn, draft, picture), wanted_teams(turn, picture), picture, draft)
        _write(changes, turn, picture, draft)


def _trouble(picture: Accounting) -> str:
    if picture.trouble:
        return picture.trouble
    if not picture.enforces_limits:
        return "slurm.conf lacks AccountingStorageEnforce=associations,limits,qos: Slurm holds nobody to a quota"
    return ""


def _write(changes: Edits, turn: Turn, picture: Accounting, draft: Draft) -> None:
    """Everything that takes away comes before everything that gives."""
    left = draft.want.quota.edits_at_once if picture.reachable else 0
    if not picture.reachable and changes.count:
        text = "slurmdbd does not answer: the limits of all teams stay as they are"
        draft.tell("quota.frozen", text, once=f"quota-frozen:{int(draft.now // 3600)}", level=Level.WARNING)
    lower = changes.lower[:left]
    for action in lower:
        draft.wish(action, RETRY_S)
    give_way.begin(turn.yielding, picture, draft)
    touched = _mark(turn, picture, draft)
    for ruling in sorted(turn.rulings.values(), key=lambda each: each.unit.id):
        if touched >= TOUCHED_AT_ONCE:
            draft.wake(draft.now + SOON_S)
            break
        touched += _place(ruling, picture, draft)
    higher = [*changes.urgent, *changes.higher][: left - len(lower)]
    for action in higher:
        draft.wish(action, RETRY_S)
    if picture.reachable and len(lower) + len(higher) < changes.count:
        draft.wake(draft.now + SOON_S)


def _mark(turn: Turn, picture: Accounting, draft: Draft) -> int:
    """Running borrowed jobs that their quota covers by now are spared by Slurm's preemption; others are not."""
    touched = 0
    if not picture.can.marks:
        return touched
    above = picture.can.exempt_priority + 1
    for team, units in turn.running.items():
        borrowed = [unit for unit in units if is_borrowed(unit) and unit.jobs[0].is_active]
        beyond = {unit.id for unit in turn.room.excess(team)} | turn.going if borrowed else frozenset()
        for unit in borrowed[: TOUCHED_AT_ONCE + len(beyond)]:
            touched += _set_mark(unit, above if unit.id not in beyond else None, draft)
    for id, memory in list(draft.quota.jobs.items()):
        job = draft.seen.jobs.get(id)
        if memory.marked is not None and (job is None or job.is_over):
            _remember_mark(id, memory.team, None, draft)
        elif memory.marked is not None and job is not None and job.is_pending and touched < TOUCHED_AT_ONCE:
            touched += _release(job, memory, draft)
    return touched


def _set_mark(unit: Unit, priority: int | None, draft: Draft) -> int:
    """A mark is there where Slurm shows it; a higher priority that is not ours is left."""
    job, memory = unit.jobs[0], draft.quota.jobs.get(unit.id)
    marked = memory.marked if memory is not None else None
    if priority is not None and job.priority < priority:
        why = Why(rule="quota.mark", text=f"the quota of {unit.team} covers it by now: it does not give way")
        key = Key(f"quota:mark:{job.id}:{job.restarts}:{priority}")
        _remember_mark(job.id, unit.team, priority, draft)
        return draft.wish(MarkJob(key=key, why=why, job=job.id, priority=priority, restart=job.restarts), RETRY_S)
    if priority is None and marked is not None and job.priority >= marked:
        why = Why(rule="quota.unmark", text=f"{unit.team} has borrowed again: it may have to give way")
        key = Key(f"quota:unmark:{job.id}:{job.restarts}")
        return draft.wish(MarkJob(key=key, why=why, job=job.id, priority=None, restart=job.restarts), RETRY_S)
    if priority is None and marked is not None:
        _remember_mark(job.id, unit.team, None, draft)
    return 0


def _release(job: Job, memory: QuotaJob, draft: Draft) -> int:
    """Slurm keeps a priority that was set directly, also over a requeue."""
    if memory.marked is not None and job.priority < memory.marked:
        _remember_mark(job.id, memory.team, None, draft)
        return 0
    why = Why(rule="quota.unmark", text="it waits again: its priority is Slurm's to say")
    key = Key(f"quota:unmark:{job.id}:{job.restarts}")
    return draft.wish(MarkJob(key=key, why=why, job=job.id, priority=None, restart=job.restarts), RETRY_S)


def _remember_mark(id: JobId, team: str, priority: int | None, draft: Draft) -> None:
    memory = draft.quota.jobs.get(id) or QuotaJob(team=team)
    draft.quota.jobs[id] = replace(memory, marked=priority)
    if priority is None and not memory.evictions:
        del draft.quota.jobs[id]


def _place(ruling: Ruling, picture: Accounting, draft: Draft) -> int:
    """A waiting job that may run has the QOS in which it may; how many jobs were touched. One whose user chose another
    QOS than ours is left there."""
    unit, touched = ruling.unit, 0
    ours = tuple(name for name in unit.qos if name.startswith(PREFIX))
    if not ruling.may_run or (unit.qos and not ours):
        return 0
    wanted = _qos(ruling, picture)
    for job in unit.jobs:
        if wanted and tuple(job.qos.split(",")) != wanted and not _starts_with(job, wanted, picture):
            touched += draft.wish(_move(ruling, job, wanted), RETRY_S)
    most = unit.sizes[-1] if unit.sizes else 0
    if ruling.nodes and ruling.nodes < most:
        text = f"a limit of its team would hold it up: {ruling.nodes} of {unit.sizes[0]} to {most} nodes fit"
        key = Key(f"quota:size:{unit.id}:{unit.jobs[0].restarts}:{ruling.nodes}")
        why = Why(rule="quota.size", text=text)
        action = SetNodeCount(key=key, why=why, job=unit.id, least=ruling.nodes, most=ruling.nodes)
        touched += draft.wish(action, RETRY_S)
    return touched


def _qos(ruling: Ruling, picture: Accounting) -> tuple[str, ...]:
    """Empty: as it is. What is covered goes back to `g`; what borrows keeps `g` first where Slurm takes lists."""
    g, b = guaranteed_qos(ruling.unit.team), borrowed_qos(ruling.unit.team)
    if ruling.standing is Standing.OWN and not ruling.borrowed:
        return () if g in ruling.unit.qos and picture.can.qos_lists else (g,)
    return (g, b) if picture.can.qos_lists else (b,)


def _starts_with(job: Job, wanted: tuple[str, ...], picture: Accounting) -> bool:
    """Slurm sorts a list by priority: the order is its business."""
    return picture.can.qos_lists and set(job.qos.split(",")) == set(wanted)


def _move(ruling: Ruling, job: Job, qos: tuple[str, ...]) -> MoveJob:
    text = "its team's quota covers it" if ruling.standing is Standing.OWN else "it runs with what others lend"
    key = Key(f"quota:move:{job.id}:{job.restarts}:{','.join(qos)}")
    return MoveJob(key=key, why=Why(rule="quota.move", text=text), job=job.id, qos=qos)


def _settle(turn: Turn, picture: Accounting, draft: Draft) -> None:
    """A quota is made when its QOS are there; one whose account is missing says so."""
    for team, quota in turn.quotas.items():
        names = {guaranteed_qos(team)} | ({borrowed_qos(team)} if quota.strategy.borrows else set())
        if team not in picture.accounts:
            failure = f"Slurm has no account {team}: `steward quota setup --apply` makes it"
            status = _FAILED.get(quota.status, quota.status)
        elif names <= picture.qos.keys():
            failure, status = "", _SETTLED.get(quota.status, quota.status)
        else:
            failure, status = "", quota.status
        if (status, failure) != (quota.status, quota.failure):
            draft.quota.quotas[quota.id] = replace(quota, status=status, failure=failure)


def _fail(trouble: str, draft: Draft) -> None:
    for quota in in_force(draft).values():
        status = _FAILED.get(quota.status, quota.status)
        if (status, trouble) != (quota.status, quota.failure):
            draft.quota.quotas[quota.id] = replace(quota, status=status, failure=trouble)
            draft.tell("quota.trouble", f"quota {quota.name}: {trouble}", level=Level.WARNING)


def _settle_scheduler(draft: Draft) -> None:
    """It counts from the next turn on; nothing in Slurm has to be made for it."""
    scheduler = draft.quota.scheduler
    if scheduler is None:
        return
    if scheduler.status is QuotaStatus.DELETING:
        draft.quota.scheduler = None
    elif scheduler.status in _SETTLED:
        draft.quota.scheduler = replace(scheduler, status=_SETTLED[scheduler.status])
