"""The stage of the plan that keeps quotas: rule on all jobs, and ask for the changes in Slurm that follow.

Order of writes: lower limits, then evictions and marks, then moves and higher limits. Without a quota nothing is done.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from steward.model.accounting import QOS_PREFIX, Accounting, borrowed_qos, guaranteed_qos
from steward.model.action import MoveJob, NudgeJob, SetNodeCount
from steward.model.events import Level
from steward.model.ids import Key
from steward.model.job import Job
from steward.model.quota import QuotaStatus
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.guards.run_end import credential_safe_at
from steward.policy.quota import evict
from steward.policy.quota.classes import CLASS_WORD, note_unknown_classes
from steward.policy.quota.closing import close_ended, ends_key
from steward.policy.quota.comment import quota_words
from steward.policy.quota.decide import UnitRuling, UnitStanding
from steward.policy.quota.edits import Edits, edits, forget
from steward.policy.quota.limits import remedy_for, teams_still_in_b, users_apart, wanted_qos, wanted_teams
from steward.policy.quota.marks import RETRY_S, SOON_S, TOUCHED_AT_ONCE, keep_marks
from steward.policy.quota.others import release_others, wanted_others
from steward.policy.quota.requests import Unit, parts_of_failed_start
from steward.policy.quota.turn import Turn, is_delayed, take_turn

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
START_S = 30.0
"""How long after a start that failed a heterogeneous job is started anew at the earliest, but for the first time."""


def keep_quotas(draft: Draft) -> None:
    """Bring Slurm's limits, marks and the QOS of waiting jobs to the rulings of this turn."""
    _apply_scheduler(draft)
    picture = draft.seen.accounting
    if not draft.quotas or picture is None:
        return
    if trouble := _trouble(picture):
        _set_trouble(trouble, draft)
        return
    if draft.want.quota.enabled:
        evict.follow_evictions(draft)
    turn = take_turn(draft)
    others = list(wanted_others(turn, picture, draft)) if turn is not None else []
    is_left = draft.want.quota.enabled and release_others(frozenset(o.account for o in others), picture, draft)
    close_ended(draft, picture, others_left=is_left)
    if turn is None:
        return
    draft.quota_said = quota_words(turn, draft)
    note_unknown_classes(_jobs_of_unknown_class(turn), draft)
    changes = Edits()
    if draft.want.quota.enabled:
        still = teams_still_in_b(turn, draft, picture)
        teams = [*wanted_teams(turn, still, picture), *others]
        changes = edits(wanted_qos(turn, still, draft, picture), teams, picture, draft)
        _write(changes, turn, picture, draft)
    _set_status(turn, picture, changes, draft)


def _jobs_of_unknown_class(turn: Turn) -> Iterator[Job]:
    """Yield the teams' jobs that run, or are ready to, and name a priority class that the site does not have."""
    running = (unit for team in turn.quotas for unit in turn.running.get(team, ()))
    for unit in chain((ruling.unit for ruling in turn.rulings.values()), running):
        if unit.weight < 0 and CLASS_WORD in unit.jobs[0].comment:
            yield unit.jobs[0]


def _trouble(picture: Accounting) -> str:
    """Return why quotas cannot be kept; empty if they can."""
    if picture.trouble:
        return picture.trouble
    if not picture.enforces_limits:
        return "slurm.conf lacks AccountingStorageEnforce=associations,limits,qos: Slurm does not enforce quotas"
    return ""


