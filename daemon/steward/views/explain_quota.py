"""Explain a job's quota to its user: why the job waits and for what, or why it was evicted, and what is next."""

from collections.abc import Mapping
from datetime import UTC, datetime

from steward.model.job import Job, parse_tres
from steward.model.quota import Eviction, QuotaJob, Reclaimed, Resource, machine_type_of
from steward.model.text import ago, time_left, times
from steward.policy.draft import Draft
from steward.policy.quota.classes import unknown_class
from steward.policy.quota.decide import UnitRuling, UnitStanding, Yielding
from steward.policy.quota.ledger import TeamAccount
from steward.policy.quota.others import limited_above
from steward.policy.quota.planned import FirstJob
from steward.policy.quota.requests import Unit, holds_nodes, parts_of_failed_start
from steward.policy.quota.turn import Turn, is_delayed, take_turn
from steward.policy.quota.words import amounts_text

_CAUSES = {
    Reclaimed.RECLAIM: "its team had borrowed, and the owner wants it back",
    Reclaimed.IN_TEAM: "a job of its own team has a higher priority class",
    Reclaimed.PRIORITY: "it was borrowed, and that job has a higher priority class",
    Reclaimed.REBALANCE: "its team had borrowed more than its fair share",
}
_NAMED = 3
_NO_NODES = "no node that it may use would have room for it, even if every borrower were evicted: it waits for nodes"
_NOT_AT_ONCE = "too few nodes are free for all of its parts at once: it waits for nodes"
_PROMISED = "what is free on nodes that it may use is promised to jobs that come first: it waits for nodes"
_UNOWNED = (
    "what no team owns is lent with IdleResourceSharing (ClusterSchedulerConfig) only, and DontLend lends nothing"
)
_LIMITS = ("QOSGrp", "AssocGrp")
"""How Slurm's reasons begin for a job that a limit holds up."""


def quota_lines(job: Job | None, draft: Draft) -> list[str]:
    """Return the lines about a job's quota, most important first; empty if no team has a quota. Pure."""
    quotas = draft.quotas_in_force
    if job is None or not quotas:
        return []
    turn = take_turn(draft)
    if turn is None:
        trouble = draft.seen.accounting.trouble if draft.seen.accounting else "Slurm's accounting has not been read yet"
        return [f"Quotas are not in force now: {trouble}."] if job.account in quotas else []
    return lines_of(job, turn, draft)


def lines_of(job: Job, turn: Turn, draft: Draft) -> list[str]:
    """Return the lines of `quota_lines` from a turn that is used for many jobs."""
    if turn.teams.get(job.account) is None:
        return [_without_quota(job, draft)]
    id = job.whole_id
    memory = draft.quota_jobs.get(id)
    now = _running(job, turn, draft) if holds_nodes(job) else _waiting(job, turn, draft)
    classes = [f"Its {text}."] if (text := unknown_class(job, draft)) else []
    return [*now, *classes, *(_past(memory, draft) if memory else [])]


def _without_quota(job: Job, draft: Draft) -> str:
    """Return the line about a job whose account is no team's."""
    name = job.account or "none"
    text = f"Account {name} has no quota: the job cannot be evicted"
    if not job.account:
        return f"{text}. For a team's share name its account: sbatch -A TEAM."
    top = limited_above(job.account, draft)
    if top:
        whose = "" if top == job.account else f" (with all accounts below {top})"
        return f"{text}, and it may use only what no team owns{whose}. For a team's share: sbatch -A TEAM."
    return (
        f"{text}; it may use what teams own. For a team's share: sbatch -A TEAM. An admin limits the account "
        f"with a quota, or with: sacctmgr modify account where name={name} set grptres=gres/gpu=N."
    )


def _running(job: Job, turn: Turn, draft: Draft) -> list[str]:
    team = turn.teams[job.account]
    unit = next((each for each in turn.running.get(team, ()) if job in each.jobs), None)
    memory = draft.quota_jobs.get(job.whole_id)
    if memory is not None and memory.yielding is not None:
        return [_being_evicted(memory.yielding, draft)]
    if unit is None:
        return []
    chosen = next((each for each in turn.yielding if each.unit.id == unit.id), None)
    if chosen is not None:
        owners = draft.shown_id(chosen.to.id)
        return [f"The job is to be evicted for job {owners} of team {chosen.to.team}: {_CAUSES[chosen.cause]}."]
    counted = turn.ledger.counted(team, unit.options[0])
    if not any(counted.values()):
        return [f"The quota of team {team} limits nothing that the job uses. No other team can take that back."]
    uses = amounts_text(counted)
    if unit not in turn.room.excess(team):
        how = "guaranteed" if unit.is_guaranteed else "begun with borrowed resources, covered by now"
        return [f"The quota of team {team} covers the job ({uses}; {how}). No other team can take that back."]
    return [
        f"Quota of team {team}: the job runs with borrowed resources ({uses}) and is evicted when their owner needs "
        "them."
    ]


def _being_evicted(eviction: Eviction, draft: Draft) -> str:
    who = "Slurm ends it" if eviction.due is None else f"its grace ends {time_left(eviction.due, draft.now)}"
    return f"The job {eviction.text}; {who}."


def _waiting(job: Job, turn: Turn, draft: Draft) -> list[str]:
    team, ruling = turn.teams[job.account], turn.rulings.get(job.whole_id)
    if ruling is None:
        if not job.is_pending:
            return []
        when = f", before {_at(job.eligible, draft)}" if (job.eligible or 0.0) > draft.now else ""
        why = f"{job.reason or 'no reason'}{when}"
        return [f"Quota of team {team}: the job is not ready to run ({why})."]
    match ruling.standing:
        case UnitStanding.NEVER:
            return [_never(ruling.unit, turn)]
        case UnitStanding.BACKS_OFF:
            when = f" {time_left(ruling.until, draft.now)}" if ruling.until is not None else " later"
            return [
                f"Quota of team {team}: the job was evicted before, and may borrow again{when}; the team's own quota "
                "is used up."
            ]
        case UnitStanding.BEHIND:
            return [f"Quota of team {team}: its jobs start in order (quota.strict), and an earlier one waits."]
        case UnitStanding.WAITS:
            return [_waits(ruling, turn, draft), *_shares(ruling, turn)]
        case _:
            return [_admitted(job, ruling, turn, draft)]


def _at(moment: float | None, draft: Draft) -> str:
    return f"{datetime.fromtimestamp(moment or 0.0, UTC):%H:%M:%SZ} ({time_left(moment or 0.0, draft.now)})"


def _never(unit: Unit, turn: Turn) -> str:
    """Return the line about a job that never fits, with the largest request that would fit."""
    over = [turn.ledger.over_limit(unit.team, amounts) for amounts in unit.options]
    if not unit.options or not all(over):
        return "Quota: the job never fits: it asks for a kind of machine or accelerator that the cluster does not have."
    absent = sorted({machine_type_of(n) for n in turn.ledger.accounts[unit.team].owned.nominal} - turn.flavors.present)
    where = f" Its quota is of {', '.join(absent)}, of which the cluster has no node." if absent else ""
    amounts, beyond = min(zip(unit.options, over, strict=True), key=lambda pair: len(pair[1]))
    most = {name: amounts[name] - more for name, more in beyond.items()}
    asked = {name: amounts[name] for name in beyond}
    return (
        f"Quota of team {unit.team}: the job never fits: it asks for {amounts_text(asked)}, and the team may have "
        f"{amounts_text(most)} at most (its quota and its borrow limit). Ask for no more than that.{where}"
    )