def _write(changes: Edits, turn: Turn, picture: Accounting, draft: Draft) -> None:
    """Ask for the writes: those that take something away come before those that give something."""
    left = draft.want.quota.edits_at_once if picture.reachable else 0
    if not picture.reachable and changes.count:
        text = "slurmdbd does not answer: the limits of all teams stay as they are"
        draft.tell("quota.frozen", text, once=f"quota-frozen:{int(draft.now // 3600)}", level=Level.WARNING)
    lower = changes.lower[:left]
    for action in lower:
        draft.wish(action, RETRY_S)
    evict.finish_evictions(turn, draft)
    evict.begin_evictions(turn.yielding, picture, draft)
    touched = keep_marks(turn, picture, draft)
    for ruling in sorted(turn.rulings.values(), key=lambda each: each.unit.id):
        if touched >= TOUCHED_AT_ONCE:
            draft.wake(draft.now + SOON_S)
            break
        touched += _move_to_qos(ruling, turn, picture, draft)
    higher = [*changes.urgent, *changes.higher][: left - len(lower)]
    for action in higher:
        draft.wish(action, RETRY_S)
    if picture.reachable and len(lower) + len(higher) < changes.count:
        draft.wake(draft.now + SOON_S)


def _move_to_qos(ruling: UnitRuling, turn: Turn, picture: Accounting, draft: Draft) -> int:
    """Move a waiting job that may run to its QOS, and set its node count; return how many changes were requested."""
    unit, touched = ruling.unit, 0
    # a heterogeneous job that the quota does not cover leaves `g`, too: Slurm would keep nodes for a part of it there
    leaves_g = len(unit.jobs) > 1 and turn.quotas[unit.team].strategy.borrows
    if not (ruling.may_run or unit.replica or leaves_g):
        return 0
    is_ours = not _has_qos_of_its_users(unit, draft)
    wanted = _wanted_list(ruling, picture) if is_ours else ()
    delayed = parts_of_failed_start(unit.jobs, draft.now) if not ruling.hopeless else []
    for job in unit.jobs:
        if wanted and set(job.qos.split(",")) != set(wanted):  # compare without order: Slurm sorts the list by priority
            touched += draft.wish(_move(ruling, job, wanted), RETRY_S)
        if ruling.may_run and is_delayed(job, draft):
            touched += _skip_delay(job, "it was evicted, and there is room for it again", RETRY_S, draft)
        elif ruling.may_run and job in delayed:
            touched += _skip_delay(job, "one of its parts could not start, and there is room for all", START_S, draft)
    most = unit.sizes[-1] if unit.sizes else 0
    if is_ours and ruling.nodes and ruling.nodes < most:
        text = f"a limit of its team would hold it up: {ruling.nodes} of {unit.sizes[0]} to {most} nodes fit"
        key = Key(f"quota:size:{unit.id}:{unit.jobs[0].restarts}:{ruling.nodes}")
        why = Why(rule="quota.size", text=text)
        action = SetNodeCount(key=key, why=why, job=unit.id, least=ruling.nodes, most=ruling.nodes)
        touched += draft.wish(action, RETRY_S)
    return touched


def _has_qos_of_its_users(unit: Unit, draft: Draft) -> bool:
    """Return whether the job's user chose a QOS that is not ours: the job keeps it."""
    if not unit.qos or any(name.startswith(QOS_PREFIX) for name in unit.qos):
        return False
    # unless we moved the job out of its team's QOS when an earlier quota of the team ended
    return not any(draft.asked_at(ends_key(job)) is not None for job in unit.jobs)


def _skip_delay(job: Job, text: str, retry_s: float, draft: Draft) -> int:
    """Start the job without Slurm's delay after its last run or start; return how many changes were requested."""
    if draft.now < (safe := credential_safe_at(job, draft)):
        draft.wake(safe)
        return 0
    why = Why(rule="quota.nudge", text=text)
    key = Key(f"quota:nudge:{job.id}:{job.restarts}")
    return draft.wish(NudgeJob(key=key, why=why, job=job.id, restart=job.restarts, exclude=job.excluded), retry_s)


def _wanted_list(ruling: UnitRuling, picture: Accounting) -> tuple[str, ...]:
    """Return the QOS list of a waiting job; empty to leave it as it is."""
    g, b = guaranteed_qos(ruling.unit.team), borrowed_qos(ruling.unit.team)
    # a covered job goes back to `g`; a borrower keeps `g` first if Slurm takes lists
    lists = _takes_lists(ruling.unit, picture)
    if ruling.unit.replica:
        return (b,)  # always: an elastic run only borrows the nodes beyond its base
    if ruling.standing is UnitStanding.OWN and not ruling.borrowed:
        return () if g in ruling.unit.qos and lists else (g,)
    return (g, b) if lists else (b,)