def _waits(ruling: UnitRuling, turn: Turn, draft: Draft) -> str:
    unit, short = ruling.unit, ruling.short
    if ruling.hopeless:
        first = _behind(unit, turn)
        why = _first(first, draft) if first is not None else _no_nodes(unit, turn)
        return f"Quota of team {unit.team}: the job may borrow, but {why}."
    if not short:
        return f"Quota of team {unit.team}: the job waits until other jobs of its team leave room."
    limited = [name for name in short if _own_limit(unit, name, turn)]
    if limited:
        limits = amounts_text({name: _limit(unit.team, name, turn) for name in limited})
        why = f"the team has reached its limit ({limits})"
        if all(
            _runs_with(unit.team, name, turn) + _asked(unit, name) <= _limit(unit.team, name, turn) for name in limited
        ):
            why = f"other waiting jobs of its team come first and take what is left of its limit ({limits})"
    else:
        holders = _holders(short, unit.team, turn)
        why = f"others have that or come first: {holders}" if holders else "no node that takes jobs has them free"
        idle = {name: amount for name in short if (amount := _idle(unit, name, turn)) > 0}
        if idle.keys() == short.keys():
            lent = {name: amount for name in idle if (amount := _asked(unit, name) - short[name]) > 0}
            whose = f"only {amounts_text(lent)} of them are lent" if lent else "no team lends them"
            why = f"{amounts_text(idle)} are idle, but {whose}: {_UNOWNED}"
    return f"Quota of team {unit.team}: the job waits, short of {amounts_text(short)}; {why}."


def _idle(unit: Unit, name: Resource, turn: Turn) -> int:
    """Return how much is free on nodes if that is enough for the job; otherwise 0."""
    free = turn.ledger.free.get(name, 0)
    return free if free >= _asked(unit, name) else 0


def _own_limit(unit: Unit, name: Resource, turn: Turn) -> bool:
    used = turn.ledger.accounts[unit.team].use.get(name, 0)
    return used + _asked(unit, name) > _limit(unit.team, name, turn)


def _asked(unit: Unit, name: Resource) -> int:
    return min((amounts.get(name, 0) for amounts in unit.options), default=0)


def _is_full(unit: Unit, name: Resource, turn: Turn) -> bool:
    return _runs_with(unit.team, name, turn) + _asked(unit, name) > _limit(unit.team, name, turn)


def _runs_with(team: str, name: Resource, turn: Turn) -> int:
    """Return the amount that the team's running jobs use."""
    # the rest of the team's use is promised to jobs that wait for nodes
    held = turn.held.get(team)
    return sum(part.get(name, 0) for part in held.parts) if held is not None else 0


def _limit(team: str, name: Resource, turn: Turn) -> int:
    owned = turn.ledger.accounts[team].owned
    return owned.nominal.get(name, 0) + owned.may_borrow.get(name, 0)


def _holders(short: Mapping[Resource, int], team: str, turn: Turn) -> str:
    """Return the teams that use what the job lacks, those that borrow most first."""
    found = []
    for name in short:
        accounts = [
            each
            for each in turn.ledger.accounts.values()
            if each.use.get(name, 0) > (_runs_with(team, name, turn) if each.team == team else 0)
        ]
        for each in sorted(accounts, key=lambda one: (-one.borrowed(name), -one.use.get(name, 0), one.team))[:_NAMED]:
            found.append(_holder(each, name, turn, is_own=each.team == team))
    return ", ".join(dict.fromkeys(found))


def _holder(each: TeamAccount, name: Resource, turn: Turn, *, is_own: bool) -> str:
    """Return in words what a team has and what it waits for."""
    # A team with jobs under eviction counts with what it keeps; of the job's own team only promises count.
    has = min(_runs_with(each.team, name, turn), each.use[name])
    beyond = max(0, has - each.owned.nominal.get(name, 0))
    words = (
        [f"has {amounts_text({name: has})}{f' ({beyond} borrowed)' if beyond else ''}"] if has and not is_own else []
    )
    if promised := each.use[name] - has:
        words.append(f"waits for nodes for {amounts_text({name: promised})}")
    return f"{each.team} {' and '.join(words)}"


def _shares(ruling: UnitRuling, turn: Turn) -> list[str]:
    """Return the line about the order among teams that borrow; empty if the share of the job's team is 0."""
    share, _ = turn.ledger.rank(ruling.unit.team)
    if not share:
        return []
    ranks = sorted((turn.ledger.rank(team)[0], team) for team in turn.ledger.accounts)
    told_of = ", ".join(f"{team} {share_text(rank)}" for rank, team in ranks if rank)
    return [f"Shares of what is lent, by weight (the least comes first): {told_of}."]


def share_text(share: float | None) -> str:
    """Return a share such as `0.0167`; `last` for a team that borrows and has no weight."""
    return "last" if share is None or share == float("inf") else f"{share:.4f}".rstrip("0").rstrip(".") or "0"


def _admitted(job: Job, ruling: UnitRuling, turn: Turn, draft: Draft) -> str:
    unit = ruling.unit
    borrows = ruling.standing is UnitStanding.BORROWED
    team = f"Quota of team {unit.team}: the job may run with what others lend"
    how = team if borrows else f"The quota of team {unit.team} covers the job"
    absent = {machine_type_of(name) for name in ruling.amounts} - turn.flavors.in_service
    if absent and not unit.apart:
        return (
            f"{how}, but no {', '.join(sorted(absent))} takes jobs now: it waits until one does (Slurm: {job.reason})."
        )
    if ruling.hopeless and (first := _behind(unit, turn)) is not None:
        return f"{how}, but {_first(first, draft)} (Slurm: {job.reason})."
    # 22.05 names a limit with room for a job with --gpus that finds no node
    if ruling.hopeless and (job.reason in ("Resources", "Priority") or _waits_for_nodes(job, unit, turn, draft)):
        return f"{how}, but {_no_nodes(unit, turn)} (Slurm: {job.reason}). Other jobs of the team may start before it."
    if victims := _victims(unit, turn, draft):
        return f"{how}; it waits for {victims}."
    reason = f" (Slurm: {job.reason})" if job.reason else ""
    waits = f"it waits for nodes{reason}"
    if job.reason.startswith(_LIMITS):
        waits = f"the limit in Slurm is about to be raised ({job.reason})"
        if by_hand := _by_hand(job, unit.team, draft):
            waits = f"a limit that was set by hand holds it up: {by_hand} ({job.reason})"
        elif _has_room(job, draft):
            waits = (
                f"there is room for that in the limit; if Slurm still says {job.reason}, Slurm counts more for the job "
                "than it asked for: with --exclusive all GPUs of the machine"
            )
    elif is_delayed(job, draft):
        waits = "Slurm's delay after its requeue is about to be ended"
    elif parts_of_failed_start(unit.jobs, draft.now):
        waits = "one of its parts could not start, and Slurm's delay after that is about to be ended"
    uses = amounts_text(turn.ledger.counted(unit.team, ruling.amounts))
    return f"{how} ({uses}); {waits}."


def _waits_for_nodes(job: Job, unit: Unit, turn: Turn, draft: Draft) -> bool:
    """Return whether the job has room in its limits, and no nodes even if every borrower were evicted."""
    if not (turn.room.knows_nodes and unit.options and _has_room(job, draft)):
        return False
    wish = turn.room.wish(unit, unit.options[0])
    return wish is not None and turn.room.is_hopeless(wish)


def _no_nodes(unit: Unit, turn: Turn) -> str:
    """Return why a job that no eviction could help has no nodes."""
    places = turn.room.places if turn.room.knows_nodes and unit.options else None
    if places is not None and (new := places.awaits_look.get(unit.id)) is not None:
        return (
            f"job {new} may start on nodes that it needs, and Slurm has not looked at that job yet: no job is evicted "
            "for this one until it has"
        )
    if places is not None and (leader := places.behind_parts.get(unit.id)) is not None:
        return (
            f"job {leader}, which comes first, waits for nodes of its own for each of its parts, and Slurm would keep "
            "what is freed for one of them: no job is evicted for this one"
        )
    wish = turn.room.wish(unit, unit.options[0]) if places is not None else None
    if places is None or wish is None:
        return _NO_NODES
    if places.had_room_at_first(wish):
        return _PROMISED
    return _NOT_AT_ONCE if wish.parts and not turn.room.is_hopeless(wish) else _NO_NODES