def _takes_lists(unit: Unit, picture: Accounting) -> bool:
    """Return whether Slurm handles a list of QOS for this unit."""
    # Slurm starts the parts of a heterogeneous job together, and tests each part against the QOS that it tried last,
    # not against the QOS of the list that has room (backfill.c of 26.05, `_het_job_limit_check`). For a waiting job
    # with several partitions, slurmctld keeps a priority for each pair of partition and QOS, in an array that does not
    # grow with the list of QOS: it writes beyond the array and dies (priority_multifactor.c of 24.11 to 26.05).
    return picture.can.qos_lists and len(unit.jobs) == 1 and "," not in unit.jobs[0].partition


def _move(ruling: UnitRuling, job: Job, qos: tuple[str, ...]) -> MoveJob:
    """Return the action that gives the job these QOS."""
    text = "its team's quota covers it" if ruling.standing is UnitStanding.OWN else "it runs with what others lend"
    text = text if ruling.may_run or ruling.unit.replica else "its team's quota does not cover all of its parts"
    text = "it adds nodes to an elastic run, with what is lent" if ruling.unit.replica else text
    key = Key(f"quota:move:{job.id}:{job.restarts}:{','.join(qos)}")
    return MoveJob(key=key, why=Why(rule="quota.move", text=text), job=job.id, qos=qos)


def _set_status(turn: Turn, picture: Accounting, changes: Edits, draft: Draft) -> None:
    """Set the status and the failure of each quota; a quota is in force when Slurm shows its limits and its QOS."""
    unfinished = changes.owners
    for team, quota in turn.quotas.items():
        names = {guaranteed_qos(team)} | ({borrowed_qos(team)} if quota.strategy.borrows else set())
        has = picture.of_account(team)
        if has is None or team not in picture.accounts:
            forget(f"account {team}", draft)  # made again, it has nothing of ours, and nothing of a person's
            failure = f"Slurm has no account {team}: `steward quota setup --apply` makes it"
            status = _FAILED.get(quota.status, quota.status)
        elif (users := users_apart(picture, team)) and has.default_qos != guaranteed_qos(team):
            failure = (
                f"users with a list of QOS of their own keep Slurm from making {guaranteed_qos(team)} the default of "
                f"account {team}: {remedy_for(users, team)}"
            )
            status = _FAILED.get(quota.status, quota.status)
        elif names <= picture.qos.keys() and not unfinished & {guaranteed_qos(team), team}:
            failure, status = "", _SETTLED.get(quota.status, quota.status)
        else:
            failure, status = "", quota.status
        if (status, failure) != (quota.status, quota.failure):
            draft.quotas[quota.id] = replace(quota, status=status, failure=failure)
            if failure and quota.status in _SETTLED.values():  # a new quota may be seen before its account
                draft.tell("quota.trouble", f"quota {quota.name}: {failure}", level=Level.WARNING)


def _set_trouble(trouble: str, draft: Draft) -> None:
    """Set the trouble as the failure of every quota, and report it."""
    for quota in draft.quotas_in_force.values():
        status = _FAILED.get(quota.status, quota.status)
        if (status, trouble) != (quota.status, quota.failure):
            draft.quotas[quota.id] = replace(quota, status=status, failure=trouble)
            draft.tell("quota.trouble", f"quota {quota.name}: {trouble}", level=Level.WARNING)


def _apply_scheduler(draft: Draft) -> None:
    """Drop a deleted scheduler configuration, or note that a change of it is in force: Slurm has no part of it."""
    scheduler = draft.scheduler
    if scheduler is None:
        return
    if scheduler.status is QuotaStatus.DELETING:
        draft.scheduler = None
    elif scheduler.status in _SETTLED:
        draft.scheduler = replace(scheduler, status=_SETTLED[scheduler.status])