def _first(first: FirstJob, draft: Draft) -> str:
    """Return in words the job for which Slurm keeps nodes; or that Slurm has not planned for it yet."""
    id = str(first.job.whole_id) if first.job.het_job_id is not None else first.job.shown_id
    if first.start is None:
        return (
            f"job {id}, which comes first, has no room either, and Slurm has not planned yet which nodes it keeps for "
            f"job {id}: no job is evicted for this one until it has"
        )
    nodes = ", ".join(sorted(first.nodes)[:_NAMED])
    more = f" and {len(first.nodes) - _NAMED} more" if len(first.nodes) > _NAMED else ""
    if first.is_a_part:
        return f"Slurm keeps {nodes}{more} for a part of job {id}, which comes first and waits for all of its parts"
    return (
        f"Slurm keeps {nodes}{more} for job {id}, which comes first and is to start "
        f"{time_left(first.start, draft.now)}: only jobs that are over by then start there before it"
    )


def _behind(unit: Unit, turn: Turn) -> FirstJob | None:
    """Return the first job for which Slurm keeps nodes on which this job could start; None if there is none."""
    if not (turn.room.knows_nodes and unit.options):
        return None
    places = turn.room.places
    wish = turn.room.wish(unit, unit.options[0], gets_room=lambda id: True)
    if wish is None or turn.room.is_hopeless(wish):
        return None
    rooms = {id for id, ruling in turn.rulings.items() if ruling.may_run and not ruling.hopeless}
    return next(places.plans.before(unit.jobs[0], rooms.__contains__), None)


def _by_hand(job: Job, team: str, draft: Draft) -> str:
    """Return the limits of the job's QOS and its team's account that a person made smaller; Steward obeys them."""
    owners = {**{name: f"QOS {name}" for name in job.qos.split(",")}, f"account {team}": f"account {team}"}
    found = []
    for key, known in sorted(draft.quota_writes.items()):
        owner, _, tres = key.partition("/cap:")
        is_less = known.foreign and not (known.values[0] and int(known.values[0]) <= int(known.foreign))
        if tres and owner in owners and is_less:
            found.append(f"{tres}={known.foreign} of {owners[owner]}")
    return ", ".join(found[:_NAMED])


def _has_room(job: Job, draft: Draft) -> bool:
    """Return whether one of the job's QOS has room for its request."""
    picture, asked = draft.seen.accounting, parse_tres(job.requested)
    found = [picture.qos[name] for name in job.qos.split(",") if name in picture.qos] if picture is not None else []
    return any(all(q.used.get(n, 0) + asked.get(n, 0) <= limit for n, limit in q.limits.items()) for q in found)


def _victims(unit: Unit, turn: Turn, draft: Draft) -> str:
    """Return in words the jobs that are evicted for this one: chosen in this turn, or under way."""
    found = [_new_victim(each, draft) for each in turn.yielding if each.to.id == unit.id]
    for id, memory in sorted(draft.quota_jobs.items()):
        eviction = memory.yielding
        if eviction is not None and eviction.to_job == unit.id and id in draft.seen.jobs:
            limit = f", {time_left(eviction.due, draft.now)} at the latest" if eviction.due is not None else ""
            found.append(f"job {draft.shown_id(id)} of team {memory.team} to be evicted{limit}")
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def _new_victim(each: Yielding, draft: Draft) -> str:
    return f"job {draft.shown_id(each.unit.id)} of team {each.unit.team} to be evicted"


def _past(memory: QuotaJob, draft: Draft) -> list[str]:
    """Return a line for each past eviction of the job, the newest first, and one about the consequences."""
    over = [each for each in memory.evictions if each.over is not None]
    lines = [
        f"{ago(each.at, draft.now)}: the job {each.text.replace('is evicted', 'was evicted', 1)}."
        for each in reversed(over)
    ]
    if lines:
        often = f"The job was evicted {times(memory.count)}. " if memory.count > 1 else ""
        lines.append(
            f"{often}An eviction costs no resume and blames no node; the job keeps its place by its time of submission."
        )
    return lines
